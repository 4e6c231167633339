#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters of PEFT 0.13.2, merged while the base is imported, against PEFT's merge_and_unload and the formula in double; the options of
LoraConfig on tied and untied models against the logits of the model that is not merged; what cannot be merged is refused by name.
Usage: peft.py CONVERT [NAME...]"""
import json
import os
import re
import shutil
import sys
import warnings

WANTED = sys.argv[2:]
from hf446 import beside, run_cases, torch

sys.path.insert(0, f"{sys.prefix}/peft")
try:
    import peft
    found = peft.__version__
except ImportError as e:
    found = f"none ({e})"
if found != "0.13.2":
    print(f"1..1\nok 1 - peft 0.13.2 # SKIP found {found}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)
import numpy as np
from safetensors.torch import load_file, save_file
warnings.simplefilter("ignore")
hf = beside("hf")
LORA = dict(r=4, lora_alpha=7)

# name: (model, arguments of LoraConfig, format of the adapter's file)
ADAPTERS = {
    "llama": ("llama", dict(LORA, target_modules=["q_proj", "v_proj", "down_proj"]), "safetensors"),
    "llama-all": ("llama-3.2", dict(LORA, target_modules="all-linear", use_rslora=True), "bin"),
    "patterns": ("llama-bias", dict(LORA, target_modules=["q_proj", "k_proj", "up_proj"], bias="all",
                                    rank_pattern={"up_proj": 2, "layers.1.self_attn.k_proj": 3},
                                    alpha_pattern={"layers.(0|2).self_attn.q_proj": 2}), "safetensors"),
    "gpt2": ("gpt2", dict(LORA, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True), "safetensors"),
    "gpt2-embedding": ("gpt2-untied-gelu", dict(LORA, target_modules=["wte", "c_attn"], modules_to_save=["lm_head"], fan_in_fan_out=True), "safetensors"),
    "gpt_neox": ("gpt_neox", dict(LORA, target_modules=["query_key_value", "dense"], bias="lora_only"), "safetensors"),
    "phi3": ("phi3", dict(LORA, target_modules=["qkv_proj", "gate_up_proj"], modules_to_save=["lm_head", "embed_tokens"]), "safetensors"),
    "qwen2": ("qwen2", dict(LORA, target_modules=["embed_tokens", "q_proj", "lm_head"]), "safetensors"),
}


def make(name, d):
    base, kwargs, form = ADAPTERS[name]
    model = hf.make(base, os.path.join(d, "base"))
    torch.manual_seed(5)
    made = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **kwargs))
    with torch.no_grad():
        for p in made.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    made.save_pretrained(os.path.join(d, "adapter"), safe_serialization=form == "safetensors")
    return made


def values(folder):
    kinds = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
    return {k: torch.frombuffer(bytearray(data), dtype=kinds[t]).reshape(shape) for k, (t, shape, data) in hf.tensors(folder).items()}


def by_formula(d):
    """The merged tensors in double, from the files alone."""
    folder = os.path.join(d, "adapter")
    path = os.path.join(folder, "adapter_model.safetensors")
    a = load_file(path) if os.path.exists(path) else torch.load(os.path.join(folder, "adapter_model.bin"))
    with open(os.path.join(folder, "adapter_config.json"), encoding="utf-8") as f:
        c = json.load(f)
    out = {k: v.double() for k, v in values(os.path.join(d, "base")).items()}
    a = {k.removeprefix("base_model.model.").replace(".base_layer", ""): v.double() for k, v in a.items()}
    changed = set()
    for k in [k for k in a if "lora_" not in k]:
        assert k in out, k
        out[k] = a[k]
        changed.add(k)
    for k in [k for k in a if k.endswith((".lora_A.weight", ".lora_embedding_A"))]:
        module = k.rsplit(".lora_", 1)[0]
        match = lambda p: next((p[x] for x in p if re.match(rf".*\.{x}$", "." + module)), None)
        r, alpha = match(c["rank_pattern"]) or c["r"], match(c["alpha_pattern"]) or c["lora_alpha"]
        assert a[k].shape[0] == r, k
        delta = a[k.replace("lora_A", "lora_B").replace("embedding_A", "embedding_B")] @ a[k] * alpha / (r ** 0.5 if c["use_rslora"] else r)
        w = out[module + ".weight"]
        turn = "embedding" in k or (c["fan_in_fan_out"] and "lora_A" in k)
        out[module + ".weight"] = w + (delta.t() if turn else delta)
        changed.add(module + ".weight")
    return out, changed


def merged(name, d):
    made = make(name, d)
    at = lambda x: os.path.join(d, x)
    r = hf.run("import", "--adapter", at("adapter"), at("base"), at("ckpt"), words=["merged"])
    hf.run("verify", at("ckpt"), words=["intact"])
    hf.run("import", "--dry-run", "--adapter", at("adapter"), at("base"), at("no"), words=["merged", "updated"])
    hf.run("export", "-q", at("ckpt"), at("out"))
    ours, base = values(at("out")), values(at("base"))
    theirs = {k: v for k, v in made.merge_and_unload().state_dict().items()}
    formula, changed = by_formula(d)
    assert r.stdout.count("\n") >= 1 and changed
    for k, v in ours.items():
        assert v.dtype == base[k].dtype
        if k not in changed:
            assert torch.equal(v, base[k]), k
            continue
        assert not torch.equal(v, base[k]), k
        exact = formula[k].float().to(v.dtype)  # one rounding of the sum in double
        step = torch.finfo(v.dtype).eps
        scale = formula[k].abs().clamp(min=1.0 if v.dtype == torch.float32 else 0.05)  # floats add several products
        assert ((v.double() - formula[k]).abs() <= scale * step * (2 if v.dtype == torch.float32 else 1.01)).all(), (k, (v.double() - formula[k]).abs().max())
        if v.dtype == torch.bfloat16:
            assert (v == exact).float().mean() > 0.99, k
        assert ((v.double() - theirs[k].double()).abs() <= scale * step * (4 if v.dtype == torch.float32 else 2)).all(), k


# Options of LoraConfig: (words of a refusal, None where it is merged; arguments for Llama).
EMBED, HEAD = "embed_tokens", "lm_head"
OPTIONS = {
    "plain": (None, dict(r=1, lora_alpha=3, target_modules=["q_proj"])),
    "rank-of-all": (None, dict(r=32, target_modules=["q_proj", "k_proj"])),
    "alpha-real": (None, dict(lora_alpha=0.5, target_modules=["v_proj"])),
    "rslora": (None, dict(use_rslora=True, target_modules=["gate_proj", "o_proj"])),
    "fan-in-fan-out": (None, dict(fan_in_fan_out=True, target_modules=["q_proj"])),
    "all-linear": (None, dict(target_modules="all-linear")),
    "regex": (None, dict(target_modules=r".*layers\.[02].*\.(q|up)_proj")),
    "bias-all": (None, dict(bias="all", target_modules=["q_proj"])),
    "bias-lora-only": (None, dict(bias="lora_only", target_modules=["q_proj", "down_proj"])),
    "patterns": (None, dict(rank_pattern={"q_proj": 2}, alpha_pattern={"q_proj": 9}, target_modules=["q_proj", "v_proj"])),
    "rank-pattern": (None, dict(rank_pattern={"layers.1.self_attn.q_proj": 2}, target_modules=["q_proj"])),
    "alpha-pattern": (None, dict(alpha_pattern={r"layers\.(0|2)\.self_attn\.q_proj": 2}, target_modules=["q_proj"])),
    "layers": (None, dict(layers_to_transform=[0, 2], target_modules=["q_proj"])),
    "layers-pattern": (None, dict(layers_to_transform=[1], layers_pattern="layers", target_modules=["q_proj"])),
    "dropout": (None, dict(lora_dropout=0.3, target_modules=["q_proj"])),
    "gaussian": (None, dict(init_lora_weights="gaussian", target_modules=["q_proj"])),
    "random": (None, dict(init_lora_weights=False, target_modules=["q_proj"])),
    "dora": ("use_dora", dict(use_dora=True, target_modules=["q_proj"])),
    "pissa": ("init_lora_weights", dict(init_lora_weights="pissa", target_modules=["q_proj"])),
    "pissa-niter": ("init_lora_weights", dict(init_lora_weights="pissa_niter_2", target_modules=["q_proj"])),
    "olora": ("init_lora_weights", dict(init_lora_weights="olora", target_modules=["q_proj"])),
    "replication": ("layer_replication", dict(layer_replication=[[0, 2], [1, 3]], target_modules=["q_proj"])),
    "saved-norm": (None, dict(modules_to_save=["norm"], target_modules=["q_proj"])),
    "saved-layer-part": (None, dict(modules_to_save=["input_layernorm", "mlp"], target_modules=["q_proj"])),
    "saved-embedding": (None, dict(modules_to_save=[EMBED], target_modules=["q_proj"])),
    "saved-head": (None, dict(modules_to_save=[HEAD], target_modules=["q_proj"])),
    "saved-both": (None, dict(modules_to_save=[EMBED, HEAD], target_modules=["q_proj"])),
    "lora-embedding": (None, dict(target_modules=[EMBED, "q_proj"])),
    "lora-head": (None, dict(target_modules=[HEAD, "q_proj"])),
    "lora-both": (None, dict(target_modules=[EMBED, HEAD])),
    "lora-embedding-saved-head": (None, dict(target_modules=[EMBED, "q_proj"], modules_to_save=[HEAD])),
    "lora-head-saved-embedding": (None, dict(target_modules=[HEAD, "q_proj"], modules_to_save=[EMBED])),
    "lora-embedding-rslora": (None, dict(target_modules=[EMBED], use_rslora=True, rank_pattern={EMBED: 3})),
    "bias-all-saved": (None, dict(bias="all", target_modules=["q_proj"], modules_to_save=["norm", EMBED])),
}
hf.MODELS |= {
    "peft-tied": ("Llama", dict(hf.SMALL, attention_bias=True, mlp_bias=True, tie_word_embeddings=True), "float32", None),
    "peft-untied": ("Llama", dict(hf.SMALL, attention_bias=True, mlp_bias=True), "float32", None),
    "peft-gpt2": ("GPT2", hf.GPT2, "float32", None),
    "peft-gemma2": ("Gemma2", dict(hf.SMALL, head_dim=8), "bfloat16", 4000),
}
# Models with other names: a Conv1D's weight is turned, and the configuration says nothing of the tie that it has.
OTHERS = {
    "gpt2-embedding": ("peft-gpt2", dict(target_modules=["c_attn"], modules_to_save=["wte"], fan_in_fan_out=True)),
    "gpt2-lora-embedding": ("peft-gpt2", dict(target_modules=["c_attn", "wte"], fan_in_fan_out=True)),
    "gpt2-head": ("peft-gpt2", dict(target_modules=["c_proj"], modules_to_save=[HEAD], fan_in_fan_out=True)),
    "gpt2-bias": ("peft-gpt2", dict(target_modules=["c_fc"], modules_to_save=["ln_f"], bias="all", fan_in_fan_out=True)),
    "gemma2-embedding": ("peft-gemma2", dict(target_modules=["q_proj", EMBED], modules_to_save=[HEAD])),
}


def not_merged(base, refusal, kwargs, d):
    """The logits are those of the model with its adapter attached; PEFT's own merge lets a tied head follow the embedding."""
    at = lambda x: os.path.join(d, x)
    model = hf.make(base, at("base"))
    torch.manual_seed(7)
    made = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **kwargs))
    with torch.no_grad():
        for p in made.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    made.save_pretrained(at("adapter"))
    if refusal:
        hf.run("import", "--adapter", at("adapter"), at("base"), at("ckpt"), code=3, words=[refusal])
        assert not os.path.exists(at("ckpt"))
        return
    hf.run("import", "--adapter", at("adapter"), at("base"), at("ckpt"))
    hf.run("export", "-q", at("ckpt"), at("out"))
    hf.run("verify", "-q", at("ckpt"))
    ids = torch.tensor([[1, 5, 36, 0, 7, 30, 2, 2, 9]])
    theirs = peft.PeftModel.from_pretrained(hf.load(at("base")), at("adapter")).float().eval()(input_ids=ids, use_cache=False).logits
    ours = hf.load(at("out")).float().eval()(ids, use_cache=False).logits
    limit = 2e-4 if hf.MODELS[base][2] == "float32" else 0.03 * theirs.abs().max()  # of bfloat16, the sum is rounded
    assert (ours - theirs).abs().max() < limit, (ours - theirs).abs().max()


def tying(d):
    """Newer releases write "ensure_weight_tying": a tied model stays one where both tensors have the same values."""
    at = lambda x: os.path.join(d, x)
    hf.make("peft-tied", at("base"))
    embed, head = "base_model.model.model.embed_tokens.", "base_model.model.lm_head."
    w, a, b = torch.randn(37, 24), torch.randn(4, 37), torch.randn(24, 4)
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "ensure_weight_tying": True, "modules_to_save": ["embed_tokens", "lm_head"]}

    def take(tensors, tied, code=0, words=(), **keys):
        for x in ("adapter", "ckpt", "out"):
            shutil.rmtree(at(x), ignore_errors=True)
        os.mkdir(at("adapter"))
        save_file({k: v.contiguous() for k, v in tensors.items()}, at("adapter/adapter_model.safetensors"))
        with open(at("adapter/adapter_config.json"), "w", encoding="utf-8") as f:
            json.dump(dict(config, **keys), f)
        hf.run("import", "--adapter", at("adapter"), at("base"), at("ckpt"), code=code, words=words)
        if code:
            return None
        hf.run("export", "-q", at("ckpt"), at("out"))
        out = values(at("out"))
        assert ("lm_head.weight" not in out) == tied, list(out)
        return out

    out = take({embed + "weight": w, head + "weight": w.clone()}, True)
    assert torch.equal(out["model.embed_tokens.weight"], w)
    take({embed + "weight": w, head + "weight": w.clone()}, True, ensure_weight_tying=False)
    take({embed + "weight": w, head + "weight": w + 1}, True, 3, ["ensure_weight_tying", "differ"])
    take({embed + "weight": w}, True, 3, ["ensure_weight_tying"])
    factors = {embed + "lora_embedding_A": a, embed + "lora_embedding_B": b, head + "lora_A.weight": b.t(), head + "lora_B.weight": a.t()}
    out = take(factors, True, modules_to_save=None)
    base = values(at("base"))["model.embed_tokens.weight"]
    assert (out["model.embed_tokens.weight"] - (base + 2 * (b @ a).t())).abs().max() < 1e-4
    out = take(factors | {head + "lora_A.weight": b.t() * 2}, False, modules_to_save=None, ensure_weight_tying=False)
    assert (out["lm_head.weight"] - (base + 4 * (b @ a).t())).abs().max() < 1e-4
    take(factors | {head + "lora_A.weight": b.t() * 2}, True, 3, ["ensure_weight_tying"], modules_to_save=None)
    # without modules_to_save the file replaces what both have
    out = take({embed + "weight": w}, True, modules_to_save=None, ensure_weight_tying=False)
    assert torch.equal(out["model.embed_tokens.weight"], w)
    take({embed + "weight": w, head + "weight": w + 1}, True, 3, ["differ"], modules_to_save=None, ensure_weight_tying=False)


# name: (model, what training changes in it as a whole)
EXTRACTED = {"llama-3.2": ["model.norm.weight"], "gpt2": ["transformer.h.1.ln_1.bias"], "gpt_neox": [], "qwen2-tied": ["model.embed_tokens.weight"]}


def extracted(name, d):
    """A change of rank 3 comes back through PEFT and through our own import; one of full rank leaves out what the SVD says."""
    at = lambda x: os.path.join(d, x)
    model = hf.make(name, at("base"))
    linear = [k for k, v in model.named_parameters() if v.ndim == 2 and not re.search("embed|wte|wpe|lm_head", k)]
    torch.manual_seed(3)
    state = dict(model.named_parameters())
    with torch.no_grad():
        for k in linear[:-1]:
            m, n = state[k].shape
            state[k].add_(torch.randn(m, 3) @ torch.randn(3, n) * 0.05)
        for k in EXTRACTED[name]:
            state[k].add_(torch.randn_like(state[k]) * 0.1)
    model.save_pretrained(at("tuned"))
    for x in ("base", "tuned"):
        hf.run("import", "-q", at(x), at("c-" + x))
    r = hf.run("export", "--to", "peft", "--base", at("c-base"), "--rank", "4", at("c-tuned"), at("lora"), words=[f"{len(linear) - 1} matrices"])
    left = float(r.stdout.split("left out")[1].split()[0])
    assert left < 1e-5, r.stdout
    config = peft.LoraConfig.from_pretrained(at("lora"))
    assert config.r == config.lora_alpha == 4 and len(config.target_modules) == len(linear) - 1, config
    merged_there = peft.PeftModel.from_pretrained(hf.load(at("base")), at("lora")).merge_and_unload().state_dict()
    hf.run("import", "-q", "--adapter", at("lora"), at("base"), at("again"))
    hf.run("export", "-q", at("again"), at("out"))
    ours = values(at("out"))
    base = values(at("base"))
    for k, v in values(at("tuned")).items():
        assert (merged_there[k] - v).abs().max() < 2e-6 and (ours[k] - v).abs().max() < 2e-6, (k, (ours[k] - v).abs().max())
        assert torch.equal(ours[k], base[k]) == torch.equal(v, base[k]), k
    with torch.no_grad():
        for k in linear:
            state[k].add_(torch.randn_like(state[k]) * 0.1)
    model.save_pretrained(at("full"))
    hf.run("import", "-q", at("full"), at("c-full"))
    r = hf.run("export", "--to", "peft", "--base", at("c-base"), "--rank", "5", at("c-full"), at("lora2"))
    squares = [np.linalg.svd((state[k].detach() - base[k]).double().numpy(), compute_uv=False) ** 2 for k in linear]
    best = (sum(s[5:].sum() for s in squares) / sum(s.sum() for s in squares)) ** 0.5
    left = float(r.stdout.split("left out")[1].split()[0])
    assert best * 0.999 <= left <= best * 1.01, (best, left)
    hf.run("export", "--to", "peft", "--base", at("c-base"), at("c-full"), at("lora2"), code=2, words=["exists"])
    hf.run("export", "--to", "peft", "--base", at("c-base"), at("c-base"), at("none"), code=3, words=["nothing to export"])
    hf.run("export", "--to", "peft", at("c-full"), at("none"), code=2, words=["--base"])
    if name == "gpt2":
        with torch.no_grad():
            state["transformer.h.0.attn.c_attn.bias"].add_(1)
        model.save_pretrained(at("bias"))
        hf.run("import", "-q", at("bias"), at("c-bias"))
        hf.run("export", "--to", "peft", "--base", at("c-base"), at("c-bias"), at("none"), code=3, words=["c_attn.bias", "bias of a linear layer"])
    assert not os.path.exists(at("none"))


def refused(d):
    make("llama", d)
    good = os.path.join(d, "adapter")
    n = 0

    def bad(code, *words, change=None, base="base", **keys):
        nonlocal n
        n += 1
        folder = os.path.join(d, f"bad{n}")
        shutil.copytree(good, folder)
        path = os.path.join(folder, "adapter_config.json")
        with open(path, encoding="utf-8") as f:
            c = json.load(f)
        c.update(keys)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({k: v for k, v in c.items() if v is not ...}, f)
        if change:
            t = load_file(os.path.join(folder, "adapter_model.safetensors"))
            change(t)
            save_file(t, os.path.join(folder, "adapter_model.safetensors"))
        hf.run("import", "--adapter", folder, os.path.join(d, base), os.path.join(d, "none"), code=code, words=words)
        assert not os.path.exists(os.path.join(d, "none", "iter_0000000"))
        return folder

    a = "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"
    for key, value, word in [("use_dora", True, "DoRA"), ("peft_type", "IA3", "IA3"), ("init_lora_weights", "pissa", "pissa"),
                             ("layer_replication", [[0, 2]], "replicated"), ("lora_bias", True, "bias of lora_B"),
                             ("target_parameters", ["x"], "target_parameters"), ("alora_invocation_tokens", [1], "activated"),
                             ("loftq_config", {"loftq_bits": 4, "loftq_iter": 1}, "LoftQ")]:
        bad(3, "adapter_config.json", word, "does not merge", **{key: value})
    bad(3, "adapter_config.json", "no \"peft_type\"", peft_type=...)
    bad(3, "some_new_key", "--ignore-config-key", some_new_key=3)
    bad(3, "\"r\"", r="4")
    bad(3, "rank_pattern", rank_pattern=[1])
    bad(3, "q_proj.lora_A.weight", "has the rank 4", "says 5", r=5)
    bad(3, "'(?:x)'", "pattern", rank_pattern={"(?:x)": 3})
    bad(7, "q_proj.lora_A.weight", "lora_B is missing", change=lambda t: t.pop(a.replace("lora_A", "lora_B")))
    bad(3, "q_proj.lora_A.weight", "[4, 23]", "[4, 24]", change=lambda t: t.update({a: torch.zeros(4, 23)}))
    bad(3, "q_proj.lora_B.weight", "[24, 4]", "[48, 4]", change=lambda t: t.update({a.replace("lora_A", "lora_B"): torch.zeros(24, 4)}))
    bad(3, "layers.7.", "belongs to no tensor", change=lambda t: t.update({a.replace("layers.1", "layers.7"): torch.zeros(4, 24)}))
    bad(3, "lora_magnitude_vector", change=lambda t: t.update({a.replace("lora_A", "lora_magnitude_vector"): torch.zeros(4)}))
    bad(3, "I64", change=lambda t: t.update({a: torch.zeros(4, 24, dtype=torch.int64)}))
    bad(3, "input_layernorm", "not a matrix", change=lambda t: t.update({"base_model.model.model.layers.0.input_layernorm." + x: torch.zeros(4, 24)
                                                                        for x in ("lora_A.weight", "lora_B.weight")}))
    os.remove(os.path.join(good, "adapter_model.safetensors"))
    hf.run("import", "--adapter", good, os.path.join(d, "base"), os.path.join(d, "none"), code=7, words=["adapter_model.safetensors", "missing"])
    hf.run("import", "--adapter", os.path.join(d, "base"), os.path.join(d, "base"), os.path.join(d, "none"), code=4, words=["adapter_config.json"])
    hf.run("import", "--adapter", os.path.join(d, "nothing"), os.path.join(d, "base"), os.path.join(d, "none"), code=4, words=["no such folder"])


def main():
    cases = [(n, lambda d, n=n: merged(n, d)) for n in ADAPTERS] + [(f"extracted {n}", lambda d, n=n: extracted(n, d)) for n in EXTRACTED] + [("refused", refused), ("tying", tying)]
    cases += [(f"{n} {b}", lambda d, o=o, b=b: not_merged("peft-" + b, *o, d)) for n, o in OPTIONS.items() for b in ("tied", "untied")]
    cases += [(n, lambda d, o=o: not_merged(o[0], None, o[1], d)) for n, o in OTHERS.items()]
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    return run_cases(cases)


if __name__ == "__main__":
    sys.exit(main())
