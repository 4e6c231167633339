#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program tok against sentencepiece: the same models as spm_train (by --engine sentencepiece; our own trainers are
learn_sp.py's matter), the same ids and texts as the Python binding of 0.2.2, the wrappers' vocabularies by Megatron-LM's rules
written once more.

    tok.py TOK

The texts are those of testdata.py; without them a small one is made here. WEFT_FULL=1 takes whole
books and Wagahaiwa, else their first lines."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from sp022 import sentencepiece
from testdata import DATA, MISSING, PUBLISHED, common_letters

TOK = os.path.abspath(sys.argv[1])
FULL = "WEFT_FULL" in os.environ
UCLLM = dict(model_type="unigram", character_coverage="0.9995", num_threads="16", byte_fallback="true",
             split_digits="true", allow_whitespace_only_pieces="true", remove_extra_whitespaces="false",
             train_extremely_large_corpus="true",
             user_defined_symbols="<s>,</s>,<pad>,<CLS>,<SEP>,<EOD>,<MASK>,\n")


def run(*args, **more):
    return subprocess.run([TOK, *args], check=True, capture_output=True, **more).stdout


# ---- texts -----------------------------------------------------------------------------------------

def texts():
    """Names of plain texts, each with its JSONL."""
    if DATA:
        for name in ("botchan", "wagahaiwa_nekodearu"):
            for ending in ("txt", "jsonl"):
                with open(f"{DATA}/text/{name}.{ending}", encoding="utf-8", newline="\n") as f:
                    lines = f.read().splitlines(keepends=True) if ending == "jsonl" else f.readlines()
                if ending == "txt" and not PUBLISHED:
                    lines = common_letters(lines, 1000)
                keep = lines if FULL or name == "botchan" else lines[: 60 if ending == "jsonl" else 4000]
                with open(f"{name}.{ending}", "w", encoding="utf-8", newline="\n") as f:
                    f.writelines(keep)
        return ["botchan", "wagahaiwa_nekodearu"]
    print(f"# {MISSING}: made-up text only")
    random.seed(5)
    words = ["".join(random.choice("ka to mi ran de su ber ill on".split()) for _ in range(random.randint(1, 4)))
             for _ in range(900)]
    lines = [" ".join(random.choices(words, k=random.randint(3, 30))).capitalize() + ". 2024" for _ in range(3000)]
    with open("made.txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    with open("made.jsonl", "w") as f:
        f.writelines(json.dumps({"text": "\n".join(lines[i:i + 40])}) + "\n" for i in range(0, 3000, 40))
    return ["made"]


ODD = ["", " ", "  two  spaces  ", "\ttab", "new\nline\n\n", "ＡＢＣ ㈱ ﷺ ½ ﬁ", "e\u0301 \u00e9", "\U0001f600 \U0001f468\u200d\U0001f469",
       "<s></s><EOD><unk> <0x41>", "▁mark ▅", "\u3000wide\u00a0space\u2028", "1234567890 3.14", "\ufeffbom", "\u200b\u00ad",
       "a" * 500, "ｶﾞｷﾞ", "\u0000nul", "吾輩は猫である。名前はまだ無い。"]


# ---- models: as spm_train makes them ------------------------------------------------------------------

def varint(b, i):
    v = s = 0
    while True:
        v |= (b[i] & 127) << s
        s += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def fields(b):
    """(number, value, raw bytes) of each field of a message."""
    i = 0
    while i < len(b):
        start = i
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        elif tag & 7 == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
        else:
            n = {1: 8, 5: 4}[tag & 7]
            v, i = b[i:i + n], i + n
        yield tag >> 3, v, b[start:i]


def length(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def without_names(model):
    """The model without input (1) and model_prefix (2) in its trainer_spec (2)."""
    out = b""
    for number, value, raw in fields(model):
        if number == 2:
            spec = b"".join(r for n, _, r in fields(value) if n not in (1, 2))
            raw = bytes([2 << 3 | 2]) + length(len(spec)) + spec
        out += raw
    return out


def read(path):
    with open(path, "rb") as f:
        return f.read()


def train_both(name, text, options, preset=None):
    """The same training by spm_train and by us; true when model and list are the same bytes."""
    flags = [f"--{k}={v}" for k, v in options.items()]
    subprocess.run(["spm_train", f"--input={text}", f"--model_prefix=spm_{name}", *flags], check=True,
                   capture_output=True)
    own = ["--preset", preset, f"--vocab_size={options['vocab_size']}"] if preset else flags
    run("train", "-q", "--overwrite", "--engine", "sentencepiece", "--input", text, "--model_prefix", name, *own)
    return (read(f"spm_{name}.vocab") == read(f"{name}.vocab") and
            without_names(read(f"spm_{name}.model")) == read(f"{name}.model"))


def recipes(text):
    n = "2000" if text == "botchan" else "3000" if text != "made" else "600"
    yield "ucllm", dict(UCLLM, vocab_size=n), "ucllm"
    yield "unigram", dict(vocab_size=n), None
    yield "bpe", dict(vocab_size=n, model_type="bpe", byte_fallback="true", normalization_rule_name="nfkc"), None
    if text != "wagahaiwa_nekodearu":
        yield "char", dict(vocab_size="60", model_type="char", hard_vocab_limit="false"), None
        yield "word", dict(vocab_size="500", model_type="word"), None
        yield "identity", dict(vocab_size=n, normalization_rule_name="identity", add_dummy_prefix="false",
                               control_symbols="<a>,<b>", user_defined_symbols="the,<EOD>,<EODs>", pad_id="3",
                               split_by_whitespace="false", max_sentencepiece_length="24"), None
        yield "suffix", dict(vocab_size="300", treat_whitespace_as_suffix="true", input_sentence_size="500",
                             max_sentence_length="90", normalization_rule_name="nmt_nfkc_cf"), None


# ---- ids and texts --------------------------------------------------------------------------------

def lines_of(text):
    with open(text, encoding="utf-8", newline="\n") as f:
        return f.read().split("\n")[:-1] if not text.endswith(".jsonl") else \
            [json.loads(line)["text"] for line in f]


def same_ids(sp, model, text):
    got = run("encode", "-q", "--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model", model, text)
    want = [sp.encode(x) for x in lines_of(text)]
    return [[int(i) for i in line.split()] for line in got.decode().split("\n")[:-1]] == want


def same_texts(sp, model, docs):
    """Decoding: of encoded documents, and of random ids (broken bytes, controls, anything)."""
    random.seed(3)
    ids = [sp.encode(x) for x in docs] + [[random.randrange(len(sp)) for _ in range(random.randint(0, 40))]
                                          for _ in range(300)]
    stream = "".join(json.dumps({"ids": x}) + "\n" for x in ids).encode()
    got = run("decode", "--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model", model,
              "--format", "json", input=stream)
    return [json.loads(x)["text"] for x in got.decode().split("\n")[:-1]] == [sp.decode(x) for x in ids]


def same_documents(sp, model, docs):
    lines = "".join(json.dumps({"text": x}) + "\n" for x in docs).encode()
    got = run("encode", "-q", "--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model", model,
              "--format", "json", input=lines)
    return [json.loads(x)["ids"] for x in got.decode().split("\n")[:-1]] == [sp.encode(x) for x in docs]


def same_long(sp, model, text):
    """One long document, by one thread and by three: scores are added up from its beginning, and begin anew beyond
    100,000. Words of few letters have many ways of nearly the same score."""
    random.seed(11)
    words = " ".join("".join(random.choices("aon", k=random.randint(1, 30))) for _ in range(8000))
    doc = "\n".join(lines_of(text))[:400000] + words + "\n".join(lines_of(text))[:100000]
    line, want = json.dumps({"text": doc}).encode() + b"\n", sp.encode(doc)
    got = [run("encode", "-q", "--workers", n, "--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model", model,
               "--format", "json", input=line) for n in ("1", "3")]
    return all(json.loads(x)["ids"] == want for x in got)


# ---- Megatron-LM's SentencePieceTokenizer (core_v0.12.3), its rules in our words -----------------------

class Wrapper:
    def __init__(self, sp):
        self.sp, self.vocab, self.special = sp, {}, {}
        for i in range(len(sp)):
            self.vocab[sp.id_to_piece(i)] = i
        for t in ("<CLS>", "<SEP>", "<EOD>", "<MASK>"):
            self.add(t)
        for i, otherwise in ((sp.pad_id(), "<PAD>"), (sp.bos_id(), "<BOS>"), (sp.eos_id(), "<EOS>")):
            self.add(sp.id_to_piece(i) if 0 <= i < len(sp) else otherwise)

    def add(self, t):
        self.special[t] = self.vocab.setdefault(t, len(self.vocab))

    def tokenize(self, text):
        ids = []
        while True:
            places = {t: text.find(t) for t in self.special if t in text}
            if not places:
                return ids + self.sp.encode(text)
            t = min(places, key=places.get)
            ids += self.sp.encode(text[:places[t]]) + [self.special[t]]
            text = text[places[t] + len(t):]


def same_wrapper(sp, model):
    w = Wrapper(sp)
    facts = json.loads(run("inspect", "--json", "--tokenizer-type", "SentencePieceTokenizer", model))
    texts = ["a<EOD>b", "<CLS>x<SEP> y<MASK>", "<s>q</s><pad><PAD>", "<BOS> <EOS>", "none", "<EOD><EOD>"]
    lines = "".join(json.dumps({"text": x}) + "\n" for x in texts).encode()
    got = run("encode", "-q", "--tokenizer-type", "SentencePieceTokenizer", "--specials", "parse",
              "--tokenizer-model", model, "--format", "json", input=lines)
    return (facts["vocab_size"] == len(w.vocab) and facts["eod"]["id"] == w.vocab["<EOD>"] and
            [json.loads(x)["ids"] for x in got.decode().split("\n")[:-1]] == [w.tokenize(x) for x in texts])


# ---- the whole-word tokenizer against the seed's rule -----------------------------------------------

def same_words(text):
    docs = lines_of(text)
    words = {}
    for line in docs[::2]:
        for w in line.split():
            words.setdefault(w, 0)
    vocab = {w: i for i, w in enumerate(["<unk>", "<|endoftext|>", *words])}
    with open("vocab.json", "w") as f:
        json.dump(vocab, f)
    got = run("encode", "-q", "--tokenizer", "vocab.json", text).decode().split("\n")[:-1]
    space = " ".join(chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000 and chr(c) != "\n")
    odd = run("encode", "-q", "--tokenizer", "vocab.json", "--input-format", "text", input=(space + "\n").encode()).decode()
    return (got == [" ".join(str(vocab.get(w, 0)) for w in x.split()) for x in docs] and
            len(odd.split()) == len(space.split()))


# ---- the report --------------------------------------------------------------------------------------

def cases():
    for text in texts():
        for name, options, preset in recipes(text):
            name = f"{text}_{name}"
            if shutil.which("spm_train"):
                yield f"{name}: model and list as spm_train's", train_both(name, f"{text}.txt", options, preset)
            else:
                run("train", "-q", "--overwrite", "--input", f"{text}.txt", "--model_prefix", name,
                    *[f"--{k}={v}" for k, v in options.items()])
            sp = sentencepiece.SentencePieceProcessor(model_file=f"{name}.model")
            yield f"{name}: ids of lines", same_ids(sp, f"{name}.model", f"{text}.txt")
            yield f"{name}: ids of JSONL", same_ids(sp, f"{name}.model", f"{text}.jsonl")
            yield f"{name}: ids of odd texts", same_documents(sp, f"{name}.model", ODD)
            if options.get("model_type", "unigram") == "unigram":
                yield f"{name}: ids of a long text", same_long(sp, f"{name}.model", f"{text}.txt")
            yield f"{name}: decoded texts", same_texts(sp, f"{name}.model", ODD + lines_of(f"{text}.txt")[:200])
            yield f"{name}: Megatron's wrapper", same_wrapper(sp, f"{name}.model")
        yield f"{text}: whole words", same_words(f"{text}.txt")
    if DATA:
        model = f"{DATA}/tokenizers/mistral-7b/tokenizer.model"
        sp = sentencepiece.SentencePieceProcessor(model_file=model)
        yield "mistral-7b: ids of odd texts", same_documents(sp, model, ODD)
        yield "mistral-7b: ids of lines", same_ids(sp, model, "botchan.txt")
        yield "mistral-7b: decoded texts", same_texts(sp, model, ODD)


def main():
    n = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, good in cases():
            n += 1
            failed += not good
            print(f"{'' if good else 'not '}ok {n} - {name}", flush=True)
        os.chdir("/")
    print(f"1..{n}\n# {n - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
