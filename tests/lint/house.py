# SPDX-License-Identifier: Apache-2.0
"""What the lint programs share: the files of the tree, C without comments, and TAP.

Python's standard library only. A rule is a function that takes the tree's root (and what else it
needs) and returns the list of its violations, each one line that begins with the place.
"""

import fnmatch
import os
import re
import shutil

C_KINDS = (".c", ".h", ".cu", ".cuh")
CXX_KINDS = (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx")


class Skip(Exception):
    """A rule that cannot be judged here; the text says why."""


def files(root, kinds):
    """Paths below root with one of these endings, sorted; hidden and build folders are left out."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [d for d in below if not d.startswith(".") and d not in ("__pycache__", "runs")
                    and not os.path.isdir(os.path.join(folder, d, "meson-info"))
                    and not os.path.exists(os.path.join(folder, d, "pyvenv.cfg"))]
        for name in names:
            if name.endswith(kinds):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", newline="") as f:
        return f.read()


def generated(root):
    """The files that .gitattributes marks as generated."""
    if not os.path.exists(os.path.join(root, ".gitattributes")):
        return set()
    rows = [line.split() for line in read(root, ".gitattributes").splitlines()]
    patterns = [row[0].lstrip("/") for row in rows if "linguist-generated" in row[1:]]
    return {p for p in files(root, C_KINDS + CXX_KINDS)
            if any(fnmatch.fnmatch(p, pattern) for pattern in patterns)}


def without_exceptions(root, found, allowed):
    """The complaints of `found` ({name: complaint}) that `allowed` ({name: reason}) does not name,
    and the exceptions that nothing needs any more. A name is a path, or PATH:FUNCTION."""
    stale = [f"tests/lint/exceptions.py: {name} needs no exception any more: drop its row"
             for name in allowed
             if name not in found and os.path.isfile(os.path.join(root, name.split(":")[0]))]
    return [line for name, line in found.items() if name not in allowed] + stale


def without_comments(text):
    """The C text with its comments blanked out; lines keep their numbers, strings stay."""
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'

    def blank(m):
        return re.sub(r"[^\n]", " ", m[0]) if m[0].startswith("/") else m[0]

    return re.sub(pattern, blank, text, flags=re.S)


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def percentile(sizes, percent):
    """The smallest size that so many percent do not exceed."""
    return sorted(sizes)[-(-len(sizes) * percent // 100) - 1] if sizes else 0


def spread(what, sizes):
    """A line of a report: how large things are."""
    return (f"{len(sizes)} {what}: median {percentile(sizes, 50)}, p90 {percentile(sizes, 90)}, "
            f"p99 {percentile(sizes, 99)}, maximum {max(sizes, default=0)}")


def report(rules):
    """Runs (name, function without arguments) pairs as TAP; the exit code."""
    passed = failed = skipped = 0
    for number, (name, rule) in enumerate(rules, 1):
        try:
            wrong = rule()
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
            skipped += 1
            continue
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
        passed += not wrong
        failed += bool(wrong)
    print(f"1..{len(rules)}")
    print(f"# {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0
