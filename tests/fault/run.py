#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one fault after the other (faults.txt) in a build of its own and demands that the test named for
it turns red. A fault that no test finds is a failure. Usage: run.py BUILD-FOLDER [FAULT...]"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def table():
    rows = []
    with open(os.path.join(HERE, "faults.txt"), encoding="utf-8") as f:
        for line in f:
            line = line.split("#")[0].strip()
            if line:
                fault, test = line.split("\t")
                rows.append((fault.strip(), test.strip()))
    return rows


def quiet(*argv):
    return subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def targets(build, test):
    """The programs that a test needs, so that a fault rebuilds no more."""
    found = quiet("meson", "introspect", "--tests", build)
    for t in json.loads(found.stdout):
        if t["name"] == test or t["name"].endswith(":" + test):
            base = os.path.join(ROOT, build) + os.sep
            paths = [os.path.normpath(c) for c in t["cmd"]]
            return [os.path.relpath(c, base) for c in paths if c.startswith(base)]
    return None


def main():
    build, only = sys.argv[1], sys.argv[2:]
    if not os.path.exists(os.path.join(ROOT, build, "build.ninja")):
        r = quiet("meson", "setup", build, "-Dcuda=disabled", "-Dwerror=false")
        if r.returncode:
            print(r.stdout)
            return 1
    results = []
    for fault, test in table():
        if only and fault not in only:
            continue
        quiet("meson", "configure", build, f"-Dfault={fault}")
        need = targets(build, test)
        if need is None:
            ok, why = False, f"no test is called {test}"
        else:
            built = quiet("ninja", "-C", build, *need)
            if built.returncode:
                ok, why = False, "the build failed:\n" + built.stdout[-2000:]
            else:
                ran = quiet("meson", "test", "-C", build, "--no-rebuild", test)
                ok = ran.returncode != 0
                why = f"{test} stayed green"
        print(f"{'ok' if ok else 'not ok'} - fault {fault} is found by {test}" + ("" if ok else f" # {why}"),
              flush=True)
        results.append({"name": f"fault {fault}", "result": "OK" if ok else "FAIL",
                        "stdout": f"{'ok' if ok else 'not ok'} 1 - found by {test}\n" + ("" if ok else f"# {why}\n")})
    quiet("meson", "configure", build, "-Dfault=")
    with open(os.path.join(ROOT, build, "faults.json"), "w", encoding="utf-8") as f:
        for r in results:
            f.write(json.dumps(r) + "\n")
    return 0 if results and all(r["result"] == "OK" for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
