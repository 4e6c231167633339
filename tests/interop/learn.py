#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok train --type bpe against Hugging Face's BpeTrainer: the same bytes of tokenizer.json, vocab.json and
merges.txt, whatever the threads and the memory.

    learn.py TOK

The texts are those of $WEFT_TEST_DATA/text and made-up ones full of runs and ties."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import tokenizers
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

TOK = os.path.abspath(sys.argv[1])
DATA = os.environ.get("WEFT_TEST_DATA")
FULL = "WEFT_FULL" in os.environ
WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
END = r"\s*[\r\n]+|\s+(?!\S)|\s+"
FAMILIES = {
    "gpt2": None,
    "llama3": WORD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END,
    "qwen2": WORD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END,
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{WORD}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{WORD}?|"
             r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + END,
}


def texts():
    found = {}
    if DATA:
        for name, most in ("botchan", 1 << 30), ("wagahaiwa_nekodearu", 1 << 30 if FULL else 1 << 17):
            with open(f"{DATA}/text/{name}.txt", encoding="utf-8", newline="\n") as f:
                found[name] = f.read()[:most]
    random.seed(7)
    made = []
    for _ in range(3000):
        kind = random.random()
        if kind < 0.3:
            made.append(random.choice("ab-= \t") * random.randint(1, 40))
        elif kind < 0.6:
            made.append("".join(random.choices("ab", k=random.randint(1, 30))))
        else:
            made.append(" ".join("".join(random.choices("abcde\u0301\u0300éあがか\u3099猫9'_", k=random.randint(1, 7)))
                                 for _ in range(random.randint(1, 9))))
    found["made"] = "\n".join(made) + "\n"
    return found


def reference(family, path, size, special, out, **more):
    tok = Tokenizer(models.BPE())
    pattern = FAMILIES[family]
    if family == "qwen2":
        tok.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tok.pre_tokenizer = level if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), level])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **more)
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as f:
            tok.train_from_iterator((json.loads(line)["text"] for line in f), trainer)
    else:
        tok.train([path], trainer)
    tok.save(f"{out}-tokenizer.json")
    tok.model.save(*os.path.split(out))


def ours(family, path, size, special, out, *more):
    args = [TOK, "train", "-q", "--type", "bpe", "--pretokenizer", family, "--vocab_size", str(size),
            "--model_prefix", out, "--input", path, *more]
    if special:
        args += ["--special_tokens", *special]
    subprocess.run(args, check=True)


def content(out):
    parts = []
    for name in "tokenizer.json", "vocab.json", "merges.txt":
        with open(f"{out}-{name}", "rb") as f:
            parts.append(f.read())
    return parts


def differ(a, b):
    """Where two trainings part, or nothing."""
    for name, x, y in zip(("tokenizer.json", "vocab.json", "merges.txt"), content(a), content(b)):
        if x != y:
            at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            return f"{name} from byte {at}: {x[max(0, at - 60):at + 40]!r} against {y[max(0, at - 60):at + 40]!r}"
    return None


CASES = [("gpt2", 300, [], {}), ("gpt2", 1500, ["<|endoftext|>"], {}), ("gpt2", 12000, ["<s>", "ab", "</s>"], {}),
         ("llama3", 2000, ["<|endoftext|>"], {}), ("o200k", 2000, [], {}), ("qwen2", 2000, [], {}),
         ("gpt2", 3000, [], dict(min_frequency=3)), ("gpt2", 2000, [], dict(max_token_length=4)),
         ("gpt2", 5000, [], dict(max_token_length=2)), ("gpt2", 100000, [], dict(min_frequency=2))]


def run(folder):
    number = failed = 0
    for name, text in texts().items():
        paths = {"txt": f"{folder}/{name}.txt", "jsonl": f"{folder}/{name}.jsonl"}
        with open(paths["txt"], "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
        with open(paths["jsonl"], "w", encoding="utf-8") as f:
            for i in range(0, len(text), 5000):
                f.write(json.dumps({"text": text[i:i + 5000]}) + "\n")
        for i, (family, size, special, more) in enumerate(CASES):
            path = paths["jsonl" if i % 3 == 2 else "txt"]
            reference(family, path, size, special, f"{folder}/a", **more)
            args = [x for k, v in more.items() for x in ("--" + k, str(v))]
            wrong = None
            for extra in ["--workers", "1"], ["--workers", "7", "--memory", "64"]:
                ours(family, path, size, special, f"{folder}/b", *args, *extra)
                wrong = wrong or differ(f"{folder}/a", f"{folder}/b")
            number += 1
            failed += wrong is not None
            print(f"{'not ok' if wrong else 'ok'} {number} - {name}: {family} {size} {special} {more}")
            if wrong:
                print(f"# {wrong}")
    print(f"1..{number}\n# tokenizers {tokenizers.__version__}: {number - failed} passed, {failed} failed")
    return 1 if failed else 0


with tempfile.TemporaryDirectory() as place:
    sys.exit(run(place))
