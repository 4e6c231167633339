#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters of PEFT 0.13.2, merged while the base is imported, against PEFT's merge_and_unload and the formula in double; those that
cannot be merged are refused by name. Usage: peft.py CONVERT [NAME...]"""
import json
import os
import re
import shutil
import sys
import tempfile
import warnings

WANTED = sys.argv[2:]
from hf446 import beside, torch

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
                             ("target_parameters", ["x"], "target_parameters"), ("alora_invocation_tokens", [1], "activated")]:
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
    cases = [(n, lambda d, n=n: merged(n, d)) for n in ADAPTERS] + [(f"extracted {n}", lambda d, n=n: extracted(n, d)) for n in EXTRACTED] + [("refused", refused)]
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    failed = 0
    for i, (name, case) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as d:
            try:
                case(d)
                print(f"ok {i} - {name}")
            except (AssertionError, RuntimeError, KeyError, OSError, ValueError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "))
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
