#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How functions and files can be found by name, and whether programs use what headers offer.

    names.py ROOT
"""

import fnmatch
import os
import re
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


def uses(text):
    """The functions that a file defines, (name, static?); and (word, function in whose body it is),
    None for a table or a macro. A declaration uses nothing."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', '""', house.without_comments(text))
    defined, used, inside = [], set(), {}
    for name, _, static, line, size in style.functions(text):
        if name != "?":  # a macro spells the name
            defined.append((name, static))
        inside.update(dict.fromkeys(range(line, line + size), name if name != "?" else None))
    depth, directive = 0, False
    for number, line in enumerate(text.split("\n"), 1):
        begins = directive or line.lstrip().startswith("#")
        directive = begins and line.endswith("\\")
        if number in inside or begins:
            used.update((word, inside.get(number)) for word in re.findall(r"\w+", line))
            continue
        depth = 0 if line.startswith("}") else depth
        for word in re.findall(r"\w+|[{}]", re.sub(r'extern "" *{', "", line)):
            depth += {"{": 1, "}": -1 if depth else 0}.get(word, 0)
            if depth:
                used.add((word, None))
    return defined, used


def public_functions_are_called(root):
    """Something outside of tests uses each function that is not static to a file, or a row of
    exceptions.TESTED_ALONE says why tests alone do. What such a function calls counts as used only
    if it has a row."""
    home, where = {}, {}  # (file of a static function or None, name): its file; word: its places
    for path in house.files(root, house.C_KINDS + house.CXX_KINDS):
        if not path.startswith("tests/"):
            defined, used = uses(house.read(root, path))
            for name, static in defined:
                home.setdefault((path if static and path.endswith((".c", ".cu", ".cc")) else None,
                                 name), path)
            for word, inside in used:
                where.setdefault(word, set()).add((path, inside))
    unused = set()

    def is_called(scope, name):
        places = {(path if (path, inside) in home else None, inside)
                  for path, inside in where.get(name, ()) if scope in (None, path)}
        return name == "main" or bool(places - unused - {(scope, name)}) or scope and not places

    rows = {row.split(":")[1] for row in exceptions.TESTED_ALONE}
    more = True
    while more:
        more = {key for key in home.keys() - unused
                if key[1] not in rows and not is_called(*key)}
        unused |= more
    found = {f"{path}:{name}": f"{path}: nothing outside of tests calls {name}: let the tests call "
             "what programs call, or give it a row of TESTED_ALONE in tests/lint/exceptions.py"
             for (scope, name), path in sorted(home.items(), key=lambda item: item[1])
             if not scope and not is_called(scope, name)}
    return house.without_exceptions(root, found, exceptions.TESTED_ALONE)


def main(root):
    rules = [static_names_are_rare, every_source_has_a_header, internal_headers_stay_inside,
             public_functions_are_called]
    return house.report([(r.__name__, lambda r=r: r(root)) for r in rules])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
