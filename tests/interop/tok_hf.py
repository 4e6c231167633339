#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our ids against the reference library's, for every tokenizer that we open: not one may differ.

    tok_hf.py TOK_SERVE [FILE...]

Without FILE: the tokenizers of testdata.py, and those below $WEFT_VOCAB_DIR (what vocabularies.py trained). Real text
is $WEFT_CORPUS (what tests/bench/corpus.sh made), else the texts of testdata.py. WEFT_FULL=1 takes 200 MB of it and
10^6 random strings for each tokenizer in place of 3 MB and 75000, and each scalar value alone and in three kinds of
company, where else those of large even blocks are one in 16 alone, and each in one kind of company; WEFT_FUZZ sets the
random strings. In the quick tier the vocabularies that testdata.py made besides take an eighth of that.

A reference is chosen by the file: tokenizer.json tokenizers, .tiktoken tiktoken, .model sentencepiece. What differs is
shortened to what still differs and printed. A file that we do not open yet is skipped aloud."""
import array
import functools
import glob
import itertools
import os
import random
import struct
import subprocess
import sys

import tok_refs
from testdata import DATA, MISSING, PUBLISHED, VOCABULARIES

FULL = "WEFT_FULL" in os.environ
FUZZ = int(os.environ.get("WEFT_FUZZ", 1000000 if FULL else 75000))
REAL = 200000000 if FULL else 3000000
SERVE = os.path.abspath(sys.argv[1])


# ---- ours ------------------------------------------------------------------------------------------

class Ours:
    def __init__(self, kind, specials, path):
        self.p = subprocess.Popen([SERVE, kind, specials, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.p.stdout.readline().decode().strip()
        if not line.startswith("ready"):
            self.close()
            raise ValueError(line or f"tok_serve does not know {kind}")
        self.size = int(line.split()[1])

    def ask(self, what, items):
        """A batch is written whole before the answer is read; the server answers only then."""
        parts = [what, struct.pack("<I", len(items))]
        for x in items:
            parts += (struct.pack("<I", len(x)), x)
        self.p.stdin.write(b"".join(parts))
        self.p.stdin.flush()
        found = []
        for _ in items:
            n = struct.unpack("<I", self.p.stdout.read(4))[0]
            found.append(None if n == 0xffffffff else self.p.stdout.read(n))
        return found

    def encode(self, texts):
        return [x if x is None else array.array("i", x).tolist() for x in self.ask(b"E", [t.encode() for t in texts])]

    def decode(self, lists):
        return self.ask(b"D", [array.array("i", x).tobytes() for x in lists])

    def close(self):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait()


# ---- texts -----------------------------------------------------------------------------------------

def kept(make):
    """In the quick tier what all tokenizers are given is made once."""
    return make if FULL else functools.cache(lambda *args: list(make(*args)))


SCALARS = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]

CONSTRUCTS = """it's I'M we'LL they'd you've 'tis x'S 'ſ a'ſb 're're ' '' don''t o'clock 'll 'lL 'd 'D 'm 't 'T 've 'Ve
    1 12 123 1234 12345678901 1.5 1,000 ١٢٣ ½¾ Ⅷ 1a a1 3x² x2y3 !! ... !? /* */ // --- #include a_b _ __ a-b (a) "q"
    http://a.b/c?d=e&f a@b.c $5 50% <tag/> </s> <s> [CLS] \\n \\\\ äöü Éé ÉCOLE naïve e\u0301 \u0301 a\u0301b ñ ЖЖ Привет
    Ελλάδα ΟΔΟΣ İI ß ǅ ʰ ª 中 中文字 漢字かなカナ ｶﾞ 、。 한국어 \u1100\u1161 ไทย\u0e49 हिन्दी \u0915\u093c عَرَبِي שָׁלוֹם 😀 👨\u200d👩\u200d👧
    🇯🇵 ❤\ufe0f \u200b \u200d \ufeff \u00ad \ufffd \x00 \x1c \x7f HelloWorld helloWorld HELLOworld ABC aB Ab aBC iPhone XMLHttp
    'SHELL 'Tis O'NEIL L'été ŒUVRE ǆ Ǆ ﬁ ﬀi ①② ｈｅｌｌｏ ＡＢＣ １２３ ㈱ ℡ Å \u212b \u0344 \u1e9b\u0323 ꣼ \u2e43 \u1c89 \ua7ce \U000105c0
    \U000323b0 \U0001fae8 \U0001e900""".split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", " \n", "\n ", "\n  ", "  \n  ", "\t", "\t\t", " \t ", "\u3000", "\xa0",
          "\xa0\xa0", "\x85", "\u2028", " \u3000", "\n\t\n", "\x0b", "\x0c", " \r", "\r", "\u200a ", "\u1680", "       \n"]
FILLERS = ["x", " ", "中", "1", "é", ".", "\n"]
LETTERS = ("aaabcdefghijklmnopqrstuvwxyzABCDEFXYZ" "''''’" "0123456789" "   \t\n\n\r\v\x85\xa0\u2028\u3000" ".,!?-_/\\()[]{}<>@#$%^&*+=~`|\"':;"
           "éÉßñøİıſK\u0301\u0308\u0323\u093c\u20dd" "中文字漢日々〇かなカナーｶﾞﾊﾟ、。「" "한글\u1100\u1161\u11a8" "ЖжΣσςΩ" "אבשׁ" "عربي\u064e"
           "कि\u093f" "ไท\u0e49" "१٣½²Ⅷ①" "ǅʰªº" "€£©™→∑" "😀👍🏽\u200d\ufe0f🇯🇵" "\u200b\u00ad\ufeff\ufffd\x00\x01\x1c\x7f\ue000\U0010ffff"
           "ﬁ㈱Å\u212b\u0344" "\u1c89\ua7ce\U000105c0\U000323b0\U0001fae8\u2e43\ua8fc\u0378" "▁▁" "stredmvlSTREDMVL")


@kept
def scalars():
    even = [(0x3400, 0x9ffc), (0xac00, 0xd7a0), (0xe000, 0xf8ff), (0x17000, 0x187f0), (0x20000, 0x10fff0)]
    alike = set() if FULL else {c for a, b in even for c in range(a + 1, b)}
    which = "every scalar value" if FULL else "chosen scalar values"
    yield f"{which} alone", [chr(c) for c in SCALARS if c % 16 == 0 or c not in alike]
    together = 1 if FULL else 16
    forms = (("between letters", "a{}b"), ("after a space", "x {}"), ("before a letter", "\n{}a"))
    for k, (name, form) in enumerate(forms):
        some = [c for c in SCALARS if c % len(forms) == k or c not in alike]
        yield f"{which} {name}", ["".join(form.format(chr(c)) for c in some[i:i + together]) for i in range(0, len(some), together)]


@kept
def alignments():
    """Every construct at every place of a block of 64."""
    constructs = CONSTRUCTS + SPACES + [s + c for c in CONSTRUCTS for s in (" ", "\n")]
    for k in range(64):
        for c in constructs:
            yield "x" * k + c + "y z"
        for c in SPACES:
            for a in ("a", "!", "中", "1") if FULL else ("a", "中"):
                for b in ("", "b", "'s", "?", "9", "文") if FULL else ("", "b", "?"):
                    yield "q" * k + a + c + b
    for filler in FILLERS:
        for k in range(0, 64, 1 if FULL else 7):
            yield from (filler * k + c + filler for c in CONSTRUCTS)


@kept
def fuzz(n):
    r = random.Random(7)
    words = CONSTRUCTS + SPACES
    for _ in range(n):
        size = int(r.expovariate(1 / 12)) + 1
        kind = r.random()
        if kind < 0.6:
            yield "".join(r.choices(LETTERS, k=size))
        elif kind < 0.9:
            yield "".join(r.choice(words) if r.random() < 0.5 else r.choice(LETTERS) for _ in range(size))
        else:
            yield "".join(chr(r.choice(SCALARS)) if r.random() < 0.4 else r.choice(LETTERS) * r.randint(1, 40) for _ in range(size))


def long_runs():
    for c in ("a", " ", "\n", "'", "中", "1", "!", "ab", " a", "\u0301", "한", "x\n", "😀", "▁"):
        for n in (15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 5000):
            yield c * n
            yield "b" + c * n + "b"


def real():
    names = sorted(glob.glob(os.environ.get("WEFT_CORPUS", "") + "/*.txt")) or sorted(glob.glob(f"{DATA}/text/*.txt"))
    for name in names:
        left = REAL // len(names)
        with open(name, encoding="utf-8", newline="\n") as f:
            while left > 0:
                text = f.read(20000)
                if not text:
                    break
                left -= len(text.encode())
                yield text


def added(tokens):
    """Added tokens among letters and spaces, whole, cut and doubled."""
    r = random.Random(11)
    pool = tokens[:40] + r.sample(tokens[40:], min(60, len(tokens[40:])))
    for t in pool:
        for a in ("", " ", "a", "  ", "\n", "é", "_", t):
            for b in ("", " ", "b", "  ", "\n", "1", "_"):
                yield a + t + b
    for _ in range(FUZZ // 10 if pool else 0):
        parts = [r.choice(pool) if r.random() < 0.4 else "".join(r.choices(LETTERS, k=r.randint(0, 5)))
                 for _ in range(r.randint(1, 8))]
        if r.random() < 0.3:
            parts = [p[:r.randint(0, len(p))] for p in parts]
        yield "".join(parts)


# ---- comparing -------------------------------------------------------------------------------------

def batches(texts):
    part, size = [], 0
    for t in texts:
        part.append(t)
        size += len(t)
        if len(part) == 8192 or size > 1000000:
            yield part
            part, size = [], 0
    if part:
        yield part


def shorten(text, differs):
    """A text from which nothing can be taken that still differs."""
    size = max(len(text) // 2, 1)
    while size:
        i = 0
        while i < len(text):
            less = text[:i] + text[i + size:]
            if less and differs(less):
                text = less
            else:
                i += size
        size //= 2
    return text


def same_ids(ours, ref, texts):
    """How many texts were compared, and the first that differ, shortened."""
    n, wrong = 0, []
    for part in batches(texts):
        n += len(part)
        for t, mine, theirs in zip(part, ours.encode(part), ref.encode(part)):
            if mine != theirs and len(wrong) < 3:
                wrong.append(shorten(t, lambda x: ours.encode([x])[0] != ref.encode([x])[0]))
        if len(wrong) >= 3:
            break
    for t in wrong:
        print(f"# {ascii(t)}: {ours.encode([t])[0]}, theirs {ref.encode([t])[0]}"[:600], flush=True)
    return n, not wrong


def same_texts(ours, ref, lists):
    n, wrong = 0, []
    for part in batches(lists):
        n += len(part)
        for x, mine, theirs in zip(part, ours.decode(part), ref.decode(part)):
            if mine != theirs and len(wrong) < 3:
                wrong.append(shorten(x, lambda y: ours.decode([y])[0] != ref.decode([y])[0]))
        if len(wrong) >= 3:
            break
    for x in wrong:
        print(f"# {x} decodes to {ours.decode([x])[0]}, theirs {ref.decode([x])[0]}", flush=True)
    return n, not wrong


def id_lists(ref, size):
    """Of real text, of strange text, and at random."""
    r = random.Random(5)
    text = list(real())[:20 if not FULL else 2000]
    yield from ref.encode([t[:2000] for t in text])
    yield from ref.encode(list(fuzz(FUZZ // 10)))
    known = ref.known(size)
    for _ in range(FUZZ // 10):
        yield [r.choice(known) for _ in range(r.randint(0, 30))]


def part(texts, brief):
    """One in eight, for what is compared in brief."""
    return itertools.islice(texts, 0, None, 8) if brief else texts


def cases(path):
    """(name, how many, good) of a tokenizer, (name, reason) where it cannot be asked."""
    brief = not FULL and not PUBLISHED and bool(VOCABULARIES) and path.startswith(VOCABULARIES)
    for mode in ("text", "parse"):
        ref = tok_refs.reference(path, mode)
        if ref is None:
            continue
        try:
            ours = Ours(ref.kind, mode, path)
        except ValueError as e:
            yield f"specials {mode}", str(e)
            continue
        if mode == "text":
            yield ref.name, 0, True
            for name, texts in scalars():
                yield name, *same_ids(ours, ref, part(texts, brief))
            yield "constructs at all alignments", *same_ids(ours, ref, part(alignments(), brief))
            yield "long runs", *same_ids(ours, ref, long_runs())
            yield "random strings", *same_ids(ours, ref, part(fuzz(FUZZ), brief))
            yield "real text", *same_ids(ours, ref, real())
            yield "decoding", *same_texts(ours, ref, part(id_lists(ref, ours.size), brief))
        yield f"added tokens, {mode}", *same_ids(ours, ref, part(added(ref.added()), brief))
        ours.close()


def files():
    found = []
    for folder in (DATA and f"{DATA}/tokenizers", VOCABULARIES):
        if folder:
            found += [p for p in sorted(glob.glob(folder + "/*/*"))
                      if p.endswith(("/tokenizer.json", ".model", ".tiktoken", "/vocab.json", "/vocab.txt"))]
    return found


def main():
    n = failed = skipped = 0
    paths = sys.argv[2:] or files()
    if not paths or not tok_refs.READY:
        print(f"1..1\nok 1 - tokenizers # SKIP {tok_refs.WHY or MISSING}")
        return 1 if os.environ.get("WEFT_CI") else 0
    for path in paths:
        short = "/".join(path.split("/")[-2:])
        for name, *how in cases(path):
            n += 1
            if len(how) == 1:
                skipped += 1
                print(f"ok {n} - {short}: {name} # SKIP {how[0]}", flush=True)
                continue
            failed += not how[1]
            print(f"{'' if how[1] else 'not '}ok {n} - {short}: {name} ({how[0]})", flush=True)
    print(f"1..{n}\n# {n - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
