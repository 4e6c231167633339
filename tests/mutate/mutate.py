#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes each call of a collective, each group and each count of ranks in train/, one at a time, and demands that a test
turns red. One build has all of them (a copy of the sources in FOLDER/source, rewritten to call mutant.h); WEFT_MUTANT=N
chooses one. A mutant that no test finds is a survivor: it needs a row in survivors.txt that says why it cannot change a
result; a row that no survivor needs is an error, too.

    mutate.py FOLDER                  all; continues where it was stopped (FOLDER/results.tsv)
    mutate.py FOLDER --list           names and numbers
    mutate.py FOLDER WORD...          those whose names hold one of the words, anew

FOLDER is outside of this tree, as the copy in it is no part of it. Most mutants are found by the first test, within seconds; one
that survives takes all of its tests, so that the whole list takes hours of processor time. WEFT_JOBS=N runs N at once.
"""
import concurrent.futures
import fnmatch
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
LIMIT = 900      # seconds for a test; a mutant that hangs it is found
COMM_LIMIT = 5   # seconds for a collective in the lattice

FOLDERS = ("train", "train/engine", "train/model", "train/optim", "train/zero", "train/watch", "train/spec")

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
for _name in ("sum", "reduce_totals", "reduce_gradients", "units_spread", "units_settle", "rank_spread_master"):
    COLLECTIVES[_name] = ("mutant_none({n}, " + _name + ", ", ("dropped",))
for _name in ("world_max", "world_agree", "job_agree"):
    COLLECTIVES[_name] = ("mutant_second({n}, " + _name + ", ", ("dropped",))
for _name in ("world_share", "world_gather"):
    COLLECTIVES[_name] = ("mutant_zero({n}, " + _name + ", ", ("dropped",))
SIZES = {"comm_size": "mutant_one", "mesh_group_size": "mutant_one", "mesh_edp": "mutant_one",
         "comm_index": "mutant_first", "mesh_group_index": "mutant_first"}

# What would see a change, in this order. A lattice cell that differs ends a test at once.
CELLS = [("train/lattice/one", ()), ("train/lattice/sample_threads", ()),
         ("train/lattice/lattice", ()), ("train/lattice/sample", ()),
         ("train/lattice/resume", ()), ("train/lattice/types", ()), ("train/lattice/optimizers", ())]
JOBS = [("cli/train_ranks", ()), ("cli/train_watch", ()), ("cli/train_course", ()), ("cli/train_ckpt_options", ())]
TESTS = [("train/engine/world.c", [("train/engine/agree", ()), ("train/lattice/sample_threads", ())] + JOBS),
         ("train/engine/s[ta][av][te].c", CELLS[:2] + CELLS[4:5] + [("train/engine/agree", ())] + CELLS[2:4] + JOBS),
         ("train/engine/*", CELLS + [("train/engine/agree", ())] + JOBS),
         ("train/optim/*", CELLS[:2] + CELLS[6:] + CELLS[2:6]),
         ("train/watch/*", [("train/watch/copies", ())] + JOBS),
         ("train/plan_report.c", [("cli/train_plan", ()), ("train/plan/plan", ())]),
         ("train/*/*", CELLS),
         ("train/*.c", JOBS + [("cli/train_async", ()), ("cli/train_experts", ()), ("cli/train_zero", ()),
                               ("cli/train_context", ()), ("cli/train_stages", ()), ("cli/train_eval", ()),
                               ("cli/train_dry_run", ()), ("cli/train_plan", ())])]

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
        self.names = []   # by number
        self.files = []

    def add(self, file, what, variants):
        n = len(self.names)
        for v in variants:
            self.names.append(f"{file} {what}: {v}")
            self.files.append(file)
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
            if name == "sum" and file != "train/engine/reduce.c":
                continue
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


class Build:
    def __init__(self, build):
        self.source = os.path.join(build, "source")
        self.folder = os.path.join(self.source, "build")
        self.mutants = Mutants()
        for path in must(quiet("git", "ls-files", "-co", "--exclude-standard")).split("\n"):
            full = os.path.join(ROOT, path)
            if not path or not os.path.isfile(full) or os.path.islink(full):
                continue
            with open(full, "rb") as f:
                text = f.read()
            if path.endswith(".c") and os.path.dirname(path) in FOLDERS:
                text = self.mutants.rewrite(path, text.decode()).encode()
            elif path == "tests/train/lattice/world.c":
                text = re.sub(rb"TIMEOUT = \d+", b"TIMEOUT = %d" % COMM_LIMIT, text)
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

    def run(self, name, words, n):
        """("red", "green", "late"; whether the mutant was met; the line that says why)"""
        t = self.at[name]
        tmp = tempfile.mkdtemp(prefix="weft-mutant-")
        met = os.path.join(tmp, "met")
        env = dict(os.environ, **t["env"], TMPDIR=tmp, WEFT_MUTANT=str(n), WEFT_MUTANT_MET=met)
        p = subprocess.Popen(t["cmd"] + list(words), cwd=t["workdir"] or self.folder, env=env, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             errors="replace", start_new_session=True)
        late = []
        timer = threading.Timer(LIMIT, lambda: (late.append(1), end(p)))
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
        was_met = os.path.exists(met)
        shutil.rmtree(tmp, ignore_errors=True)
        if late:
            return "late", was_met, f"did not end within {LIMIT} s"
        return ("red" if red or code else "green"), was_met, red or last


def end(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def tests_of(file):
    return next(tests for pattern, tests in TESTS if fnmatch.fnmatch(file, pattern))


def judge(build, n):
    """(name, "found" or "survived" or "not met", by what)"""
    name, met_any = build.mutants.names[n], False
    for test, words in tests_of(build.mutants.files[n]):
        outcome, met, why = build.run(test, words, n)
        met_any |= met
        if outcome != "green" and met:
            return name, "found", f"{test}: {why}"
    return name, "survived" if met_any else "not met", ""


def read_rows(path, cells):
    rows = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return [r for r in rows if len(r) >= cells]


def check_reasons(results):
    """Sentences: survivors without a reason, reasons without a survivor."""
    reasons = read_rows(os.path.join(HERE, "survivors.txt"), 2)
    alive = [n for n, (state, _) in results.items() if state != "found"]
    wrong = [f"survivor without a reason: {n} ({results[n][0]})" for n in alive
             if not any(fnmatch.fnmatchcase(n, r[0]) for r in reasons)]
    return wrong + [f"reason without a survivor: {r[0]}" for r in reasons
                    if not any(fnmatch.fnmatchcase(n, r[0]) for n in alive)]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, words = os.path.realpath(sys.argv[1]), sys.argv[2:]
    if os.path.commonpath([folder, os.path.realpath(ROOT)]) == os.path.realpath(ROOT):
        sys.exit(f"mutate.py: {folder} is in the tree that is copied: expected a folder outside of it")
    build = Build(folder)
    names, files = build.mutants.names, build.mutants.files
    if words == ["--list"]:
        for n, name in enumerate(names):
            print(n, name)
        return 0
    began = time.monotonic()
    path = os.path.join(folder, "results.tsv")
    known = {r[0]: (r[1], r[2] if len(r) > 2 else "") for r in read_rows(path, 2)}
    todo = [n for n, name in enumerate(names) if (any(w in name for w in words) if words else name not in known)]
    tests = sorted({t for n in todo for t in tests_of(files[n])})
    build.make({t for t, _ in tests})
    for test in tests:
        outcome, _, why = build.run(*test, -1)
        if outcome != "green":
            sys.exit(f"mutate.py: {test[0]} is red without a mutant: {why}")
    print(f"# {len(names)} mutants, {len(todo)} to run; built in {time.monotonic() - began:.0f} s", flush=True)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WEFT_JOBS", os.cpu_count() or 1))) as pool, \
            open(path, "a", encoding="utf-8") as out:
        for job in concurrent.futures.as_completed([pool.submit(judge, build, n) for n in todo]):
            name, state, why = job.result()
            known[name] = (state, why)
            out.write(f"{name}\t{state}\t{why}\n")
            out.flush()
            if state != "found":
                print(f"{state}: {name}", flush=True)
    results = {n: known[n] for n in names if n in known}
    wrong = check_reasons(results) if not words else []
    for line in wrong:
        print("not ok -", line)
    found = sum(state == "found" for state, _ in results.values())
    print(f"# {found} of {len(results)} mutants are found, {len(results) - found} survive, {len(wrong)} of these and their "
          f"reasons do not fit; {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
