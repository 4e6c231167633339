#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cluster.c, script_run.c and named.c: what PyPI's `regex` 2025.11.3 (Unicode 17.0; later ones have 18) says about
grapheme clusters, and what PyPI's `tokenizers` answers about scripts, whose own table is of no one version, and about the
properties that Oniguruma knows by name. Names of scripts come from perl (Unicode::UCD), those that are newer than it from here.

    asked.py

Run by hand; what it writes is committed. tests/interop/tok_pipe.py compares both with tokenizers' components."""
import subprocess

import regex
import tokenizers

from generate import LIMIT, two_levels, wrap, write

SCALARS = [c for c in range(LIMIT) if not 0xd800 <= c < 0xe000]
CLUSTER = ["GCB=CR", "GCB=LF", "GCB=Control", "GCB=Extend", "GCB=ZWJ", "GCB=Regional_Indicator", "GCB=Prepend",
           "GCB=SpacingMark", "GCB=L", "GCB=V", "GCB=T", "GCB=LV", "GCB=LVT", "Extended_Pictographic", "InCB=Consonant"]


def clusters():
    """The place in CLUSTER + 1; marks that a conjunct does not reach across, and its linkers, come behind them."""
    values = [0] * LIMIT
    for i, name in enumerate(CLUSTER):
        known = regex.compile(rf"\p{{{name}}}")
        for c in SCALARS:
            if known.match(chr(c)):
                assert not values[c], hex(c)
                values[c] = i + 1
    linker, within = regex.compile(r"\p{InCB=Linker}"), regex.compile(r"\p{InCB=Extend}")
    for c in SCALARS:
        if values[c] == CLUSTER.index("GCB=Extend") + 1 and not within.match(chr(c)):
            values[c] = len(CLUSTER) + (2 if linker.match(chr(c)) else 1)
    return values


def starts(text):
    return {at for _, (at, _) in tokenizers.pre_tokenizers.UnicodeScripts().pre_tokenize_str(text)}


def scripts():
    """0: joins what stands before it; else a number for each script."""
    text, other = ("".join(a + chr(c) + b for c in SCALARS) for a, b in ("a漢", "漢a"))
    one, two = starts(text), starts(other)
    joins = [3 * i + 1 not in one and 3 * i + 1 not in two for i in range(len(SCALARS))]
    values, found, last = [0] * LIMIT, [], None
    plain = [c for c, j in zip(SCALARS, joins) if not j]
    cuts = starts("".join(map(chr, plain)))
    for i, c in enumerate(plain):
        if i in cuts:
            same = [k for k, r in enumerate(found) if 1 not in starts(r + chr(c))]
            if not same:
                same = [len(found)]
                found.append(chr(c))
            last = same[0] + 1
        values[c] = last
    return values


# ---- properties by name ------------------------------------------------------------------------------

NEWER = "Kawi Nagm Nag_Mundari Gara Garay Gukh Gurung_Khema Krai Kirat_Rai Onao Ol_Onal Sunu Sunuwar Todr Todhri Tutg Tulu_Tigalari"
NAMED = """Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit ASCII Any Assigned Alphabetic Lowercase
    Uppercase White_Space Emoji Emoji_Presentation Emoji_Modifier Emoji_Modifier_Base Emoji_Component Extended_Pictographic
    Ideographic Unified_Ideograph Hex_Digit ASCII_Hex_Digit Dash Hyphen Math Diacritic Extender Quotation_Mark Variation_Selector
    Sentence_Terminal Terminal_Punctuation Join_Control Cased Regional_Indicator"""


def asked(name):
    """The ranges of a property, the gap to each and its length; None if Oniguruma does not know it."""
    try:
        pattern = tokenizers.Regex(rf"\p{{{name}}}+")
    except Exception:
        return None
    found = []
    for first, end in ((0, 0xd800), (0xe000, LIMIT)):
        text = "".join(map(chr, range(first, end)))
        for _, (a, b) in tokenizers.pre_tokenizers.Split(pattern, "removed", True).pre_tokenize_str(text):
            found.append((first + a, first + b))
    steps, at = [], 0
    for a, b in found:
        steps += [a - at, b - a]
        at = b
    return steps


def varint(n):
    return ([n & 127 | 128] + varint(n >> 7)) if n > 127 else [n]


def named():
    perl = "for my $v (prop_values('sc')) { print join(' ', prop_value_aliases('sc', $v)), ' ' }"
    names = subprocess.run(["perl", "-MUnicode::UCD=prop_values,prop_value_aliases", "-e", perl], check=True, capture_output=True)
    names = (names.stdout.decode() + NEWER + " " + NAMED).split()
    places, data, rows = {}, [], {}
    for name in names:
        steps = asked(name)
        if steps is None:
            print(f"{name}: not known there")
            continue
        key = tuple(steps)
        if key not in places:
            places[key] = len(data)
            data += [x for n in steps for x in varint(n)] + [0, 0]
        rows["".join(c for c in name.lower() if c not in "_- ")] = places[key]
    body = "const struct uni_named uni_named[] = {\n" + wrap([f'{{"{n}", {at}}},' for n, at in sorted(rows.items())])
    body += f"}};\n\nconst size_t uni_named_count = {len(rows)};\n\nconst uint8_t uni_named_ranges[] = {{\n"
    return body + wrap([f"{x}," for x in data]) + "};\n"


if __name__ == "__main__":
    write("named.c", named(), "asked.py")
    write("cluster.c", two_levels("uni_cluster_class", clusters(), "uint8_t"), "asked.py")
    write("script_run.c", two_levels("uni_run_class", scripts(), "uint8_t"), "asked.py")
