#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of meson's JSON logs (one object a line): each TAP line counts, a test without
TAP counts once. Names what was skipped, then what failed, each with its reason; ends in the number of
comparisons with peers (the cases of the suite interop) and "N passed, N failed, N skipped". Fails if
anything failed or nothing ran. With --failed first, only what failed is named."""
import json
import re
import sys

LINE = re.compile(r"^(ok|not ok)\b(.*)$")
# what tells most, in a log without a TAP line for the failure
TELLING = re.compile(r"ERROR: |SUMMARY: |runtime error:|Error\b|^bug at |TAP parsing error|Timeout|killed", re.I)
WIDTH = 300


def shorten(text):
    return text if len(text) <= WIDTH else text[:WIDTH] + " ..."


def why_of(lines, at):
    """The comments of a failed case: a C program's stand after it, a script's before it."""
    after = at + 1
    while after < len(lines) and lines[after].startswith("#"):
        after += 1
    before = at
    while before and lines[before - 1].startswith("#"):
        before -= 1
    said = [x.lstrip("# ") for x in lines[before:at] + lines[at + 1:after] if not re.match(r"# \d+ passed", x)]
    return shorten(" | ".join(said[:4])) or "no reason given"


def why_of_log(entry):
    """Of a test that ended badly without saying in which case."""
    lines = [x.strip() for x in ((entry.get("stderr") or "") + "\n" + (entry.get("stdout") or "")).splitlines() if x.strip()]
    telling = [x for x in lines if TELLING.search(x)]
    said = telling[:1] + telling[-1:] if len(telling) > 1 else telling or lines[-2:]
    return shorten(" | ".join([entry["result"], *dict.fromkeys(said)]))


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = self.compared = 0
        self.notes = {"skipped": [], "failed": []}

    def note(self, kind, text):
        self.notes[kind].append(f"{kind}: {text}")

    def add(self, entry):
        name = entry["name"]
        lines = (entry.get("stdout") or "").splitlines()
        passed = failed = skipped = 0
        for at, line in enumerate(lines):
            m = LINE.match(line)
            if not m:
                continue
            if "# SKIP" in m.group(2).upper():
                skipped += 1
                self.note("skipped", f"{name}: {m.group(2).split('#', 1)[1].strip()[4:].strip()}")
            elif m.group(1) == "ok":
                passed += 1
            else:
                failed += 1
                self.note("failed", f"{name}:{m.group(2)}: {why_of(lines, at)}")
        bad = entry["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
        if passed + failed + skipped == 0:
            passed, skipped = (0, 1) if entry["result"] == "SKIP" else (int(not bad), 0)
        if bad and not failed:
            failed += 1
            self.note("failed", f"{name}: {why_of_log(entry)}")
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.compared += passed if "interop/" in name else 0

    def missing(self, path, why):
        self.failed += 1
        self.note("failed", f"no results in {path}: {why}")


def main():
    only_failed = sys.argv[1:2] == ["--failed"]
    count = Count()
    for path in sys.argv[1 + only_failed:]:
        try:
            with open(path, encoding="utf-8") as f:
                entries = [json.loads(line) for line in f if line.strip()]
        except OSError as e:
            count.missing(path, e.strerror)
            continue
        for entry in entries:
            count.add(entry)
    if not only_failed:
        for line in dict.fromkeys(count.notes["skipped"]):
            print(line)
    for line in count.notes["failed"]:
        print(line)
    if only_failed:
        return 0
    print(f"{count.compared} comparisons with peers")
    print(f"{count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
