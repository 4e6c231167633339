#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program tok against Hugging Face's tokenizers: the files of testdata.py, ids and texts.

    tok_pipe.py TOK [FILE...]

Texts: the books, every scalar value alone, between letters and behind a space, and strings of class representatives.
WEFT_FULL=1 takes all of that and 100,000 strings, else every 17th scalar and 2,000. Each text is a document; ids of special strings are those of
`--specials parse`; decoding is compared on the ids of all texts and on random ones."""
import base64
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ.setdefault("RUST_BACKTRACE", "0")  # of panics, which check_starts counts on
try:
    import tokenizers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

from testdata import CL100K, DATA, MISSING, ranks_are_cl100k, ranks_options

TOK = os.path.abspath(sys.argv[1])
FULL = "WEFT_FULL" in os.environ
SCALARS = [c for c in range(0, 0x110000, 1 if FULL else 17) if not 0xD800 <= c < 0xE000]
CLASSES = list("aZé'sTtREvemLlD  \n\r\t09٣Ⅷ½²⁴_-.,!?$+<>[]|#/\\\"") + [
    "\u0085", "\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\ufffd", "\u0301", "\u0308", "\u0323", "\u093e",
    "ß", "ſ", "K", "İ", "ǅ", "ʰ", "が", "か\u3099", "漢", "語", "한", "글", "\u1100\u1161", "ﬁ", "Ⓐ", "😀", "👨\u200d👩", "🏽",
    "\U0001d400", "\u0378", "\ue000", "\U00020000", "▁", "\x00", "\x1c", "\x7f", "\u1e9b\u0323", "\u2126", "  ", "   ",
    "<s>", "</s>", "<unk>", "<|endoftext|>", "<|a_special_one|>", " zqxjzqxjzqxjzqxj ", "zqxj", "漢語", "[MASK]", "[CLS]", "<0x41>", "n't", "'ll", "#", "##"]


def books():
    out = []
    for name in ("botchan", "wagahaiwa_nekodearu"):
        with open(f"{DATA}/text/{name}.txt", encoding="utf-8", newline="") as f:
            text = f.read()
        lines = text.splitlines(keepends=True)
        keep = len(lines) if FULL else 1000
        out += ["".join(lines[i:i + 50]) for i in range(0, min(len(lines), keep), 50)]
    return out


def scalars(form):
    """Many to a document, so that it is quick: what stands between them keeps them apart."""
    return ["".join(form.replace("X", chr(c)) for c in SCALARS[i:i + 64]) for i in range(0, len(SCALARS), 64)]


def fuzz(n, seed):
    r = random.Random(seed)
    return ["".join(r.choices(CLASSES, k=r.randint(1, 40))) for _ in range(n)]


# Components that no file at hand has, before the byte-level model of GPT-2, whose merges show where pieces end.
def split(pattern, behavior, invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def charsmap(rules):
    """SentencePiece's rules as a double array in base64: a block of 256 units for each node."""
    nodes, strings, values = [{}], b"", {}
    for text, to in rules.items():
        at = 0
        for byte in text.encode():
            nodes[at].setdefault(byte, len(nodes))
            if nodes[at][byte] == len(nodes):
                nodes.append({})
            at = nodes[at][byte]
        values[at] = len(strings)
        strings += to.encode() + b"\0"
    units = [i & 255 ^ 1 for i in range(256 * (len(nodes) + 1))]  # block k + 1 has the children of node k
    units[0] = 0
    place = {0: 0}
    for k, children in enumerate(nodes):
        for byte, child in children.items():
            place[child] = 256 * (k + 1) + byte
            units[place[child]] = byte
    for k in range(len(nodes)):
        units[place[k]] |= (256 * (k + 1) ^ place[k]) << 10 | (k in values) << 8
        if k in values:
            units[256 * (k + 1)] = 1 << 31 | values[k]
    return base64.b64encode(struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + strings).decode()


LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
PRE = [split(r"\s+|\p{P}", b) for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")] + [
    split(r"\p{L}+|\d", "Removed", True), split("a", "Isolated", False, "String"), split(r"(?=[A-ZS])", "Isolated"),
    split(r"\d{1,3}(?=(?:\d{3})*\b)", "Isolated"), split(r"\w+|[^\w\s]+", "Isolated"),
    split(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
          "Isolated"),
    split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
          "Removed", True),
    {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, {"type": "FixedLength", "length": 3},
    {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Digits", "individual_digits": True},
    {"type": "Digits", "individual_digits": False}, {"type": "CharDelimiterSplit", "delimiter": "a"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                                           {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]},
    {"type": "UnicodeScripts"},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]
NORM = [{"type": t} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")] + [
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"Regex": r" {2,}"}, "content": "_"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "Precompiled", "precompiled_charsmap": charsmap({
        "a": "b", "\r": " ", "\n": "", "ﬁ": "fi", "e\u0301": "é", "漢": "汉字", "\u1100": "ᄂ", "Ⅷ": "VIII", "\x7f": "", "😀": "!"})},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}]
DEC = [{"type": "Metaspace", "replacement": "Ġ", "prepend_scheme": "always", "split": True},
       {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "s"},
       {"type": "CTC", "pad_token": "a", "word_delimiter_token": "Ġ", "cleanup": True}, None,
       {"type": "Sequence", "decoders": [{"type": "Strip", "content": "Ġ", "start": 1, "stop": 0}, {"type": "Fuse"},
                                         {"type": "Replace", "pattern": {"String": "Ġ"}, "content": " "}]}]


# GPT-2's letters for bytes
PLAIN = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
LETTER = {b: chr(b) for b in PLAIN} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in PLAIN)}


def save(folder, name, spec):
    path = f"{folder}/{name}.json"
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(spec, ensure_ascii=False))  # dump() would take twenty times as long
    return path


def byte_level():
    """GPT-2's file; in the quick tier with its first 2000 merges, which show the ends of pieces as well and open at once."""
    with open(f"{DATA}/tokenizers/gpt2/tokenizer.json", encoding="utf-8") as f:
        base = json.load(f)
    if not FULL:
        model = base["model"]
        end = 256 + 2000
        model["merges"] = model["merges"][:2000]
        model["vocab"] = {t: i for t, i in model["vocab"].items() if i < end} | {"<|endoftext|>": end}
        base["added_tokens"][0]["id"] = end
    return base, base["added_tokens"][0]["id"] + 1


def variants(folder):
    base, free = byte_level()
    base["added_tokens"].append(dict(base["added_tokens"][0], id=free, content="Él", special=False, single_word=True))
    base["added_tokens"].append(dict(base["added_tokens"][0], id=free + 1, content="[MASK]", lstrip=True, rstrip=True,
                                     normalized=False))
    made = [("pre", i, dict(base, pre_tokenizer={"type": "Sequence", "pretokenizers": [p, LEVEL]})) for i, p in enumerate(PRE)]
    made += [("norm", i, dict(base, normalizer=n)) for i, n in enumerate(NORM)]
    made += [("dec", i, dict(base, decoder=d)) for i, d in enumerate(DEC)]
    made.append(("added", 0, dict(base, added_tokens=base["added_tokens"] + [
        dict(base["added_tokens"][0], id=free + 2, content="\n", special=False, lstrip=True, rstrip=True, normalized=False)])))
    # tokens that merging does not reach, taken as they are: some keep pieces from being cut, others do not
    for i, extra in enumerate((["<|a_special_one|>", "zqxj", "漢語"], ["zqxjzqxjzqxjzqxj", "<|a_special_one|>"])):
        vocab = dict(base["model"]["vocab"])
        for token in extra:
            vocab["".join(LETTER[b] for b in token.encode())] = len(vocab) + 10
        made.append(("whole", i, dict(base, added_tokens=[], model=dict(base["model"], ignore_merges=True, vocab=vocab))))
    # no byte-level at all: unknown characters, scores, words
    vocab = {c: i for i, c in enumerate(dict.fromkeys("".join(CLASSES)))}
    vocab["▁"] = len(vocab) if "▁" not in vocab else vocab["▁"]
    few = {c: i for i, c in enumerate(["<unk>", "a", "Z", "▁", "09", "s", "t", "re", "漢", "▁a", "が", "か"])}
    whole = dict(few, **{f"<0x{b:02X}>": len(few) + b for b in range(256)})
    bpe = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
           "fuse_unk": True, "byte_fallback": False, "ignore_merges": False, "vocab": few, "merges": [["▁", "a"]]}
    plain = dict(base, added_tokens=[], pre_tokenizer=PRE[-6], decoder=None, post_processor=None)
    models = [bpe, dict(bpe, fuse_unk=False), dict(bpe, vocab=whole, byte_fallback=True),
              dict(bpe, vocab=dict(few, **{"<0xC3>": 12, "<0xA9>": 13}), byte_fallback=True), dict(bpe, unk_token=None),
              dict(bpe, vocab=dict(few, **{"##a": 12, "a</w>": 13, "##a</w>": 14, "aa</w>": 15}), merges=[["a", "##a</w>"]],
                   continuing_subword_prefix="##", end_of_word_suffix="</w>"),
              {"type": "WordLevel", "vocab": few, "unk_token": "<unk>"},
              {"type": "WordPiece", "vocab": dict(few, **{"##a": 12, "##s": 13}), "unk_token": "<unk>",
               "continuing_subword_prefix": "##", "max_input_chars_per_word": 6}]
    for fallback in (False, True):
        models.append({"type": "Unigram", "unk_id": 0, "byte_fallback": fallback,
                       "vocab": [[p, -1.5 - 0.37 * (i % 11)] for i, p in enumerate(whole)]})
    made += [("model", i, dict(plain, model=m)) for i, m in enumerate(models)]
    # a token for each character, and another where it begins no piece: all ends of pieces show
    letters = ["<unk>", *dict.fromkeys("".join(CLASSES) + "²¼⁴"), "\u0120"]
    ends = {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 1000,
            "vocab": {c: i for i, c in enumerate(dict.fromkeys(letters + ["##" + c for c in letters]))}}
    cuts = PRE + [split(p, "Isolated") for p in (r"\b", r"\B", r"\w\W", r"[\w']+", r"[^\w.]", r"\p{Word}+", r"(?<=\W)\w")]
    cuts += [split(p, "Isolated") for p in PATTERNS] + [split("", "Isolated", False, "String")]
    made += [("cut", i, dict(plain, pre_tokenizer=p, model=ends)) for i, p in enumerate(cuts)]
    for kind, i, spec in made:
        yield save(folder, f"{kind}{i}", spec)


# What stands at the beginning of a text is taken away, put in, moved and cut: the mark of the scheme "first" shows what still counts as the beginning.
def replace(pattern, to, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": to}


FIRST = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
START_NORM = NORM[:7] + [{"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Strip", "strip_left": False, "strip_right": True},
                         {"type": "Prepend", "prepend": "▁"}, {"type": "Prepend", "prepend": "ab"}, {"type": "Prepend", "prepend": " "},
                         {"type": "ByteLevel"}, dict(NORM[-3], strip_accents=True), NORM[-2]] + [
    replace(*r) for r in (("a", ""), ("a", "bb"), ("ab", ""), ("ab", "c"), ("ab", "cb"), ("i", ""), ("\u0301", ""), (" ", "▁"), (" ", ""),
                          ("Ã", ""), ("f", " "), (" {2,}", " ", "Regex"), (" +", "▁", "Regex"), (r"(?<=b)", "c", "Regex"),
                          (r"\A\s", "", "Regex"), ("[ab]+", "", "Regex"), ("[ab]+", "ca", "Regex"))]
START_PRE = [{"type": "WhitespaceSplit"}, {"type": "Whitespace"}, split("a", "Removed", False, "String"), split("b", "MergedWithNext", False, "String"),
             split(r"[fi]", "Isolated"), {"type": "Digits", "individual_digits": True}, {"type": "FixedLength", "length": 1},
             {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}, {"type": "Punctuation", "behavior": "Removed"},
             {"type": "UnicodeScripts"}, LEVEL, dict(LEVEL, add_prefix_space=True)]
STARTS = ["a", "b", "ab", "c", " ", "  ", "\u0301", "\u0327", "\u0308", "é", "e\u0301", "ﬁ", "İ", "\x01", "\x7f", "\ufb01\u0301", "f", "i", "\n", "\r\n",
          "漢", "▁", "_", "\u3000", "\u200b", "Ⅷ", "1", ".", "!", "\u1100", "\u1161", "각", "\u0344", "\u00b4", "q", "[A]", "[B]", "\u0600", "\t"]


# Constructs of Oniguruma: classes within classes, names, repetitions of repetitions, options in the middle.
PATTERNS = [f"[[:{n}:]]" for n in "alnum alpha blank cntrl digit graph lower print punct space upper xdigit ascii word".split()] + [
    r"[^[:alpha:][:digit:]]+", r"[[a-z]&&[^aeiou]]", r"[a-z&&[^x]&&[^b]]", r"[^a&&b]", r"[&&a]", r"[a&&]", r"[^a-z[A-Z]]+", r"[]a]", r"[^]]",
    r"[a-c-x]+", r"[a-z&&b-x&&^c]", r"[\p{L}&&[^\p{Lu}]]+", r"[\w&&[^a]]", r"\p{Hiragana}|\p{katakana}+", r"\p{Han}+|[^\p{Han}]",
    r"\p{Lowercase_Letter}+|\p{LC}", r"\p{White Space}", r"\p{Alnum}+|\p{^alpha}", r"\p{Common}+", r"\p{Inherited}", r"\P{^L}",
    r"\p{Emoji}+", r"\p{Cn}", r"\R", r"\N+", r"\O", r"a\KZ", r"\S+\K\s", r"\Gé", r"(?>s+)t", r"s*+t|t++", r"s**t", r"s+?*", r"(?:st){2}?t",
    r"s{2,1}", r"s{1,}+", r"[st]{2,3}+t", r"é(?i)t|z", r"(?i)e(?-i:v)", r"(?i)\p{Lu}", r"(?i:[^A-C]+)", r"(?i)k|ſ", r"(?m).+", r"(?<n>s|t)\k<n>",
    r"(s|t)\k<-1>", r"(?<r>\(\g<r>?\)|\[)", r"(?#[)Z", r"[\x41-\x5a]+", r"\x{1F600}|\u304c|\101", r"[\b\e\a\cA-\cZ]", r"\i|\p|\#",
    r"s|", r"()", r"^$|\A|\z", r"", " ?[^(\\s|[.,!?…。，、।۔،])]+"]


def starts(folder, n):
    r = random.Random(41)
    letters = ["<unk>", "▁", "_", *"abcfieÃ©½1.!q", "é", "漢", "\u0301", "ab", "▁a", "bb", "aa"]
    vocab = {c: i for i, c in enumerate(letters)}
    merges = [["a", "b"], ["▁", "a"], ["b", "b"], ["a", "a"]]
    models = [{"type": "BPE", "unk_token": "<unk>", "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": merges},
              {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [[c, -1.0 - i * 0.13] for c, i in vocab.items()]}]
    token = {"id": 0, "single_word": False, "lstrip": False, "rstrip": False, "special": False}
    for i in range(n):
        norm, pre = r.choices(START_NORM, k=r.choice((1, 1, 2, 2, 3))), r.choices(START_PRE, k=r.choice((0, 0, 0, 1, 2))) + [FIRST]
        pre += r.choices(START_PRE, k=r.choice((0, 0, 0, 1)))
        tokens = [dict(token, content="[A]", normalized=False), dict(token, content=r.choice(["[B]", "f", "q"]), normalized=True)]
        spec = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens[:r.choice((0, 0, 1, 2))],
                "normalizer": {"type": "Sequence", "normalizers": norm}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre},
                "post_processor": None, "decoder": None, "model": r.choice(models)}
        yield save(folder, f"start{i}", spec)


def mixes(folder, n):
    """Anything behind anything, on texts that are long enough to be cut up."""
    r = random.Random(47)
    norms = START_NORM + [replace(*x) for x in (("  ", " "), ("\n", "▁\n"), (r"\s{2,}", " ", "Regex"), ("e\u0301", "e"), ("aa", "b"))]
    pres = PRE + START_PRE + [split(" ", "MergedWithPrevious", False, "String")] + [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": s, "split": q} for s in ("always", "first", "never") for q in (True, False)] * 3
    few = ["<unk>", *"▁aZst漢がか be\n!Ġ", "é", "re", "ab", "bb", "▁a", " a", "  ", "▁▁", "Ġa", "##a", "##s"]
    models = []
    for pieces in (few, list(dict.fromkeys(few + [c for x in CLASSES for c in x]))):
        vocab = {c: i for i, c in enumerate(pieces)}
        whole = dict(vocab, **{f"<0x{b:02X}>": len(vocab) + b for b in range(256)})
        merges = [[a, b] for a in few for b in few if a + b in few]
        for v, bytes_ in ((vocab, False), (whole, True)):
            models += [{"type": "BPE", "unk_token": "<unk>", "fuse_unk": fuse, "byte_fallback": bytes_, "vocab": v, "merges": merges}
                       for fuse in (False, True)]
            models.append({"type": "Unigram", "unk_id": 0, "byte_fallback": bytes_, "vocab": [[p, -1.5 - 0.37 * (i % 11)] for p, i in v.items()]})
        models.append({"type": "WordPiece", "vocab": vocab, "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 8})
    for i in range(n):
        tokens = [{"id": 0, "content": c, "single_word": r.random() < .3, "lstrip": r.random() < .3, "rstrip": r.random() < .3,
                   "normalized": r.random() < .5, "special": r.random() < .3}
                  for c in r.sample(["[MASK]", "<s>", "n't", "é", "ab", "漢語", "zqxj", "  ", "E"], k=r.choice((0, 0, 1, 2)))]
        spec = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "post_processor": None, "decoder": None,
                "normalizer": {"type": "Sequence", "normalizers": r.choices(norms, k=r.choice((0, 1, 1, 2, 3)))},
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": r.choices(pres, k=r.choice((0, 1, 1, 2, 3)))}, "model": r.choice(models)}
        yield save(folder, f"mix{i}", spec)


def check_mix(path):
    try:
        t = tokenizers.Tokenizer.from_file(path)
    except Exception:
        return
    r = random.Random(53)
    pool = CLASSES + STARTS + list("aabbZs te re\n  ") * 2
    docs = ["".join(r.choices(pool, k=r.choice((1, 3, 10, 60)))) for _ in range(60)] + ["".join(r.choices(pool, k=2000))]
    want = [ids_or_none(t, d) for d in docs]
    got = encode(path, [d for d, w in zip(docs, want) if w is not None])
    if isinstance(got, str) and ("normalizes to nothing" in got or "once normalized" in got):
        return  # refused: no such token can be found
    yield "ids", same(os.path.basename(path), got, [w for w in want if w is not None], [d for d, w in zip(docs, want) if w is not None])


def ids_or_none(t, text):
    try:
        return t.encode(text).ids
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        return None


def long_lines(folder):
    """Added tokens that look around, Precompiled and a Replace with a group, before models that encode a long line while it is read."""
    base, free = byte_level()
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    looks = [("<mask>", {"lstrip": True, "special": True}), ("<r>", {"rstrip": True, "normalized": True}), ("qqword", {"single_word": True})]
    rules = charsmap({"é": "e", "e\u0301": "é", "ﬁ": "fi", "½": "1/2", "\u3000": " ", "\t": " ", "\u200d": ""})
    precompiled = {"type": "Precompiled", "precompiled_charsmap": rules}
    pieces = ["<unk>", *"▁abACGTeswordfi12/é漢<>mkq\u0301", "▁a", "ab", "ACG", "word", "▁word"]
    unigram = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [[p, -1.5 - 0.37 * (i % 11)] for i, p in enumerate(pieces)]}
    mark = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    spaces = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, mark]}
    made = [(base["model"], {"type": "Sequence", "normalizers": [precompiled, replace("(a|b)b*", "x", "Regex")]}, LEVEL)]
    if FULL:
        made += [(base["model"], None, LEVEL), (base["model"], {"type": "NFC"}, LEVEL), (unigram, precompiled, spaces), (unigram, precompiled, mark)]
    for i, (model, norm, pre) in enumerate(made):
        first = free if model is base["model"] else len(pieces)
        added = [{"id": first + k, "content": c, **flags, **more} for k, (c, more) in enumerate(looks)]
        yield save(folder, f"long{i}", dict(base, model=model, normalizer=norm, pre_tokenizer=pre, added_tokens=added, post_processor=None,
                                            decoder=None))


def check_long(path):
    """Lines of more than 4 MiB, with runs and without split points for long."""
    t = tokenizers.Tokenizer.from_file(path)
    r = random.Random(59)
    words = ["a", "ab", "ACGT", " ", "  ", "\t", "<mask>", " <mask>", "qqword", "qqwords", "<r>", "<r> ", "漢", "e\u0301", "\u0301", "word ",
             "12", "ﬁ", "½", "\u3000", "\u200d"]
    parts = ["x"]
    size = 0
    while size < 4600000:
        parts.append(r.choice(words) * r.choice((1, 1, 1, 3, 40, 3000)))
        size += len(parts[-1].encode())
    doc = "".join(parts) + "ACGT" * 100000
    want = t.encode(doc).ids
    for workers in ("1", "2"):
        yield f"ids, {workers} workers", same(os.path.basename(path), encode(path, [doc], "--workers", workers), [want], [doc])


def check_starts(path):
    t = tokenizers.Tokenizer.from_file(path)
    r = random.Random(43)
    docs = STARTS + [a + b for a in STARTS for b in ("a", "ab", " a", "\u0301b")] + [
        "".join(r.choices(STARTS, k=r.randint(2, 9))) for _ in range(400)]
    want = [ids_or_none(t, d) for d in docs]
    docs = [d for d, w in zip(docs, want) if w is not None]  # on some the library panics
    yield "ids", same(os.path.basename(path), encode(path, docs), [w for w in want if w is not None], docs)


def texts():
    yield "books", books()
    yield "alone", [chr(c) for c in SCALARS]
    yield "between letters", scalars("aXb ")
    yield "behind a space", scalars(" X")
    yield "fuzz", fuzz(100000 if FULL else 2000, 7)
    yield "empty", [""]


def encode(path, docs, *options):
    text = "".join(json.dumps({"text": d}) + "\n" for d in docs)
    p = subprocess.run([TOK, "encode", "--tokenizer", path, "--format", "json", "--specials", "parse", *options],
                       input=text.encode(), capture_output=True)
    if p.returncode:
        return p.stderr.decode()
    return [json.loads(line)["ids"] for line in p.stdout.splitlines()]


def decode(path, ids, *options):
    text = "".join(json.dumps({"ids": i}) + "\n" for i in ids)
    p = subprocess.run([TOK, "decode", "--tokenizer", path, "--format", "json", *options], input=text.encode(), capture_output=True)
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


def check_variant(path, turn):
    """In the quick tier the variants share the scalar values out between them."""
    t = tokenizers.Tokenizer.from_file(path)
    docs = fuzz(20000 if FULL else 300, 11) + [chr(c) for c in (SCALARS if FULL else SCALARS[turn % 4:0x3100 // 17:4])] + [""]
    if not FULL:
        rest = SCALARS[0x3100 // 17 + turn % 8::8]
        docs += ["".join("a" + chr(c) for c in rest[i:i + 256]) for i in range(0, len(rest), 256)]
    want = [e.ids for e in t.encode_batch(docs)]
    name = os.path.basename(path)
    ok = same(name, encode(path, docs), want, docs)
    ids = [w for w in want if w]
    texts_ = t.decode_batch(ids, skip_special_tokens=False)
    yield "ids and texts", same(f"{name}, decode", decode(path, ids), texts_, [str(i) for i in ids]) and ok


def check_clusters(folder):
    """Rules of a Precompiled are for whole grapheme clusters: does each scalar value make one with the letter before it?
    One in 61 of large even blocks, in the quick tier."""
    base, _ = byte_level()
    path = save(folder, "clusters", dict(base, normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap({"a": "b"})}))
    t = tokenizers.Tokenizer.from_file(path)
    even = ((0x3400, 0x9ffc), (0xac00, 0xd7a0), (0xe000, 0xf8ff), (0x17000, 0x187f0), (0x20000, 0xdffff), (0xe1000, 0x110000))
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (FULL or c % 61 == 0 or not any(a < c < b for a, b in even))]
    docs = ["".join("a" + c for c in every[i:i + 1024]) for i in range(0, len(every), 1024)]
    yield "scalar values behind a letter", same("clusters", encode(path, docs), [e.ids for e in t.encode_batch(docs)], docs)


def check_padding(folder):
    t = tokenizers.Tokenizer.from_file(f"{DATA}/tokenizers/bert-base-cased/tokenizer.json")
    docs = ["", "one", "one two three four five six seven eight", *fuzz(200, 13)]
    for length, multiple, side in ((None, None, "right"), (None, 8, "right"), (12, None, "left"), (10, 16, "right"), (9, 4, "left")):
        t.enable_padding(direction=side, pad_id=5, pad_token="x", length=length, pad_to_multiple_of=multiple)
        t.save(f"{folder}/padded.json")
        yield f"padding {length} {multiple} {side}", same("padding", encode(f"{folder}/padded.json", docs, "--padding", "file"),
                                                          [t.encode(d).ids for d in docs], docs)


def check_tiktoken():
    path = f"{DATA}/tokenizers/cl100k/cl100k_base.tiktoken"
    try:
        import tiktoken
    except ImportError:
        return
    with open(path, "rb") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
    enc = tiktoken.Encoding("cl100k", mergeable_ranks=ranks, pat_str=CL100K, special_tokens={
        "<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276} if ranks_are_cl100k(path) else {})
    how = ranks_options(path)
    print(f"# tiktoken {tiktoken.__version__}")
    for name, docs in texts():
        want = [enc.encode(d, allowed_special="all") for d in docs]
        yield f"ids, {name}", same(name, encode(path, docs, *how), want, docs)
        ids = [w for w in want[:3000] if w]
        yield f"texts, {name}", not ids or same(name, decode(path, ids, *how), [enc.decode(w) for w in ids], docs)


def check_simple(folder):
    """GPT-2's two files against its tokenizer.json; vocab.txt against BertWordPieceTokenizer."""
    t = tokenizers.Tokenizer.from_file(f"{DATA}/tokenizers/gpt2/tokenizer.json")
    docs = books() + fuzz(1000, 5)
    yield "gpt2/vocab.json", same("gpt2", encode(f"{DATA}/tokenizers/gpt2/vocab.json", docs),
                                  [e.ids for e in t.encode_batch(docs)], docs)
    with open(f"{DATA}/tokenizers/bert-base-cased/tokenizer.json", encoding="utf-8") as f:
        words = sorted((i, w) for w, i in json.load(f)["model"]["vocab"].items())
    for lower in (False, True):
        path = f"{folder}/vocab{int(lower)}.txt"
        kept = [w for _, w in words]
        if lower:
            kept = list(dict.fromkeys(w if w[0] == "[" else w.lower() for w in kept))
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(w + "\n" for w in kept)
        t = tokenizers.BertWordPieceTokenizer(path, lowercase=lower)
        want = [e.ids for e in t.encode_batch(docs, add_special_tokens=False)]
        yield f"vocab.txt, {'lower' if lower else 'cased'}", same("bert", encode(path, docs), want, docs)


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
    kept += [[i] for i in range(0, size, 1 if FULL else 9)] + [[r.randrange(size) for _ in range(r.randint(1, 30))] for _ in range(20000 if FULL else 2000)]
    kept = [k for k in kept if k]
    want = t.decode_batch(kept, skip_special_tokens=False)
    yield "texts of ids", same("decode", decode(path, kept), want, [str(k) for k in kept])


def main():
    files = sys.argv[2:]
    if not files and not DATA:
        print(f"1..1\nok 1 - tokenizers # SKIP {MISSING}")
        return 0
    files = files or [f"{DATA}/tokenizers/{n}/tokenizer.json" for n in
                      ("gpt2", "gpt-neox", "mistral-7b", "bert-base-cased")]
    print(f"# tokenizers {tokenizers.__version__}")
    n = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(path, check(path)) for path in files]
        if len(sys.argv) == 2 or sys.argv[2] == "made":
            jobs = [] if sys.argv[2:] else jobs
            jobs += [("cl100k_base.tiktoken", check_tiktoken()), ("simple files", check_simple(folder)), ("padding", check_padding(folder)),
                     ("clusters", check_clusters(folder))]
            jobs += [(path, check_variant(path, i)) for i, path in enumerate(variants(folder))]
            jobs += [(path, check_starts(path)) for path in starts(folder, 2000 if FULL else 60)]
            jobs += [(path, check_mix(path)) for path in mixes(folder, 1000 if FULL else 40)]
            jobs += [(path, check_long(path)) for path in long_lines(folder)]
        for path, results in jobs:
            for name, ok in results:
                n += 1
                bad += not ok
                print(f"{'ok' if ok else 'not ok'} {n} - {'/'.join(path.split('/')[-2:])}: {name}", flush=True)
    print(f"1..{n}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
