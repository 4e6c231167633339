#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md ("to add ...", files to touch), held against the tree by the newest
example of each.

    recipes.py ROOT
"""

import fnmatch
import os
import re
import sys

import house

KERNELS = "train/ops/cuda/"
KINDS = house.C_KINDS + house.CXX_KINDS


def recipes(root):
    """(what is added, patterns of paths, pattern of the example, how many files may name it or None)
    of each row; a file without a folder is in that of the file before."""
    text = house.read(root, "CONTRIBUTING.md")
    for line in text[text.index("## Recipes"):].splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        example = re.fullmatch(r"`([^`]+)`(?: (\d+))?", cells[-1])
        if not line.startswith("| ") or len(cells) != 4 or not example:
            continue
        paths, folder = [], ""
        for word in re.findall(r"`([^`]+)`", cells[1]):
            if "/" in word or word.endswith(KINDS):
                folder = os.path.dirname(word) or folder
                paths.append(os.path.join(folder, os.path.basename(word)).replace("NAME", "*"))
        yield cells[0], paths, example[1].replace("\\|", "|"), example[2] and int(example[2])


def recipes_are_there(root):
    return [] if list(recipes(root)) else ["CONTRIBUTING.md: no recipe has an example"]


def examples_are_where_recipes_say(root):
    """A file of the programs that names the newest example is one that its recipe names."""
    texts = {p: house.read(root, p) for p in house.files(root, KINDS)
             if not p.startswith(("tests/", KERNELS))}
    wrong = []
    for what, paths, example, most in recipes(root):
        found = [p for p, text in texts.items() if re.search(example, text, re.I)]
        wrong += [f"{p}: names {example}, the recipe of {what} (CONTRIBUTING.md) does not name the file"
                  for p in found if not any(fnmatch.fnmatch(p, pattern) for pattern in paths)]
        if not found:
            wrong.append(f"CONTRIBUTING.md: nothing names {example}, the newest {what}")
        if most is not None and len(found) > most:
            wrong.append(f"CONTRIBUTING.md: {what}: {len(found)} files name {example}, {most} are allowed: "
                         + ", ".join(found))
    return wrong


def main(root):
    rules = [recipes_are_there, examples_are_where_recipes_say]
    return house.report([(r.__name__, lambda r=r: r(root)) for r in rules])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
