#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each fault that the code plants has a row in tests/fault/faults.txt, and each row a fault.

    faults.py ROOT
"""

import os
import re
import sys

import house

TABLE = "tests/fault/faults.txt"
# A fault that has a number of its own (comm_skip:3) is planted under a name that a macro defines.
PLANTED = re.compile(r'FAULT\("([^"]+)"\)|#define FAULT_NAME "([^"]+)"')


def rows_of(root):
    """(line number, cells) of each row: a fault, a test, and perhaps words for the test."""
    found = []
    if os.path.exists(os.path.join(root, TABLE)):
        for number, line in enumerate(house.read(root, TABLE).splitlines(), 1):
            line = line.split("#")[0].rstrip()
            if line:
                found.append((number, [c.strip() for c in line.split("\t")]))
    return found


def rows_are_whole(root):
    return [f"{TABLE}:{number}: expected a fault, a test and perhaps words, with tabs between them"
            for number, cells in rows_of(root) if len(cells) not in (2, 3) or not all(cells)]


def faults_have_rows(root):
    named, planted = {}, {}
    for number, cells in rows_of(root):
        named.setdefault(cells[0].split(":")[0], number)
    for path in house.files(root, house.C_KINDS + house.CXX_KINDS):
        if not path.startswith("tests/"):
            for m in PLANTED.finditer(house.without_comments(house.read(root, path))):
                planted.setdefault(m[1] or m[2], path)
    return ([f"{path}: no row of {TABLE} names the fault {name}"
             for name, path in sorted(planted.items()) if name not in named] +
            [f"{TABLE}:{number}: nothing in the code plants the fault {name}"
             for name, number in sorted(named.items()) if name not in planted])


def main(root):
    rules = [rows_are_whole, faults_have_rows]
    return house.report([(r.__name__, lambda r=r: r(root)) for r in rules])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
