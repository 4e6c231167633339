#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok encode --output_format nbest_id, sample_id against sentencepiece 0.2.2: the same best segmentations in the same order
with the same scores, and random ones as often as the library takes them.

    tok_sample.py TOK

Models learn from the texts of testdata.py, or a made-up text; n-best is asked of real lines, of random strings of the models'
characters and of runs of one letter. WEFT_FULL takes ten times as many."""
import collections
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from sp022 import sentencepiece
from testdata import DATA, PUBLISHED, common_letters

TOK = os.path.abspath(sys.argv[1])
TIMES = 10 if "WEFT_FULL" in os.environ else 1
KINDS = {
    "unigram": {"vocab_size": "5000"},
    "bytes": {"vocab_size": "4600", "byte_fallback": "true", "remove_extra_whitespaces": "false", "split_digits": "true"},
    "user": {"vocab_size": "4600", "user_defined_symbols": "the,<x>,ab,\n", "split_by_whitespace": "false"},
    "few": {"vocab_size": "3000", "character_coverage": "0.98", "treat_whitespace_as_suffix": "true"},
}


def made():
    r = random.Random(4)
    words = ["".join(r.choice("ka to mi ran de su ber ill on ab the".split()) for _ in range(r.randint(1, 4))) for _ in range(900)]
    return [" ".join(r.choices(words, k=r.randint(3, 30))) + ". 2024" for _ in range(3000)]


def lines():
    if not DATA:
        return made()
    found = []
    for name in ("botchan", "wagahaiwa_nekodearu"):
        with open(f"{DATA}/text/{name}.txt", encoding="utf-8") as f:
            found += [x for x in f.read().split("\n") if x][:4000]
    return found if PUBLISHED else common_letters(found, 2000)


def learn(name, text, options):
    with open("learn.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")
    few = {} if DATA else {"vocab_size": "250" if "byte_fallback" not in options else "400"}  # of a made-up text
    flags = [f"--{k}={v}" for k, v in {**options, **few}.items()]
    subprocess.run([TOK, "train", "-q", "--overwrite", "--input", "learn.txt", "--model_prefix", name, *flags],
                   check=True, capture_output=True)
    return sentencepiece.SentencePieceProcessor(model_file=f"{name}.model")


def encode(model, texts, *more):
    """The lines that come back for texts, as JSON."""
    data = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    out = subprocess.run([TOK, "encode", "-q", "--tokenizer", model, "--tokenizer-type", "GPTSentencePieceTokenizer",
                          "--input_format", "jsonl", "--format", "json", *more], input=data.encode(), check=True,
                         capture_output=True)
    return [json.loads(x) for x in out.stdout.decode().splitlines()]


def single(x):
    return struct.pack("f", x)


def fields(b):
    """(number, value) of each field of a message."""
    def varint(i):
        v = s = 0
        while True:
            v |= (b[i] & 127) << s
            s, i = s + 7, i + 1
            if b[i - 1] < 128:
                return v, i
    i = 0
    while i < len(b):
        tag, i = varint(i)
        if tag & 7 == 0:
            v, i = varint(i)
        else:
            n, i = varint(i) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], i)
            v, i = b[i:i + n], i + n
        yield tag >> 3, v


def best_of(model, text, most):
    """NBestSentencePieceText: the ids of each, and its score's bytes."""
    message = model.nbest_encode(text, nbest_size=most, return_type="serialized_proto")
    found = []
    for _, one in fields(message):
        ids, score = [], single(0)
        for number, value in fields(one):
            if number == 2:
                ids.append(dict(fields(value)).get(2, 0))
            elif number == 3:
                score = value
        found.append((ids, score))
    return found


def texts_for(model, text, r):
    chars = sorted({model.id_to_piece(i)[0] for i in range(3, model.get_piece_size())}) + [" ", "  ", "\n", "ﬁ", "☃"]
    found = r.sample(text, min(len(text), 150 * TIMES))
    found += ["".join(r.choices(chars, k=r.randint(0, 60))) for _ in range(150 * TIMES)]
    found += ["".join(r.choices(r.sample(chars, 3), k=r.randint(5, 90))) for _ in range(60 * TIMES)]
    found += ["a" * k for k in (1, 5, 17, 60, 200)] + ["the <x> abab", "", " ", " ".join(r.sample(text, 6))]
    return found


def nbest_is_the_same(name, text):
    model = learn(name, text, KINDS[name])
    r = random.Random(name)
    texts, bad, ways = texts_for(model, text, r), 0, 0
    for most in (1, 2, 7, 64, 500):
        some = texts if most in (2, 7) else texts[most % 5::5]
        for t, ours in zip(some, encode(f"{name}.model", some, "--output_format", "nbest_id", "--nbest_size", str(most))):
            want = best_of(model, t, most)
            have = [(x["ids"], single(x["score"])) for x in ours["nbest"]]
            ways += len(want)
            if want != have:
                at = next(i for i, (a, b) in enumerate(zip(want + [0], have + [0])) if a != b)
                bad += 1
                if bad < 4:
                    print(f"# {name}, {most} best of {t[:80]!r}: {at}: {want[at:at + 1]} and {have[at:at + 1]}")
    print(f"# {name}: {ways} segmentations of {len(texts)} texts")
    return not bad


def shares_are_the_same(name, size, *cases):
    """Of one text, many times: the library's counts and ours are draws from one distribution."""
    model = sentencepiece.SentencePieceProcessor(model_file=f"{name}.model")
    good = True
    for t, alpha in cases or (("the rest", 0.3), ("about that", 0.8), ("  no  it ", 0.1), ("今は昔", 0.4)):
        n = 20000 * TIMES
        ours = collections.Counter(tuple(x["ids"]) for x in encode(
            f"{name}.model", [t] * n, "--output_format", "sample_id", "--nbest_size", str(size), "--alpha", str(alpha)))
        theirs = collections.Counter(tuple(model.sample_encode_as_ids(t, size, alpha)) for _ in range(n))
        keys = [k for k in set(ours) | set(theirs) if ours[k] + theirs[k] >= 10]
        rest = [n - sum(c[k] for k in keys) for c in (ours, theirs)]
        chi = sum((a - b) ** 2 / (a + b) for a, b in [(ours[k], theirs[k]) for k in keys] + [tuple(rest)] if a + b)
        free = max(1, len(keys))
        if not chi < free + 5 * (2 * free) ** .5 + 5:
            good = False
            print(f"# {name}, {size}, {t!r}, alpha {alpha}: {chi:.1f} over {free} segmentations")
    return good


def merges_are_left_out_alike(text):
    """Of byte pairs: alpha is the probability of a merge to be left out."""
    some = text[:3000]
    learn("pairs", some, {"vocab_size": "2600", "model_type": "bpe"})
    learn("odd", some, {"vocab_size": "2600", "model_type": "bpe", "byte_fallback": "true",
                        "user_defined_symbols": "the,ab"})
    return all([shares_are_the_same(name, -1, t) for name in ("pairs", "odd") for t in
                (("kamitan", 0.3), ("the rest", 0.5), ("about that", 0.1), ("the ab. one", 1.0))])


def threads_change_nothing(name, text):
    some = text[:3000]
    runs = [encode(f"{name}.model", some, "--output_format", "sample_id", "--nbest_size", "-1", "--alpha", "0.2",
                   "--workers", str(w), "--seed", s) for w, s in ((1, "5"), (3, "5"), (2, "6"))]
    return runs[0] == runs[1] != runs[2]


def main():
    text = lines()
    checks = [(f"nbest {k}", lambda k=k: nbest_is_the_same(k, text)) for k in KINDS]
    checks += [(f"sample {k} {n}", lambda k=k, n=n: shares_are_the_same(k, n)) for k in ("unigram", "bytes") for n in (-1, 12)]
    checks += [("merges left out", lambda: merges_are_left_out_alike(text))]
    checks += [("threads", lambda: threads_change_nothing("unigram", text))]
    failed = 0
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        for i, (name, check) in enumerate(checks):
            good = check()
            failed += not good
            print(f"{'' if good else 'not '}ok {i + 1} - {name}")
    print(f"1..{len(checks)}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
