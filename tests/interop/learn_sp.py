#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok train --model_type bpe, word and char against the trainers of sentencepiece 0.2.2: the same .vocab, byte for byte.

    learn_sp.py TOK

The release is part of what is claimed (sp022.py): earlier ones take another best pair. Two things are not compared, because they are by chance there: samples of
shuffled sentences, and what 0.2.2's newer rules normalize that those of the linked library leave alone (158 characters
of Unicode 14 and later).

The .model is held against libsentencepiece's (--engine sentencepiece) where both learn the same pieces, and against
itself for other threads and a memory limit. Texts: those of testdata.py, and in Chinese of $WEFT_CORPUS where
that is set; made-up ones full of runs and ties, learnt to the last pair, where the order among equals counts. WEFT_FULL
takes all options with all texts."""
import os
import random
import subprocess
import sys
import tempfile

from sp022 import sentencepiece
from testdata import DATA

TOK = os.path.abspath(sys.argv[1])
CORPUS = os.environ.get("WEFT_CORPUS")
FULL = "WEFT_FULL" in os.environ
UCLLM = {"character_coverage": "0.9995", "num_threads": "16", "train_extremely_large_corpus": "true",
         "user_defined_symbols": "<s>,</s>,<pad>,<CLS>,<SEP>,<EOD>,<MASK>,\n", "byte_fallback": "true",
         "split_digits": "true", "allow_whitespace_only_pieces": "true", "remove_extra_whitespaces": "false"}
KEPT = {"allow_whitespace_only_pieces": "true", "remove_extra_whitespaces": "false"}
CASES = [
    {}, UCLLM, {"byte_fallback": "true"}, {"split_digits": "true"}, {"split_by_number": "false"},
    {"split_by_unicode_script": "false"}, {"split_by_whitespace": "false"}, KEPT, {"treat_whitespace_as_suffix": "true"},
    {"treat_whitespace_as_suffix": "true", **KEPT},
    {"treat_whitespace_as_suffix": "true", "split_by_whitespace": "false", "split_by_unicode_script": "false"},
    {"user_defined_symbols": "ab,aba,\"a,b\",\n,猫,\"q\"\"\"", "control_symbols": "<c>,ca"},
    {"character_coverage": "0.98"}, {"max_sentencepiece_length": "3"}, {"max_sentencepiece_length": "40"},
    {"required_chars": "ab"}, {"normalization_rule_name": "identity"}, {"max_sentence_length": "30"},
    {"normalization_rule_name": "nfkc_cf", "add_dummy_prefix": "false"},
    {"input_sentence_size": "500", "shuffle_input_sentence": "false"},
    {"pad_id": "3", "unk_id": "7"}, {"unk_id": "3", "bos_id": "-1", "eos_id": "0"},
    {"vocabulary_output_piece_score": "false"},
    {"normalization_rule_name": "identity", "split_by_whitespace": "false", "split_by_unicode_script": "false",
     "max_sentencepiece_length": "64", **KEPT},
]


def made(lines):
    random.seed(lines)
    for _ in range(lines):
        kind = random.random()
        if kind < 0.3:
            yield random.choice("ab-= \t") * random.randint(1, 40)
        elif kind < 0.6:
            yield "".join(random.choices("ab", k=random.randint(1, 30)))
        else:
            yield " ".join("".join(random.choices("abcde\u0301\u0300éあがか\u3099猫9'_", k=random.randint(1, 7)))
                           for _ in range(random.randint(1, 9)))


def texts(folder):
    """Names, files and vocabulary sizes."""
    found = {"made": ("\n".join(made(3000)) + "\n", 1000), "few": ("\n".join(made(150)) + "\n", 2500)}
    sources = [("botchan", f"{DATA}/text/botchan.txt", 4000), ("wagahaiwa", f"{DATA}/text/wagahaiwa_nekodearu.txt", 6000)]
    sources = sources if DATA else []
    if CORPUS:
        sources += [(n, f"{CORPUS}/{n}.txt", 9000) for n in ("english", "japanese", "chinese")]
    for name, path, size in sources:
        with open(path, encoding="utf-8", errors="ignore", newline="\n") as f:
            text = f.read(4000000 if FULL else 150000)
        found[name] = (text[:text.rindex("\n") + 1], size)
    for name, (text, size) in found.items():
        path = f"{folder}/{name}.txt"
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
        yield name, path, size


def read(path):
    with open(path, "rb") as f:
        return f.read()


def flags(options):
    return [f"--{k}={v}" for k, v in options.items()]


def ours(path, out, options, *more):
    subprocess.run([TOK, "train", "-q", "--overwrite", "--input", path, "--model_prefix", out, *flags(options), *more], check=True)
    return read(f"{out}.vocab")


def differs(path, folder, kind, size, options):
    """The first difference, or None."""
    options = dict({"model_type": kind, "vocab_size": str(size), "hard_vocab_limit": "false"}, **options)
    sentencepiece.SentencePieceTrainer.train(input=path, model_prefix=f"{folder}/ref", minloglevel=2, **options)
    want = read(f"{folder}/ref.vocab")
    got = ours(path, f"{folder}/own", options)
    if got == want:
        return None
    pairs = zip(want.decode().split("\n"), got.decode().split("\n"))
    return next((f"piece {i} is {b!r}, not {a!r}" for i, (a, b) in enumerate(pairs) if a != b), "other lengths")


def preset(path, folder):
    """--preset ucllm --model_type bpe."""
    flat = dict(UCLLM, model_type="bpe", vocab_size="7000", hard_vocab_limit="false")
    ours(path, f"{folder}/a", {"model_type": "bpe", "vocab_size": "7000", "hard_vocab_limit": "false"}, "--preset",
         "ucllm")
    ours(path, f"{folder}/b", flat)
    return None if read(f"{folder}/a.model") == read(f"{folder}/b.model") else "another model"


def threads(path, folder, options):
    options = dict({"model_type": "bpe", "vocab_size": "3000", "hard_vocab_limit": "false"}, **options)
    ours(path, f"{folder}/a", options, "--workers", "1")
    for more in ["--workers", "5"], ["--workers", "2", "--memory", "64" if FULL else "16"]:
        ours(path, f"{folder}/b", options, *more)
        if read(f"{folder}/a.model") != read(f"{folder}/b.model"):
            return f"another model with {more}"
    return None


def fields(path, folder, options):
    """The whole model, where the linked library learns the same pieces."""
    options = dict({"vocab_size": "3000", "hard_vocab_limit": "false"}, **options)
    ours(path, f"{folder}/a", options)
    ours(path, f"{folder}/b", options, "--engine", "sentencepiece")
    return None if read(f"{folder}/a.model") == read(f"{folder}/b.model") else "another model"


def cases(folder):
    rules = f"{folder}/rules.tsv"
    with open(rules, "w", encoding="ascii") as f:
        f.write("61\t62 62\n65\t\n")
    for name, path, size in texts(folder):
        real = name not in ("made", "few")
        for i, options in enumerate(CASES if FULL or not real else CASES[:2] + CASES[6:8]):
            if "max_sentence_length" in options and real and name != "botchan":
                continue
            yield f"{name}: bpe {options}", differs(path, folder, "bpe", size, options)
            if FULL or name == "made" or i < 2:
                for kind in "word", "char":
                    yield f"{name}: {kind} {options}", differs(path, folder, kind, size // 4 + 300, options)
        yield f"{name}: ucllm", preset(path, folder)
        for options in {}, {"split_by_whitespace": "false"}:
            yield f"{name}: threads, memory {options}", threads(path, folder, options)
        for options in ({"model_type": "char"}, {"model_type": "word", "normalization_rule_tsv": rules},
                        {"model_type": "char", "accept_language": "en,ja", "pad_id": "3", "user_defined_symbols": "q,\"b,c\"",
                         "control_symbols": "<x>", "required_chars": "a", "normalization_rule_name": "identity"}):
            yield f"{name}: model {options}", fields(path, folder, options)


def run(folder):
    number = failed = 0
    for what, wrong in cases(folder):
        number += 1
        failed += wrong is not None
        what = what.replace("\n", "\\n").replace("#", "\\#")
        print(f"{'not ok' if wrong else 'ok'} {number} - {what}" + (f"\n# {wrong!r}" if wrong else ""))
    print(f"1..{number}\n# sentencepiece {sentencepiece.__version__}: {number - failed} passed, {failed} failed")
    return 1 if failed else 0


with tempfile.TemporaryDirectory() as place:
    sys.exit(run(place))
