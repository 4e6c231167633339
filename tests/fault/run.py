#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of faults.txt, one at a time, in one build that has them all (-Dfault=true, the variable
WEFT_FAULT), and demands that the test named for each turns red, and that it is green without a fault.

    run.py BUILD-FOLDER [FAULT...]      every row, or the rows of these faults
"""
import concurrent.futures
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
sys.path.insert(0, os.path.join(ROOT, "tests/lint"))
sys.dont_write_bytecode = True
import faults  # noqa: E402

LIMIT = 300  # seconds; a fault that makes a test hang is not found


def quiet(*argv):
    return subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Tests:
    """The tests of a build with faults."""

    def __init__(self, build, names):
        self.build = os.path.join(ROOT, build)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self.must(quiet("meson", "setup", build, "-Dcuda=disabled", "-Dfault=true"))
        options = json.loads(quiet("meson", "introspect", "--buildoptions", build).stdout)
        if not next(o["value"] for o in options if o["name"] == "fault") is True:
            self.must(quiet("meson", "configure", build, "-Dfault=true"))
        self.must(quiet("ninja", "-C", build, "build.ninja"))
        self.at = {}
        for t in json.loads(quiet("meson", "introspect", "--tests", build).stdout):
            self.at[t["name"].rsplit(":", 1)[-1]] = t
        self.programs({n for n in names if n in self.at})

    @staticmethod
    def must(result):
        if result.returncode:
            print(result.stdout[-4000:])
            sys.exit("run.py: the build with faults could not be made")

    def programs(self, names):
        """Builds what the tests need and no more."""
        targets = {t["id"]: t["filename"] for t in json.loads(
            quiet("meson", "introspect", "--targets", os.path.relpath(self.build, ROOT)).stdout)}
        need = {os.path.relpath(f, self.build) for n in names for i in self.at[n]["depends"] for f in targets[i]}
        if need:
            self.must(quiet("ninja", "-C", self.build, *sorted(need)))

    def run(self, name, words, fault):
        """Until the first case fails: ("red", "green", "skipped" or "broken"; whether the fault was met; why)."""
        t = self.at[name]
        tmp = tempfile.mkdtemp(prefix="weft-fault-")
        seen = os.path.join(tmp, "seen")
        env = dict(os.environ, **t["env"], TMPDIR=tmp, WEFT_FAULT=fault, WEFT_FAULT_SEEN=seen)
        p = subprocess.Popen(t["cmd"] + list(words), cwd=t["workdir"] or self.build, env=env, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             errors="replace", start_new_session=True)
        late = []
        timer = threading.Timer(LIMIT, lambda: (late.append(1), kill_group(p)))
        timer.start()
        ok = skipped = 0
        red, last = None, ""
        for line in p.stdout:
            if line.startswith("not ok"):
                red = line.strip()
                kill_group(p)
                break
            is_skip = re.match(r"ok\b.*# SKIP", line, re.I) or re.match(r"1\.\.0 # SKIP", line, re.I)
            skipped += bool(is_skip)
            ok += line.startswith("ok") and not is_skip
            last = line.strip() or last
        p.stdout.close()
        code = p.wait()
        timer.cancel()
        reached = os.path.exists(seen)
        shutil.rmtree(tmp, ignore_errors=True)
        if late:
            return "broken", reached, f"{name} did not end within {LIMIT} s"
        if red or code:
            return "red", reached, red or f"exit code {code}: {last}"
        if ok:
            return "green", reached, f"{name} stayed green"
        if skipped:
            return "skipped", reached, last
        return "broken", reached, f"no case of {name} has a name with one of {words}"


def kill_group(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Report:
    def __init__(self):
        self.results = []
        self.lock = threading.Lock()

    def add(self, name, good, why=""):
        """good None: skipped."""
        line = f"{'not ok' if good is False else 'ok'} - {name}"
        line += f" # SKIP {why}" if good is None else ""
        entry = line.replace(" - ", " 1 - ", 1) + "\n" + (f"# {why}\n" if good is False else "")
        with self.lock:
            print(line + (f"\n# {why}" if good is False else ""), flush=True)
            self.results.append({"name": name, "stdout": entry,
                                 "result": "FAIL" if good is False else "SKIP" if good is None else "OK"})


def check_green(tests, report, name, words):
    outcome, _, why = tests.run(name, words, "")
    report.add(" ".join([f"{name} is green without a fault", *words]),
               None if outcome == "skipped" else outcome == "green", why)


def check_red(tests, report, row):
    """A fault that ends in :* is planted with 1, 2, ... until it is no longer met."""
    fault, name, words = row
    every = fault.endswith(":*")
    n = 0
    while True:
        n += 1
        one = fault[:-1] + str(n) if every else fault
        outcome, reached, why = tests.run(name, words, one)
        if every and n > 1 and not reached and outcome == "green":
            report.add(f"fault {fault} is found by {name}, each of {n - 1}", True)
            return
        if outcome == "red" and not reached:
            why = f"{name} turned red, but never met the fault: {why}"
        good = None if outcome == "skipped" else outcome == "red" and reached
        if not good or not every:
            report.add(f"fault {one} is found by {name}", good, why)
            return


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, only = sys.argv[1], sys.argv[2:]
    began = time.monotonic()
    report = Report()
    wrong = faults.rows_are_whole(ROOT)
    report.add("rows of faults.txt are whole", not wrong, "; ".join(wrong))
    wrong = faults.faults_have_rows(ROOT)
    report.add("faults have rows, and rows faults", not wrong, "; ".join(wrong))
    rows = [(c[0], c[1], tuple(c[2].split()) if len(c) > 2 else ()) for _, c in faults.rows_of(ROOT) if len(c) > 1]
    rows = [r for r in rows if not only or r[0] in only or r[0].split(":")[0] in only]
    tests = Tests(build, {name for _, name, _ in rows})
    built = time.monotonic()
    for fault, name, _ in rows:
        if name not in tests.at:
            report.add(f"fault {fault} is found by {name}", False, f"no test is called {name}")
    rows = [r for r in rows if r[1] in tests.at]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(check_green, tests, report, *key) for key in sorted({r[1:] for r in rows})]
        jobs += [pool.submit(check_red, tests, report, row) for row in rows]
        for j in jobs:
            j.result()
    print(f"# {len(rows)} rows: built in {built - began:.0f} s, run in {time.monotonic() - built:.0f} s")
    with open(os.path.join(tests.build, "faults.json"), "w", encoding="utf-8") as f:
        for r in report.results:
            f.write(json.dumps(r) + "\n")
    return 0 if rows and all(r["result"] != "FAIL" for r in report.results) else 1


if __name__ == "__main__":
    sys.exit(main())
