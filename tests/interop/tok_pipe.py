#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program tok against Hugging Face's tokenizers: the files of $WEFT_TEST_DATA/tokenizers, ids and texts.

    tok_pipe.py TOK [FILE...]

Texts: the books, every scalar value alone, between letters and behind a space, and strings of class representatives.
WEFT_FULL=1 takes 100,000 of these, else 10,000. Each text is a document; ids of special strings are those of
`--specials parse`; decoding is compared on the ids of all texts and on random ones."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import tokenizers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

TOK = os.path.abspath(sys.argv[1])
DATA = os.environ.get("WEFT_TEST_DATA")
FULL = "WEFT_FULL" in os.environ
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CLASSES = list("aZé'sTtREvemLlD  \n\r\t09٣Ⅷ½_-.,!?$+<>[]|#/\\\"") + [
    "\u0085", "\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\ufffd", "\u0301", "\u0308", "\u0323", "\u093e",
    "ß", "ſ", "K", "İ", "ǅ", "ʰ", "が", "か\u3099", "漢", "語", "한", "글", "\u1100\u1161", "ﬁ", "Ⓐ", "😀", "👨\u200d👩", "🏽",
    "\U0001d400", "\u0378", "\ue000", "\U00020000", "▁", "\x00", "\x1c", "\x7f", "\u1e9b\u0323", "\u2126", "  ", "   ",
    "<s>", "</s>", "<unk>", "<|endoftext|>", "[MASK]", "[CLS]", "<0x41>", "n't", "'ll", "#", "##"]


def books():
    out = []
    for name in ("botchan", "wagahaiwa_nekodearu"):
        with open(f"{DATA}/text/{name}.txt", encoding="utf-8", newline="") as f:
            text = f.read()
        lines = text.splitlines(keepends=True)
        keep = len(lines) if FULL else 3000
        out += ["".join(lines[i:i + 50]) for i in range(0, min(len(lines), keep), 50)]
    return out


def scalars(form):
    """Many to a document, so that it is quick: what stands between them keeps them apart."""
    return ["".join(form.replace("X", chr(c)) for c in SCALARS[i:i + 64]) for i in range(0, len(SCALARS), 64)]


def fuzz(n, seed):
    r = random.Random(seed)
    return ["".join(r.choices(CLASSES, k=r.randint(1, 40))) for _ in range(n)]


def texts():
    yield "books", books()
    yield "alone", [chr(c) for c in SCALARS]
    yield "between letters", scalars("aXb ")
    yield "behind a space", scalars(" X")
    yield "fuzz", fuzz(100000 if FULL else 10000, 7)
    yield "empty", [""]


def encode(path, docs):
    text = "".join(json.dumps({"text": d}) + "\n" for d in docs)
    p = subprocess.run([TOK, "encode", "--tokenizer", path, "--format", "json", "--specials", "parse"], input=text.encode(),
                       capture_output=True)
    if p.returncode:
        return p.stderr.decode()
    return [json.loads(line)["ids"] for line in p.stdout.splitlines()]


def decode(path, ids):
    text = "".join(json.dumps({"ids": i}) + "\n" for i in ids)
    p = subprocess.run([TOK, "decode", "--tokenizer", path, "--format", "json"], input=text.encode(), capture_output=True)
    if p.returncode:
        return p.stderr.decode()
    return [json.loads(line)["text"] for line in p.stdout.splitlines()]


def same(name, got, want, docs):
    bad = [i for i in range(len(want)) if got[i] != want[i]] if isinstance(got, list) and len(got) == len(want) else [0]
    if not bad:
        return True
    if not isinstance(got, list):
        print(f"# {name}: {got}")
        return False
    i = bad[0]
    k = next((k for k, (a, b) in enumerate(zip(got[i], want[i])) if a != b), min(len(got[i]), len(want[i])))
    print(f"# {name}: {len(bad)} of {len(want)} differ; first {docs[i][:80]!r}")
    print(f"#   at {k}: tok {got[i][max(0, k - 2):k + 8]!r}, tokenizers {want[i][max(0, k - 2):k + 8]!r}")
    return False


def check(path):
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    kept = []
    for name, docs in texts():
        want = [e.ids for e in t.encode_batch_fast(docs)] if hasattr(t, "encode_batch_fast") else \
            [e.ids for e in t.encode_batch(docs)]
        got = encode(path, docs)
        yield f"ids, {name}", same(name, got, want, docs)
        kept += want[:20000] if FULL else want[:3000]
    r = random.Random(3)
    size = t.get_vocab_size()
    kept += [[i] for i in range(size)] + [[r.randrange(size) for _ in range(r.randint(1, 30))] for _ in range(20000)]
    kept = [k for k in kept if k]
    want = [t.decode(k, skip_special_tokens=False) for k in kept]
    yield "texts of ids", same("decode", decode(path, kept), want, [str(k) for k in kept])


def main():
    files = sys.argv[2:]
    if not files and not DATA:
        print("1..0 # SKIP WEFT_TEST_DATA is not set")
        return 0
    files = files or [f"{DATA}/tokenizers/{n}/tokenizer.json" for n in
                      ("gpt2", "gpt-neox", "mistral-7b", "bert-base-cased")]
    print(f"# tokenizers {tokenizers.__version__}")
    n = bad = 0
    for path in files:
        for name, ok in check(path):
            n += 1
            bad += not ok
            print(f"{'ok' if ok else 'not ok'} {n} - {'/'.join(path.split('/')[-2:])}: {name}", flush=True)
    print(f"1..{n}")
    return bad != 0


sys.exit(main())
