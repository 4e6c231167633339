#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep build against Python's json, SentencePiece itself and Megatron-LM's published rules.

    prep.py PREP

The .bin and .idx that should come out are made here, from what json.loads and the tokenizer's own library say,
and compared byte for byte."""
import json
import os
import random
import subprocess
import sys
import tempfile

from sp022 import sentencepiece as spm
from testdata import DATA, MISSING

try:
    from dataset import builder
except ImportError as e:
    print(f"1..1\nok 1 - dataset # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

TEXTS = ["botchan.jsonl", "wagahaiwa_nekodearu.jsonl"]


def texts(paths, key="text"):
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                yield json.loads(line)[key]


def check(prep, prefix, documents, vocab_size, *options, key="text"):
    """Builds, and compares with what the builder's rules make of `documents`, each a list of ids."""
    run = subprocess.run([prep, "build", "--quiet", "--overwrite", "--output-prefix", prefix, *options],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    want = builder([[d] for d in documents], 8 if vocab_size < 65500 else 4)
    for suffix, bytes_ in zip((".bin", ".idx"), want):
        with open(f"{prefix}_{key}_document{suffix}", "rb") as f:
            got = f.read()
        assert got == bytes_, f"{suffix}: {len(got)} bytes, expected {len(bytes_)}"
    with open(f"{prefix}_{key}_document.manifest.json") as f:
        m = json.load(f)
    assert m["documents"] == len(documents) and m["tokens"] == sum(map(len, documents)), m
    assert m["tokenizer"]["vocab_size"] == vocab_size, m


def ended(documents, eod):
    return [d + [eod] if d else d for d in documents]


# ---- SentencePiece ---------------------------------------------------------------------------------

def train(folder, name, **options):
    prefix = os.path.join(folder, name)
    spm.SentencePieceTrainer.train(input=os.path.join(DATA, "text/botchan.txt"), model_prefix=prefix,
                                   vocab_size=2000, minloglevel=2, **options)
    return prefix + ".model"


UCLLM = dict(character_coverage=0.9995, byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
             remove_extra_whitespaces=False,
             user_defined_symbols=["<s>", "</s>", "<pad>", "<CLS>", "<SEP>", "<EOD>", "<MASK>", "\n"])
MODELS = {
    "unigram as in seed 001": UCLLM,
    "unigram as it comes": {},
    "bpe": dict(model_type="bpe", byte_fallback=True),
    "char": dict(model_type="char"),
}


def sentencepiece(prep, folder, name, workers):
    model = train(folder, name.replace(" ", "-"), **MODELS[name])
    sp = spm.SentencePieceProcessor(model_file=model)
    inputs = [os.path.join(DATA, "text", t) for t in TEXTS]
    documents = [sp.encode(t) for t in texts(inputs)]
    n = sp.get_piece_size()
    options = ["--input", *inputs, "--workers", str(workers), "--tokenizer-model", model]
    if "seed" in name:  # Megatron's wrapper adds what the model lacks: pad, bos and eos
        n += sum(i < 0 for i in (sp.pad_id(), sp.bos_id(), sp.eos_id()))
        check(prep, os.path.join(folder, "a"), ended(documents, sp.piece_to_id("<EOD>")), n, "--append-eod",
              "--tokenizer-type", "SentencePieceTokenizer", *options)
    else:
        check(prep, os.path.join(folder, "a"), ended(documents, sp.eos_id()), n, "--append-eod",
              "--tokenizer-type", "GPTSentencePieceTokenizer", *options)
    check(prep, os.path.join(folder, "b"), documents, n, *options)


# ---- words and numbers -----------------------------------------------------------------------------

def words(prep, folder):
    rng = random.Random(3)
    alphabet = ["a", "the", "\u3042", "\U0001F600", "caf\u00e9", "\u6f22\u5b57", "x" * 40, "\u0000", "\"", "\\"]
    spaces = [" ", "\n", "\t", "\u3000", "\u00a0", "\r\n", "\u2028", "  ", "\x1c", "\u0085"]
    vocab = {w: i for i, w in enumerate(["<unk>", "<|endoftext|>", *alphabet[:-3]])}
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(vocab, f, ensure_ascii=False)
    path = os.path.join(folder, "words.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        for i in range(3000):
            text = "".join(rng.choice(alphabet) + rng.choice(spaces) for _ in range(rng.choice([0, 1, 5, 100])))
            f.write(json.dumps({"n": i, "text": text, "x": [text]}, ensure_ascii=rng.random() < 0.5) + "\n")
    documents = [[vocab.get(w, 0) for w in t.split()] for t in texts([path])]
    check(prep, os.path.join(folder, "w"), ended(documents, 1), len(vocab), "--append-eod", "--input", path,
          "--vocab-file", os.path.join(folder, "vocab.json"))


def numbers(prep, folder, top):
    rng = random.Random(top)
    path = os.path.join(folder, "numbers.jsonl")
    documents = {"a": [], "b c": []}
    with open(path, "w") as f:
        for i in range(5000):
            for d in documents.values():
                d.append([rng.randrange(top) for _ in range(rng.choice([0, 1, 3, 200]))])
            f.write(json.dumps({k: " ".join(map(str, d[-1])) for k, d in documents.items()}) + "\n")
    for key in documents:
        check(prep, os.path.join(folder, "n"), ended(documents[key], top), top + 1, "--append-eod", "--input", path,
              "--tokenizer-type", "NullTokenizer", "--vocab-size", str(top), "--json-keys=a,b c" if " " in key
              else "--json-keys=a", key=key)


def main(prep):
    number = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [("words of a vocab.json", words, ())]
        cases += [(f"numbers below {top}", numbers, (top,)) for top in (1000, 65498, 65499, 200000)]
        cases += [(f"{name}, {w} workers", sentencepiece, (name, w)) for name, w in zip(MODELS, (1, 2, 3, 7))]
        for number, (name, run, args) in enumerate(cases, 1):
            if run is sentencepiece and not DATA:
                print(f"ok {number} - {name} # SKIP {MISSING}")
                continue
            try:
                run(prep, folder, *args)
                print(f"ok {number} - {name}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - {name}\n# {e}")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
