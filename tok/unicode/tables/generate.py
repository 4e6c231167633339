#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of this folder from the sources of PyPI's unicodedata2, one release per Unicode version.

    generate.py FOLDER

FOLDER holds the unpacked source archives unicodedata2-8.0.0, -9.0.0.post4, -15.0.0, -16.0.0 and -17.0.1. Only their
tables are read (unicodedata_db.h, unicodetype_db.h), nothing is compiled, because the oldest do not build any more.
Scripts come from perl (Unicode::UCD).
Run by hand; what it writes is committed. tests/interop/unicode.py holds the result against the tokenizers it is for.
"""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASES = {8: "8.0.0", 9: "9.0.0.post4", 15: "15.0.0", 16: "16.0.0", 17: "17.0.1"}
NAMES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
LIMIT = 0x110000
SHIFT = 7
SIZE = 1 << SHIFT


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
        shift = (LIMIT // len(one)).bit_length() - 1
        return [two[(one[c >> shift] << shift) + (c & (1 << shift) - 1)] for c in range(LIMIT)]

    def records(self):
        """(category, combining class) of each code point."""
        names = re.findall(r'"(\w\w)"', self.array(self.data, "_PyUnicode_CategoryNames"))
        rows = self.rows(self.data, "_PyUnicode_Database_Records")
        return [(names[rows[r][0]], rows[r][1]) for r in self.two_level(self.data, "index1", "index2")]


# ---- writing ---------------------------------------------------------------------------------------

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */

/* Written by tok/unicode/tables/generate.py. */

#include "tok/unicode/tables/tables.h"

"""


def write(name, body, by="generate.py"):
    text = HEAD.replace("generate.py", by) + body
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


def two_levels(name, values, kind):
    """NAME_block of all code points, and NAME, its blocks."""
    pool = {}
    index = blocks_of(values, pool)
    flat = [x for block in pool for x in block]
    return (f"const uint16_t {name}_block[UNI_BLOCKS] = {{\n{runs(index)}}};\n\n"
            f"const {kind} {name}[] = {{\n{runs(flat)}}};\n")


# ---- lower case ------------------------------------------------------------------------------------

def lower(source):
    """Steps to the lower-case letter; U+0130, the one that gives two, is left to unicode.c."""
    rows = source.rows(source.types, "_PyUnicode_TypeRecords")
    steps = [0]
    values = []
    for c, r in enumerate(source.two_level(source.types, "index1", "index2")):
        extended = rows[r][5] & 0x4000
        step = 0 if extended and rows[r][1] >> 24 > 1 else rows[r][1]
        if extended and step:
            text = source.numbers(source.types, "_PyUnicode_ExtendedCase")
            step = text[step & 0xffff] - c
        if step not in steps:
            steps.append(step)
        values.append(steps.index(step))
    body = two_levels("uni_lower_class", values, "uint8_t")
    write("lower.c", body + f"\nconst int32_t uni_lower_step[] = {{\n{wrap([f'{x},' for x in steps])}}};\n")


# ---- upper and title case, cased letters -----------------------------------------------------------

# Bits of _PyUnicode_TypeRecords, in the order of unicode.h: lower, upper, title, cased, ignored by case, digit.
CASE_FLAGS = (0x08, 0x80, 0x40, 0x2000, 0x1000, 0x04)
EXTENDED = 0x4000


def cases(source):
    """Full upper and title case: a step, or a place in a list of code points with their number."""
    rows = source.rows(source.types, "_PyUnicode_TypeRecords")
    extended = source.numbers(source.types, "_PyUnicode_ExtendedCase")
    text, kinds, values = [], {}, []

    def place(value, n):
        found = extended[value & 0xffff:(value & 0xffff) + n]
        at = next((i for i in range(len(text)) if text[i:i + n] == found), len(text))
        text.extend(found if at == len(text) else [])
        return at

    for r in source.two_level(source.types, "index1", "index2"):
        upper, _, title, _, _, flags = rows[r]
        upper_n, title_n = (upper >> 24, title >> 24) if flags & EXTENDED else (0, 0)
        upper = place(upper, upper_n) if upper_n else upper
        title = place(title, title_n) if title_n else title
        bits = sum(1 << i for i, flag in enumerate(CASE_FLAGS) if flags & flag)
        values.append(kinds.setdefault((upper, title, upper_n, title_n, bits), len(kinds)))
    body = two_levels("uni_case_class", values, "uint16_t")
    body += "\nconst struct uni_case uni_case[] = {\n"
    body += wrap(["{%d, %d, %d, %d, %d}," % kind for kind in kinds]) + "};\n"
    body += f"\nconst uint16_t uni_case_text[] = {{\n{wrap([f'{x},' for x in text])}}};\n"
    write("case.c", body)


# ---- normal forms ----------------------------------------------------------------------------------

S_BASE, S_COUNT = 0xac00, 11172


class Forms:
    """Decompositions and compositions of one release. Hangul syllables are arithmetic and not in them."""

    def __init__(self, source):
        self.ccc = [r[1] for r in source.records()]
        data = source.numbers(source.data, "decomp_data")
        self.step = {}  # code point: (is it canonical, code points), one step
        for c, at in enumerate(source.two_level(source.data, "decomp_index1", "decomp_index2")):
            n = data[at] >> 8
            if n:
                self.step[c] = data[at] & 255 == 0, data[at + 1:at + 1 + n]
        self.pairs = {}  # (first, second): composite
        first, last = (self.positions(source, n) for n in ("nfc_first", "nfc_last"))
        one, two = (source.numbers(source.data, n) for n in ("comp_index", "comp_data"))
        total = int(re.search(r"TOTAL_LAST (\d+)", source.data)[1])
        for a, i in first.items():
            for b, j in last.items():
                k = i * total + j
                c = two[(one[k >> 2] << 2) + (k & 3)]
                if c:
                    self.pairs[a, b] = c
        self.seconds = {b for a, b in self.pairs} | set(range(0x1161, 0x1176)) | set(range(0x11a8, 0x11c3))

    def positions(self, source, name):
        return {start + i: index + i for start, count, index in source.rows(source.data, name) if start
                for i in range(count + 1)}

    def full(self, c, compat):
        """All of c's decomposition."""
        canonical, to = self.step.get(c, (False, None))
        if to is None or not (canonical or compat):
            return [c]
        return [x for y in to for x in self.full(y, compat)]

    def recomposes(self, c):
        """Whether c is what its own canonical decomposition composes to."""
        canonical, to = self.step.get(c, (False, None))
        return canonical and len(to) == 2 and self.pairs.get(tuple(to)) == c

    def flags(self, c):
        """Bits by form (NFC, NFD, NFKC, NFKD): it may change; 4 higher: it may act on what is before it."""
        bits = 0
        for form, (compose, compat) in enumerate([(1, 0), (0, 0), (1, 1), (0, 1)]):
            hangul = S_BASE <= c < S_BASE + S_COUNT
            to = self.full(c, compat)
            acts = self.ccc[to[0]] != 0 or compose and to[0] in self.seconds
            same = to == [c] and not hangul
            if compose:
                same = same or hangul or self.recomposes(c) and to == self.full(c, 0)
            bits |= (acts or not same) << form | acts << form + 4
        return bits


def forms(source):
    f = Forms(source)
    kinds = {(0, 0): 0}
    classes = [kinds.setdefault((f.ccc[c], f.flags(c)), len(kinds)) for c in range(LIMIT)]
    body = two_levels("uni_norm_class", classes, "uint8_t")
    body += "\nconst struct uni_norm uni_norm[] = {\n" + wrap([f"{{{a}, {b}}}," for a, b in kinds]) + "};\n"
    write("norm.c", body)

    pool, place = [0], {}
    maps = []
    for compat in (0, 1):
        values = []
        for c in range(LIMIT):
            to = f.full(c, compat)
            if to == [c] or compat and to == f.full(c, 0):
                values.append(0)
                continue
            if tuple(to) not in place:
                place[tuple(to)] = len(pool)
                pool += [len(to), *to]
            values.append(place[tuple(to)])
        maps.append(values)
    write("canonical.c", two_levels("uni_canonical", maps[0], "uint16_t"))
    write("compat.c", two_levels("uni_compat", maps[1], "uint16_t"))
    text = f"const uint32_t uni_decomposed[] = {{\n{wrap([f'{x},' for x in pool])}}};\n"
    write("decomposed.c", text)

    at, table = [0] * LIMIT, [(0, 0)]
    for first in sorted({a for a, b in f.pairs}):
        at[first] = len(table)
        table += sorted((b, c) for (a, b), c in f.pairs.items() if a == first) + [(0, 0)]
    body = two_levels("uni_compose", at, "uint16_t")
    body += "\nconst uint32_t uni_composed[][2] = {\n" + wrap([f"{{{b}, {c}}}," for b, c in table]) + "};\n"
    write("compose.c", body)


# ---- scripts ---------------------------------------------------------------------------------------

PERL = """use Unicode::UCD 'prop_invmap';
for my $p ('Script', 'Age') { my ($l, $v) = prop_invmap($p); print "$p $l->[$_] $v->[$_]\\n" for 0 .. $#$l }"""

# Scripts that later versions of Unicode gave to characters of 9.0.
SCRIPTS_THEN = {0x589: "Common", 0x61c: "Common", 0x953: "Devanagari", 0x954: "Devanagari"}


def scripts():
    """Scripts of 9.0 out of perl, which knows a later version and the age of each character."""
    starts = {"Script": {}, "Age": {}}
    for line in subprocess.run(["perl", "-e", PERL], capture_output=True, text=True, check=True).stdout.splitlines():
        what, start, value = line.split()
        starts[what][int(start)] = value
    names = {"Common": 0, "Inherited": 1, "Han": 2, "Hiragana": 2, "Katakana": 2}
    values, age, script = [], None, None
    for c in range(LIMIT):
        age, script = starts["Age"].get(c, age), starts["Script"].get(c, script)
        known = age != "Unassigned" and float(age) <= 9 and script != "Unknown"
        name = SCRIPTS_THEN.get(c, "Han" if c == 0x30fc else script if known else "Common")
        values.append(names.setdefault(name, max(names.values()) + 1))
    write("script.c", two_levels("uni_script_class", values, "uint8_t"))


def main(folder):
    sources = {v: Source(folder, r) for v, r in RELEASES.items()}
    categories(sources)
    lower(sources[17])
    cases(sources[15])
    forms(sources[9])
    scripts()


if __name__ == "__main__":
    main(*sys.argv[1:])
