#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Llama in Meta's format (params.json, consolidated.NN.pth): cut for 1 and 2 ranks by the rules of transformers' own converter,
turned round; the import must hold the tensors of the model of transformers that it was made of. Usage: hf_meta.py CONVERT [NAME...]"""
import json
import os
import shutil
import sys

WANTED = sys.argv[2:]
from hf446 import beside, run_cases, torch, transformers

hf = beside("hf")
BASE = dict(hf.SMALL, vocab_size=38, head_dim=4)
PARAMS = dict(dim=24, n_layers=3, n_heads=6, n_kv_heads=2, multiple_of=4, ffn_dim_multiplier=0.3, norm_eps=1e-6)
# name: (configuration, params.json, files, embedding cut by, output.weight is there)
MODELS = {
    "llama-2": (dict(BASE, max_position_embeddings=4096), dict(PARAMS, vocab_size=-1), 1, 1, True),
    "llama-2-cut": (dict(BASE, max_position_embeddings=4096), dict(PARAMS, vocab_size=-1), 2, 1, True),
    "llama-3-cut": (dict(BASE, max_position_embeddings=8192, rope_theta=5e5), dict(PARAMS, vocab_size=38, rope_theta=500000.0), 2, 0, True),
    "llama-3.1": (dict(BASE, max_position_embeddings=131072, rope_theta=5e5, rope_scaling=dict(hf.LLAMA3, original_max_position_embeddings=8192)),
                  dict(PARAMS, vocab_size=38, rope_theta=500000.0, use_scaled_rope=True), 1, 0, True),
    "llama-3.2": (dict(BASE, max_position_embeddings=131072, rope_theta=5e5, tie_word_embeddings=True,
                       rope_scaling=dict(hf.LLAMA3, factor=32.0, original_max_position_embeddings=8192)),
                  dict(PARAMS, vocab_size=38, rope_theta=500000.0, use_scaled_rope=True), 1, 0, True),
    "llama-tied-cut": (dict(BASE, max_position_embeddings=8192, rope_theta=5e5, tie_word_embeddings=True),
                       dict(PARAMS, vocab_size=38, rope_theta=500000.0), 2, 1, False),
}
NAMES = {"self_attn.q_proj": ("attention.wq", 0), "self_attn.k_proj": ("attention.wk", 0), "self_attn.v_proj": ("attention.wv", 0),
         "self_attn.o_proj": ("attention.wo", 1), "mlp.gate_proj": ("feed_forward.w1", 0), "mlp.down_proj": ("feed_forward.w2", 1),
         "mlp.up_proj": ("feed_forward.w3", 0), "input_layernorm": ("attention_norm", None), "post_attention_layernorm": ("ffn_norm", None)}


def their_permute(w, heads):
    """What convert_llama_weights_to_hf.py does to queries and keys."""
    return w.view(heads, w.shape[0] // heads // 2, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)


def back(w, heads):
    turned = w.view(heads, 2, w.shape[0] // heads // 2, w.shape[1]).transpose(1, 2).reshape(w.shape).clone()
    assert torch.equal(their_permute(turned, heads), w)
    return turned


def meta(model, files, embed, output):
    """The state of each file."""
    shards = [{} for _ in range(files)]
    for name, w in model.state_dict().items():
        if name == "lm_head.weight":
            new, dim = "output.weight", 0
            if not output:
                continue
        elif name == "model.embed_tokens.weight":
            new, dim = "tok_embeddings.weight", embed
        elif name == "model.norm.weight":
            new, dim = "norm.weight", None
        else:
            _, _, layer, rest = name.split(".", 3)
            new, dim = NAMES[rest[:-len(".weight")]]
            new = f"layers.{layer}.{new}.weight"
            if "q_proj" in name or "k_proj" in name:
                w = back(w, model.config.num_attention_heads if "q_proj" in name else model.config.num_key_value_heads)
        for i, s in enumerate(shards):
            s[new] = (w if dim is None else w.chunk(files, dim)[i]).clone()
    for s in shards:
        s["rope.freqs"] = torch.ones(2)
    return shards


def write(folder, shards, params):
    os.makedirs(folder)
    for i, s in enumerate(shards):
        torch.save(s, os.path.join(folder, f"consolidated.{i:02d}.pth"))
    with open(os.path.join(folder, "params.json"), "w", encoding="utf-8") as f:
        json.dump(params, f)


def make(name, d):
    config, params, files, embed, output = MODELS[name]
    hf.MODELS["meta"] = ("Llama", dict(config, rms_norm_eps=1e-6), "bfloat16", None)
    model = hf.make("meta", os.path.join(d, "src"))
    shards = meta(model, files, embed, output)
    write(os.path.join(d, "meta"), shards, params)
    return model, shards


def round_trip(name, d):
    src, folder, a, b, out = (os.path.join(d, x) for x in ("src", "meta", "a", "b", "out"))
    make(name, d)
    hf.run("import", "-q", src, a)
    r = hf.run("import", folder, b, words=["rope.freqs"])
    assert ("output.weight" in r.stdout) == (name == "llama-3.2"), r.stdout
    hf.run("verify", b, words=["intact"])
    hf.run("verify", "--same", a, b, words=["the same"])
    hf.run("export", "-q", b, out)
    assert hf.tensors(out) == hf.tensors(src)
    ours, theirs = (transformers.AutoConfig.from_pretrained(x).to_dict() for x in (out, src))
    differ = {k for k in theirs if ours.get(k) != theirs[k]} - {"_name_or_path", "initializer_range", "transformers_version"}
    assert not differ, {k: (ours.get(k), theirs[k]) for k in differ}


def refused(d):
    _, shards = make("llama-3-cut", d)
    params = MODELS["llama-3-cut"][1]
    n = 0

    def bad(code, *words, change=None, **keys):
        nonlocal n
        n += 1
        folder = os.path.join(d, f"bad{n}")
        state = [dict(s) for s in shards]
        p = {k: v for k, v in dict(params, **keys).items() if v is not None}
        if change:
            change(state)
        write(folder, [s for s in state if s], p)
        hf.refused(d, folder, code, *words)
        return folder

    bad(3, "params.json", "moe", moe={"num_experts": 8})
    bad(3, "params.json", "dim", dim="24")
    bad(3, "params.json", "make no model", n_heads=5)
    bad(3, "params.json", "make no model", dim=None)
    bad(3, "feed_forward.w1.weight", "[10, 24]", multiple_of=32)
    bad(3, "vocabulary", "38", "39", vocab_size=39)
    bad(3, "consolidated.01.pth", "attention_norm", "differs", change=lambda s: s[1].update({"layers.1.attention_norm.weight": torch.zeros(24).bfloat16()}))
    bad(3, "consolidated.01.pth", "layers.0.extra", change=lambda s: s[1].update({"layers.0.extra": torch.zeros(1)}))
    bad(3, "consolidated.01.pth", "F32", "BF16", change=lambda s: s[1].update({"output.weight": torch.zeros(19, 24)}))
    bad(7, "consolidated.00.pth", "attention.wk.weight", "missing", change=lambda s: s[0].pop("layers.2.attention.wk.weight"))
    bad(7, "tok_embeddings.weight", "missing", change=lambda s: s[0].pop("tok_embeddings.weight"))
    bad(3, "3 files cannot share 2 key/value heads", change=lambda s: s.append(dict(s[0])), vocab_size=57)
    folder = os.path.join(d, "gap")
    shutil.copytree(os.path.join(d, "meta"), folder)
    os.rename(os.path.join(folder, "consolidated.01.pth"), os.path.join(folder, "consolidated.02.pth"))
    hf.refused(d, folder, 7, "consolidated.01.pth: missing")
    folder = os.path.join(d, "key")
    write(folder, shards, dict(params, moe=1))
    hf.run("import", "-q", folder, os.path.join(d, "allowed"), "--ignore-config-key", "moe")


def main():
    cases = [(n, lambda d, n=n: round_trip(n, d)) for n in MODELS] + [("refused", refused)]
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    return run_cases(cases)


if __name__ == "__main__":
    sys.exit(main())
