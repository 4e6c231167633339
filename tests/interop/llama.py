#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files run by llama.cpp (llama_build.sh makes it from PyPI's source package llama-cpp-python 0.3.36): logits with a cache of F32 beside those of
transformers 4.46, greedy ids, the bytes of its own quantization, ids of 1,000 texts. GPT-2's logits are those of a build that calculates GELU instead of
reading it from a table of halves. Usage: llama.py CONVERT GOLDEN BUILD [NAME...]; BUILD: the folder that llama_build.sh filled"""
import json
import os
import random
import struct
import subprocess
import sys
import unicodedata

GOLDEN, BUILD, WANTED = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), sys.argv[4:]
if not os.path.exists(os.path.join(BUILD, "llama_run")):
    print(f"1..1\nok 1 - llama.cpp # SKIP {BUILD} has no llama_run: tests/run.sh --full builds it")
    sys.exit(1 if os.environ.get("WEFT_CI") and os.environ.get("WEFT_FULL") else 0)
sys.argv[3:] = []
from hf446 import beside, run_cases, torch, transformers

ours = beside("gguf")
hf, gguf, np = ours.hf, ours.gguf, ours.np
DATA = os.environ.get("WEFT_TEST_DATA")
FAMILIES = ("llama", "llama-3.2", "llama-bias", "mistral", "qwen2", "qwen2-tied", "gpt2", "wide", "wide-bf16", "wide-qwen2", "wide-gpt2")
IDS = [1, 5, 36, 0, 7, 30, 2, 2, 9, 11, 4, 3]


def run(file, *args, lib="lib", data=b""):
    at = os.path.join(BUILD, lib)
    env = dict(os.environ, LD_LIBRARY_PATH=at + (":" + os.path.join(BUILD, "lib") if lib != "lib" else ""))
    r = subprocess.run([os.path.join(BUILD, "llama_run"), file, *map(str, args)], input=data, capture_output=True, env=env, check=False)
    assert r.returncode == 0, (args[:1], r.returncode, r.stderr[-600:])
    return r.stdout


def exported(d, src, outtype, words=()):
    ckpt, out = os.path.join(d, "ckpt"), os.path.join(d, outtype + ".gguf")
    if not os.path.exists(ckpt):
        hf.run("import", "-q", src, ckpt)
    hf.run("export", "-q", "--to", "gguf", "--outtype", outtype, ckpt, out, words=words)
    return out


def family(name, d):
    src = os.path.join(d, "src")
    hf.make(name, src)
    model = hf.load(src).float().eval()
    ids = torch.tensor([IDS])
    with torch.no_grad():
        want = model(ids, use_cache=False).logits[0].numpy()
    gpt2 = hf.MODELS[name][0] == "GPT2"
    found = np.frombuffer(run(exported(d, src, "f32"), "logits", *IDS, lib="lib-gelu" if gpt2 else "lib"), "<f4").reshape(want.shape)
    off, most = np.abs(found - want).max(), np.abs(want).max()
    print(f"# {name}: F32 within {off:.1e}, logits up to {most:.1f}")
    assert off < 1e-4 * max(1, most / 10), (off, most)
    more = 10 if not gpt2 else 16 - len(IDS)
    next_ids = ids
    with torch.no_grad():
        for _ in range(more):
            next_ids = torch.cat([next_ids, model(next_ids, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    greedy = [int(x) for x in run(os.path.join(d, "f32.gguf"), "greedy", more, *IDS).split()]
    assert greedy == next_ids[0, len(IDS):].tolist(), (greedy, next_ids)
    spread = want.std()
    for outtype in ("f16", "bf16", "q8_0"):  # products of these are rounded there
        found = np.frombuffer(run(exported(d, src, outtype), "logits", *IDS), "<f4").reshape(want.shape)
        assert np.abs(found - want).max() < 0.12 * spread, (outtype, np.abs(found - want).max(), spread)
    quantized = 0
    config, arch = transformers.AutoConfig.from_pretrained(src), ours.ARCH[hf.MODELS[name][0]]
    rows = ours.expected(model.state_dict(), config, arch)
    for t in gguf.GGUFReader(os.path.join(d, "q8_0.gguf")).tensors:
        if t.tensor_type == gguf.GGMLQuantizationType.Q8_0:
            w = rows[t.name].astype("<f4")
            assert run("-", "quantize", w.shape[1], data=w.tobytes()) == np.ascontiguousarray(t.data).tobytes(), t.name
            quantized += 1
    assert quantized > 0 or not name.startswith("wide"), quantized


PIECES = ["the ", "The", "hello", " world", "\n", "\n\n", "  ", "    ", "\t", "1", "23", "4567", " 89", "'s", "'LL", "don't ", "é", "ü", "ß", "日本", "語", "吾輩は", "ねこ", "。", "、",
          "🙂", "👩‍👩‍👧", "Ω", "ж", "한국", "ab", "XY", "zZ", "_", "-", "--", "...", "!?", "(", ")", "{}", ";", "#", "@x", "http://a.b/c?d=e", "\u00a0", "\u200d", "e\u0301", "\r\n", "$5.00", "x=1"]


def texts(seed=5):
    r = random.Random(seed)
    out = ["".join(r.choice(PIECES) for _ in range(r.randint(1, 24))) for _ in range(800)]
    lines = []
    if DATA:
        for name in ("botchan.txt", "wagahaiwa_nekodearu.txt"):
            with open(os.path.join(DATA, "text", name), encoding="utf-8") as f:
                lines += [x[:400] for x in f.read().split("\n") if x]
    else:
        with open(os.path.join(GOLDEN, "text.txt"), encoding="utf-8") as f:
            lines = [x for x in f.read().split("\n") if x]
    return out + [r.choice(lines) for _ in range(200)]


def ids_of(file, all_texts):
    data = b"".join(struct.pack("<i", len(x)) + x for x in (t.encode() for t in all_texts))
    found, at, out = np.frombuffer(run(file, "ids", data=data), "<i4"), 0, []
    for _ in all_texts:
        out.append(found[at + 1:at + 1 + found[at]].tolist())
        at += 1 + found[at]
    assert at == len(found)
    return out


def same_ids(file, encode, all_texts):
    all_texts = [x for x in all_texts if x.strip()]  # llama.cpp puts no space before a text that is nothing but spaces
    found = ids_of(file, all_texts)
    wrong = [(t, a, encode(t)) for t, a in zip(all_texts, found) if a != encode(t)]
    assert not wrong, (len(wrong), len(all_texts), wrong[:2])


def byte_level(path, d, pre=None, template=False):
    import tokenizers
    with open(path, encoding="utf-8") as f:
        j = json.load(f)
    if pre:
        j["pre_tokenizer"] = pre
    if template:
        ends = [t for t, i in j["model"]["vocab"].items() if i in (7, 9)]
        single = [{"SpecialToken": {"id": ends[0], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": ends[1], "type_id": 0}}]
        j["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {x: {"id": x, "ids": [j["model"]["vocab"][x]], "tokens": [x]} for x in ends}}
    rows = 1 + max([*j["model"]["vocab"].values(), *(t["id"] for t in j["added_tokens"])])
    src = ours.with_tokenizer(d, rows=rows)
    with open(os.path.join(src, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(j, f)
    if template:
        hf.edit(src, bos_token_id=j["model"]["vocab"][ends[0]], eos_token_id=j["model"]["vocab"][ends[1]])
    t = tokenizers.Tokenizer.from_str(json.dumps(j))
    nfc = t.normalizer is not None  # which llama.cpp does not have, and the export says so
    same_ids(exported(d, src, "auto"), lambda x: t.encode(x).ids, [unicodedata.normalize("NFC", x) if nfc else x for x in texts()])


def sentencepiece_model(path, d, unigram=False):
    import sentencepiece
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    src = ours.with_tokenizer(d, (path, "tokenizer.model"), rows=p.vocab_size())
    with open(os.path.join(src, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"add_bos_token": False, "add_eos_token": False}, f)
    fallback = any(p.is_byte(i) for i in range(p.vocab_size()))
    words = [] if fallback or unigram else ["no byte pieces"]  # llama.cpp aborts at a character that such a model lacks
    all_texts = texts()
    if words:
        r = random.Random(7)
        known = [p.id_to_piece(i).replace("\u2581", " ") for i in range(p.vocab_size()) if not p.is_control(i) and not p.is_unknown(i)]
        all_texts += ["".join(r.choice(known) for _ in range(r.randint(1, 30))) for _ in range(1000)]
        all_texts = [" ".join(x.split()) for x in all_texts if p.unk_id() not in p.encode(x)]  # extra spaces stay there, and a note says so
        all_texts = [x for x in all_texts if x]
    assert len(all_texts) >= 990, len(all_texts)
    same_ids(exported(d, src, "auto", words), p.encode, all_texts)


def trained(d, kind, words, **options):
    """A model with the normalization that SentencePiece takes unless it is told otherwise, or with none."""
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(input=os.path.join(GOLDEN, "text.txt"), model_prefix=os.path.join(d, "sp"), model_type=kind, vocab_size=420, hard_vocab_limit=False, minloglevel=2, **options)
    path, src = os.path.join(d, "sp.model"), os.path.join(d, "src")
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    ours.with_tokenizer(d, (path, "tokenizer.model"), rows=p.vocab_size())
    with open(os.path.join(src, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"add_bos_token": False, "add_eos_token": False}, f)
    file = exported(d, src, "auto", words)
    if not words:
        same_ids(file, p.encode, texts())


SPLITS = {
    "gpt-2": None,
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def split(pattern):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": pattern is None}
    return level if pattern is None else {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, level]}


def tokenizers_of_cases():
    golden = os.path.join(GOLDEN, "bytes-tokenizer.json")
    for name, pattern in SPLITS.items():
        yield f"ids: golden byte-level BPE, {name}", lambda d, p=pattern: byte_level(golden, d, split(p), )
    yield "ids: golden byte-level BPE, a template", lambda d: byte_level(golden, d, split(None), template=True)
    for name in ("bpe.model", "unigram.model"):
        yield f"ids: golden {name}", lambda d, n=name: sentencepiece_model(os.path.join(GOLDEN, n), d, n[0] == "u")
    plain = dict(normalization_rule_name="identity", remove_extra_whitespaces=False)
    yield "ids: unigram, nmt_nfkc", lambda d: trained(d, "unigram", [], byte_fallback=False)
    yield "ids: unigram, plain", lambda d: trained(d, "unigram", [], byte_fallback=False, **plain)
    yield "ids: BPE, plain", lambda d: trained(d, "bpe", [], byte_fallback=True, **plain)
    yield "notes: unigram, bytes", lambda d: trained(d, "unigram", ["for unknown, not for its bytes"], byte_fallback=True)
    yield "notes: BPE, nmt_nfkc", lambda d: trained(d, "bpe", ["rules for characters are not applied and extra spaces not removed"])
    yield "notes: BPE, identity", lambda d: trained(d, "bpe", ["extra spaces are not removed"], normalization_rule_name="identity")
    for name in ("gpt2", "gpt-neox") if DATA else ():
        path = os.path.join(DATA, "tokenizers", name, "tokenizer.json")
        if os.path.exists(path):
            yield f"ids: {name}", lambda d, p=path: byte_level(p, d)
    for name in ("mistral-7b",) if DATA else ():
        path = os.path.join(DATA, "tokenizers", name, "tokenizer.model")
        if os.path.exists(path):
            yield f"ids: {name}", lambda d, p=path: sentencepiece_model(p, d)


def main():
    cases = [(n, lambda d, n=n: family(n, d)) for n in FAMILIES] + list(tokenizers_of_cases())
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    return run_cases(cases)


if __name__ == "__main__":
    sys.exit(main())
