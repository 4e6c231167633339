#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files that convert writes, read back by PyPI's gguf 0.19.0: names by its own table, keys, values in every type (Q8_0 bit-equal to its
quantizer), rows of queries and keys as llama.cpp's converter turns them, and the tokenizer. Usage: gguf.py CONVERT GOLDEN [NAME...]"""
import json
import os
import shutil
import sys

GOLDEN, WANTED = sys.argv[2], sys.argv[3:]
from hf446 import beside, run_cases, torch, transformers

sys.path.insert(0, f"{sys.prefix}/gguf")
try:
    import gguf
except ImportError as e:
    print(f"1..1\nok 1 - gguf 0.19.0 # SKIP {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)
import numpy as np
hf = beside("hf")
WIDE = dict(hf.SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=4)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
hf.MODELS |= {
    "wide": ("Llama", WIDE, "float32", None),
    "wide-bf16": ("Llama", dict(WIDE, tie_word_embeddings=True, rope_theta=5e5, rope_scaling=LLAMA3), "bfloat16", None),
    "wide-qwen2": ("Qwen2", WIDE, "float16", None),
    "wide-gpt2": ("GPT2", dict(hf.GPT2, n_embd=64, n_head=4), "float32", None),
}
CASES = [("llama", "auto"), ("llama", "q8_0"), ("llama-3.2", "f16"), ("llama-bias", "bf16"), ("mistral", "f32"), ("qwen2", "auto"), ("qwen2-tied", "f16"),
         ("gpt2", "auto"), ("gpt2", "bf16"), ("wide", "q8_0"), ("wide-bf16", "q8_0"), ("wide-qwen2", "q8_0"), ("wide-gpt2", "q8_0")]
ARCH = {"Llama": "llama", "Mistral": "llama", "Qwen2": "qwen2", "GPT2": "gpt2"}
TYPE = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16,
        "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPE = {"f32": 0, "f16": 1, "q8_0": 7, "bf16": 32}


def exported(d, src, *options, code=0, words=()):
    ckpt, out = os.path.join(d, "ckpt"), os.path.join(d, "out.gguf")
    if not os.path.exists(ckpt):
        hf.run("import", "-q", src, ckpt)
    r = hf.run("export", "-q", "--to", "gguf", "--overwrite", *options, ckpt, out, code=code, words=words)
    assert not [x for x in os.listdir(d) if "tmp" in x], os.listdir(d)
    return None if code else gguf.GGUFReader(out)


def value(reader, key):
    return reader.fields[key].contents() if key in reader.fields else None


def turned(w, heads):
    """Rows as llama.cpp's converter has them."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def expected(state, config, arch):
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), config.num_hidden_layers)
    out = {}
    for k, t in state.items():
        if k == "lm_head.weight" and config.tie_word_embeddings or k.endswith((".attn.bias", ".attn.masked_bias")):
            continue
        w = t.detach().float().numpy()
        if arch == "llama" and ("q_proj" in k or "k_proj" in k):
            w = turned(w, config.num_attention_heads if "q_proj" in k else config.num_key_value_heads)
        if arch == "gpt2" and k.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            w = w.T
        name = names.get_name(k, try_suffixes=(".weight", ".bias"))
        assert name, k
        out[name] = np.ascontiguousarray(w)
    return out


def same_values(name, outtype, d):
    family = hf.MODELS[name][0]
    src = os.path.join(d, "src")
    model = hf.make(name, src)
    config, arch = transformers.AutoConfig.from_pretrained(src), ARCH[family]
    reader = exported(d, src, "--outtype", outtype)
    real = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}[hf.MODELS[name][2]] if outtype == "auto" else outtype
    want = expected(model.state_dict(), config, arch)
    found = {t.name: t for t in reader.tensors}
    extra = {"rope_freqs.weight"} if getattr(config, "rope_scaling", None) else set()
    assert set(found) == set(want) | extra, (set(found) ^ set(want))
    narrow = 0
    for k, w in want.items():
        t, kind = found[k], TYPE[real]
        if w.ndim == 1 or k == "position_embd.weight":
            kind = TYPE["f32"]
        elif kind == TYPE["q8_0"] and w.shape[1] % 32:
            kind, narrow = TYPE["f16"], narrow + 1
        assert t.tensor_type == kind and list(t.shape) == list(w.shape)[::-1], (k, t)
        assert t.data_offset % 32 == 0
        assert np.array_equal(np.ascontiguousarray(t.data).view(np.uint8).ravel(), gguf.quants.quantize(w, kind).view(np.uint8).ravel()), k
    if extra:
        base, dim, s = config.rope_theta, config.hidden_size // config.num_attention_heads, config.rope_scaling
        freq = 1.0 / (base ** (np.arange(0, dim, 2) / dim))
        wave, old = 2 * np.pi / freq, s["original_max_position_embeddings"]
        share = (old / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
        factor = np.where(wave < old / s["high_freq_factor"], 1, np.where(wave > old / s["low_freq_factor"], s["factor"],
                                                                         1 / ((1 - share) / s["factor"] + share)))
        assert np.allclose(found["rope_freqs.weight"].data, factor, rtol=1e-6), (found["rope_freqs.weight"].data, factor)
    keys = {"general.architecture": arch, "general.type": "model", "general.name": "out", "general.file_type": FILE_TYPE[real],
            "general.quantization_version": 2, f"{arch}.block_count": config.num_hidden_layers, f"{arch}.context_length": config.max_position_embeddings,
            f"{arch}.embedding_length": config.hidden_size, f"{arch}.attention.head_count": config.num_attention_heads,
            f"{arch}.feed_forward_length": config.intermediate_size if arch != "gpt2" else 4 * config.n_embd, "tokenizer.ggml.model": "none"}
    keys[f"{arch}.vocab_size"] = config.vocab_size
    if arch == "gpt2":
        keys["gpt2.attention.layer_norm_epsilon"] = np.float32(config.layer_norm_epsilon)
    else:
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        keys |= {f"{arch}.attention.head_count_kv": config.num_key_value_heads, f"{arch}.rope.dimension_count": dim,
                 f"{arch}.attention.key_length": dim, f"{arch}.attention.value_length": dim, f"{arch}.rope.freq_base": np.float32(config.rope_theta),
                 f"{arch}.attention.layer_norm_rms_epsilon": np.float32(config.rms_norm_eps)}
    for k, v in keys.items():
        assert value(reader, k) == v, (k, value(reader, k), v)
    assert {k for k in reader.fields if not k.startswith("GGUF.")} == set(keys), set(reader.fields) ^ set(keys)
    shown = hf.run("inspect", "--tensors", os.path.join(d, "out.gguf"), words=["GGUF", f"general.architecture: {arch}"]).stdout.splitlines()
    for t in reader.tensors:
        assert f"{t.tensor_type.name:4} {t.name} {list(map(int, t.shape))[::-1]}" in shown, (t.name, shown)
    assert outtype != "q8_0" or (narrow > 0) == (name == "llama"), narrow


def with_tokenizer(d, *files, rows, **config):
    src = os.path.join(d, "src")
    shutil.rmtree(src, ignore_errors=True)
    shutil.rmtree(os.path.join(d, "ckpt"), ignore_errors=True)
    hf.MODELS["voc"] = ("Llama", dict(hf.SMALL, vocab_size=rows, bos_token_id=None, eos_token_id=None, **config), "float32", None)
    hf.make("voc", src)
    for file, name in files:
        shutil.copy(os.path.join(GOLDEN, file), os.path.join(src, name))
    return src


def byte_level(d):
    with open(os.path.join(GOLDEN, "bytes-tokenizer.json"), encoding="utf-8") as f:
        j = json.load(f)
    vocab = {v: k for k, v in j["model"]["vocab"].items()}
    vocab |= {t["id"]: t["content"] for t in j["added_tokens"]}
    rows = max(vocab) + 4
    src = with_tokenizer(d, ("bytes-tokenizer.json", "tokenizer.json"), rows=rows)
    with open(os.path.join(src, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"add_bos_token": False, "chat_template": "{{ 'x' }}"}, f)
    reader = exported(d, src)
    kinds = {t["id"]: 3 if t["special"] else 4 for t in j["added_tokens"]}
    assert value(reader, "tokenizer.ggml.model") == "gpt2"
    assert value(reader, "tokenizer.ggml.pre") in ("gpt-2", "default", "llama-bpe", "qwen2"), value(reader, "tokenizer.ggml.pre")
    assert value(reader, "tokenizer.ggml.tokens") == [vocab.get(i, f"[PAD{i}]") for i in range(rows)]
    assert value(reader, "tokenizer.ggml.token_type") == [kinds.get(i, 1) if i in vocab else 5 for i in range(rows)]
    merges = [m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]]
    assert value(reader, "tokenizer.ggml.merges") == merges
    assert value(reader, "tokenizer.ggml.add_bos_token") is False and value(reader, "tokenizer.chat_template") == "{{ 'x' }}"
    split = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"},
         "behavior": "Isolated", "invert": False}, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
    for pre, name in [({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "gpt-2"), (split, "llama-bpe")]:
        shutil.rmtree(os.path.join(d, "ckpt"))
        with open(os.path.join(src, "tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(dict(j, pre_tokenizer=pre), f)
        assert value(exported(d, src), "tokenizer.ggml.pre") == name, name
    src = with_tokenizer(d, ("bytes-tokenizer.json", "tokenizer.json"), rows=max(vocab))
    exported(d, src, code=2, words=["entries", "rows"])
    src = with_tokenizer(d, ("words-tokenizer.json", "tokenizer.json"), rows=5000)
    exported(d, src, code=2, words=["byte-level BPE"])


def ids_of_config(d):
    """Special tokens that no file of the tokenizer names are those of config.json; a template says whether texts begin and end with them."""
    with open(os.path.join(GOLDEN, "bytes-tokenizer.json"), encoding="utf-8") as f:
        j = json.load(f)
    rows = 1 + max([*j["model"]["vocab"].values(), *(t["id"] for t in j["added_tokens"])])
    plain = [t for t, i in j["model"]["vocab"].items() if i in (7, 8, 9)]
    assert len(plain) == 3 and not j.get("post_processor") or j["post_processor"]["type"] == "ByteLevel", j["post_processor"]
    get = lambda reader: [value(reader, f"tokenizer.ggml.{k}") for k in ("bos_token_id", "eos_token_id", "padding_token_id", "add_bos_token", "add_eos_token")]

    def case(tokenizer, want, **files):
        src = with_tokenizer(d, rows=rows)
        hf.edit(src, bos_token_id=7, eos_token_id=[9, 8], pad_token_id=3)
        for name, content in dict(files, **{"tokenizer.json": tokenizer}).items():
            with open(os.path.join(src, name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        assert get(exported(d, src)) == want, get(exported(d, src))

    case(j, [7, 9, 3, False, False])
    named = {"bos_token": [t for t, i in j["model"]["vocab"].items() if i == 8][0]}
    case(j, [8, 9, 3, False, False], **{"special_tokens_map.json": named})
    case(j, [8, 9, 3, True, False], **{"tokenizer_config.json": dict(named, add_bos_token=True)})
    piece = {i: t for t, i in j["model"]["vocab"].items()}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": piece[7], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                                         {"SpecialToken": {"id": piece[9], "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {piece[i]: {"id": piece[i], "ids": [i], "tokens": [piece[i]]} for i in (7, 9)}}
    case(dict(j, post_processor=template), [7, 9, 3, True, True])
    src = with_tokenizer(d, rows=rows)
    for normalizer, code, words in [({"type": "NFC"}, 0, ["does not bring texts into NFC"]), ({"type": "Lowercase"}, 2, ["normalizer"]),
                                    ({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "x"}]}, 2, ["normalizer"])]:
        shutil.rmtree(os.path.join(d, "ckpt"), ignore_errors=True)
        with open(os.path.join(src, "tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(dict(j, normalizer=normalizer), f)
        exported(d, src, code=code, words=words)


def sentencepiece_models(d):
    import sentencepiece
    for file, kind in [("bpe.model", "llama"), ("unigram.model", "t5")]:
        p = sentencepiece.SentencePieceProcessor(model_file=os.path.join(GOLDEN, file))
        n = p.vocab_size()
        src = with_tokenizer(d, (file, "tokenizer.model"), rows=n + 9)
        reader = exported(d, src)
        assert value(reader, "tokenizer.ggml.model") == kind
        types = [2 if p.is_unknown(i) else 3 if p.is_control(i) else 5 if p.is_unused(i) else 6 if p.is_byte(i) else 1 for i in range(n)]
        tokens = value(reader, "tokenizer.ggml.tokens")
        assert tokens[:n] == [p.id_to_piece(i) for i in range(n)] and len(tokens) == n + 9
        assert np.array_equal(np.float32(value(reader, "tokenizer.ggml.scores")[:n]), np.float32([p.get_score(i) for i in range(n)]))
        ours = value(reader, "tokenizer.ggml.token_type")
        assert [1 if x == 4 else x for x in ours[:n]] == types and set(ours[n:]) <= {3, 5}, ours
        assert all(t.startswith("[PAD") == (ours[n + i] == 5) for i, t in enumerate(tokens[n:])), tokens[n:]
        assert value(reader, "tokenizer.ggml.unknown_token_id") == p.unk_id()
        assert isinstance(value(reader, "tokenizer.ggml.add_space_prefix"), bool)


def refused(d):
    src, ckpt, out = (os.path.join(d, x) for x in ("src", "ckpt", "x.gguf"))
    hf.make("phi3", src)
    exported(d, src, code=2, words=["phi3", "gpt2, llama, mistral and qwen2"])
    shutil.rmtree(ckpt)
    shutil.rmtree(src)
    hf.make("gpt2-untied-gelu", src)
    exported(d, src, code=2, words=["GELU"])
    shutil.rmtree(ckpt)
    shutil.rmtree(src)
    for name, word in (("mistral-window", "window"), ("gpt2-unscaled", "query scale"), ("gpt2-relu", "another activation"),
                       ("gpt2-scaled-by-layer", "the layer's number")):
        hf.make(name, src)
        exported(d, src, code=2, words=[word])
        shutil.rmtree(ckpt)
        shutil.rmtree(src)
    model = hf.make("wide", src)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[5, 7] = float("inf")
    model.save_pretrained(src)
    exported(d, src, "--outtype", "q8_0", code=3, words=["blk.1.ffn_up.weight", "row 5", "column 7"])
    exported(d, src, "--outtype", "f16")
    run = lambda *args, **kw: hf.run("export", *args, ckpt, out, **kw)
    run("--to", "gguf", "--dry-run", words=["to write", "disk free"])
    assert not os.path.exists(out)
    run("--to", "gguf", "--dtype", "float16", code=2, words=["--dtype", "gguf"])
    run("--outtype", "f16", code=2, words=["--to gguf"])
    run("--to", "gguf")
    run("--to", "gguf", code=2, words=["exists"])
    hf.run("export", "--to", "gguf", ckpt, d, code=2, words=["is a folder"])


def main():
    cases = [(f"{n}-{t}", lambda d, n=n, t=t: same_values(n, t, d)) for n, t in CASES]
    cases += [(f.__name__, f) for f in (byte_level, ids_of_config, sentencepiece_models, refused)]
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    return run_cases(cases)


if __name__ == "__main__":
    sys.exit(main())
