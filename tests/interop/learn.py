#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok train against Hugging Face's trainers, whatever the threads and the memory.

    learn.py TOK

--type bpe: the same bytes of tokenizer.json, vocab.json and merges.txt; ranks of tiktoken are the vocabulary's.

--type wordpiece: the reference numbers the characters within words (##a) in the order of a hash that differs from run
to run, and ties between pairs are decided by those numbers. So it is asked twice: as it is, which must give the same
alphabet and the same set of characters within words; and with that order pinned, by naming alphabet and characters
within words by code point as its special tokens, which must give the same tokenizer.json and vocab.txt byte for byte
(special tokens are listed before training and not looked for in it; those of the pin are left out of the file).
--limit_alphabet is given values at which no two characters tie.

The texts are those of testdata.py and made-up ones full of runs and ties."""
import base64
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    import tokenizers
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

from testdata import DATA

TOK = os.path.abspath(sys.argv[1])
FULL = "WEFT_FULL" in os.environ
WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
END = r"\s*[\r\n]+|\s+(?!\S)|\s+"
FAMILIES = {
    "gpt2": None,
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
              r"\s+(?!\S)|\s+",
    "llama3": WORD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END,
    "qwen2": WORD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END,
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{WORD}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{WORD}?|"
             r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + END,
}


def texts():
    found = {}
    if DATA:
        for name, most in ("botchan", 1 << 30 if FULL else 1 << 17), ("wagahaiwa_nekodearu", 1 << 30 if FULL else 1 << 16):
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


def learn(tok, path, trainer):
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as f:
            tok.train_from_iterator((json.loads(line)["text"] for line in f), trainer)
    else:
        tok.train([path], trainer)


def reference(family, path, size, special, out, digits=None, pattern=None, **more):
    tok = Tokenizer(models.BPE())
    pattern = pattern or FAMILIES[family]
    if family == "qwen2":
        tok.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    steps = {"single": [pre_tokenizers.Digits(individual_digits=True)],
             "three": [pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated")]}.get(digits, [])
    steps += [level] if pattern is None else [pre_tokenizers.Split(Regex(pattern), "isolated"), level]
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else level
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **more)
    learn(tok, path, trainer)
    tok.save(f"{out}-tokenizer.json")
    tok.model.save(*os.path.split(out))


def ours(family, path, size, special, out, *more):
    args = [TOK, "train", "-q", "--overwrite", "--type", "bpe", "--vocab_size", str(size), "--model_prefix", out, "--input", path,
            *more]
    if "--pretokenizer-pattern" not in more:
        args += ["--pretokenizer", family]
    if special:
        args += ["--special_tokens", *special]
    subprocess.run(args, check=True)


def bert(options):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(**options)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    return tok


def pieces(path, special, options, **more):
    """What the reference learns, in order."""
    tok = bert(options)
    learn(tok, path, trainers.WordPieceTrainer(special_tokens=special, show_progress=False, **more))
    vocab = tok.get_vocab()
    return sorted(vocab, key=vocab.get)


def no_tie(path, options, about):
    """A limit near this number that no two characters tie at."""
    tok = bert(options)
    count = collections.Counter()
    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f:
            for word, _ in tok.pre_tokenizer.pre_tokenize_str(tok.normalizer.normalize_str(line)):
                count.update(word)
    order = sorted(count.values(), reverse=True)
    return next((k for k in range(about, len(order)) if order[k - 1] > order[k]), len(order))


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def pinned(path, size, out, options, **more):
    """The reference's files; our characters within words must be its own."""
    free = pieces(path, SPECIAL, options, vocab_size=1, **more)
    letters = [p for p in free[len(SPECIAL):] if not p.startswith("##") or len(p) < 3]
    within = sorted(p for p in free[len(SPECIAL):] if p not in letters)
    order = pieces(path, SPECIAL + letters + within, options, vocab_size=size, **more)
    tok = bert(options)
    tok.model = models.WordPiece({p: i for i, p in enumerate(order)}, unk_token="[UNK]")
    tok.add_special_tokens(SPECIAL)
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tok.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    tok.save(f"{out}-tokenizer.json")
    with open(f"{out}-vocab.txt", "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(p + "\n" for p in order))
    return SPECIAL + letters + within


def our_pieces(path, size, out, *more):
    subprocess.run([TOK, "train", "-q", "--overwrite", "--type", "wordpiece", "--vocab_size", str(size), "--model_prefix", out,
                    "--input", path, *more], check=True)


def content(out, names):
    parts = []
    for name in names:
        with open(f"{out}-{name}", "rb") as f:
            parts.append(f.read())
    return parts


def differ(a, b, names=("tokenizer.json", "vocab.json", "merges.txt")):
    """Where two trainings part, or nothing."""
    for name, x, y in zip(names, content(a, names), content(b, names)):
        if x != y:
            at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            return f"{name} from byte {at}: {x[max(0, at - 60):at + 40]!r} against {y[max(0, at - 60):at + 40]!r}"
    return None


CASES = [("gpt2", 300, [], {}), ("gpt2", 1500, ["<|endoftext|>"], {}), ("gpt2", 12000, ["<s>", "ab", "</s>"], {}),
         ("llama3", 2000, ["<|endoftext|>"], {}), ("o200k", 2000, [], {}), ("qwen2", 2000, [], {}),
         ("gpt2", 3000, [], dict(min_frequency=3)), ("gpt2", 2000, [], dict(max_token_length=4)),
         ("gpt2", 5000, [], dict(max_token_length=2)), ("gpt2", 100000, [], dict(min_frequency=2)),
         ("cl100k", 2000, [], {}), ("gpt2", 1500, ["<s>"], dict(digits="single")),
         ("llama3", 1500, [], dict(digits="three")), ("gpt2", 1500, [], dict(digits="three")),
         ("gpt2", 1500, [], dict(pattern=r"\p{Han}|\s+|[^\s\p{Han}]{1,5}"))]
# options of BertNormalizer, ours, size, limit, others
BERT = [({}, [], 2000, 1000, {}), ({}, [], 300, 60, dict(min_frequency=3)), ({}, [], 20000, 5000, dict(min_frequency=2)),
        (dict(lowercase=False), ["--no-lowercase"], 3000, 1000, {}),
        (dict(strip_accents=False, handle_chinese_chars=False),
         ["--strip_accents", "no", "--no-handle_chinese_chars"], 2000, 1000, {}),
        (dict(clean_text=False, lowercase=False, strip_accents=True),
         ["--no-clean_text", "--no-lowercase", "--strip_accents", "yes"], 1500, 300, {})]


def bytes_case(paths, folder, case, jsonl):
    family, size, special, more = case
    path = paths["jsonl" if jsonl else "txt"]
    reference(family, path, size, special, f"{folder}/a", **more)
    args = [x for k, v in more.items() for x in ("--pretokenizer-pattern" if k == "pattern" else "--" + k, str(v))]
    wrong = None
    for extra in ["--workers", "1"], ["--workers", "7", "--memory", "64"]:
        ours(family, path, size, special, f"{folder}/b", *args, *extra)
        wrong = wrong or differ(f"{folder}/a", f"{folder}/b")
    return wrong


def pieces_case(path, folder, case):
    options, args, size, about, more = case
    limit = no_tie(path, options, about)
    more = dict(dict(min_frequency=0), **more)
    pin = pinned(path, size, f"{folder}/a", options, limit_alphabet=limit, **more)
    for extra in ["--workers", "1"], ["--workers", "6", "--memory", "64"]:
        our_pieces(path, size, f"{folder}/b", "--limit_alphabet", str(limit), "--min_frequency",
                   str(more["min_frequency"]), *args, *extra)
        with open(f"{folder}/b-vocab.txt", encoding="utf-8", newline="\n") as f:
            if f.read().split("\n")[:len(pin)] != pin:
                return "another alphabet"
        wrong = differ(f"{folder}/a", f"{folder}/b", ("tokenizer.json", "vocab.txt"))
        if wrong:
            return wrong
    return None


def every_character(folder):
    """All scalar values (a part in the quick tier), alone, within words and beside marks of all classes: the same alphabet."""
    path = f"{folder}/every.txt"
    random.seed(5)
    scalars = [chr(c) for c in range(0x110000) if not 0xd800 <= c <= 0xdfff and (FULL or c < 0x3200 or c % 32 == 7)]
    marks = [c for c in scalars if unicodedata.combining(c)] + ["\u0f73", "\u1e14", "\u212b", "\uac01", "\u302e"]
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        for i in range(0, len(scalars), 8):
            f.write(" ".join(f"{c} {c}b a{c}" for c in scalars[i:i + 8]) + "\n")
        for _ in range(20000 if FULL else 4000):
            f.write("".join(random.choices(marks, k=random.randint(1, 6))) + random.choice("ab \n"))
    for options, args, *_ in BERT if FULL else BERT[:1] + BERT[-1:]:
        free = pieces(path, SPECIAL, options, vocab_size=1, min_frequency=1)
        our_pieces(path, 1, f"{folder}/b", "--input-format", "text", "--limit_alphabet", "0", "--min_frequency", "1", *args)
        with open(f"{folder}/b-vocab.txt", encoding="utf-8", newline="\n") as f:
            own = f.read().split("\n")[:-1]
        if set(free) != set(own):
            return f"{options}: {sorted(set(free) ^ set(own))[:20]}"
    return None


def letters():
    """GPT-2's letters for bytes."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    found = {chr(b): b for b in plain}
    found.update((chr(256 + i), b) for i, b in enumerate(b for b in range(256) if b not in plain))
    assert sorted(found) == sorted(pre_tokenizers.ByteLevel.alphabet())
    return found


def ranks(path, folder):
    """tiktoken's file: the ids of the vocabulary behind the special tokens."""
    for kind in "tiktoken", "vocab+merges":
        ours("gpt2", path, 700, ["<s>", "<t>"], f"{folder}/b", "--output-type", kind)
    with open(f"{folder}/b-vocab.json", encoding="utf-8") as f:
        vocab = json.load(f)
    byte = letters()
    want = [(bytes(byte[c] for c in p), i) for p, i in sorted(vocab.items(), key=lambda x: x[1])[2:]]
    with open(f"{folder}/b.tiktoken", encoding="ascii") as f:
        got = [(base64.b64decode(a, validate=True), int(b)) for a, b in (line.split() for line in f)]
    return None if got == want and len(got) == len(vocab) - 2 else "other ranks"


class Count:
    number = failed = 0

    def say(self, wrong, what):
        self.number += 1
        self.failed += wrong is not None
        print(f"{'not ok' if wrong else 'ok'} {self.number} - {what}")
        if wrong:
            print(f"# {wrong}")


def run(folder):
    count = Count()
    for name, text in texts().items():
        paths = {"txt": f"{folder}/{name}.txt", "jsonl": f"{folder}/{name}.jsonl"}
        with open(paths["txt"], "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
        with open(paths["jsonl"], "w", encoding="utf-8") as f:
            for i in range(0, len(text), 5000):
                f.write(json.dumps({"text": text[i:i + 5000]}) + "\n")
        for i, case in enumerate(CASES):
            count.say(bytes_case(paths, folder, case, i % 3 == 2), f"{name}: {case}")
        for case in BERT:
            count.say(pieces_case(paths["txt"], folder, case), f"{name}: wordpiece {case}")
        count.say(ranks(paths["txt"], folder), f"{name}: ranks")
    count.say(every_character(folder), "wordpiece: every character")
    print(f"1..{count.number}\n# tokenizers {tokenizers.__version__}: {count.number - count.failed} passed, "
          f"{count.failed} failed")
    return 1 if count.failed else 0


with tempfile.TemporaryDirectory() as place:
    sys.exit(run(place))
