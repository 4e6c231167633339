#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of this folder from the sources of PyPI's unicodedata2, one release per Unicode version.

    generate.py FOLDER

FOLDER holds the unpacked source archives unicodedata2-8.0.0, -9.0.0.post4, -15.0.0, -16.0.0 and -17.0.1. Only their
tables are read (unicodedata_db.h, unicodetype_db.h), nothing is compiled, because the oldest do not build any more.
Run by hand; what it writes is committed. tests/interop/unicode.py holds the result against the tokenizers it is for.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASES = {8: "8.0.0", 9: "9.0.0.post4", 15: "15.0.0", 16: "16.0.0", 17: "17.0.1"}
NAMES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
LIMIT = 0x110000
SHIFT = 7
SIZE = 1 << SHIFT
LINES = 700  # of one file, at most


# ---- reading ---------------------------------------------------------------------------------------

class Source:
    """The arrays of one release."""

    def __init__(self, folder, release):
        base = glob.glob(f"{folder}/unicodedata2-{release}/unicodedata2/")[0]
        base += "py3/" if os.path.isdir(base + "py3") else ""
        with open(base + "unicodedata_db.h") as f:
            self.data = f.read()
        with open(base + "unicodetype_db.h") as f:
            self.types = f.read()

    def array(self, text, name):
        body = re.search(rf"\b{name}\[\] = \{{(.*?)\n\}};", text, re.S)[1]
        return body

    def numbers(self, text, name):
        return [int(x) for x in re.findall(r"-?\d+", self.array(text, name))]

    def rows(self, text, name):
        return [tuple(int(x) for x in re.findall(r"-?\d+", row))
                for row in re.findall(r"\{([^{}]*)\}", self.array(text, name))]

    def two_level(self, text, first, second):
        one, two = self.numbers(text, first), self.numbers(text, second)
        return [two[(one[c >> SHIFT] << SHIFT) + (c & SIZE - 1)] for c in range(LIMIT)]

    def records(self):
        """(category, combining class) of each code point."""
        names = re.findall(r'"(\w\w)"', self.array(self.data, "_PyUnicode_CategoryNames"))
        rows = self.rows(self.data, "_PyUnicode_Database_Records")
        return [(names[rows[r][0]], rows[r][1]) for r in self.two_level(self.data, "index1", "index2")]


# ---- writing ---------------------------------------------------------------------------------------

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */

/* Written by tok/unicode/generate.py. */

#include "tok/unicode/tables.h"

"""


def write(name, body):
    text = HEAD + body
    if text.count("\n") > 800 or max(map(len, text.split("\n"))) > 100:
        sys.exit(f"{name}: {text.count(chr(10))} lines, too long or too wide")
    with open(os.path.join(HERE, name), "w") as f:
        f.write(text)
    print(f"{name}: {len(text)} bytes")


def wrap(words, width=96):
    """Words in lines."""
    lines, line = [], "   "
    for w in words:
        if len(line) + 1 + len(w) > width + 4:
            lines.append(line)
            line = "   "
        line += " " + w
    return "\n".join(lines + [line]) + "\n"


def runs(values):
    """The initializer of an array: repeated values as ranges, the rest one by one."""
    words, i = [], 0
    while i < len(values):
        j = i
        while j < len(values) and values[j] == values[i]:
            j += 1
        words += [f"[{i} ... {j - 1}] = {values[i]},"] if j - i > 4 else [f"{values[i]},"] * (j - i)
        i = j
    return wrap(words)


def blocks_of(values, pool):
    """The block's number in `pool` for each block of values; new blocks are added."""
    found = []
    for i in range(0, len(values), SIZE):
        block = tuple(values[i:i + SIZE])
        found.append(pool.setdefault(block, len(pool)))
    return found


# ---- general categories ----------------------------------------------------------------------------

def categories(sources):
    """Blocks of letters, a for Cn and so on, shared by all versions; the blocks of each version."""
    pool, body = {}, "const uint16_t uni_category_block[][UNI_BLOCKS] = {\n"
    for v, s in sources.items():
        index = blocks_of([NAMES.index(r[0]) for r in s.records()], pool)
        body += f"    [UNI_{v}] = {{\n{runs(index)}    }},\n"
    write("category_index.c", body + "};\n")
    text = "".join(chr(ord("a") + x) for block in pool for x in block)
    body = "const char uni_category_letter[] =\n"
    body += "\n".join(f'    "{text[i:i + 92]}"' for i in range(0, len(text), 92)) + ";\n"
    write("category.c", body)


def main(folder):
    sources = {v: Source(folder, r) for v, r in RELEASES.items()}
    categories(sources)


if __name__ == "__main__":
    main(*sys.argv[1:])
