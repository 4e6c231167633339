#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cluster.c and script_run.c: what PyPI's `regex` (Unicode 17.0) says about grapheme clusters, and what PyPI's
`tokenizers` answers about scripts, whose own table is of no one version.

    asked.py

Run by hand; what it writes is committed. tests/interop/tok_pipe.py compares both with tokenizers' components."""
import regex
import tokenizers

from generate import LIMIT, two_levels, write

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


if __name__ == "__main__":
    write("cluster.c", two_levels("uni_cluster_class", clusters(), "uint8_t"), "asked.py")
    write("script_run.c", two_levels("uni_run_class", scripts(), "uint8_t"), "asked.py")
