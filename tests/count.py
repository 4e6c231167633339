#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of meson's JSON logs (one object a line): each TAP line counts, a test without
TAP counts once. Ends in "N passed, N failed, N skipped" and fails if anything failed."""
import json
import re
import sys

LINE = re.compile(r"^(ok|not ok)\b(.*)$")


def count(entry):
    passed = failed = skipped = 0
    for line in (entry.get("stdout") or "").splitlines():
        m = LINE.match(line)
        if not m:
            continue
        if "# SKIP" in m.group(2).upper():
            skipped += 1
            print(f"skipped: {entry['name']}: {m.group(2).split('#', 1)[1].strip()}")
        elif m.group(1) == "ok":
            passed += 1
        else:
            failed += 1
            print(f"failed: {entry['name']}{m.group(2)}")
    bad = entry["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
    if passed + failed + skipped == 0:
        passed, skipped = (0, 1) if entry["result"] == "SKIP" else (int(not bad), 0)
    if bad and not failed:
        failed += 1
        print(f"failed: {entry['name']}: {entry['result']}")
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as f:
                entries = [json.loads(line) for line in f if line.strip()]
        except OSError as e:
            print(f"failed: no results in {path}: {e.strerror}")
            total[1] += 1
            continue
        for entry in entries:
            total = [a + b for a, b in zip(total, count(entry))]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
