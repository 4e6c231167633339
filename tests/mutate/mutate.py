#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes each call of a collective, each group and each count of ranks in train/, one at a time, and demands that a test
turns red. One build has all of them (a copy of the sources in FOLDER/source, rewritten to call mutant.h); WEFT_MUTANT=N
chooses one. A mutant that no test finds is a survivor: it needs a row in survivors.txt that says why it cannot change a
result; a row that no survivor needs is an error, too. A row of a folder (train/NAME/*) says why nothing in it is changed.

    mutate.py FOLDER                  all; continues where it was stopped (FOLDER/results.tsv)
    mutate.py FOLDER --list           names and numbers
    mutate.py FOLDER WORD...          those whose names hold one of the words, anew

FOLDER is outside of this tree, as the copy in it is no part of it. One run of all tests without a mutant records what each
script, case and cell of the lattice takes, and which mutants it comes to so that they would change something
(FOLDER/reached.json). A mutant is then run by these alone, the shortest first, until one turns red: first all mutants by what
takes SHORT seconds together, then the ones that are left by all the rest. What no test comes to is a survivor at once.
WEFT_JOBS=N runs N at once.
"""
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIMIT = 30       # seconds for a test, beside ten times what it takes without a mutant; one that does not end is red
SHORT = 20       # seconds of tests for each mutant, before any takes more
COMM_LIMIT = 10  # seconds for a collective in the lattice

# name of a call: (what is put in its place, variants)
COLLECTIVES = {
    "comm_all_reduce": ("mutant_all_reduce(", ("dropped", "other operation", "half")),
    "comm_reduce_scatter": ("mutant_reduce_scatter(", ("dropped", "other operation", "half")),
    "comm_all_gather": ("mutant_all_gather(", ("dropped", "half")),
    "comm_exchange": ("mutant_exchange(", ("dropped", "other rank", "half")),
    "comm_all_to_all": ("mutant_all_to_all(", ("dropped", "half")),
    "comm_barrier": ("mutant_barrier(", ("dropped",)),
    "comm_wait": ("mutant_wait(", ("dropped",)),
    "stream_reduce": ("mutant_stream_reduce(", ("dropped",)),
}
for _name in ("reduce_sum", "reduce_totals", "reduce_gradients", "gather_weights", "gather_wait", "rank_spread_master"):
    COLLECTIVES[_name] = ("mutant_none({n}, " + _name + ", ", ("dropped",))
for _name in ("all_ranks_max", "all_ranks_agree", "job_agree"):
    COLLECTIVES[_name] = ("mutant_second({n}, " + _name + ", ", ("dropped",))
for _name in ("all_ranks_share", "all_ranks_gather"):
    COLLECTIVES[_name] = ("mutant_zero({n}, " + _name + ", ", ("dropped",))
SIZES = {"comm_size": "mutant_one", "mesh_group_size": "mutant_one", "mesh_edp": "mutant_one",
         "comm_index": "mutant_first", "mesh_group_index": "mutant_first"}

# What may see a change: programs by case, and scripts.
SAMPLE = "train/lattice/sample"  # by cell
PROGRAMS = ["train/lattice/" + name for name in ("one", "lattice", "rounds", "resume", "types", "optimizers")] + [
    "train/engine/agree", "train/engine/all_ranks", "train/agree/agree", "train/watch/copies", "train/plan/plan", "train/comm/footprint", "train/engine/memory_fit"]
SCRIPTS = ["cli/train_" + name for name in (
    "agree", "ranks", "watch", "course", "ckpt_options", "async", "experts", "zero", "context", "stages", "eval",
    "dry_run", "plan", "report", "ends")]

GROUP = re.compile(r"\bGROUP_(TP|CP|DP|DP_CP|PP|EP|ETP|EDP|SHARD|REPLICA|ENDS|WORLD)\b")
CALL = re.compile(r"\b(" + "|".join(list(COLLECTIVES) + list(SIZES)) + r")\(")
OWNER = r"(?:[A-Za-z_]\w*(?:\[\w+\])?(?:->|\.))*"
DEGREE = re.compile(r"(?<![\w.>])(" + OWNER + r"mesh(?:->|\.)(?:tp|cp|dp|pp|ep|etp|instances)|m(?:->|\.)(?:tp|cp|dp|pp))\b")
PLACE = re.compile(r"(?<![\w.>])(" + OWNER + r"at\.(?:tp|cp|dp|pp|ep|etp|edp))\b")
ASSIGNED = re.compile(r"\s*([-+*/]?=(?!=)|\+\+|--)")
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w \*]*?)\b(\w+)\([^;]*$")


def blank(text):
    """The text with comments, strings and preprocessor lines as spaces."""
    def spaces(m):
        return re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', spaces, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", spaces, text, flags=re.M)


def close_of(text, at):
    """The place after the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("a parenthesis is not closed")


def previous_word(text, at):
    m = re.search(r"([A-Za-z_]\w*|[^\w\s])\s*\Z", text[max(0, at - 80):at])
    return m.group(1) if m else ""


def functions(text):
    """[(offset, name)] of what is defined."""
    ret, at = [], 0
    for line in text.split("\n"):
        m = FUNCTION.match(line)
        if m and not line.startswith((" ", "\t", "}")):
            ret.append((at, m.group(1)))
        at += len(line) + 1
    return ret


class Mutants:
    def __init__(self):
        self.names = []  # by number

    def add(self, file, what, variants):
        n = len(self.names)
        for v in variants:
            self.names.append(f"{file} {what}: {v}")
        return n

    def rewrite(self, file, text):
        clean = blank(text)
        body = functions(clean)
        counts, edits = {}, []

        def what(at, thing):
            inside = [name for o, name in body if o <= at]
            key = (inside[-1] if inside else "?", thing)
            counts[key] = counts.get(key, 0) + 1
            return f"{key[0]} {thing} {counts[key]}"

        for m in sorted([*CALL.finditer(clean), *GROUP.finditer(clean), *DEGREE.finditer(clean),
                         *PLACE.finditer(clean)], key=lambda m: m.start()):
            word, at = m.group(), m.start()
            before = previous_word(clean, at)
            if m.re is GROUP:
                if before not in ("case", "["):
                    n = self.add(file, what(at, word), ("first neighbour", "second neighbour"))
                    edits.append((at, m.end(), f"mutant_group({n}, {word})"))
                continue
            if m.re in (DEGREE, PLACE):
                if ASSIGNED.match(clean, m.end()) or before in ("&", "int", "."):
                    continue
                put, variant = ("mutant_one", "1") if m.re is DEGREE else ("mutant_first", "0")
                n = self.add(file, what(at, word), (variant,))
                edits.append((at, m.end(), f"{put}({n}, {word})"))
                continue
            name = m.group(1)
            if (re.match(r"[A-Za-z_*]", before) and before not in ("return", "else")) or before in (".", ">"):
                continue  # a definition
            if name in SIZES:
                n = self.add(file, what(at, name), ("1" if SIZES[name] == "mutant_one" else "0",))
                edits.append((at, at, f"{SIZES[name]}({n}, "))
                end = close_of(clean, m.end() - 1)
                edits.append((end, end, ")"))
                continue
            put, variants = COLLECTIVES[name]
            n = self.add(file, what(at, name), variants)
            edits.append((at, m.end(), put.format(n=n) if "{n}" in put else f"{put}{n}, "))
        edits.sort(key=lambda e: (e[0], e[1]), reverse=True)
        for begin, end, new in edits:
            text = text[:begin] + new + text[end:]
        head = text.rfind("\n#include", 0, text.find("\n\n", text.rfind("\n#include"))) + 1
        end = text.find("\n", head) + 1
        return text[:end] + '#include "tests/mutate/mutant.h"\n' + text[end:] if edits else text


def quiet(*argv, cwd=ROOT):
    return subprocess.run(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def must(result):
    if result.returncode:
        print(result.stdout[-4000:])
        sys.exit("mutate.py: the build with mutants could not be made")
    return result.stdout


def put(path, text):
    """Leaves a file alone that has the text, so that it is not compiled again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() == text:
                return
    with open(path, "wb") as f:
        f.write(text)


def in_train(path):
    return path.startswith("train/") and path.endswith(".c")


def folders_not_changed():
    return [r[0] for r in read_rows(os.path.join(HERE, "survivors.txt"), 2) if r[0].endswith("/*") and " " not in r[0]]


class Build:
    def __init__(self, build):
        self.source = os.path.join(build, "source")
        self.folder = os.path.join(self.source, "build")
        self.mutants = Mutants()
        self.left_alone = {folder: 0 for folder in folders_not_changed()}
        for path in must(quiet("git", "ls-files", "-co", "--exclude-standard")).split("\n"):
            full = os.path.join(ROOT, path)
            if not path or not os.path.isfile(full) or os.path.islink(full):
                continue
            with open(full, "rb") as f:
                text = f.read()
            folder = "/".join(path.split("/")[:2]) + "/*"
            if folder in self.left_alone:
                alone = Mutants()
                alone.rewrite(path, text.decode(errors="replace"))
                self.left_alone[folder] += len(alone.names) * in_train(path)
            elif in_train(path):
                text = self.mutants.rewrite(path, text.decode()).encode()
            if path in HOOKS:
                text = hooked(path, text)
            elif path == "train/comm/meson.build":
                text += b"sources += files('../../tests/mutate/mutant.c')\n"
            put(os.path.join(self.source, path), text)

    def make(self, names):
        if not os.path.exists(os.path.join(self.folder, "build.ninja")):
            must(quiet("meson", "setup", "build", "-Dcuda=disabled", "-Dwerror=false", "-Dwarning_level=0",
                       cwd=self.source))
        must(quiet("ninja", "-C", self.folder, "build.ninja"))
        self.at = {t["name"].rsplit(":", 1)[-1]: t for t in json.loads(
            must(quiet("meson", "introspect", "--tests", self.folder)))}
        targets = {t["id"]: t["filename"] for t in json.loads(
            must(quiet("meson", "introspect", "--targets", self.folder)))}
        need = {os.path.relpath(f, os.path.realpath(self.folder)) for n in names for i in self.at[n]["depends"]
                for f in targets[i]}
        must(quiet("ninja", "-C", self.folder, *sorted(need)))

    def run(self, unit, n, reached="", late_after=3600):
        """("red", "green" or "late", the line that says why)"""
        t = self.at[unit.test]
        tmp = tempfile.mkdtemp(prefix="weft-mutant-")
        env = dict(os.environ, **t["env"], **unit.env, TMPDIR=tmp, WEFT_MUTANT=str(n),
                   WEFT_MUTANTS=str(len(self.mutants.names)), WEFT_MUTANT_REACHED=reached)
        p = subprocess.Popen(t["cmd"][:1 if unit.words else None] + list(unit.words), cwd=t["workdir"] or self.folder,
                             env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, errors="replace", start_new_session=True)
        late = []
        timer = threading.Timer(late_after, lambda: (late.append(1), end(p)))
        timer.start()
        red, last = "", ""
        for line in p.stdout:
            last = line.strip() or last
            if line.startswith(("not ok", "# cell ")):
                red = line.strip()
                end(p)
                break
        p.stdout.close()
        code = p.wait()
        timer.cancel()
        shutil.rmtree(tmp, ignore_errors=True)
        if late:
            return "late", f"did not end within {late_after:.0f} s"
        return ("red" if red or code else "green"), red or last


class Unit:
    """What is run by one command."""
    def __init__(self, test, words=(), env=None):
        self.test, self.words, self.env = test, words, env or {}

    def __str__(self):
        return " ".join([self.test, *self.words, *(f"{k}={v}" for k, v in self.env.items())])


# What the copies of other files get, so that mutant.c knows the mesh and the cell.
HOOKS = {"tests/train/lattice/world.c": [(r"TIMEOUT = \d+", f"TIMEOUT = {COMM_LIMIT}"),
                                         (r"(static struct cell_rank r\[CELL_WORLD_MAX\];\n)",
                                          r"\1    mutant_cell(c->seed - 1);\n")],
         "train/engine/rank.c": [(r"(\.world = mesh_world\(c->layout\.mesh\)\};\n)",
                                  r"\1    mutant_mesh(c->layout.mesh);\n")]}


def hooked(path, text):
    text = text.decode()
    for pattern, new in HOOKS[path]:
        text, n = re.subn(pattern, new, text, count=1)
        if not n:
            sys.exit(f"mutate.py: {path} has no place for a hook: {pattern}")
    include = '#include "tests/mutate/mutant.h"\n'
    return (text if include in text else text.replace("#include", include + "#include", 1)).encode()


def end(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def cases_of(test):
    folder, name = os.path.split(test)
    with open(os.path.join(ROOT, "tests", folder, f"test_{name}.c"), encoding="utf-8") as f:
        return re.findall(r"T_CASE\((\w+)\)", f.read())


class Reached:
    """Of each unit the seconds that it takes and the mutants that it comes to; of the cells, too."""
    def __init__(self, build, folder, pool):
        self.build, self.folder, self.units, self.cells = build, folder, [], []
        names = build.mutants.names
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
        path = os.path.join(folder, "reached.json")
        known = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                known = json.load(f)
        if known.get("digest") != digest:
            known = {"digest": digest}
        units = [Unit(test, (case,)) for test in PROGRAMS for case in cases_of(test)] + [Unit(test) for test in SCRIPTS]
        jobs = {pool.submit(self.measure, u): str(u) for u in units if str(u) not in known}
        if "cells" not in known:
            jobs[pool.submit(self.measure_cells)] = "cells"
        for job in concurrent.futures.as_completed(jobs):
            known[jobs[job]] = job.result()
            put(path, json.dumps(known).encode())
        self.units = [(u, known[str(u)][0], set(known[str(u)][1])) for u in units]
        self.cells = [(int(cell), seconds, set(at)) for cell, (seconds, at) in known["cells"].items()]

    def green(self, unit, reached):
        began = time.monotonic()
        outcome, why = self.build.run(unit, -1, reached)
        if outcome != "green":
            sys.exit(f"mutate.py: {unit} is red without a mutant: {why}")
        return time.monotonic() - began

    def measure(self, unit):
        with tempfile.NamedTemporaryFile(dir=self.folder) as f:
            f.truncate(len(self.build.mutants.names))
            seconds = self.green(unit, f.name)
            return seconds, [n for n, level in enumerate(f.read()) if level == 2]

    def measure_cells(self):
        """The cells of the sample: those that come to a mutant."""
        n = len(self.build.mutants.names)
        ret = {}
        with tempfile.NamedTemporaryFile(dir=self.folder) as f:
            f.truncate(n << 18)  # with holes: more than there are cells
            seconds = self.green(Unit(SAMPLE, ("pairs_of_values",), {"WEFT_MUTANT_CELLS": "1", "WEFT_FULL": "1"}), f.name)
            at = 0
            while True:
                try:
                    at = os.lseek(f.fileno(), at, os.SEEK_DATA) // n
                except OSError:
                    break
                levels = os.pread(f.fileno(), n, at * n)
                if 2 in levels:
                    ret[at] = [i for i, level in enumerate(levels) if level == 2]
                at = (at + 1) * n
        return {cell: (seconds / len(ret), at) for cell, at in ret.items()}

    def runs(self, n):
        """[(seconds, unit)] for a mutant: in the order in which they are run."""
        cells = [(cell, seconds) for cell, seconds, at in self.cells if n in at]
        cells.sort(key=lambda c: hashlib.sha256(f"{n} {c[0]}".encode()).digest())
        ret = [(seconds, unit) for unit, seconds, at in self.units if n in at]
        for begin, stop in ((0, 6), (6, 40), (40, len(cells))):
            some = sorted(cells[begin:stop])
            if some:
                ret.append((sum(seconds for _, seconds in some) + 0.2,
                            Unit(SAMPLE, ("these",), {"WEFT_CELLS": " ".join(str(cell) for cell, _ in some)})))
        return sorted(ret, key=lambda r: r[0])


def judge(build, runs, n):
    """("found" or "survived", by what)"""
    for seconds, unit in runs:
        limit = LIMIT + 10 * seconds
        outcome, why = build.run(unit, n, late_after=limit)
        while outcome == "late" and build.run(unit, -1, late_after=limit / 2)[0] == "late":
            limit *= 2  # the machine is busy, and this tells nothing yet
            outcome, why = build.run(unit, n, late_after=limit)
        if outcome != "green":
            return "found", f"{unit}: {why}"
    return "survived", ""


def halves(runs):
    """Those that take SHORT seconds together, and the rest."""
    at, total = 0, 0
    while at < len(runs) and total + runs[at][0] <= SHORT:
        total += runs[at][0]
        at += 1
    return runs[:at], runs[at:]


def read_rows(path, cells):
    rows = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return [r for r in rows if len(r) >= cells]


def check_reasons(results, left_alone):
    """Sentences: survivors without a reason, reasons without a survivor, folders without a call that are left alone."""
    reasons = [r for r in read_rows(os.path.join(HERE, "survivors.txt"), 2) if r[0] not in left_alone]
    alive = [n for n, (state, _) in results.items() if state != "found"]
    wrong = [f"survivor without a reason: {n} ({results[n][0]})" for n in alive
             if not any(fnmatch.fnmatchcase(n, r[0]) for r in reasons)]
    return wrong + [f"reason without a survivor: {r[0]}" for r in reasons
                    if not any(fnmatch.fnmatchcase(n, r[0]) for n in alive)] + [
                        f"reason without a mutant: {folder}" for folder, n in left_alone.items() if not n]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, words = os.path.realpath(sys.argv[1]), sys.argv[2:]
    if os.path.commonpath([folder, os.path.realpath(ROOT)]) == os.path.realpath(ROOT):
        sys.exit(f"mutate.py: {folder} is in the tree that is copied: expected a folder outside of it")
    build = Build(folder)
    names = build.mutants.names
    if words == ["--list"]:
        for n, name in enumerate(names):
            print(n, name)
        return 0
    began = time.monotonic()
    path = os.path.join(folder, "results.tsv")
    known = {r[0]: (r[1], r[2] if len(r) > 2 else "") for r in read_rows(path, 2)}
    todo = [n for n, name in enumerate(names) if (any(w in name for w in words) if words else name not in known)]
    build.make({SAMPLE, *PROGRAMS, *SCRIPTS})
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WEFT_JOBS", os.cpu_count() or 1))) as pool, \
            open(path, "a", encoding="utf-8") as out:
        reached = Reached(build, folder, pool)
        print(f"# {len(names)} mutants, {len(todo)} to run; ready after {time.monotonic() - began:.0f} s", flush=True)

        def note(n, state, why):
            known[names[n]] = (state, why)
            out.write(f"{names[n]}\t{state}\t{why}\n")
            out.flush()
            if state != "found":
                print(f"{state}: {names[n]}", flush=True)

        runs = {n: halves(reached.runs(n)) for n in todo}
        for half in (0, 1):
            jobs = {pool.submit(judge, build, runs[n][half], n): n for n in todo}
            for job in concurrent.futures.as_completed(jobs):
                n, (state, why) = jobs[job], job.result()
                if state == "found" or half == 1 or not runs[n][1]:
                    note(n, state if runs[n][0] or runs[n][1] else "not met", why)
                    todo.remove(n)
            print(f"# {len(todo)} left, {time.monotonic() - began:.0f} s", flush=True)
    results = {n: known[n] for n in names if n in known}
    wrong = check_reasons(results, build.left_alone) if not words else []
    for line in wrong:
        print("not ok -", line)
    found = sum(state == "found" for state, _ in results.values())
    print(f"# {found} of {len(results)} mutants are found, {len(results) - found} survive, {len(wrong)} of these and their "
          f"reasons do not fit; {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
