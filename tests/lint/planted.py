#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each lint rule is seen to reject a planted violation, and to pass a small tree that is clean.

    planted.py
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import commits
import edges
import exceptions
import faults
import house
import names
import recipes
import same_text
import style
import walk

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"

CLEAN = {
    "ARCHITECTURE.md": "# House\n\n| module | does | may include |\n|---|---|---|\n"
                       "| `base` | ground | |\n"
                       "| `train/ops` | maths | base |\n"
                       "| `train/comm` | words | base |\n"
                       "| `train` | all | base, train/ops |\n"
                       "| `train/later` (to come) | more | base |\n"
                       "\n## A token's way\n\n| a step | `base/a.c`, `a.h` |\n\n## Ideas\n",
    "base/README.md": "# base\n",
    "train/README.md": "# train\n",
    "train/ops/README.md": "# train/ops\n",
    "train/comm/README.md": "# train/comm\n",
    "base/a.h": LICENCE + "#ifndef BASE_A_H\n#define BASE_A_H\nstruct a {\n    int n;\n};\n"
                          "#endif\n",
    "meson.build": "configure_file(output: 'made.h', configuration: made)\n",
    "base/a.c": LICENCE + '#include "made.h"\n#include "base/a.h"\n'
                          '/* #include "train/ops/o.h" */\n',
    "base/x_cxx.cc": LICENCE + "#include <memory>\n",
    "train/ops/o.h": LICENCE + '#include "base/a.h"\n',
    "train/ops/cuda/k.cu": LICENCE + '#include <cuda_runtime.h>\n#include "train/ops/o.h"\n',
    "train/comm/m.c": LICENCE + "#include <mpi.h>\n",
    "train/comm/m.h": LICENCE,
    "train/main.c": LICENCE + '#include "train/ops/o.h"\n',
    "base/table.c": LICENCE + "static int  data[] = {1};\n" + "\n" * 700 + "int x;\n",
    ".gitattributes": "# generated\n/base/tab*.c linguist-generated -diff\n",
    ".clang-format": "BasedOnStyle: LLVM\nIndentWidth: 4\nBreakBeforeBraces: Linux\n"
                     "SortIncludes: false\n",
    "CONTRIBUTING.md": "# To do\n\n## Recipes\n\n| to add | touch | prove | newest |\n|---|---|---|---|\n"
                       "| a base | `base/a.c`, `train/ops/NAME.h` | | `base/a\\.h` 3 |\n"
                       "| an op | `base/*.c`, `train/main.c` | | `nothing\\|ops/o\\.h` 2 |\n"
                       "| nothing | `base/a.c` | | |\n",
    "tool.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
    "build/meson-info/x.c": "\tleft out, as all of a build folder is \n",
}

ARCHITECTURE = CLEAN["ARCHITECTURE.md"]

# rule, the file that is planted, its text, words of the complaint
LONG_FUNCTION = "int g(int a)\n{\n" + "    a++;\n" * 28 + "    return a;\n}\n"

PLANTED = [
    (edges.table_is_sound, "ARCHITECTURE.md", "# House\n", "no table of modules"),
    (edges.table_is_sound, "ARCHITECTURE.md", ARCHITECTURE + "| `base2` | x | |\n", "no folder"),
    (edges.table_is_sound, "ARCHITECTURE.md", ARCHITECTURE + "| `train/comm` (to come) | x | |\n",
     "train/comm is not to come"),
    (edges.table_is_sound, "ARCHITECTURE.md", ARCHITECTURE + "| `attic` (to come) | x | cellar |\n",
     "may include cellar, which is not a module"),
    (edges.modules_have_a_readme, "ARCHITECTURE.md", ARCHITECTURE + "| `train/ops/cuda` | x | |\n",
     "train/ops/cuda: has no README.md"),
    (edges.table_is_sound, "ARCHITECTURE.md",
     ARCHITECTURE.replace("ground | |", "ground | cellar |"), "may include cellar, which is not a module"),
    (edges.modules_have_no_cycle, "ARCHITECTURE.md",
     ARCHITECTURE.replace("| `base` | ground | |", "| `base` | ground | train |"),
     "cycle: base -> train -> base"),
    (edges.modules_have_no_cycle, "ARCHITECTURE.md",
     ARCHITECTURE.replace("| maths | base |", "| maths | train/ops |"),
     "cycle: train/ops -> train/ops"),
    (edges.every_file_has_a_module, "attic/a.c", LICENCE, "attic/a.c: is not in a module"),
    (edges.includes_keep_to_the_table, "base/a.c", LICENCE + '#include "train/ops/o.h"\n',
     "base/a.c:2: module base may not include train/ops"),
    (edges.includes_keep_to_the_table, "train/ops/o.h", LICENCE + '#include "train/main.c"\n',
     "module train/ops may not include train (train/main.c)"),
    (edges.includes_keep_to_the_table, "train/comm/m.c", LICENCE + '# include  "train/ops/o.h"\n',
     "module train/comm may not include train/ops"),
    (edges.includes_keep_to_the_table, "train/ops/cuda/k.cu",
     LICENCE + '#include "train/comm/m.c"\n', "module train/ops may not include train/comm"),
    (edges.includes_keep_to_the_table, "base/a.c", LICENCE + '#include "a.h"\n', "is not a file"),
    (edges.includes_keep_to_the_table, "base/a.c", LICENCE + '#include "../train/ops/o.h"\n',
     "is not a file"),
    (edges.includes_keep_to_the_table, "base/a.c", LICENCE + '#include "base/../train/ops/o.h"\n',
     "is not a file"),
    (edges.includes_keep_to_the_table, "train/main.c", LICENCE + "#include <base/a.h>\n",
     "is ours"),
    (edges.cuda_headers_stay_in_cuda, "train/main.c", LICENCE + "#include <cuda_runtime.h>\n",
     "train/main.c:2: <cuda_runtime.h>"),
    (edges.cuda_headers_stay_in_cuda, "train/ops/o.h", LICENCE + "#include <cublas_v2.h>\n",
     "cublas"),
    (edges.cuda_headers_stay_in_cuda, "base/cudnn.c", LICENCE + "#include <cudnn.h>\n", "cudnn"),
    (edges.cuda_headers_stay_in_cuda, "train/comm/m.c", LICENCE + "#include <nccl.h>\n", "nccl"),
    (edges.mpi_headers_stay_in_comm, "train/main.c", LICENCE + "#include <mpi.h>\n", "<mpi.h>"),
    (edges.cxx_stays_in_wrappers, "base/x.cc", LICENCE, "base/x.cc: C++"),
    (edges.cxx_stays_in_wrappers, "base/x.hpp", LICENCE, "base/x.hpp: C++"),
    (style.licence_line_on_top, "base/a.c", "\n" + LICENCE, "base/a.c:1:"),
    (style.licence_line_on_top, "tool.py", "#!/usr/bin/env python3\n", "tool.py:1:"),
    (style.readers_of_test_data_are_listed, "tests/tok/test_a.c", LICENCE + 'char *p = t_data("x");\n',
     "not in data_tests"),
    (style.errors_are_not_searched, "base/a.c",
     LICENCE + 'int f(struct err *e)\n{\n    return !strncmp(e->msg, "rank ", 5);\n}\n',
     "base/a.c: f searches the text of an error"),
    (style.errors_are_not_searched, "base/a.c",
     LICENCE + "int f(struct err e)\n{\n    const char *said = e.msg;\n"
     '    return strstr(said, ", step ") != NULL;\n}\n', "base/a.c: f searches"),
    (style.errors_are_not_searched, "base/a.c",
     LICENCE + 'static int is(int a, const char *said)\n{\n    return strcmp(said, "x") + a;\n}\n\n'
     "int f(struct err *e)\n{\n    return is(0, e->hint);\n}\n",
     "base/a.c: is searches the text of an error, which base/a.c gives it"),
    (style.no_tabs, "base/a.c", LICENCE + "int\tx;\n", "base/a.c:2: tab"),
    (style.no_trailing_blanks, "base/a.c", LICENCE + "int x; \n", "base/a.c:2: blank"),
    (style.no_trailing_blanks, "base/a.c", LICENCE + "int x;\r\n", "base/a.c:2: blank"),
    (style.last_line_ends, "base/a.c", LICENCE + "int x;", "base/a.c: does not end"),
    (style.last_line_ends, "base/a.c", LICENCE + "\n", "base/a.c: does not end"),
    (style.lines_fit, "base/a.c", LICENCE + "/*" + "x" * 97 + "*/\n", "base/a.c:2: 101 columns"),
    (style.functions_are_short, "base/a.c",
     LICENCE + "int f(int a,\n      int b)\n{\n" + "    a++;\n" * 118 + "    return a;\n}\n",
     "base/a.c:4: f has 121 lines"),
    (style.most_functions_are_short, "base/a.c",
     LICENCE + "int f(int a)\n{\n    return a;\n}\n" * 7 + LONG_FUNCTION, "longer than 30 lines"),
    (style.most_files_are_short, "base/a.c", LICENCE + "\n" * 499 + "int x;\n", "longer than 500 lines"),
    (style.files_are_short, "base/a.c", LICENCE + "\n" * 899 + "int x;\n", "base/a.c: 901 lines"),
    (style.files_are_short, "long.py", CLEAN["tool.py"] + "x = 1\n" * 900, "long.py: 902 lines"),
    (style.parameters_are_few, "base/a.c",
     LICENCE + "static inline int g(int a, int (*b)(int, int), int c[f(1, 2)], int d,\n"
     "                    int e, int f, int g, int h)\n{\n    return 0;\n}\n",
     "base/a.c:4: g has 8 parameters"),
    (style.code_is_formatted, "base/a.c", LICENCE + "int  x;\nint y;\n", "base/a.c: 1 places"),
    (style.declarations_are_whole, "base/a.h",
     LICENCE + "struct a {\n    const struct b\n        *c; /* a comment */\n};\n", "base/a.h:3: the declaration is split"),
    (style.code_is_formatted, "train/ops/cuda/k.cu",
     LICENCE + "static __global__ void k(float *y)\n{\n  y[0] = 1;\n}\n", "k.cu: 3 places"),
    (names.every_source_has_a_header, "base/b.c", LICENCE, "base/b.c: base/b.h is missing"),
    (names.every_source_has_a_header, "train/cmd_a.c", LICENCE, "train/cmd_a.h is missing"),
    (names.internal_headers_stay_inside, "train/main.c",
     LICENCE + '#include "train/ops/pool_internal.h"\n', "is internal to train/ops"),
    (names.public_functions_are_called, "base/a.c",
     LICENCE + "int f(int n);\nint f(int n)\n{\n    return n ? f(n - 1) : 0;\n}\n",
     "base/a.c: nothing outside of tests calls f"),
    (faults.rows_are_whole, "tests/fault/faults.txt", "sign ops\n", "faults.txt:1: expected a fault, a test"),
    (faults.faults_have_rows, "base/a.c", LICENCE + 'int f = FAULT("sign");\n',
     "base/a.c: no row of tests/fault/faults.txt names the fault sign"),
    (faults.faults_have_rows, "tests/fault/faults.txt", "# fault\ttest\nsign:3\tops\n",
     "faults.txt:2: nothing in the code plants the fault sign"),
]

GLOBALS = """
#include <stddef.h>
static int counter = 1;
static char room[64];
int shared;
static _Thread_local int per_thread;
static const char *mutable_pointer = "x";
static const char *const names[] = {"a", "b"};
static const int numbers[] = {1, 2};
void *use(int i);
void *use(int i)
{
    static int inside;
    inside += numbers[i & 1] + per_thread++ + counter++;
    room[i] = names[i & 1][0];
    if (i > 7)
        mutable_pointer = names[0];
    if (i > 6)
        return room;
    return i > 5 ? (void *)&shared : i > 4 ? (void *)&inside : (void *)(size_t)mutable_pointer;
}
"""


def plant(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8", newline="") as f:
            f.write(text)


@contextlib.contextmanager
def tree(files):
    with tempfile.TemporaryDirectory() as root:
        plant(root, {**CLEAN, **files})
        yield root


def a_clean_tree_passes():
    with tree({}) as root:
        rules = sorted({rule for rule, *_ in PLANTED}, key=lambda r: r.__name__)
        return [f"{r.__name__}: {w}" for r in rules for w in r(root)] + style.headers_compile_alone(
            root, None)


def large_modules_are_rejected():
    """As many files as are allowed pass, one more does not."""
    have = sum(p.startswith("train/ops/") and not p.endswith(".md") for p in CLEAN)
    files = {f"train/ops/f{i}.c": LICENCE for i in range(edges.MODULE_FILES - have)}
    with tree(files) as root:
        wrong = edges.modules_are_small(root)
    with tree({**files, "train/ops/cpu/one_more.h": LICENCE}) as root:
        return wrong + expect(edges.modules_are_small(root), "train/ops: 41 files, 40 are allowed")


def a_star_allows_all():
    star = ARCHITECTURE.replace("| all | base, train/ops |", "| all | * |")
    with tree({"ARCHITECTURE.md": star,
               "train/main.c": LICENCE + '#include "train/comm/m.c"\n'}) as root:
        return edges.includes_keep_to_the_table(root) + edges.table_is_sound(root)


def expect(wrong, words, count=1):
    """What is amiss with a rule's answer, as a list of lines."""
    if len(wrong) == count and words in wrong[0]:
        return []
    return [f"expected {count} complaint(s) with '{words}'"] + (wrong or ["there was none"])


def is_rejected(rule, path, text, words):
    with tree({path: text}) as root:
        return expect(rule(root), words)


def limits_are_exact():
    longest = {"base/a.c": LICENCE + "/*" + "é" * 96 + "*/\nint f(int a, int b, int c, int d, int e, "
                           "int f, int g)\n{\n" + "    a++;\n" * 117 + "    return a;\n}\n"
                           + "int x;\n" * 776}
    with tree(longest) as root:
        return (style.lines_fit(root) + style.functions_are_short(root)
                + style.files_are_short(root) + style.parameters_are_few(root))


STATIC = LICENCE + "static int same(int a)\n{\n    return a;\n}\n"


def frequent_static_names_are_rejected():
    """Three files may have a name, and tests and what is not static do not count."""
    files = {path: STATIC for path in ("base/a.c", "train/main.c", "train/comm/m.c",
                                       "tests/a.c", "tests/b.c")}
    files["train/b.c"] = STATIC.replace("static ", "")
    with tree(files) as root:
        wrong = names.static_names_are_rare(root)
    with tree({**files, "train/ops/o.h": STATIC}) as root:
        return wrong + expect(names.static_names_are_rare(root), "same: static in 4 files")


def functions_for_tests_alone_are_rejected():
    """A call by a test does not count, nor by a function that only a test calls; a table does."""
    body = "(void)\n{\n    return %s;\n}\n"
    files = {"base/a.c": LICENCE + "int low" + body % "1" + "static int own" + body % "low()"
                         + "int high" + body % "own()",
             "tests/a.c": LICENCE + "int main" + body % "high() + low()"}
    table = {"base/t.c": LICENCE + "int (*const table[])(void) = {\n    high};\n"}
    with tree({**files, **table}) as root:
        wrong = names.public_functions_are_called(root)
        with patched("TESTED_ALONE", {"base/a.c:high": "planted"}):
            wrong += expect(names.public_functions_are_called(root), "high needs no exception")
    with tree(files) as root:
        wrong += expect([w.split(":")[1].split()[-1] for w in names.public_functions_are_called(root)],
                        "", 2)
        with patched("TESTED_ALONE", {"base/a.c:high": "planted"}):
            wrong += names.public_functions_are_called(root)
        with patched("TESTED_ALONE", {"base/a.c:low": "planted"}):
            wrong += expect(names.public_functions_are_called(root), "calls high")
    return wrong


def exceptions_are_by_name():
    """An exception holds for the name alone, and one that is not needed fails."""
    wrong = []
    text = LICENCE + "\n" * 900 + "int x;\n"
    with tree({"base/a.c": text, "base/long.c": text}) as root:
        with patched("LONG_FILES", {"base/a.c": "planted"}):
            wrong += expect(style.files_are_short(root), "base/long.c: 902 lines")
        with patched("LONG_FILES", {"base/a.c": "", "base/long.c": "", "train/main.c": ""}):
            wrong += expect(style.files_are_short(root), "train/main.c needs no exception")
        with patched("SHARED_HEADERS", {"base/a.h": "long.c"}):
            wrong += names.every_source_has_a_header(root)
        with patched("SHARED_HEADERS", {"base/a.h": "long.c a.c"}):
            wrong += expect(names.every_source_has_a_header(root), "has a header of its own")
    with tree({"base/b.h": LICENCE, "train/main.c": LICENCE + '#include "base/b.h"\n'}) as root:
        with patched("INTERNAL", {"base/b.h"}):
            wrong += expect(names.internal_headers_stay_inside(root), "base/b.h is internal")
    return wrong


@contextlib.contextmanager
def patched(table, value):
    old = getattr(exceptions, table)
    setattr(exceptions, table, value)
    try:
        yield
    finally:
        setattr(exceptions, table, old)


def bad_subjects_are_rejected():
    good = ("tok: resize the table under the writer lock", "train/ops, base: embed x" + "x" * 47,
            "docs: pass on what --help says")
    bad = {"resize the table": "is not 'module:", "Tok: resize it": "is not 'module:",
           "tok:resize it": "is not 'module:", "tok: resized the table": "'resized' is not",
           "tok: resizes the table": "'resizes' is not", "tok: resizing": "'resizing' is not",
           "tok: the table is resized": "'the' is not", "tok: Resize it": "'Resize' is not",
           "tok: resize it.": "ends with a period", "tok: resize " + "x" * 61: "73 columns"}
    wrong = [f"{s}: {commits.amiss(s)}" for s in good if commits.amiss(s)]
    return wrong + [f"{s}: {commits.amiss(s)}" for s, why in bad.items()
                    if why not in (commits.amiss(s) or "")]


def commits_are_judged_after_the_rule():
    """Older subjects pass; so does a tree without git, with a reason."""
    wrong = []
    with tempfile.TemporaryDirectory() as root:
        def commit(subject, path):
            plant(root, {path: subject})
            same_text.git(root, "add", "-A")
            same_text.git(root, "-c", "user.name=lint", "-c", "user.email=lint", "commit", "-qm",
                          subject)

        def skips(words):
            try:
                commits.commit_subjects_are_imperative(root, "rule")
            except house.Skip as why:
                return [] if words in str(why) else [f"skipped for: {why}"]
            return [f"not skipped: {words}"]

        wrong += skips("not a git checkout")
        same_text.git(root, "init", "-q", root)
        commit("before the rule anything went", "a")
        wrong += skips("no commit has rule yet")
        commit("the rule", "rule")
        commit("a: mend it", "b")
        wrong += commits.commit_subjects_are_imperative(root, "rule")
        commit("a: mended", "c")
        wrong += expect(commits.commit_subjects_are_imperative(root, "rule"), "\"a: mended\"")
    return wrong


def broken_headers_are_rejected():
    wrong = []
    for text, words in (("size_t n(void);\n", "base/b.h: does not compile alone"),
                        ("struct b {\n    int n;\n};\n", "redefinition"),
                        ('#include "base/a.h"\n', None)):
        with tree({"base/b.h": LICENCE + text}) as root:
            found = style.headers_compile_alone(root, None)
            wrong += expect(found, words) if words else found
    return wrong


def mutable_globals_are_rejected():
    with tempfile.TemporaryDirectory() as root:
        plant(root, {"g.c": GLOBALS})
        source, member, library = (os.path.join(root, n) for n in ("g.c", "g.c.o", "libg.a"))
        subprocess.run([house.tool("cc"), "-O1", "-fPIC", "-c", source, "-o", member], check=True)
        subprocess.run([house.tool("ar"), "rcs", library, member], check=True)
        found = style.no_mutable_globals([library], {})
        fewer = style.no_mutable_globals([library], {"g.c.o": {"counter", "shared"}})
    named = {line.split()[1].split(".")[0] for line in found}
    wanted = {"counter", "room", "shared", "per_thread", "mutable_pointer", "inside"}
    wrong = [] if named == wanted else [f"found {sorted(named)}, planted {sorted(wanted)}"]
    return wrong + ([] if len(fewer) == 4 else [f"{len(fewer)} left where two of six are allowed"])


def foreign_libraries_are_rejected():
    """A program for each forbidden family, linked with an empty library of that name."""
    wrong = []
    with tempfile.TemporaryDirectory() as root:
        plant(root, {"empty.c": "", "main.c": "int main(void)\n{\n    return 0;\n}\n"})
        os.mkdir(os.path.join(root, "tok"))
        cc, program = house.tool("cc"), os.path.join(root, "tok", "tok")
        for name in ("libcuda.so.1", "libcudart.so.13", "libcublas.so.13", "libcudnn.so.9",
                     "libnccl.so.2", "libmpi.so.40", "libopenblas.so.0", "libblas.so.3"):
            library = os.path.join(root, name)
            subprocess.run([cc, "-shared", "-Wl,-soname," + name, "-o", library,
                            os.path.join(root, "empty.c")], check=True)
            subprocess.run([cc, "-Wl,--no-as-needed", "-o", program, os.path.join(root, "main.c"),
                            library], check=True)
            wrong += expect(edges.lean_programs_link_little(root, root), "needs " + name)
        subprocess.run([cc, "-o", program, os.path.join(root, "main.c")], check=True)
        wrong += edges.lean_programs_link_little(root, root)
        plant(root, {"prep/main.c": ""})
        wrong += expect(edges.lean_programs_link_little(root, root), "was not built")
    return wrong


FUNCTION = """#include <stdlib.h>
int f(int n)
{
    if (n > 7)
        abort();
    return n * %d;
}
"""


def built(root, sources):
    """A build folder with the objects of some sources, as far as same_text.py looks at one."""
    build, entries = os.path.join(root, "build"), []
    plant(root, sources)
    os.makedirs(os.path.join(build, "meson-info"))
    for number, path in enumerate(sources):
        command = [house.tool("cc"), "-O2", "-D__LINE__=0", "-w", "-o", f"{number}.o", "-c",
                   os.path.join("..", path)]
        subprocess.run(command, check=True, cwd=build)
        entries.append({"directory": build, "command": " ".join(command), "output": f"{number}.o",
                        "file": os.path.join("..", path)})
    plant(build, {"compile_commands.json": json.dumps(entries), "meson-info/meson-info.json":
                  json.dumps({"directories": {"source": root}})})
    return build


def changed_code_is_found():
    """A file that moves: with the same function, with another constant, and with a missing one."""
    wrong = []
    with contextlib.ExitStack() as stack:
        def objects(sources):
            root = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory()))
            return same_text.objects(built(root, sources), root)

        old = objects({"a/f.c": FUNCTION % 3, "a/g.c": "int g;\n"})
        same = objects({"b/new.c": "/* moved */\n" + FUNCTION % 3, "a/g.c": "int g;\n"})
        other = objects({"b/new.c": FUNCTION % 5, "a/g.c": "int g;\n"})
        fewer = objects({"b/new.c": FUNCTION % 3})
        moved = {"a/f.c": "b/new.c"}
        wrong += same_text.compare(old, same, moved)
        wrong += expect(same_text.compare(old, other, moved), "a/f.c: the code of b/new.c differs")
        wrong += expect(same_text.compare(old, fewer, moved), "a/g.c: a/g.c is not compiled")
        wrong += expect(same_text.compare(fewer, same, {}), "a/g.c: compiled in the new build alone")
        os.remove(old["a/g.c", "-D__LINE__=0 -O2 -w"])
        wrong += expect(same_text.compare(old, same, moved), "a/g.c: " + old["a/g.c", "-D__LINE__=0 "
                        "-O2 -w"] + " was not built")
        os.remove(same["a/g.c", "-D__LINE__=0 -O2 -w"])
        wrong += same_text.compare(old, same, moved)
    return wrong


def a_function_that_is_not_met_is_named():
    """The walk in gdb: of two functions, one is called."""
    if not shutil.which("gdb"):
        raise house.Skip("gdb is not installed")
    with tempfile.TemporaryDirectory() as root:
        plant(root, {"main.c": "int met(int n)\n{\n    return n + 1;\n}\n\nint missed(int n)\n{\n"
                               "    return n - 1;\n}\n\nint main(int n, char **v)\n{\n"
                               "    return v && n > 1 ? missed(n) : met(n) - n - 1;\n}\n"})
        program = os.path.join(root, "main")
        subprocess.run([house.tool("cc"), "-g", "-O0", "-o", program, "main.c"], cwd=root, check=True)
        missed, code, said = walk.not_met(root, [("main.c", "met"), ("main.c", "missed")], [program], root)
    return [] if missed == [("main.c", "missed")] and code == "0" else [f"{missed}, {code}: {said}"]


def git_names_the_renames():
    def commit(root, sources):
        plant(root, sources)
        same_text.git(root, "add", "-A")
        same_text.git(root, "-c", "user.name=lint", "-c", "user.email=lint", "commit", "-qm", "lint")

    with tempfile.TemporaryDirectory() as root:
        old, new = os.path.join(root, "old"), os.path.join(root, "new")
        same_text.git(root, "init", "-q", old)
        commit(old, {"a/f.c": FUNCTION % 3, "a/g.c": "int g;\n"})
        same_text.git(root, "clone", "-q", old, new)
        os.remove(os.path.join(new, "a/f.c"))
        commit(new, {"b/new.c": "/* moved */\n" + FUNCTION % 3})
        found = same_text.renames(old, new)
        plant(new, {"a/g.c": "int h;\n"})
        try:
            same_text.renames(old, new)
            wrong = ["a checkout with changes was taken"]
        except same_text.Unusable:
            wrong = []
    return wrong + ([] if found == {"a/f.c": "b/new.c"} else [f"found {found}"])


def main():
    rules = [(f"{rule.__name__}_{number}", lambda a=(rule, *rest): is_rejected(*a))
             for number, (rule, *rest) in enumerate(PLANTED, 1)]
    rules += [(r.__name__, r) for r in (a_clean_tree_passes, limits_are_exact,
                                        large_modules_are_rejected, a_star_allows_all,
                                        broken_headers_are_rejected, mutable_globals_are_rejected,
                                        foreign_libraries_are_rejected, changed_code_is_found,
                                        git_names_the_renames, a_function_that_is_not_met_is_named, frequent_static_names_are_rejected,
                                        functions_for_tests_alone_are_rejected,
                                        exceptions_are_by_name, bad_subjects_are_rejected,
                                        commits_are_judged_after_the_rule)]
    return house.report(rules)


if __name__ == "__main__":
    sys.exit(main())
