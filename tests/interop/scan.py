#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scanners of pre-tokens against the regex engines of the references: Hugging Face's tokenizers (Oniguruma)
for every family, tiktoken for cl100k and o200k.

    scan.py SCAN_DUMP

All scalar values alone, between letters, after a space and before a letter; random strings of what the families
tell apart. SCAN_STRINGS is how many of those there are a family (5000, with WEFT_FULL=1 20000)."""
import functools
import os
import random
import subprocess
import sys

import numpy

try:
    import tokenizers
    from tokenizers import Regex, pre_tokenizers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

try:
    import tiktoken
except ImportError:
    tiktoken = None

DUMP = os.path.abspath(sys.argv[1])
FULL = "WEFT_FULL" in os.environ
STRINGS = int(os.environ.get("SCAN_STRINGS", "20000" if FULL else "5000"))

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
LEADER = r"[^\r\n\p{L}\p{N}]?"


def cased(end, han=""):
    upper, lower = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + han + "]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + han + "]")
    return f"{LEADER}{upper}*{lower}+{end}|{LEADER}{upper}+{lower}*{end}"


# cl100k as tiktoken writes it says {1,3}+ and $, which Oniguruma reads otherwise.
PATTERNS = {
    "GPT2": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    "CL100K": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
               r"\s++\z|\s*[\r\n]|\s+(?!\S)|\s"],
    "LLAMA3": [CONTRACTION + "|" + LEADER + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE],
    "QWEN2": [CONTRACTION + "|" + LEADER + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE],
    "QWEN35": [CONTRACTION + "|" + LEADER + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + WHITE],
    "O200K": [cased(CONTRACTION + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITE],
    "TEKKEN": [cased("") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITE],
    "KIMI": [r"[\p{Han}]+|" + cased(CONTRACTION + "?", r"&&[^\p{Han}]")
             + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE],
    "DEEPSEEK3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                  r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
                  r""" ?[\p{P}\p{S}]+[\r\n]*""" + WHITE],
}
FAMILIES = list(PATTERNS)

BITS = ("a B s S t re VE ll LL ' 's 'S 'll 'D 've 'lL 'vE rE 1 22 333 4444 / ! ?! // _ . , -".split() + list(" \n\r\t\v\f\0\x1c")
        + ["  ", "   ", "\r\n", "\n\n", " \n", "\x7f"]
        + list("\u017f\u00e9\u00c9\u01c5\u02b0\u0301\u093e\u20e3\u00b2\u0663\uff11\U0001d7d8\u216b\u0085\u00a0\u2009"
               "\u2028\u202f\u3000\u1680\u180e\u200b\u2014\u00ab\u3002\u65e5\u4eba\u3042\u3099\u30fb\u3007\u3005\u3021"
               "\u2e80\u2f00\uac00\u9fa6\U0001f600\ufe0f\u200d\U00016ff0\U00016fe2\ue000\U00010400\U00020000\u0378"
               "\u1c89\ua7ce\U000105c0\U0001fae8\u0387\u00aa\u00df\ufb06\u212a\u1e9e"))


def reference(family):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[family]]
    pre = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)

    def places(text):
        at = bytes_before(text)
        return at[[a for _, (a, _) in pre.pre_tokenize_str(text)]].tolist()
    return places


@functools.lru_cache(4096)
def bytes_before(text):
    """The place in UTF-8 of each character."""
    c = numpy.frombuffer(text.encode("utf-32-le"), numpy.uint32)
    return numpy.concatenate(([0], numpy.cumsum(1 + (c > 0x7f) + (c > 0x7ff) + (c > 0xffff)))).astype(numpy.int64)


def ours(family, texts):
    number = FAMILIES.index(family) + 1
    coded = [t.encode() for t in texts]
    stream = b"".join(b"%d %d\n" % (number, len(c)) + c for c in coded)
    out = numpy.frombuffer(subprocess.run([DUMP], input=stream, check=True, capture_output=True).stdout, numpy.uint32)
    at = 0
    for _ in coded:
        n = int(out[at])
        yield out[at + 1:at + 1 + n].tolist()
        at += 1 + n
    assert at == len(out)


EVEN = ((0x3500, 0x9f00), (0xac80, 0xd700), (0xe080, 0xf880), (0x18000, 0x1b000), (0x20080, 0xe0000), (0xe0200, 0x110000))
SCALARS = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000  # in the quick tier every 61st of even stretches
           and (FULL or c % 61 == 0 or not any(a <= c < b for a, b in EVEN))]


def surroundings():
    """Many at a time: as pieces between newlines, which end every piece of every family."""
    every = [t for c in SCALARS for t in (c, "a" + c + "b", " " + c, "!!" + c + "B'" + c)]
    return [every[i:i + 512] for i in range(0, len(every), 512)]


def random_strings(family, count):
    dice = random.Random(family)
    for i in range(count):
        bits = dice.sample(BITS, dice.choice((2, 3, 5, 9))) if i % 4 else BITS
        yield "".join(dice.choices(bits, k=dice.randrange(1, 60 if i % 10 else 200)))


def first_difference(texts, mine, theirs, number=None):
    for t, m in zip(texts, mine):
        want = theirs(t)
        if m != want:
            return f"{t!r}: {m}, but {want}"
    return None


def report(number, name, wrong):
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}" + (f"\n# {wrong}" if wrong else ""), flush=True)
    return bool(wrong)


def check_scalars(family, batches):
    theirs = reference(family)
    joined = ["x\n".join(b) for b in batches]
    for batch, text, mine in zip(batches, joined, ours(family, joined)):
        if mine != theirs(text):
            return first_difference(batch, ours(family, batch), theirs) or "only when joined by newlines"
    return None


def check_tiktoken(family):
    """tiktoken shows no pieces, but one that is in its vocabulary is one token: is each of these one piece?"""
    pattern = PATTERNS[family][0].replace(r"\z", "$").replace("{1,3}|", "{1,3}+|")
    for first in range(0, len(SCALARS), 20000):
        texts = [t for c in SCALARS[first:first + 20000] for t in ("a" + c, "1" + c, "!" + c, " " + c, "A" + c, c + "a")]
        ranks = {bytes([i]): i for i in range(256)}
        ranks |= {t.encode(): 256 + i for i, t in enumerate(t for t in texts if len(t.encode()) > 1)}
        enc = tiktoken.Encoding(family, pat_str=pattern, special_tokens={}, mergeable_ranks=ranks)
        for t, mine in zip(texts, ours(family, texts)):
            if (len(enc.encode_ordinary(t)) == 1) != (len(mine) == 1):
                return f"{t!a}: {len(mine)} pieces, but not so there"
    return None


def main():
    wrong, number, batches = 0, 0, surroundings()
    print(f"1..{2 * len(FAMILIES) + 2}\n# tokenizers {tokenizers.__version__}")
    for family in FAMILIES:
        texts = list(random_strings(family, STRINGS))
        wrong += report(number + 1, f"{family}: {STRINGS} random strings",
                        first_difference(texts, ours(family, texts), reference(family)))
        wrong += report(number + 2, f"{family}: every scalar value in four surroundings", check_scalars(family, batches))
        number += 2
    for family in ("CL100K", "O200K"):
        number += 1
        if tiktoken:
            wrong += report(number, f"{family}: tiktoken, every scalar value", check_tiktoken(family))
        else:
            print(f"ok {number} - tiktoken # SKIP not installed")
    return 1 if wrong else 0


sys.exit(main())
