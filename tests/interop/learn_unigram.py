#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok train --model_type unigram against the trainer of sentencepiece 0.2.2: held-out text costs no more bits.

    learn_unigram.py TOK

Two vocabularies of the same options learn from the same lines; then lines that neither saw are cut by each (by the
library, both times), and the scores of their pieces are summed up, in bits for each byte. Scores are brought to the sum
of 1 first; a character without a piece costs the same in both. Ours may cost 0.1 % more; it often costs less, because
the library finds its candidates in whole sentences, where what is always followed by the same mark is no repeat. How many
of the pieces are the same is told.

Special pieces must be the same at the same ids, every required character must have a piece, and the model must be the
same bytes for any --workers. Texts: those of testdata.py, and of $WEFT_CORPUS where that is set; a made-up one.
WEFT_FULL takes 60 MB and 32,000 pieces of these."""
import math
import os
import random
import subprocess
import sys
import tempfile
import time

from sp022 import sentencepiece
from testdata import DATA, PUBLISHED, common_letters

TOK = os.path.abspath(sys.argv[1])
CORPUS = os.environ.get("WEFT_CORPUS")
FULL = "WEFT_FULL" in os.environ
MORE = 1.001  # what ours may cost
UNKNOWN = 25  # nats for a character without a piece
UCLLM = {"character_coverage": "0.9995", "train_extremely_large_corpus": "true", "byte_fallback": "true",
         "user_defined_symbols": "<s>,</s>,<pad>,<CLS>,<SEP>,<EOD>,<MASK>,\n", "split_digits": "true",
         "allow_whitespace_only_pieces": "true", "remove_extra_whitespaces": "false"}
CASES = [
    UCLLM, {"split_digits": "true", "byte_fallback": "true"}, {"split_by_number": "false"},
    {"split_by_unicode_script": "false"}, {"split_by_whitespace": "false"}, {"treat_whitespace_as_suffix": "true"},
    {"treat_whitespace_as_suffix": "true", "split_by_whitespace": "false", "split_by_unicode_script": "false"},
    {"user_defined_symbols": "ab,aba,the,\n,猫", "control_symbols": "<c>,ca"}, {"character_coverage": "0.98"},
    {"max_sentencepiece_length": "3"}, {"max_sentencepiece_length": "60"}, {"required_chars": "ab猫"},
    {"normalization_rule_name": "identity"}, {"num_sub_iterations": "4"}, {"shrinking_factor": "0.9"},
    {"shrinking_factor": "0.5"}, {"seed_sentencepiece_size": "6000"}, {"pad_id": "3", "unk_id": "7"},
]


def split(text):
    """Lines to learn from, and others among which there are none of these."""
    lines = text.split("\n")
    random.Random(5).shuffle(lines)
    seen = lines[:len(lines) * 4 // 5]
    known = set(seen)
    return seen, [x for x in lines[len(seen):] if x and x not in known]


def made(n):
    """Sentences of words of syllables, the same few again and again."""
    r = random.Random(3)
    words = ["".join(r.choices("ka no ti re su mi lo an er str 猫 が".split(), k=r.randint(1, 4))) for _ in range(n // 3)]
    weights = [1 / (i + 2) for i in range(len(words))]
    return "\n".join(" ".join(r.choices(words, weights, k=r.randint(3, 12))) + r.choice([".", ".", "?", " 42", "。"])
                     for _ in range(n))


def texts():
    """Name, text, vocabulary size."""
    yield "made", made(3000), 400
    if DATA:
        for name, size, made_size in ("botchan", 4000, 2000), ("wagahaiwa_nekodearu", 8000, 4000):
            with open(f"{DATA}/text/{name}.txt", encoding="utf-8", newline="\n") as f:
                text = f.read() if PUBLISHED else "".join(common_letters(f, made_size // 3))
            yield name, text, size if PUBLISHED else made_size
    for name in ("english", "japanese", "chinese", "mixed") if CORPUS else ():
        with open(f"{CORPUS}/{name}.txt", encoding="utf-8", errors="ignore", newline="\n") as f:
            lines = f.read(60000000 if FULL else 10000000).split("\n")
        random.Random(1).shuffle(lines)
        yield name, "\n".join(lines if FULL else lines[:len(lines) // 8]), 32000 if FULL else 8000


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(lines) + "\n")


def reference(path, out, options):
    start = time.monotonic()
    sentencepiece.SentencePieceTrainer.train(input=path, model_prefix=out, minloglevel=2, model_type="unigram",
                                             num_threads=os.cpu_count(), **options)
    return time.monotonic() - start


def ours(path, out, options, *more):
    start = time.monotonic()
    flags = [f"--{k}={v}" for k, v in options.items()]
    subprocess.run([TOK, "train", "-q", "--overwrite", "--model_type=unigram", "--input", path, "--model_prefix", out, *flags, *more],
                   check=True)
    return time.monotonic() - start


def read(path):
    with open(path, "rb") as f:
        return f.read()


def load(model):
    return sentencepiece.SentencePieceProcessor(model_file=model)


def is_learnt(sp, i):
    return sp.GetScore(i) != 0


def cost(sp, lines):
    """Bits of all lines."""
    score = [sp.GetScore(i) for i in range(sp.GetPieceSize())]
    norm = math.log(math.fsum(math.exp(s) for i, s in enumerate(score) if is_learnt(sp, i)))
    nats = [norm - s if is_learnt(sp, i) else 0 for i, s in enumerate(score)]
    for i in range(len(nats)):
        nats[i] = UNKNOWN if sp.IsUnknown(i) else UNKNOWN / 3 if sp.IsByte(i) else nats[i]
    return math.fsum(nats[i] for ids in sp.EncodeAsIds(lines) for i in ids) / math.log(2)


def compare(seen, held, folder, options):
    """What is wrong, or None; what there is to tell."""
    path = f"{folder}/text.txt"
    write(path, seen)
    times = reference(path, f"{folder}/ref", options), ours(path, f"{folder}/own", options)
    ref, own = load(f"{folder}/ref.model"), load(f"{folder}/own.model")
    size = sum(len(x.encode()) for x in held)
    bits = [cost(sp, held) / size for sp in (ref, own)]
    pieces = [{sp.IdToPiece(i) for i in range(sp.GetPieceSize()) if is_learnt(sp, i)} for sp in (ref, own)]
    note = (f"{bits[0]:.4f} bits a byte, ours {bits[1]:.4f} ({100 * (bits[1] / bits[0] - 1):+.2f} %), "
            f"{100 * len(pieces[0] & pieces[1]) / len(pieces[0]):.1f} % of the pieces; "
            f"{times[0]:.1f} s, ours {times[1]:.1f}")
    if bits[1] > bits[0] * MORE:
        return "the held-out text costs more", note
    kinds = [[(i, sp.IdToPiece(i), sp.IsControl(i), sp.IsUnknown(i), sp.IsByte(i), sp.IsUnused(i))
              for i in range(sp.GetPieceSize()) if not is_learnt(sp, i)] for sp in (ref, own)]
    if kinds[0] != kinds[1]:
        return "other special pieces", note
    letters = [{x for x in p if len(x) == 1} for p in pieces]
    if letters[0] - letters[1]:
        return f"characters without a piece: {letters[0] - letters[1]}", note
    if "hard_vocab_limit" not in options and own.GetPieceSize() != ref.GetPieceSize():
        return "another number of pieces", note
    return None, note


def threads(seen, folder, options):
    path = f"{folder}/text.txt"
    write(path, seen)
    ours(path, f"{folder}/a", options, "--workers", "1")
    write(path, list(reversed(seen)))
    for n in "2", "7":
        ours(path, f"{folder}/b", options, "--workers", n)
        if read(f"{folder}/a.model") != read(f"{folder}/b.model"):
            return f"another model with {n} workers and the lines backwards"
    return None


def run(folder):
    number = failed = 0

    def tell(name, wrong, note=None):
        nonlocal number, failed
        number += 1
        failed += wrong is not None
        print(f"{'ok' if wrong is None else 'not ok'} {number} - {name}", flush=True)
        for line in filter(None, (wrong, note)):
            print(f"# {line}", flush=True)

    for name, text, size in texts():
        seen, held = split(text)
        usual = {"vocab_size": str(size), "hard_vocab_limit": "false"}
        tell(f"{name}: {size} pieces", *compare(seen, held, folder, {"vocab_size": str(size)}))
        if name not in ("made", "botchan"):
            continue
        tell(f"{name}: any threads", threads(seen, folder, usual))
        for options in CASES if FULL or name == "made" else CASES[:1] + CASES[5:6]:
            tell(f"{name}: {options}", *compare(seen, held, folder, {**usual, **options}))
    print(f"1..{number}\n# sentencepiece 0.2.2: {number - failed} passed, {failed} failed")
    return 1 if failed else 0


with tempfile.TemporaryDirectory() as place:
    sys.exit(run(place))
