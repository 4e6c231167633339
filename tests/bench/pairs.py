#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times two commands in turn: what a change costs or gains, on a machine that does other things too.

    pairs.py [--rounds 9] 'OLD COMMAND' 'NEW COMMAND'

Each round runs both, in the order AB, then BA. Printed: processor time (user and system, of the
command and its children) and clock, each the median of the rounds, and the median of the ratios new
/ old of each round. Neighbours slow both halves of a pair alike, so the ratio holds where the times
do not; its quartiles tell whether it does."""

import argparse
import resource
import statistics
import subprocess
import sys
import time


def run(command):
    """(processor seconds, clock seconds) of one run; its output is dropped."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    code = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL).returncode
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        sys.exit(f"pairs.py: exit status {code}: {command}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("old")
    p.add_argument("new")
    o = p.parse_args()
    times = {"old": [], "new": []}
    for command in (o.old, o.new):  # into the page cache, not counted
        run(command)
    for i in range(o.rounds):
        for name in ("old", "new") if i % 2 == 0 else ("new", "old"):
            times[name].append(run(getattr(o, name)))
    for k, what in enumerate(("processor", "clock")):
        old, new = ([t[k] for t in times[name]] for name in ("old", "new"))
        ratios = sorted(b / a for a, b in zip(old, new) if a > 0)
        if len(ratios) < 2:
            print(f"{what}: too short to be measured")
            continue
        q = statistics.quantiles(ratios, n=4)
        print(f"{what}: old {statistics.median(old):.3f} s, new {statistics.median(new):.3f} s, "
              f"new / old {statistics.median(ratios):.3f} (quartiles {q[0]:.3f} to {q[2]:.3f})")


if __name__ == "__main__":
    main()
