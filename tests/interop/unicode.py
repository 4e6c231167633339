#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok/unicode against the libraries whose tables it has: each class is asked about every scalar value, each normal
form about every one alone, in pairs, and among random marks.

    unicode.py UNICODE_DUMP

WEFT_FULL=1 takes thirty times the random strings, and every scalar value of planes that are empty or private, too, where
else one in 64 is asked."""
import os
import random
import struct
import subprocess
import sys

try:
    import tiktoken
    import tokenizers
    from tokenizers import Regex, normalizers as N, pre_tokenizers as P
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers, tiktoken # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

DUMP = os.path.abspath(sys.argv[1])
FULL = "WEFT_FULL" in os.environ
RANDOM = 1000000 if FULL else 30000
NAMES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
ALL = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000
       and (FULL or c < 0x20000 or 0x2f000 <= c < 0x30000 or 0xe0000 <= c < 0xe1000 or c % 64 == 0 or c & 0xffff > 0xfff0)]
PARTS = [ALL[i:i + 4096] for i in range(0, len(ALL), 4096)]


# ---- ours ------------------------------------------------------------------------------------------

def read_tables():
    tables = {}
    for line in subprocess.run([DUMP], check=True, capture_output=True).stdout.decode().splitlines():
        name, version, letters = line.split(" ")
        tables[name, int(version)] = letters
    return tables


T = read_tables()


def of(version, *names):
    """Scalars whose category begins with one of the names."""
    letters = {chr(ord("a") + i) for i, n in enumerate(NAMES) if n.startswith(names)}
    table = T["category", version]
    return {c for c in ALL if table[c] in letters}


def flagged(name, version=0):
    return {c for c in ALL if T[name, version][c] == "1"}


def ours(what, texts):
    """The texts through one of our forms."""
    raw = b"".join(struct.pack("<I", len(t)) + t for t in (x.encode() for x in texts))
    out = subprocess.run([DUMP, what], input=raw, check=True, capture_output=True).stdout
    at, found = 0, []
    while at < len(out):
        n = struct.unpack_from("<I", out, at)[0]
        found.append(out[at + 4:at + 4 + n].decode())
        at += 4 + n
    return found


# ---- theirs ----------------------------------------------------------------------------------------

def removed(pre):
    """Scalars that a pre-tokenizer removes."""
    gone = set()
    for part in PARTS:
        left = set()
        for _, (a, b) in pre.pre_tokenize_str("".join(map(chr, part))):
            left.update(part[a:b])
        gone.update(c for c in part if c not in left)
    return gone


def oniguruma(regex):
    return removed(P.Split(Regex(regex), "removed"))


def rust(regex):
    """Scalars that tiktoken's engine finds."""
    pattern = regex + r"|[^\x00-\x{10ffff}]"
    e = tiktoken.Encoding("t", pat_str=pattern, special_tokens={},
                          mergeable_ranks={bytes([i]): i for i in range(256)})
    found = set()
    for part in PARTS:
        for i in range(0, len(part), 512):
            found.update(map(ord, bytes(e.encode_ordinary("".join(map(chr, part[i:i + 512])))).decode()))
    return found


def pieces(pre, before):
    """Scalars that are a piece of their own behind `before`."""
    alone = set()
    for part in PARTS:
        n = len(before) + 1
        text = "".join(before + chr(c) for c in part)
        starts = {a for _, (a, b) in pre.pre_tokenize_str(text) if b - a == 1}
        alone.update(c for i, c in enumerate(part) if n * i + n - 1 in starts)
    return alone


def word_characters():
    """Scalars that go on a word in Whitespace (Rust's regex)."""
    joined = set()
    for part in PARTS:
        ends = {b for _, (a, b) in P.Whitespace().pre_tokenize_str("".join("-a" + chr(c) for c in part))}
        starts = {a for _, (a, b) in P.Whitespace().pre_tokenize_str("".join("-a" + chr(c) for c in part))}
        joined.update(c for i, c in enumerate(part) if 3 * i + 3 in ends and 3 * i + 2 not in starts)
    return joined


def edged():
    """Scalars that Oniguruma sees the edges of a word at."""
    found = set()
    split = P.Split(Regex(r"\b"), "isolated")
    for part in PARTS:
        starts = {a for _, (a, b) in split.pre_tokenize_str("".join(f"-{chr(c)}-" for c in part))}
        found.update(c for i, c in enumerate(part) if 3 * i + 1 in starts and 3 * i + 2 in starts)
    return found


def dropped(normalizer):
    return {c for c in ALL if normalizer.normalize_str(chr(c)) == ""}


def cased(letter):
    """What equals the letter when case is ignored: beyond ASCII the long s and the Kelvin sign."""
    return {ord(letter), ord(letter.upper())} | {"s": {0x17f}, "k": {0x212a}}.get(letter, set())


def contractions(regex, letter):
    """Scalars that stand for the letter in (?i:'letter)."""
    found = set()
    split = P.Split(Regex(regex), "removed")
    for part in PARTS:
        left = set()
        for _, (a, b) in split.pre_tokenize_str("".join(f"'{chr(c)}|" for c in part)):
            left.update(range(a, b))
        found.update(c for i, c in enumerate(part) if 3 * i not in left)
    return found == cased(letter)


# ---- normal forms ----------------------------------------------------------------------------------

def marks():
    return sorted(of(9, "M") | {c for c in range(0x1161, 0x1200)} | {0xff9e, 0xff9f, 0x0345, 0x0344})


def composing():
    """Characters that take part in some decomposition, and jamo."""
    some = set(range(0x1100, 0x1200)) | set(range(0xac00, 0xac60))
    for c, d in zip(ALL, ours("nfd", map(chr, ALL))):
        if len(d) > 1 and not 0xac00 <= c < 0xd7a4:
            some.update(map(ord, d), [c])
    return sorted(some)


def random_texts():
    r = random.Random(9)
    m, k = marks(), composing()
    any_mark = sorted(of(17, "M"))
    for _ in range(RANDOM):
        n = r.randint(1, 24 if r.random() < 0.9 else 90)
        yield "".join(chr(r.choice(r.choice((m, m, k, k, any_mark, (32, 97, 0x4e00), ALL)))) for _ in range(n))


def pairs():
    """Each first with each second that composes with anything, and with newer ones."""
    k = composing()
    first = {ord(d[0]) for d in ours("nfd", map(chr, k)) if d} | set(range(0x1100, 0x1200)) | {0xac00, 0xac01}
    first |= {c for c, d in zip(k, ours("nfd", map(chr, k))) if len(d) == 2}
    seconds = sorted(of(9, "Mn", "Mc") & set(k) | set(range(0x1161, 0x1176)) | set(range(0x11a7, 0x11c4)) |
                     {0x11930, 0x113c9, 0x16d67})
    for a in k:
        if a in first:
            yield from (chr(a) + chr(b) for b in seconds)


def same_form(name, texts):
    """A thousand texts in a go, with lines between, which nothing composes or sorts across."""
    texts = list(texts)
    theirs = getattr(N, name.upper())() if name != "lower" else N.Lowercase()
    parts = ["\n".join(texts[i:i + 1000]) for i in range(0, len(texts), 1000)]
    wrong = [(t, got) for t, got in zip(parts, ours(name, parts)) if theirs.normalize_str(t) != got]
    for t, got in wrong[:3]:
        for x in t.split("\n"):
            if theirs.normalize_str(x) != ours(name, [x])[0]:
                print(f"# {ascii(x)}: {ascii(ours(name, [x])[0])}, theirs {ascii(theirs.normalize_str(x))}")
                break
    return not wrong


# ---- the report ------------------------------------------------------------------------------------

def cases():
    for name in ("L", "M", "N", "P", "S", "Z", "C", *NAMES):
        if name not in ("Cs", "Cn", "Co"):
            yield f"Oniguruma \\p{{{name}}} of 16.0", oniguruma(rf"\p{{{name}}}") == of(16, name)
            yield f"tiktoken \\p{{{name}}} of 16.0", rust(rf"\p{{{name}}}") == of(16, name)
    yield "Oniguruma \\s", oniguruma(r"\s") == flagged("space")
    yield "tiktoken \\s", rust(r"\s") == flagged("space")
    yield "WhitespaceSplit", removed(P.WhitespaceSplit()) == flagged("space")
    yield "Oniguruma Han of 16.0", oniguruma(r"\p{Han}") == flagged("han", 16)
    yield "tiktoken Han of 16.0", rust(r"\p{Han}") == flagged("han", 16)
    words, in_class = flagged("oniguruma_word", 0), flagged("oniguruma_word", 1)
    yield "Oniguruma \\w of 16.0", oniguruma(r"\w") == words == oniguruma(r"\p{Word}")
    yield "Oniguruma \\W of 16.0", oniguruma(r"\W") == set(ALL) - words
    yield "Oniguruma [\\w] of 16.0", oniguruma(r"[\w]") == in_class == oniguruma(r"[\p{Word}]")
    yield "Oniguruma [^\\w], [\\W]", oniguruma(r"[^\w]") == set(ALL) - in_class == oniguruma(r"[\W]")
    yield "Oniguruma \\b of 16.0", edged() == words
    yield "tiktoken \\w of 16.0", rust(r"\w") == flagged("word", 16)
    yield "Whitespace \\w of 16.0", word_characters() == flagged("word", 16)
    for letter in "stmd":
        yield f"contraction '{letter}", contractions(f"(?i:'{letter})", letter)
    yield "tiktoken's letters without case", all(
        rust(f"(?i:{x})") == cased(x) for x in "strevmldk")
    ascii_punctuation = {c for c in range(33, 127) if not chr(c).isalnum()}
    yield "Punctuation of 8.0", removed(P.Punctuation("removed")) == of(8, "P") | ascii_punctuation
    yield "Digits: N of 17.0", pieces(P.Digits(individual_digits=True), "a") == of(17, "N")
    yield "StripAccents: M of 9.0", dropped(N.StripAccents()) == of(9, "M")
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    yield "BertNormalizer's marks: Mn of 8.0", dropped(N.BertNormalizer(**{**bert, "strip_accents": True})) == of(8, "Mn")
    yield "BertNormalizer's controls of 8.0", dropped(N.BertNormalizer(**{**bert, "clean_text": True})) == \
        of(8, "Cc", "Cf", "Co") - {9, 10, 13} | {0, 0xfffd}
    yield "BertPreTokenizer's punctuation", pieces(P.BertPreTokenizer(), "a") == \
        of(8, "P") | ascii_punctuation
    alone = list(map(chr, ALL))
    for name in ("nfc", "nfd", "nfkc", "nfkd", "lower"):
        yield f"{name}: every scalar value", same_form(name, alone)
        yield f"{name}: between letters", same_form(name, ("x" + c + "\u0301y" for c in alone))
    fuzz, two = list(random_texts()), list(pairs())
    for name in ("nfc", "nfd", "nfkc", "nfkd", "lower"):
        yield f"{name}: {len(two)} pairs", same_form(name, two)
        yield f"{name}: {RANDOM} random texts", same_form(name, fuzz)


def main():
    print(f"# tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}")
    n = failed = 0
    for name, good in cases():
        n += 1
        failed += not good
        print(f"{'' if good else 'not '}ok {n} - {name}", flush=True)
    print(f"1..{n}\n# {n - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
