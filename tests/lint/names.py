#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How functions and files can be found by name.

    names.py ROOT
"""

import fnmatch
import os
import sys

import edges
import exceptions
import house
import style

STATIC_FILES = 3


def static_names_are_rare(root):
    """A static function's name identifies its file: at most three files outside of tests have it."""
    where = {}
    for path in style.hand_written(root, house.C_KINDS + house.CXX_KINDS):
        if not path.startswith("tests/"):
            for name, _, static, _, _ in style.functions(house.read(root, path)):
                if static:
                    where.setdefault(name, set()).add(path)
    return [f"{name}: static in {len(paths)} files, {STATIC_FILES} are allowed: "
            + ", ".join(sorted(paths)) for name, paths in sorted(where.items())
            if len(paths) > STATIC_FILES]


def sources(root):
    """The hand-written .c files that need a header: not a program's main.c, not tests."""
    return [p for p in style.hand_written(root, (".c",))
            if not p.startswith("tests/") and os.path.basename(p) != "main.c"]


def shared_header(path):
    """(header, pattern) of the row of exceptions.SHARED_HEADERS that names a file, or None."""
    for header, patterns in exceptions.SHARED_HEADERS.items():
        for pattern in patterns.split():
            if fnmatch.fnmatch(path, os.path.join(os.path.dirname(header), pattern)):
                return header, pattern
    return None


def every_source_has_a_header(root):
    """x.c has x.h, or a row of exceptions.SHARED_HEADERS names it beside the header it implements."""
    wrong = []
    for path in sources(root):
        own, row = path[:-2] + ".h", shared_header(path)
        if os.path.exists(os.path.join(root, own)):
            if row and "*" not in row[1]:
                wrong.append(f"tests/lint/exceptions.py: {path} has a header of its own now")
        elif not row:
            wrong.append(f"{path}: {own} is missing; if it shares a header on purpose, name it in "
                         "SHARED_HEADERS of tests/lint/exceptions.py")
    return wrong


def internal_headers_stay_inside(root):
    """What several files of a module share is included by that module, and by tests, only."""
    table, wrong = edges.modules(root), []
    for path, number, header, quoted in edges.includes(root):
        if quoted and (header in exceptions.INTERNAL or header.endswith("_internal.h")):
            home = edges.module_of(header, table)
            if edges.module_of(path, table) not in (home, "tests"):
                wrong.append(f"{path}:{number}: {header} is internal to {home}")
    return wrong


def main(root):
    rules = [static_names_are_rare, every_source_has_a_header, internal_headers_stay_inside]
    return house.report([(r.__name__, lambda r=r: r(root)) for r in rules])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
