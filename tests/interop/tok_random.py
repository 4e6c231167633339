#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random tokenizer.json files, any component with any options beside any other, against Hugging Face's tokenizers: ids
with special strings and without, places, texts of ids with special tokens and without.

    tok_random.py TOK [FIRST LAST]

100 files, with WEFT_FULL=1 5000, or those of the numbers FIRST to LAST - 1. A file that the library does not read is left
out, and so is a text on which it panics; each file is looked at in a process of its own, because some panics abort. What we
refuse must be one of REFUSED."""
import json
import os
import random
import resource
import sys
import tempfile

os.environ["RUST_BACKTRACE"] = "0"
try:
    import tokenizers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

import subprocess

import tok_pipe
from tok_pipe import CLASSES, LETTER, TOK, charsmap

FULL = "WEFT_FULL" in os.environ
REFUSED = ("is empty, or normalizes to nothing", "once normalized", "\\X, \\y or \\Y", "a template after one of", "share id")
PATTERNS = [r"\s+", r"\p{P}", r"\w+|[^\w\s]+", r"\d", r"[A-Z][a-z]*", r"(?i:s|t)", r"\s+(?!\S)", r"(?<=\S)\s", r"[一-龥]+",
            r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"\p{Han}|\p{Hiragana}+", r"a|b", r"$", r"^", r"\s?\p{L}+",
            r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\D|$))", r" ", r"."]
RULES = [charsmap(r) for r in ({"a": "b", "\r": " ", "\n": "", "ﬁ": "fi", "e\u0301": "é", "漢": "汉字", "\x7f": "", "😀": "!"},
                               {"A": "a", "É": "é", "İ": "i\u0307", "\t": " ", "\u3000": " ", "½": "1/2", "\u200b": "", "Ⅷ": "VIII"})]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
LETTERS = list("abcestTZéx .,!▁_0123'Ġ\n<>") + ["漢", "が", "か", "語", "\u0301", "##", "ﬁ", "한", "😀", "\u200d"] + [
    LETTER[b] for b in (0x20, 0xc3, 0xa9, 0xe6, 0xbc, 0xa2, 0x0a, 0xe3, 0x81)]
PIECES = ["ab", "abc", "es", "est", "st", "▁a", "▁ab", "▁t", "Ġa", "Ġt", "aa", "aaaa", "bb", "  ", "▁▁", "tt", "漢語", "ab ",
          "e\u0301", "01", "12", "##a", "##b", "##st", "##es", "</w>", "a</w>", "st</w>", "b</w>", "##a</w>", "##s</w>", "ss", "se"]
ADDED = ["<s>", "</s>", "[MASK]", "<unk>", "é", "ab", "n't", "  ", "\n", "漢", "a", "<|x|>", " x", "[CLS]", "É", "ﬁ", "▁", "s", "ss",
         "ab c", "<0x41>", "'ll", "İ"]
EVERY = list(dict.fromkeys(c for x in CLASSES for c in x))

MEMORY = 3 << 28  # bytes, for a file: what makes the library take more is passed over


def chance(r, p=.5):
    return r.random() < p


def pattern(r):
    return {"Regex": r.choice(PATTERNS)} if chance(r, .7) else {"String": r.choice([" ", "a", "e", "▁", "\n", "漢", "ab", "  ", "é", "."])}


def level(r):
    return {"type": "ByteLevel", "add_prefix_space": chance(r), "trim_offsets": chance(r), "use_regex": chance(r)}


def sequence(r, key, make, depth, most):
    return {"type": "Sequence", key: [x for x in (make(r, depth + 1) for _ in range(r.randint(0, most))) if x]}


def normalizer(r, depth=0):
    kind = r.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "Strip", "Prepend", "Replace", "Replace",
                     "BertNormalizer", "Precompiled", "ByteLevel", "Sequence"])
    if kind == "Sequence":
        return sequence(r, "normalizers", normalizer, depth, 3) if depth < 2 else None
    more = {"Strip": {"strip_left": chance(r), "strip_right": chance(r)}, "Prepend": {"prepend": r.choice(["▁", " ", "ab", "é"])},
            "Replace": {"pattern": pattern(r), "content": r.choice(["", " ", "▁", "_", "xy", "é"])},
            "BertNormalizer": {"clean_text": chance(r), "handle_chinese_chars": chance(r), "lowercase": chance(r),
                               "strip_accents": r.choice([None, True, False])},
            "Precompiled": {"precompiled_charsmap": r.choice(RULES)}}
    return {"type": kind, **more.get(kind, {})}


def metaspace(r):
    if chance(r, .2):  # as older files have it
        return {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": chance(r)}
    return {"type": "Metaspace", "replacement": r.choice(["▁", "▁", "▁", "_", "é"]), "split": chance(r),
            "prepend_scheme": r.choice(["always", "first", "never"])}


def pre_tokenizer(r, depth=0):
    kind = r.choice(["BertPreTokenizer", "ByteLevel", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Metaspace", "Metaspace",
                     "Whitespace", "WhitespaceSplit", "Split", "Split", "Split", "Punctuation", "Digits", "UnicodeScripts", "FixedLength",
                     "Sequence", "Sequence"])
    if kind == "Sequence":
        return sequence(r, "pretokenizers", pre_tokenizer, depth, 3) if depth < 2 else None
    if kind in ("ByteLevel", "Metaspace"):
        return level(r) if kind == "ByteLevel" else metaspace(r)
    more = {"CharDelimiterSplit": {"delimiter": r.choice([" ", "a", "é"])}, "Punctuation": {"behavior": r.choice(BEHAVIORS)},
            "Split": {"pattern": pattern(r), "behavior": r.choice(BEHAVIORS), "invert": chance(r, .3)},
            "Digits": {"individual_digits": chance(r)}, "FixedLength": {"length": r.randint(1, 5)}}
    return {"type": kind, **more.get(kind, {})}


def decoder(r, depth=0):
    kind = r.choice([None, "ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "CTC", "Sequence", "Sequence", "Replace", "ByteFallback",
                     "Fuse", "Strip"])
    if kind == "Sequence":
        return sequence(r, "decoders", decoder, depth, 4) if depth < 2 else None
    if kind in (None, "ByteLevel", "Metaspace"):
        return kind and (level(r) if kind == "ByteLevel" else metaspace(r))
    more = {"WordPiece": {"prefix": r.choice(["##", "@@", ""]), "cleanup": chance(r)}, "BPEDecoder": {"suffix": r.choice(["</w>", "s", ""])},
            "CTC": {"pad_token": r.choice(["a", "<unk>"]), "word_delimiter_token": r.choice(["|", "▁", "s"]), "cleanup": chance(r)},
            "Replace": {"pattern": pattern(r), "content": r.choice(["", " ", "xx"])},
            "Strip": {"content": r.choice([" ", "▁", "a"]), "start": r.randint(0, 2), "stop": r.randint(0, 2)}}
    return {"type": kind, **more.get(kind, {})}


def post_processor(r, vocab, depth=0):
    kind = r.choice([None, None, "ByteLevel", "RobertaProcessing", "BertProcessing", "TemplateProcessing", "TemplateProcessing", "Sequence"])
    a, b = r.choices(list(vocab)[:30], k=2)
    if kind == "Sequence":
        return sequence(r, "processors", lambda r, depth: post_processor(r, vocab, depth), depth, 3) if depth < 2 else None
    if kind in (None, "ByteLevel"):
        return kind and level(r)
    if kind != "TemplateProcessing":
        trims = {"trim_offsets": chance(r), "add_prefix_space": chance(r)} if kind == "RobertaProcessing" else {}
        return {"type": kind, "sep": [a, vocab[a]], "cls": [b, vocab[b]], **trims}
    token, text = {"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    ids = r.choices(list(vocab.values()), k=r.randint(1, 2))
    return {"type": kind, "single": [token] * r.randint(0, 2) + [text] + [token] * r.randint(0, 2),
            "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"X": {"id": "X", "ids": ids, "tokens": [f"t{i}" for i in range(len(ids))]}}}


def bpe(r, pieces, falls_back):
    prefix, suffix = r.choice([None, None, None, "##", ""]), r.choice([None, None, None, "</w>", ""])
    if prefix:
        pieces += [prefix + p for p in pieces if len(p) <= 2 and not p.startswith(prefix) and chance(r, .6)]
    if suffix:
        pieces += [p + suffix for p in pieces if len(p) <= 4 and not p.endswith(suffix) and chance(r, .6)]
    pieces = list(dict.fromkeys(pieces))
    known, skip, merges = set(pieces), len(prefix or ""), []
    for a in pieces:
        merges += [[a, b] for b in pieces if len(b) > skip and len(a) + len(b) < 14 and a + b[skip:] in known]
    r.shuffle(merges)
    merges = merges[:r.choice([0, 5, 50, 400, 3000])]
    if chance(r, .4) and not any(" " in x for m in merges for x in m):
        merges = [" ".join(m) for m in merges]
    return {"type": "BPE", "dropout": None, "unk_token": r.choice(["<unk>", "<unk>", None, pieces[0]]), "fuse_unk": chance(r),
            "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix, "byte_fallback": falls_back,
            "ignore_merges": chance(r, .2), "vocab": {p: i for i, p in enumerate(pieces)}, "merges": merges}


def spelled(text):
    return "".join(LETTER[b] for b in text.encode())


def level_bpe(r):
    """Byte-level BPE with ignore_merges: random merges in a random order, which may not reach what they make, and orphans,
    entries that no merge makes. Returns the texts of all entries of several bytes, too."""
    words = r.sample(CLASSES, 30) + r.choices([" ab", "abc", "st", " est", "漢語", "12", "  ", "st st", "a b", "\n\n"], k=8)
    pieces = {LETTER[b]: bytes([b]) for b in range(256)}
    merges = []
    for _ in range(r.choice([20, 100, 400])):
        word = "".join(r.choices(words, k=r.randint(1, 3))).encode()
        cut = r.randint(1, max(1, len(word) - 1))
        known = list(pieces)[256:] + [LETTER[b] for b in word]
        a, b = r.choices(known, k=2) if chance(r) else ("".join(LETTER[x] for x in part) for part in (word[:cut], word[cut:]))
        if a in pieces and b in pieces and len(a) + len(b) < 24:
            pieces[a + b] = pieces[a] + pieces[b]
            merges.append([a, b])
    for _ in range(r.choice([0, 5, 40])):
        text = "".join(r.choices(words, k=r.randint(1, 3)))
        pieces[spelled(text)] = text.encode()
    merges = [list(x) for x in dict.fromkeys(map(tuple, merges))]
    if chance(r, .7):
        r.shuffle(merges)
    names = list(pieces)
    if chance(r, .3):
        r.shuffle(names)
    return {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "byte_fallback": False, "ignore_merges": chance(r, .85),
            "vocab": {p: i for i, p in enumerate(names)}, "merges": merges}


def level_steps(r):
    last = dict(level(r), use_regex=chance(r, .15))
    before = [{"type": "Digits", "individual_digits": chance(r)}, {"type": "Punctuation", "behavior": r.choice(BEHAVIORS)},
              {"type": "WhitespaceSplit"}, {"type": "Split", "pattern": pattern(r), "behavior": r.choice(BEHAVIORS), "invert": False}]
    steps = r.sample(before, r.choice([0, 0, 1, 1, 2]))
    return {"type": "Sequence", "pretokenizers": steps + [last]} if steps else last


def model(r):
    kind = r.choice(["BPE", "BPE", "BPE", "WordPiece", "WordLevel", "Unigram", "Unigram"])
    pieces = ["<unk>"] * chance(r, .85) + r.sample(LETTERS, r.randint(5, len(LETTERS))) + r.sample(PIECES, r.randint(3, len(PIECES)))
    pieces += EVERY * chance(r, .3) + list(LETTER.values()) * chance(r, .3)
    falls_back = chance(r, .35)
    if falls_back:
        pieces += [f"<0x{b:02X}>" for b in range(256) if b < 128 or chance(r, .97)]
    pieces = list(dict.fromkeys(pieces))
    if chance(r, .3):
        r.shuffle(pieces)
    if kind == "BPE":
        return bpe(r, pieces, falls_back)
    vocab = {p: i for i, p in enumerate(pieces)}
    unk = r.choice(["<unk>", "<unk>", pieces[0], "[UNK]"])
    if kind == "WordPiece":
        return {"type": kind, "unk_token": unk, "continuing_subword_prefix": r.choice(["##", "##", "@@", ""]),
                "max_input_chars_per_word": r.choice([100, 100, 1, 5, 20]), "vocab": vocab}
    if kind == "WordLevel":
        return {"type": kind, "unk_token": unk, "vocab": vocab}
    return {"type": kind, "unk_id": vocab.get("<unk>", r.choice([0, None])), "byte_fallback": falls_back,
            "vocab": [[p, -r.choice([0.0, 1.0, 2.5, 3.25, 10.0, r.random() * 12])] for p in pieces]}


def spec(seed):
    r = random.Random(seed)
    byte_level = seed % 3 == 2
    m = level_bpe(r) if byte_level else model(r)
    vocab = m["vocab"] if isinstance(m["vocab"], dict) else {p: i for i, (p, _) in enumerate(m["vocab"])}
    added = [{"id": 0, "content": c, "single_word": chance(r, .25), "lstrip": chance(r, .25), "rstrip": chance(r, .25),
              "normalized": chance(r), "special": chance(r, .4)} for c in r.sample(ADDED, r.choice([0, 0, 1, 2, 4, 8]))]
    free = len(vocab)
    for a in added:
        a["id"] = vocab.get(a["content"], free)
        free += a["id"] == free
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": normalizer(r) if chance(r, .3 if byte_level else .7) else None,
            "pre_tokenizer": level_steps(r) if byte_level else pre_tokenizer(r) if chance(r, .8) else None,
            "post_processor": post_processor(r, vocab), "decoder": decoder(r), "model": m}


def texts(r, added, pieces):
    """`pieces`: texts of entries that also appear alone, between others and at both ends."""
    out = ["", " ", "  ", "\n"] + pieces
    for _ in range(60):
        parts = []
        for _ in range(int(r.expovariate(1 / 10)) + 1):
            kind = r.random()
            part = r.choice(added) if kind < .25 and added else r.choice(pieces if kind < .5 and pieces else CLASSES)
            parts += [part * r.randint(2, 60) if kind > .97 else part, " " * chance(r, .2)]
        out.append("".join(parts))
    return out


def entries(path):
    """The texts of a byte-level vocabulary's entries of several bytes."""
    byte = {c: b for b, c in LETTER.items()}
    with open(path, encoding="utf-8") as f:
        spelled = [[byte.get(c) for c in p] for p in json.load(f)["model"]["vocab"] if len(p) > 1]
    found = [bytes(p).decode(errors="replace") for p in spelled if None not in p]
    return [t for t in found if "\ufffd" not in t][-150:]


def ours(verb, path, key, items, *more):
    p = subprocess.run([TOK, verb, "--tokenizer", path, "--format", "json", "-q", *more, "-"], capture_output=True,
                       input="".join(json.dumps({key: x}) + "\n" for x in items).encode())
    return [json.loads(line) for line in p.stdout.splitlines()] if p.returncode == 0 else p.stderr.decode()


def tried(call, *args, **more):
    try:
        return call(*args, **more)
    except BaseException as e:
        if type(e).__name__ not in ("PanicException", "Exception", "ValueError"):
            raise
        return None


def differences(path, seed):
    """What differs, a line for each kind."""
    t = tried(tokenizers.Tokenizer.from_file, path)
    if t is None:
        return
    r = random.Random(seed + 1)
    docs = texts(r, [a.content for a in t.get_added_tokens_decoder().values()], entries(path) if seed % 3 == 2 else [])
    want = [(d, tried(t.encode, d)) for d in docs]
    docs, want = [d for d, w in want if w], [w for _, w in want if w]
    t.encode_special_tokens = True
    plain = [(d, tried(t.encode, d, add_special_tokens=False)) for d in docs]
    asked = [("ids and places", docs, [(w.ids, [list(o) for o in w.offsets]) for w in want], ("--specials", "parse", "--offsets", "char")),
             ("ids", docs, [(w.ids, None) for w in want], ("--specials", "parse")),
             ("ids of plain text", [d for d, w in plain if w], [(w.ids, None) for _, w in plain if w],
              ("--specials", "text", "--no-add-special-tokens"))]
    for what, given, expected, more in asked:
        got = ours("encode", path, "text", given, "--input-format", "jsonl", *more)
        if isinstance(got, str):
            if not any(x in got for x in REFUSED):
                yield got
            return
        wrong = [d for d, g, w in zip(given, got, expected) if (g["ids"], g.get("offsets")) != w]
        if wrong:
            yield f"{what}: {len(wrong)} of {len(given)}, {min(wrong, key=len)!r}"
    known = sorted(t.get_vocab().values())
    lists = [w.ids for w in want if w.ids] + [r.choices(known, k=r.randint(1, 12)) for _ in range(60)]
    lists += [[i] for i in t.get_added_tokens_decoder()]
    for skip in (False, True):
        expected = [(x, tried(t.decode, x, skip_special_tokens=skip)) for x in lists]
        expected = [(x, w) for x, w in expected if w is not None]
        got = ours("decode", path, "ids", [x for x, _ in expected], *["--skip-special-tokens"] * skip)
        wrong = [x for (x, w), g in zip(expected, got) if g["text"] != w] if isinstance(got, list) else [got]
        if wrong:
            yield f"texts{' without special tokens' * skip}: {len(wrong)} of {len(expected)}, {min(wrong, key=len)!r}"


def look(folder, seed):
    """Exit status of a process that looks at one file: 0, or 1 with what differs printed; by a signal: the library's."""
    path = tok_pipe.save(folder, "random", spec(seed))
    sys.stdout.flush()
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        return os.WIFEXITED(status) and os.WEXITSTATUS(status)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # the library aborts where a file makes it take more
    status = 2
    try:
        found = list(differences(path, seed))
        for x in found:
            print(f"# file {seed}: {x[:1000]}")
        status = len(found) > 0
    except MemoryError:
        status = 0
    except Exception as e:
        print(f"# file {seed}: {e!r}")
    sys.stdout.flush()
    os._exit(status)


def main():
    seeds = range(*map(int, sys.argv[2:])) if sys.argv[2:] else range(5000 if FULL else 100)
    with tempfile.TemporaryDirectory() as folder:
        bad = sum(look(folder, seed) != 0 for seed in seeds)
    print(f"1..1\n{'not ok' if bad else 'ok'} 1 - {len(seeds)} files as tokenizers {tokenizers.__version__}, {bad} otherwise")
    return bad > 0


sys.exit(main())
