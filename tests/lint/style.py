#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shape of files and functions, mutable globals, headers that compile alone, and errors whose
text is searched.

    style.py ROOT [BUILD]
"""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import exceptions
import house

CODE = house.C_KINDS + house.CXX_KINDS
SCRIPTS = (".py", ".sh")
LINES = CODE + SCRIPTS + ("meson.build", "meson_options.txt", ".md", ".toml")
COLUMNS = 100
FUNCTION_LINES = 120
FUNCTION_P90 = 30  # of ten functions nine are no longer
FILE_LINES = 900
FILE_P90 = 500  # of .c files
PARAMETERS = 7
FORMATTER = 14  # clang-format's major version: each formats a little differently

# The house's mutable globals (ARCHITECTURE.md, idea 5): object file of the library, its symbols.
MUTABLE = {
    "base_core_log.c.o": {"shown", "rank_tag"},
    "base_io_map.c.o": {"blocks", "first_free", "lock", "previous", "installed"},
    "train_job_signals.c.o": {"asked"},
}


# What nvcc puts into every object with a kernel.
NVCC_OWN = re.compile("__device_stub__|__fatDeviceText|__cudaFatCubinHandle|__nv_")


# ---- files ------------------------------------------------------------------------------------

def licence_line_on_top(root):
    wrong = []
    for path in house.files(root, CODE + SCRIPTS):
        lines = house.read(root, path).split("\n")
        if path.endswith(CODE):
            fine = re.fullmatch(r"(//|/\*) SPDX-License-Identifier: Apache-2\.0( \*/)?", lines[0])
        else:
            fine = "# SPDX-License-Identifier: Apache-2.0" in lines[:2]
        if not fine:
            wrong.append(f"{path}:1: the SPDX line is missing")
    return wrong


def each_line(root, kinds):
    for path in house.files(root, kinds):
        for number, line in enumerate(house.read(root, path).split("\n"), 1):
            yield path, number, line


def no_tabs(root):
    return [f"{p}:{n}: tab" for p, n, line in each_line(root, LINES) if "\t" in line]


def no_trailing_blanks(root):
    return [f"{p}:{n}: blank at the end of the line" for p, n, line in each_line(root, LINES)
            if line != line.rstrip()]


def last_line_ends(root):
    return [f"{p}: does not end with one newline" for p in house.files(root, LINES)
            if not re.search(r"[^\n]\n\Z|\A\Z", house.read(root, p))]


def lines_fit(root):
    return [f"{p}:{n}: {len(line)} columns, {COLUMNS} are allowed"
            for p, n, line in each_line(root, CODE) if len(line) > COLUMNS]


def functions(text):
    """(name, line, length, parameters) of each function: a brace in column 0 after a parameter list."""
    lines = house.without_comments(text).split("\n")
    begin, head = None, None
    for i, line in enumerate(lines):
        if line == "{" and i and lines[i - 1].rstrip().endswith(")"):
            begin, head = i, signature(lines, i)
        elif line.startswith("}") and begin is not None:
            yield (*head, begin + 1, i - begin + 1)
            begin = None


def signature(lines, brace):
    """(name, number of parameters, static?) of the function whose body begins at a line."""
    first = brace - 1
    while first and lines[first - 1].strip() and not re.search(r"[;}\\]$|^#", lines[first - 1]):
        first -= 1
    text = " ".join(lines[first:brace]).rstrip()
    depth, at, commas = 0, len(text), 0
    while at:
        at -= 1
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[at], 0)
        commas += text[at] == "," and depth == 1
        if not depth:
            break
    name = re.search(r"(\w+)\s*\Z", text[:at])
    return name[1] if name else "?", commas + 1, bool(re.search(r"\bstatic\b", text[:at]))


def hand_written(root, kinds):
    made = house.generated(root)
    return [p for p in house.files(root, kinds) if p not in made]


def functions_are_short(root):
    found = {f"{p}:{name}": f"{p}:{line}: {name} has {size} lines, {FUNCTION_LINES} are allowed"
             for p in hand_written(root, CODE)
             for name, _, _, line, size in functions(house.read(root, p)) if size > FUNCTION_LINES}
    return house.without_exceptions(root, found, exceptions.LONG_FUNCTIONS)


def function_sizes(root):
    return [size for p in hand_written(root, CODE)
            for *_, size in functions(house.read(root, p))]


def most_functions_are_short(root):
    p90 = house.percentile(function_sizes(root), 90)
    return [f"of ten functions one is longer than {p90 - 1} lines, {FUNCTION_P90} are allowed"
            ] if p90 > FUNCTION_P90 else []


def parameters_are_few(root):
    found = {f"{p}:{name}": f"{p}:{line}: {name} has {count} parameters, {PARAMETERS} are allowed"
             for p in hand_written(root, CODE)
             for name, count, _, line, _ in functions(house.read(root, p)) if count > PARAMETERS}
    return house.without_exceptions(root, found, exceptions.MANY_PARAMETERS)


SEARCHES = (r"\b(?:str(?:str|casestr|cmp|ncmp|casecmp|ncasecmp|chr|chrnul|rchr|pbrk|c?spn|sep|tok|tok_r|"
            r"to[a-z]+)|mem(?:mem|cmp|chr)|sscanf|regexec|fnmatch)$")
TEXT_OF_ERROR = re.compile(r"(?:->|\.)(?:msg|hint|fault_text)\b(?!\s*\[)")


def calls(text):
    """(name, list of arguments) of each call and definition in C without comments; strings are
    empty."""
    for m in re.finditer(r"\b(\w+)\(", text):
        depth, args, at = 1, [""], m.end()
        while depth and at < len(text):
            c = text[at]
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
            if c == "," and depth == 1:
                args.append("")
            elif depth:
                args[-1] += c
            at += 1
        yield m[1], args


def bodies(text):
    """(name, parameter names, body) of each function, without comments and what strings say."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', house.without_comments(text))
    lines = text.split("\n")
    for name, _, _, line, size in functions(text):
        head = line - 2
        while head and lines[head - 1].strip() and not re.search(r"[;}\\]$|^#", lines[head - 1]):
            head -= 1
        names = next((args for called, args in calls("\n".join(lines[head:line - 1]))
                      if called == name), [])
        yield (name, [(re.findall(r"\w+", a) or [""])[-1] for a in names],
               "\n".join(lines[line:line + size - 1]))


def searched(body, what):
    """Whether a function's body searches a text that the pattern `what` finds."""
    return any(re.match(SEARCHES, name) and any(re.search(what, a) for a in args)
               for name, args in calls(body))


def errors_are_not_searched(root):
    """Nothing is decided by the words of an error (base/core/err.h): its text is not searched, not
    by another name either, and not in a function that is given it."""
    found, given, takers = {}, [], {}
    for path in hand_written(root, CODE):
        if path.startswith("tests/"):
            continue
        for name, parameters, body in bodies(house.read(root, path)):
            names = re.findall(r"\b(\w+) = [^;,]*" + TEXT_OF_ERROR.pattern, body)
            other = "|".join(rf"(?<![\w.>])(?:{n})\b" for n in names)
            if searched(body, TEXT_OF_ERROR.pattern + (f"|{other}" if other else "")):
                found[f"{path}:{name}"] = f"{path}: {name} searches the text of an error"
            for k, parameter in enumerate(parameters):
                if searched(body, rf"(?<![\w.>]){parameter}\b" if parameter else r"(?!)"):
                    takers.setdefault((name, k), set()).add(path)
            given += [(called, k, path) for called, args in calls(body)
                      for k, a in enumerate(args) if TEXT_OF_ERROR.search(a)]
    for called, k, path in given:
        for home in takers.get((called, k), ()):
            found[f"{home}:{called}"] = (f"{home}: {called} searches the text of an error, which "
                                         f"{path} gives it")
    wrong = house.without_exceptions(root, found, exceptions.SEARCHED_ERRORS)
    return [f"{w}: let struct err say it (base/core/err.h)" if "searches" in w else w for w in wrong]


def files_are_short(root):
    sizes = [(p, house.read(root, p).count("\n")) for p in hand_written(root, CODE + SCRIPTS)]
    found = {p: f"{p}: {n} lines, {FILE_LINES} are allowed" for p, n in sizes if n > FILE_LINES}
    return house.without_exceptions(root, found, exceptions.LONG_FILES)


def file_sizes(root):
    return [house.read(root, p).count("\n") for p in hand_written(root, (".c",))]


def most_files_are_short(root):
    p90 = house.percentile(file_sizes(root), 90)
    return [f"of ten .c files one is longer than {p90 - 1} lines, {FILE_P90} are allowed"
            ] if p90 > FILE_P90 else []


def formatter():
    """clang-format of the version that the tree is formatted with."""
    why = f"clang-format {FORMATTER} is not installed"
    for name in (f"clang-format-{FORMATTER}", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {FORMATTER}\.", version):
                return path
            why += ", this is " + version.strip()
    raise house.Skip(why)


def code_is_formatted(root):
    program, paths = formatter(), hand_written(root, CODE)
    if not os.path.exists(os.path.join(root, ".clang-format")):
        raise house.Skip("no .clang-format")

    def check(some):
        out = subprocess.run([program, "-style=file", "-output-replacements-xml", *some], cwd=root,
                             capture_output=True, text=True).stdout
        return [(path, answer.count("<replacement "))
                for path, answer in zip(some, out.split("<?xml version='1.0'?>")[1:])]

    batches = [paths[i:i + 50] for i in range(0, len(paths), 50)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as crew:
        found = [pair for batch in crew.map(check, batches) for pair in batch]
    if len(found) != len(paths):
        return [f"clang-format answered for {len(found)} of {len(paths)} files"]
    return [f"{p}: {n} places differ from clang-format {FORMATTER}: clang-format -i {p}"
            for p, n in found if n]


TYPE_ALONE = re.compile(r" +(?:\w+ )*(?!else\b|do\b|return\b)\w+(?: \*+)?")
NAME_AND_COMMENT = re.compile(r" +\**\w+(?:\[[^\]]*\])*(?: : \d+)?(?: = [^;/]*)?; */\*.*")


def declarations_are_whole(root):
    """clang-format splits a declaration whose trailing comment is too long between type and name:
    such a comment stands above."""
    wrong = []
    for path in hand_written(root, CODE):
        lines = house.read(root, path).split("\n")
        wrong += [f"{path}:{number}: the declaration is split for its comment: move that above it"
                  for number, (line, after) in enumerate(zip(lines, lines[1:]), 1)
                  if TYPE_ALONE.fullmatch(line) and NAME_AND_COMMENT.fullmatch(after)]
    return wrong


# ---- mutable globals --------------------------------------------------------------------------

def symbols(library):
    """(object file, symbol, section) of all data that the library defines."""
    out = subprocess.run([house.tool("nm"), "-f", "sysv", library], check=True, text=True,
                         capture_output=True).stdout
    member = None
    for line in out.splitlines():
        m = re.match(r"(?:Symbols|Undefined symbols) from (?:.*\[)?(.*?)\]?:$", line)
        if m:
            member = os.path.basename(m[1])
        cells = [c.strip() for c in line.split("|")]
        if len(cells) == 7 and (cells[2] in "bBdDsSgGCu" or cells[3] == "TLS"):
            yield member, cells[0], cells[6]
        if len(cells) == 7 and re.match("__(asan|tsan|msan)_", cells[0]):
            raise house.Skip("a sanitizer put globals of its own into the library")


def no_mutable_globals(libraries, allowed):
    wrong = []
    for library in libraries:
        for member, symbol, section in symbols(library):
            # tables of pointers are written once, by the loader; templates' tables never
            constant = section.startswith((".data.rel.ro", ".rodata"))
            if constant or symbol in allowed.get(member, ()) or NVCC_OWN.search(symbol):
                continue
            wrong.append(f"{member}: {symbol} in {section} is a mutable global")
    return wrong


def built_libraries(build):
    found = [os.path.join(build, n) for n in ("libweft.a", "libweft_cuda.a")]
    found = [p for p in found if os.path.exists(p)]
    if not found:
        raise house.Skip(f"no libweft.a in {build}")
    return found


# ---- headers ----------------------------------------------------------------------------------

PLAIN = ["-std=c17", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Wmissing-prototypes",
         "-D_GNU_SOURCE"]


def without_names(command):
    """The words of a compile command that are not about its input and output."""
    words, keep = shlex.split(command), []
    while words:
        word = words.pop(0)
        if word in ("-o", "-MF", "-MQ"):
            words.pop(0)
        elif word not in ("-c", "-MD", "-MMD") and not word.endswith(".c"):
            keep.append(word)
    return keep


def compile_commands(root, build):
    """{header: how a file that includes it is compiled}; under None, how any is."""
    path, known = os.path.join(build or "", "compile_commands.json"), {}
    if not build or not os.path.exists(path):
        return {None: ([house.tool("cc"), *PLAIN], root)}
    with open(path, encoding="utf-8") as f:
        entries = [e for e in json.load(f) if e["file"].endswith(".c")]
    for entry in entries:
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        how = without_names(entry["command"]), entry["directory"]
        known.setdefault(None, how)
        for header in re.findall(r'^#include "(.*)"', house.read(root, source), re.M):
            known.setdefault(header, how)
    return known


def compiles_alone(command, directory, root, header):
    """Its first complaint, or None. Included twice, so that a missing guard shows."""
    text = f'#include "{header}"\n#include "{header}"\n'
    words = command + ["-I" + os.path.abspath(root), "-Werror", "-fsyntax-only",
                       "-fdiagnostics-color=never", "-x", "c", "-"]
    if "/cuda/" in header or "/nccl/" in header:
        nvcc = shutil.which("nvcc")
        if not nvcc:
            return None
        words.append("-I" + os.path.join(os.path.dirname(os.path.dirname(nvcc)), "include"))
    run = subprocess.run(words, input=text, cwd=directory, text=True, capture_output=True,
                         env=dict(os.environ, LC_ALL="C"))
    said = [line for line in run.stderr.splitlines() if "error" in line] or [run.stderr.strip()]
    return f"{header}: does not compile alone: {said[0]}" if run.returncode else None


def headers_compile_alone(root, build):
    known = compile_commands(root, build)

    def check(header):
        return compiles_alone(*known.get(header, known[None]), root, header)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as crew:
        found = crew.map(check, house.files(root, (".h",)))
    return [f for f in found if f]


def readers_of_test_data_are_listed(root):
    """A test that calls t_data is in data_tests of tests/meson.build, to run without data too."""
    path = os.path.join(root, "tests/meson.build")
    listed = set()
    if os.path.exists(path):
        found = re.search(r"^data_tests = \[(.*?)\]", house.read(root, "tests/meson.build"),
                          re.M | re.S)
        listed = set(re.findall(r"'([^']+)'", found[1])) if found else set()
    wrong = []
    for path in house.files(root, (".c",)):
        m = re.fullmatch(r"tests/(.*?)test_(\w+)\.c", path)
        if (m and re.search(r"\bt_data\(", house.read(root, path))
                and m[1] + m[2] not in listed):
            wrong.append(f"{path}: calls t_data, but is not in data_tests of tests/meson.build")
    return wrong


def main(root, build=None):
    tree_rules = [licence_line_on_top, no_tabs, no_trailing_blanks, last_line_ends, lines_fit,
                  functions_are_short, most_functions_are_short,
                  parameters_are_few, files_are_short, most_files_are_short, code_is_formatted,
                  declarations_are_whole, errors_are_not_searched, readers_of_test_data_are_listed]
    rules = [(r.__name__, lambda r=r: r(root)) for r in tree_rules]
    rules.append(("headers_compile_alone", lambda: headers_compile_alone(root, build)))
    if build:
        rules.append(("no_mutable_globals",
                      lambda: no_mutable_globals(built_libraries(build), MUTABLE)))
    print("# lines of", house.spread("functions", function_sizes(root)))
    print("# lines of", house.spread(".c files", file_sizes(root)))
    return house.report(rules)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
