# SPDX-License-Identifier: Apache-2.0
"""The reference libraries of tok_hf.py, each behind the same few calls: name, kind (our --tokenizer-type), encode,
decode (to bytes), added (strings of added tokens), known (ids that may be decoded)."""
import json
import os

from testdata import CL100K, ranks_are_cl100k

READY, WHY = True, ""
try:
    import sentencepiece
    import tiktoken
    import tokenizers
    from tiktoken.load import load_tiktoken_bpe
except ImportError as e:
    READY, WHY = False, f"not installed: {e}"

CL100K_SPECIALS = {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260,
                   "<|endofprompt|>": 100276}


class HuggingFace:
    kind = "auto"

    def __init__(self, path, mode):
        self.t = tokenizers.Tokenizer.from_file(path)
        self.t.encode_special_tokens = mode == "text"
        self.name = f"tokenizers {tokenizers.__version__}"
        with open(path, encoding="utf-8") as f:
            self.tokens = [t["content"] for t in json.load(f).get("added_tokens") or []]

    def encode(self, texts):
        return [e.ids for e in self.t.encode_batch_fast(texts)]  # with the template

    def decode(self, lists):
        return [t.encode() for t in self.t.decode_batch(lists, skip_special_tokens=False)]

    def added(self):
        return self.tokens

    def known(self, size):
        return sorted(self.t.get_vocab(with_added_tokens=True).values())


class Gpt2Files(HuggingFace):
    """vocab.json and merges.txt: the tokenizer.json beside them is the same tokenizer."""
    kind = "GPT2BPETokenizer"

    def __init__(self, path, mode):
        super().__init__(beside(path), mode)


class BertFile(Gpt2Files):
    """vocab.txt, likewise; Megatron's wrappers put nothing round a text."""

    def __init__(self, path, mode):
        super().__init__(path, mode)
        with open(beside(path), encoding="utf-8") as f:
            spec = json.load(f)
        self.kind = "BertWordPieceLowerCase" if spec["normalizer"]["lowercase"] else "BertWordPieceCase"
        self.ids = sorted(spec["model"]["vocab"].values())  # what was added later is not in the file
        spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] in spec["model"]["vocab"]]
        self.t = tokenizers.Tokenizer.from_str(json.dumps(spec))
        self.t.encode_special_tokens = True
        self.tokens = [t["content"] for t in spec["added_tokens"]]

    def known(self, size):
        return self.ids

    def encode(self, texts):
        return [e.ids for e in self.t.encode_batch_fast(texts, add_special_tokens=False)]


class Tiktoken:
    def __init__(self, path, mode):
        self.mode, published = mode, ranks_are_cl100k(path)
        self.kind = "auto" if published else "tiktoken:cl100k"
        self.special = CL100K_SPECIALS if published else {}
        self.ranks = load_tiktoken_bpe(path)
        self.t = tiktoken.Encoding("t", pat_str=CL100K, mergeable_ranks=self.ranks, special_tokens=self.special)
        self.name = f"tiktoken {tiktoken.__version__}"

    def encode(self, texts):
        if self.mode == "text":
            return [self.t.encode_ordinary(t) for t in texts]
        return [self.t.encode(t, allowed_special="all") for t in texts]

    def decode(self, lists):
        return [self.t.decode(x).encode() for x in lists]

    def added(self):
        return list(self.special)

    def known(self, size):
        return sorted(self.ranks.values()) + list(self.special.values())


class SentencePiece:
    kind = "GPTSentencePieceTokenizer"

    def __init__(self, path, mode):
        self.t = sentencepiece.SentencePieceProcessor(model_file=path)
        self.name = f"sentencepiece {sentencepiece.__version__}"

    def encode(self, texts):
        return self.t.encode(texts)

    def decode(self, lists):
        return [self.t.decode(x).encode() for x in lists]

    def added(self):
        return ["<s>", "</s>", "<unk>", "<0x41>", "\u2581"]

    def known(self, size):
        return list(range(len(self.t)))


def beside(path):
    return os.path.join(os.path.dirname(path), "tokenizer.json")


def reference(path, mode):
    """None where the library has no such mode for the file."""
    if path.endswith(".tiktoken"):
        return Tiktoken(path, mode) if os.path.basename(path).startswith("cl100k") else None
    if path.endswith(".model"):
        return SentencePiece(path, mode) if mode == "text" else None
    if path.endswith("vocab.json"):
        return Gpt2Files(path, mode) if mode == "text" else None
    if path.endswith("vocab.txt"):
        return BertFile(path, mode) if mode == "text" else None
    return HuggingFace(path, mode)
