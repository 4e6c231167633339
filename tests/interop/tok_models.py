#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random SentencePiece models, pieces of any type and score under any rules, against sentencepiece 0.2.2: ids, pieces,
places, texts of ids, the n best segmentations, and what is left of it when pruned to a corpus.

    tok_models.py TOK [FIRST LAST]

201 models, with WEFT_FULL=1 5000, or those of the numbers FIRST to LAST - 1. They are written here, not trained, so that there
is what no trainer makes: rules of several characters that become nothing or something else, pieces around user-defined ones,
scores that are equal, 0 and -0, characters without a piece inside longer ones. Places are compared where no id is unknown:
which of two alike pieces in a row of unknown characters it was is not told by ids (tok/sp/offsets.h)."""
import base64
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from sp022 import sentencepiece

from tok_pipe import TOK, charsmap

FULL = "WEFT_FULL" in os.environ
TYPE = ["--tokenizer-type", "GPTSentencePieceTokenizer"]
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
LETTERS = list("ntabxyes.A5- ") + ["é", "漢", "字", "あ", "い", "\u0301", "😀", "ﬁ"]
WORDS = LETTERS * 3 + ["the ", "ing ", "nt", "e\u0301", "  ", "▁", "\t", "\u3000", "\n", "ß", "zq", "<s>", "\u200b"]
RULES = {"nt": "", "ab": "b", " x": "y", "a ": "a", "ét": "x", "té": " ", "漢字": "字", "あい": " ", "A": "a", "e\u0301": "é", "sst": "ß",
         "あ": "yy", "..": "…", "  ": " ", " n": "", "\t": " ", "\u3000": " ", "\n": " ", "ﬁ": "fi", "\u200b": "", "字い": "  "}
SPACES = {"\t": " ", "\u3000": " ", "\n": " ", "ﬁ": "fi", "\u200b": "", "A": "a"}


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def pieces(r):
    """Texts, scores and types; the first three are the unknown piece and two controls."""
    found = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    letters = ["▁" if c == " " else c for c in LETTERS]
    texts = {c: 0 for c in letters if r.random() < .85}
    for _ in range(r.choice([20, 100, 400])):
        texts["".join(r.choices(letters, k=r.choice([2, 2, 2, 3, 3, 4, 6])))] = 0
    grid = r.choice([None, 1, 4])  # scores that are often equal, or seldom
    for text in texts:
        score = -r.random() * 12
        score = score if grid is None else round(score * grid) / grid
        score = r.choice([0.0, -0.0, 1.5, -30.0]) if r.random() < .05 else score
        kind = r.random()
        found.append((text, score, USER if kind < .04 else UNUSED if kind < .08 else CONTROL if kind < .085 else NORMAL))
    return found


def model(seed):
    r = random.Random(seed)
    kind = r.choice([1, 1, 1, 2, 2, 2, 4])
    found = pieces(r) if kind != 4 else [p for p in pieces(r) if len(p[0]) == 1 or p[2] in (UNKNOWN, CONTROL)]
    falls_back = r.random() < .3
    if falls_back:
        found += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
    out = b"".join(field(1, field(1, text) + field(2, score) + field(3, of)) for text, score, of in found)
    trainer = field(3, kind) + field(24, int(r.random() < .3)) + field(35, int(falls_back)) + field(40, 0) + field(41, 1) + field(42, 2)
    trainer += field(43, (1 << 64) - 1) + field(44, r.choice([" \u2047 ", "<U>", ""])) + field(45, "<unk>")
    rules = r.choice([{}, SPACES, dict(r.sample(sorted(RULES.items()), r.randint(1, 9)))])
    spec = field(1, "made") + (field(2, base64.b64decode(charsmap(rules))) if rules else b"")
    spec += field(3, int(r.random() < .6)) + field(4, int(r.random() < .5)) + field(5, int(r.random() < .9))
    return kind, out + field(2, trainer) + field(3, spec)


def texts(r):
    out = ["", " ", "  a  ", *("".join(r.choices(WORDS, k=r.choice([1, 2, 3, 5, 8, 20, 100, 400]))) for _ in range(150))]
    for c in (".", "the", "漢", "a "):  # the same at each place of a block
        out += [c * k + r.choice(WORDS) + r.choice([". nt b", "nt nt.nt", "t漢字nt あいt", "  ab x"]) for k in range(40)]
    return out


def ours(verb, key, items, *more):
    p = subprocess.run([TOK, verb, "--tokenizer", "made.model", *TYPE, "--format", "json", "-q", *more, "-"], capture_output=True,
                       input="".join(json.dumps({key: x}) + "\n" for x in items).encode())
    return [json.loads(line) for line in p.stdout.splitlines()] if p.returncode == 0 else p.stderr.decode()


def encoded(sp, docs):
    for d in docs:  # on some the library finds that not all was consumed
        try:
            yield d, sp.encode(d, return_type="proto").pieces
        except RuntimeError:
            pass


def differences(seed):
    kind, data = model(seed)
    with open("made.model", "wb") as f:
        f.write(data)
    try:
        sp = sentencepiece.SentencePieceProcessor(model_file="made.model")
    except RuntimeError:
        return
    r = random.Random(seed)
    docs, want = zip(*encoded(sp, texts(r)))
    ids = [[p.id for p in w] for w in want]
    places = [(i, [[p.begin, p.end] for p in w]) for i, w in zip(ids, want)]
    sure = [k for k, i in enumerate(ids) if 0 not in i]
    for what, some, expected, more in (
            ("ids", docs, ids, ()), ("pieces", [docs[k] for k in sure], [[p.piece for p in want[k]] for k in sure], ("--output_format", "piece")),
            ("places", [docs[k] for k in sure], [places[k] for k in sure], ("--offsets", "byte"))):
        got = ours("encode", "text", some, "--input-format", "jsonl", "--specials", "text", *more)
        if isinstance(got, str):
            yield got
            return
        got = [g.get("pieces") or ((g["ids"], g["offsets"]) if more and "offsets" in g else g.get("ids", [])) for g in got]
        wrong = [d for d, g, w in zip(some, got, expected) if g != w]
        if wrong:
            yield f"{what}: {len(wrong)} of {len(some)}, {min(wrong, key=len)!r}"
    size = len(sp)
    lists = [i for i in ids if i] + [[i] for i in range(size)] + [r.choices(range(size), k=r.randint(2, 9)) for _ in range(100)]
    got = ours("decode", "ids", lists)
    wrong = [x for x, g in zip(lists, got) if g["text"] != sp.decode(x)] if isinstance(got, list) else [got]
    if wrong:
        yield f"texts: {len(wrong)} of {len(lists)}, {min(wrong, key=len)!r}"
    if kind == 1:
        some = [d for d in docs if len(d) < 30][:30]
        got = ours("encode", "text", some, "--input-format", "jsonl", "--specials", "text", "--output_format", "nbest_id", "--nbest_size", "4")
        wrong = [d for d, g in zip(some, got) if [x["ids"] for x in g["nbest"]] != sp.NBestEncodeAsIds(d, 4)] if isinstance(got, list) else [got]
        if wrong:
            yield f"n best: {len(wrong)} of {len(some)}, {min(wrong, key=len)!r}"
    yield from pruned(docs[3:3 + r.choice([3, 20, 150])], ids[3:])


def pruned(docs, want):
    with open("used.jsonl", "w") as f:
        f.writelines(json.dumps({"text": d}) + "\n" for d in docs)
    p = subprocess.run([TOK, "prune", "-q", "--overwrite", "made.model", *TYPE, "--keep-used", "used.jsonl", "--output", "used.model"], capture_output=True)
    if p.returncode:
        yield p.stderr.decode()
        return
    sp = sentencepiece.SentencePieceProcessor(model_file="used.model")
    with open("used.model.rows") as f:
        old = [int(line.split()[1]) for line in list(f)[1:]]
    wrong = [d for d, w in zip(docs, want) if [old[i] for i in sp.encode(d)] != w]
    if wrong:
        yield f"pruned: {len(wrong)} of {len(docs)}, {min(wrong, key=len)!r}"


def main():
    seeds = range(*map(int, sys.argv[2:])) if sys.argv[2:] else range(5000) if FULL else [*range(200), 1589]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for seed in seeds:
            found = list(differences(seed))
            for x in found:
                print(f"# model {seed}: {x[:600]}")
            bad += len(found) > 0
    print(f"1..1\n{'not ok' if bad else 'ok'} 1 - {len(seeds)} models as sentencepiece {sentencepiece.__version__}, {bad} otherwise")
    return bad > 0


sys.exit(main())
