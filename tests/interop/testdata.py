#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The data that tests read: the folder $WEFT_TEST_DATA, else what was made here, so that comparisons with the peers need
no published file.

    testdata.py FOLDER TOK STORIES

makes FOLDER, in less than a minute, unless this file and the same peers made it: English of samples/stories, and a text of all scripts made from Unicode's
tables; tokenizers of every format, each of 2000 pieces, trained on them by the peers (vocabularies.py, sentencepiece) and
by our own `tok train`. Texts and tokenizers bear the names of the published ones whose place they take, so that a test
reads either; PUBLISHED tells which they are. What a peer that is not installed would have made is left out."""
import base64
import collections
import hashlib
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import unicodedata

sys.path.insert(0, f"{sys.prefix}/sp022")  # see sp022.py
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TIKTOKEN_CACHE_DIR", "")  # else tiktoken keeps a copy of a file of ranks by its path
HERE = os.path.dirname(os.path.abspath(__file__))
MADE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build-oracles", "data")
DATA = os.environ.get("WEFT_TEST_DATA") or (MADE if os.path.exists(f"{MADE}/made") else None)
PUBLISHED = bool(DATA) and not os.path.exists(f"{DATA}/made")
MISSING = "no test data: WEFT_TEST_DATA is not set, and tests/run.sh has made none"
VOCABULARIES = os.environ.get("WEFT_VOCAB_DIR") or (f"{DATA}/vocabularies" if DATA and not PUBLISHED else "")
SIZE = 2000
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
          r"\s++$|\s*[\r\n]|\s+(?!\S)|\s")
CL100K_RANKS = 100256


def ranks_are_cl100k(path):
    """Whether a file of ranks has as many as the published one, whose special tokens go with the number."""
    with open(path, "rb") as f:
        return sum(1 for _ in f) == CL100K_RANKS


def ranks_options(path):
    """What tok must be told about a file of ranks."""
    return [] if ranks_are_cl100k(path) else ["--tiktoken-pattern", "cl100k"]


# ---- texts -----------------------------------------------------------------------------------------

FIRST_OF_REST = {"LETTER", "SMALL", "CAPITAL", "SYLLABLE", "SYLLABICS", "IDEOGRAPH", "VOWEL", "SIGN", "DIGIT", "LIGATURE",
                 "MODIFIER", "SUBJOINED", "INDEPENDENT", "DEPENDENT", "CONSONANT", "COMBINING", "FINAL", "INITIAL"}
COMMON = {"HIRAGANA": 14, "KATAKANA": 8, "CJK": 22, "HANGUL": 12, "CYRILLIC": 12, "ARABIC": 10, "DEVANAGARI": 10, "GREEK": 8,
          "HEBREW": 6, "THAI": 8, "BENGALI": 5, "TAMIL": 5, "LATIN": 20}  # documents to one of any other script
UNSPACED = {"HIRAGANA", "KATAKANA", "CJK", "THAI", "LAO", "KHMER", "MYANMAR"}
STOPS = {"CJK": "\u3002", "HIRAGANA": "\u3002", "KATAKANA": "\uff01", "DEVANAGARI": " \u0964", "BENGALI": " \u0964",
         "ARABIC": "\u061f", "ARMENIAN": "\u0589", "ETHIOPIC": "\u1362", "TIBETAN": "\u0f0d", "MYANMAR": "\u104b",
         "KHMER": "\u17d4", "GREEK": ";"}


def scripts():
    """By the first word of their names, of each script: letters, marks, digits."""
    found = collections.defaultdict(lambda: ([], [], []))
    for c in map(chr, range(0x41, 0x110000)):
        kind, words = unicodedata.category(c), unicodedata.name(c, "").split()
        if words and (kind[0] in "LM" or kind == "Nd"):
            end = next((i for i, w in enumerate(words) if w in FIRST_OF_REST), 1) or 1
            found[words[0] if words[0] in COMMON else " ".join(words[:end])]["LMN".index(kind[0])].append(c)
    for name in COMMON:  # some of the hundreds or thousands, the same every time
        letters, *rest = found[name]
        some = random.Random(name).sample(letters, min({"CJK": 400, "HANGUL": 250}.get(name, 80), len(letters)))
        found[name] = ([c for c in letters if c.isascii()] + some, *rest)
    return {name: parts for name, parts in sorted(found.items()) if len(parts[0]) > 4}


def zipf(n):
    return [1 / (i + 2) for i in range(n)]


class Writer:
    def __init__(self, name, parts):
        self.r, self.name = random.Random(name), name
        self.letters, self.marks, self.digits = parts
        self.r.shuffle(self.letters)
        self.words = [self.word() for _ in range(400 if name in COMMON else 60)]

    def word(self):
        out, weights = "", zipf(len(self.letters))
        for c in self.r.choices(self.letters, weights, k=self.r.choice([1, 2, 2, 3, 3, 4, 5, 7])):
            out += c
            if self.marks and self.r.random() < 0.2:
                out += "".join(self.r.sample(self.marks, self.r.choice([1, 1, 1, 2]) if len(self.marks) > 1 else 1))
        return out

    def sentence(self):
        gap = "" if self.name in UNSPACED else " "
        words = self.r.choices(self.words, zipf(len(self.words)), k=self.r.randint(3, 14))
        if self.r.random() < 0.2:
            words.append("".join(self.r.choices(self.digits or "0123456789", k=self.r.randint(1, 5))))
        if self.r.random() < 0.3:
            words[self.r.randrange(len(words))] += self.r.choice([",", "\u3001", ":", " \u2013", "\u00b7", ")", "\u300d"])
        return gap.join(words) + STOPS.get(self.name, ".")

    def document(self):
        gap = "" if self.name in UNSPACED else " "
        return gap.join(self.sentence() + ("\n" if self.r.random() < 0.15 else "") for _ in range(self.r.randint(4, 12)))


def strange(r):
    """What stands in no dictionary: signs, emoji, spaces, marks in any order, numbers."""
    kinds = [[c for c in map(chr, range(0x21, 0x30000)) if unicodedata.category(c) in k] for k in (
        ("Sm", "Sc", "Sk", "So"), ("Po", "Pd", "Ps", "Pe"), ("No", "Nl"), ("Mn", "Me"), ("Zs",))]
    emoji = ["\U0001F600", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\u2764\ufe0f", "\U0001F44D\U0001F3FD", "\U0001F1EF\U0001F1F5"]
    while True:
        parts = []
        for _ in range(r.randint(5, 60)):
            some = r.choice(kinds + [emoji])
            parts.append(r.choice(["a", "e", "x ", "\u6f22", "\u304b", ""]) + "".join(r.choices(some, k=r.choice([1, 1, 2, 4]))))
        yield r.choice(["", " "]).join(parts)


def all_scripts(size):
    """Documents, until they have that many bytes: first of the common scripts, then of all."""
    writers = [Writer(name, parts) for name, parts in scripts().items()]
    r = random.Random(17)
    odd = strange(r)
    common = [w for w in writers if w.name in COMMON]
    rare, out, left = [w for w in writers if w.name not in COMMON], [], size
    while left > 0:
        kind, some = r.random(), common if left > size // 3 or r.random() < 0.5 else rare
        weights = [COMMON.get(w.name, 1) for w in some]
        if kind < 0.03 and left < size // 3:
            text = next(odd)
        elif kind < 0.1:
            text = " ".join(w.sentence() for w in r.choices(some, weights, k=6))
        else:
            text = r.choices(some, weights)[0].document()
        left -= len(text.encode())
        out.append(text.rstrip("\n"))
    return out


def write_text(folder, name, documents, mark=""):
    with open(f"{folder}/{name}.txt", "w", encoding="utf-8", newline="\n") as f:
        f.write(mark + "".join(d + "\n" for d in documents))
    with open(f"{folder}/{name}.jsonl", "w", encoding="utf-8", newline="\n") as f:
        for i, d in enumerate(documents):
            f.write(json.dumps({"id": i, "text": d, "meta": {"made": True}}, ensure_ascii=i % 2 == 1) + "\n")


def texts(folder, stories):
    os.makedirs(folder)
    run = subprocess.run([stories, "--seed", "1234", "--bytes", "480K"], check=True, capture_output=True)
    tales = [json.loads(line)["text"] for line in run.stdout.decode().splitlines()]
    write_text(folder, "botchan", tales, "\ufeff")
    write_text(folder, "wagahaiwa_nekodearu", all_scripts(1500000))


# ---- tokenizers by the peers ---------------------------------------------------------------------------

SPACES = ["  " + " " * i for i in reversed(range(23))]


def token(id_, content, special=True, normalized=False):
    return {"id": id_, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized,
            "special": special}


def save(path, spec):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f, ensure_ascii=False)


def byte_level(lines, size, special, splits=None):
    """What Hugging Face's trainer learns, as a dictionary."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers as P, processors, trainers
    t = Tokenizer(models.BPE())
    level = P.ByteLevel(add_prefix_space=False, use_regex=splits is None)
    t.pre_tokenizer = P.Sequence([P.Split(Regex(splits), "isolated"), level]) if splits else level
    t.decoder, t.post_processor = decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(lines(), trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                                       initial_alphabet=P.ByteLevel.alphabet()))
    return json.loads(t.to_str())


def gpt2(folder, lines):
    """Two files and one, the special token last."""
    spec = byte_level(lines, SIZE - 1, [])
    model = spec["model"]
    model["vocab"]["<|endoftext|>"] = SIZE - 1
    spec["added_tokens"] = [token(SIZE - 1, "<|endoftext|>", normalized=True)]
    save(f"{folder}/gpt2/tokenizer.json", spec)
    save(f"{folder}/gpt2/vocab.json", model["vocab"])
    with open(f"{folder}/gpt2/merges.txt", "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{' '.join(m)}\n" for m in model["merges"]))


def gpt_neox(folder, lines):
    spec = byte_level(lines, SIZE, ["<|endoftext|>", "<|padding|>"])
    spec["normalizer"] = {"type": "NFC"}
    spec["added_tokens"] += [token(SIZE + i, c, False, True) for i, c in enumerate(SPACES)]
    save(f"{folder}/gpt-neox/tokenizer.json", spec)


def bert(folder, lines):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=False)
    t.pre_tokenizer, t.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=special, show_progress=False,
                                                             limit_alphabet=SIZE // 3))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(c, t.token_to_id(c)) for c in ("[CLS]", "[SEP]")])
    spec = json.loads(t.to_str())
    spec["added_tokens"] = [x for x in spec["added_tokens"] if "unused" not in x["content"]]
    save(f"{folder}/bert-base-cased/tokenizer.json", spec)


def ranks(folder, lines):
    """tiktoken's file: the bytes of each token and its rank."""
    from tokenizers import pre_tokenizers
    vocab = byte_level(lines, SIZE, [], CL100K.replace("{1,3}+", "{1,3}").replace(r"\s++$", r"\s++\z"))["model"]["vocab"]
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    letter = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in plain)}
    assert sorted(letter) == sorted(pre_tokenizers.ByteLevel.alphabet())
    os.makedirs(f"{folder}/cl100k")
    with open(f"{folder}/cl100k/cl100k_base.tiktoken", "wb") as f:
        for text, i in sorted(vocab.items(), key=lambda x: x[1]):
            f.write(base64.b64encode(bytes(letter[c] for c in text)) + b" %d\n" % i)


def mistral(folder, paths):
    """A SentencePiece model, and the tokenizer.json that transformers' rules make of it."""
    import sentencepiece
    os.makedirs(f"{folder}/mistral-7b")
    prefix = f"{folder}/mistral-7b/tokenizer"
    spm_train(paths, prefix, model_type="bpe", byte_fallback=True, normalization_rule_name="identity", split_digits=True,
            remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)
    try:
        from transformers.convert_slow_tokenizer import generate_merges
    except ImportError:
        return
    sp = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    pieces = [(sp.id_to_piece(i), sp.get_score(i)) for i in range(sp.get_piece_size())]
    vocab = {p: i for i, (p, _) in enumerate(pieces)}
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    one = {"Sequence": {"id": "A", "type_id": 0}}
    save(prefix + ".json", {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [token(i, c) for i, c in enumerate(("<unk>", "<s>", "</s>"))], "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False},
        "post_processor": {"type": "TemplateProcessing", "single": [bos, one], "pair": [
            bos, one, {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab,
                  "merges": [list(m) for m in generate_merges(vocab, pieces)]}})


def common_letters(lines, n):
    """The lines without the characters that are not among the n most frequent: some trainers take a piece for each."""
    lines = list(lines)
    count = collections.Counter(c for line in lines for c in line)
    rare = dict.fromkeys(ord(c) for c, _ in count.most_common()[n:])
    return [line.translate(rare) for line in lines] if rare else lines


def spm_train(paths, prefix, **options):
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(input=paths, model_prefix=prefix, vocab_size=SIZE, minloglevel=2,
                                             num_threads=os.cpu_count(), **options)


SP_MODELS = {"unigram": {}, "unigram-bytes": {"byte_fallback": True, "remove_extra_whitespaces": False, "split_digits": True},
             "bpe": {"model_type": "bpe"}, "word": {"model_type": "word", "hard_vocab_limit": False},
             "char": {"model_type": "char"}}


def read_lines(paths):
    for path in paths:
        with open(path, encoding="utf-8", newline="\n") as f:
            yield from f


def by_peers(folder, paths, plain):
    def lines():
        return read_lines(paths)
    try:
        import tokenizers  # noqa: F401
        for make in (gpt2, gpt_neox, bert, ranks):
            make(f"{folder}/tokenizers", lines)
        subprocess.run([sys.executable, "-B", f"{HERE}/vocabularies.py", f"{folder}/vocabularies", *paths], check=True,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, WEFT_VOCAB=str(SIZE)))
    except ImportError as e:
        print(f"test data: no tokenizers by Hugging Face: {e}", file=sys.stderr)
    try:
        import sentencepiece  # noqa: F401
        mistral(f"{folder}/tokenizers", plain)
        for name, options in SP_MODELS.items():
            os.makedirs(f"{folder}/vocabularies/sp-{name}")
            spm_train(plain, f"{folder}/vocabularies/sp-{name}/{name}", **options)
    except ImportError as e:
        print(f"test data: no models by SentencePiece: {e}", file=sys.stderr)


# ---- tokenizers of ours -----------------------------------------------------------------------------------

OURS = {
    "gpt2/": ["--type", "bpe", "--pretokenizer", "gpt2"],
    "llama3/": ["--type", "bpe", "--pretokenizer", "llama3", "--special_tokens", "<s>", "<|endoftext|>", "--output-type",
                "tokenizer.json"],
    "wordpiece/": ["--type", "wordpiece", "--limit_alphabet", str(SIZE // 3)],
    "sp-unigram/m": ["--model_type", "unigram"],
    "sp-bpe/m": ["--model_type", "bpe", "--byte_fallback"],
    "sp-char/m": ["--model_type", "char"],
    "ranks/cl100k": ["--type", "bpe", "--output-type", "tiktoken", "--pretokenizer", "cl100k"],
}


def by_us(folder, tok, paths, plain):
    for name, options in OURS.items():
        prefix = f"{folder}/vocabularies/own-{name}"
        os.makedirs(os.path.dirname(prefix), exist_ok=True)
        subprocess.run([tok, "train", "-q", "--input", *([plain] if "sp-" in name else paths), "--model_prefix", prefix,
                        "--vocab_size", str(SIZE), *options], check=True)


README = """{}
Made by tests/interop/testdata.py for the comparisons with the peers. Nothing here is what the file's name says: texts
are generated, tokenizers have 2000 pieces; they take the places of the published files that a test would read.
"""


def made_with():
    """What the folder depends on: what is written here, and the peers."""
    versions = []
    for name in ("tokenizers", "sentencepiece", "transformers"):
        try:
            versions.append(f"{name} {importlib.import_module(name).__version__}")
        except ImportError:
            versions.append(f"no {name}")
    digest = hashlib.sha256()
    for name in ("testdata.py", "vocabularies.py"):
        with open(f"{HERE}/{name}", "rb") as f:
            digest.update(f.read())
    return ", ".join([*versions, digest.hexdigest()[:16]])


def make(folder, tok, stories):
    with_ = made_with()
    if os.path.exists(f"{folder}/made"):
        with open(f"{folder}/made", encoding="utf-8") as f:
            if f.readline().strip() == with_:
                return
    new = folder + ".new"
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    texts(f"{new}/text", stories)
    paths = [f"{new}/text/{name}.txt" for name in ("botchan", "wagahaiwa_nekodearu")]
    plain = f"{new}/plain.txt"
    with open(plain, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(common_letters(read_lines(paths), SIZE // 3))
    by_peers(new, paths, plain)
    by_us(new, tok, paths, plain)
    os.unlink(plain)
    with open(f"{new}/made", "w", encoding="utf-8") as f:
        f.write(README.format(with_))
    os.rename(new, folder)


if __name__ == "__main__":
    make(*sys.argv[1:])
