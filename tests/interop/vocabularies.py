#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small vocabulary for each pipeline whose own file cannot be had, with Hugging Face's tokenizers: what comes
before the model, and so the ways to be wrong, does not depend on the vocabulary.

    vocabularies.py FOLDER TEXT...

Writes FOLDER/NAME/tokenizer.json (and vocab.txt for BERT's) for the names of PIPELINES, those that are there stay. WEFT_VOCAB sets the size
(30000), WEFT_VOCAB_BYTES how much of each text is read (12000000)."""
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers as N, pre_tokenizers as P, processors, trainers

from testdata import common_letters

SIZE = int(os.environ.get("WEFT_VOCAB", "30000"))
UNIGRAM = max(SIZE // 3, min(SIZE, 2000))
BYTES = int(os.environ.get("WEFT_VOCAB_BYTES", "12000000"))
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
PATTERNS = {
    "llama3": rf"{CONTRACTION}|{LEAD}\p{{L}}+|\p{{N}}{{1,3}}|{SIGNS}|{END}",
    "qwen2": rf"{CONTRACTION}|{LEAD}\p{{L}}+|\p{{N}}|{SIGNS}|{END}",
    "qwen35": rf"{CONTRACTION}|{LEAD}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{END}",
    "o200k": "|".join([rf"{LEAD}{UPPER}*{LOWER}+{CONTRACTION}?", rf"{LEAD}{UPPER}+{LOWER}*{CONTRACTION}?",
                       r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", END]),
    "tekken": "|".join([rf"{LEAD}{UPPER}*{LOWER}+", rf"{LEAD}{UPPER}+{LOWER}*", r"\p{N}",
                        r" ?[^\s\p{L}\p{N}]+[\r\n/]*", END]),
}
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{END}"]


def byte_level(splits, **more):
    """Splits by regex, then bytes, as Llama-3, Qwen and the like have it."""
    t = Tokenizer(models.BPE(**more))
    t.pre_tokenizer = P.Sequence([*(P.Split(Regex(s), "isolated") for s in splits),
                                  P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False,
                                  special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return t, trainer


def llama3():
    t, trainer = byte_level([PATTERNS["llama3"]], ignore_merges=True)
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t, trainer


def qwen2():
    t, trainer = byte_level([PATTERNS["qwen2"]])
    t.normalizer = N.NFC()
    return t, trainer


def qwen35():
    t, trainer = byte_level([PATTERNS["qwen35"]])
    t.normalizer = N.NFC()
    return t, trainer


def gpt2_prefix():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    return t, byte_level([])[1]


def bert(lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = N.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=specials, show_progress=False,
                                        limit_alphabet=SIZE // 2)
    return t, trainer


def spm_bpe():
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.pre_tokenizer = P.Split(Regex("(?<=[^\u2581])(?=\u2581)"), "isolated")  # for training only
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    return t, trainers.BpeTrainer(vocab_size=SIZE, special_tokens=specials, show_progress=False, limit_alphabet=SIZE // 2)


def unigram():
    t = Tokenizer(models.Unigram())
    t.normalizer = N.Sequence([N.NFKC(), N.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = P.Metaspace()
    t.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=UNIGRAM, unk_token="<unk>", show_progress=False,
                                      special_tokens=["<pad>", "</s>", "<unk>"])
    return t, trainer


def words():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()])
    t.pre_tokenizer = P.Sequence([P.Whitespace(), P.Digits(individual_digits=True)])
    return t, trainers.WordLevelTrainer(vocab_size=SIZE, special_tokens=["[UNK]"], show_progress=False)


PIPELINES = {
    "llama3": llama3, "qwen2": qwen2, "qwen35": qwen35, "gpt2-prefix": gpt2_prefix,
    "o200k": lambda: byte_level([PATTERNS["o200k"]]), "tekken": lambda: byte_level([PATTERNS["tekken"]]),
    "deepseek3": lambda: byte_level(DEEPSEEK), "bert-uncased": lambda: bert(True), "bert-cased": lambda: bert(False),
    "spm-bpe": spm_bpe, "unigram": unigram, "words": words,
}


def lines(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="ignore", newline="\n") as f:
            yield from f.read(BYTES).splitlines(keepends=True)


def main(folder, *texts):
    for name, make in PIPELINES.items():
        path = f"{folder}/{name}/tokenizer.json"
        if os.path.exists(path):
            continue
        t, trainer = make()
        t.train_from_iterator(common_letters(lines(texts), UNIGRAM // 2) if name == "unigram" else lines(texts), trainer)
        if name == "spm-bpe":
            t.pre_tokenizer = None
        if name not in ("spm-bpe", "unigram", "words"):
            t.add_tokens([AddedToken("<|added|>", normalized=False), AddedToken("<|both|>", lstrip=True, rstrip=True)])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        t.save(path + ".new", pretty=False)
        os.replace(path + ".new", path)
        if name.startswith("bert"):
            t.model.save(os.path.dirname(path))  # vocab.txt
        print(f"{path}: {t.get_vocab_size()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
