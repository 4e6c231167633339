#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as transformers 5.23 writes them, which Debian's PyTorch cannot run: recorded in hf523.json by this script with
PyTorch 2.15.0 from PyPI. What is recorded of a model: its config.json, the header of its safetensors file, the file's SHA-256 and
its logits; the numbers of the weights follow from their names. Its files are made again from that, imported and exported: whole
files with --like, every tensor's bytes without, configurations with the same values in transformers 5.23 and 4.46, logits of the
families that train runs.
Where a Python with PyTorch 2 is at hand ($WEFT_TORCH), the record is made again and compared, and the exported models run there.
Usage: hf523.py CONVERT HF_LOGITS [NAME...]; hf523.py record FILE [NAME...]; hf523.py run FOLDER FOLDER..."""
import base64
import filecmp
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gradients  # noqa: E402
# safetensors.py beside this file is a test and not the library
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
try:
    import numpy as np
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

GOLDEN = os.path.join(HERE, "hf523.json")
IDS = [1, 5, 36, 0, 7, 30, 2, 2, 9]
SMALL = dict(hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
             max_position_embeddings=48, vocab_size=37, bos_token_id=1, eos_token_id=2, pad_token_id=None)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
MOE = dict(SMALL, moe_intermediate_size=10, num_experts=3, num_experts_per_tok=2, mlp_only_layers=[1])
GEMMA = dict(SMALL, head_dim=8, query_pre_attn_scalar=8, num_hidden_layers=3, sliding_window=4)
NEOX = {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
WINDOWS = dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"])

# name: (class, keyword arguments of the configuration, dtype, the format of a model on the Hub or that of memory)
MODELS = {
    "qwen3": ("Qwen3", dict(SMALL, head_dim=8), "bfloat16", True),
    "qwen3-tied": ("Qwen3", dict(SMALL, head_dim=8, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6)), "float32", True),
    "qwen3-yarn": ("Qwen3", dict(SMALL, head_dim=8, rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=1e6,
                                                                         original_max_position_embeddings=48)), "float32", True),
    "llama-yarn": ("Llama", dict(SMALL, head_dim=16, rope_parameters=dict(
        rope_type="yarn", factor=6.0, original_max_position_embeddings=8, beta_fast=1.0, beta_slow=0.05, mscale=1.0, mscale_all_dim=0.5,
        truncate=False, rope_theta=1e4)), "float32", True),
    "llama-dynamic": ("Llama", dict(SMALL, head_dim=8, max_position_embeddings=6, rope_parameters=dict(
        rope_type="dynamic", factor=2.0, rope_theta=1e4)), "float32", True),
    "qwen3_moe": ("Qwen3Moe", dict(MOE, head_dim=8), "bfloat16", True),
    "qwen3_moe-fused": ("Qwen3Moe", dict(MOE, head_dim=8, norm_topk_prob=True), "float32", False),
    "qwen2_moe-fused": ("Qwen2Moe", dict(MOE, shared_expert_intermediate_size=14), "bfloat16", False),
    "mixtral-fused": ("Mixtral", dict(SMALL, num_local_experts=3), "float32", False),
    "gemma3": ("Gemma3", dict(GEMMA, **WINDOWS), "bfloat16", True),
    "gemma3-scaled": ("Gemma3", dict(GEMMA, **WINDOWS, rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=5e3))),
        "float32", True),
    "gpt2": ("GPT2", dict(n_embd=24, n_layer=2, n_head=3, n_positions=16, vocab_size=37, bos_token_id=1, eos_token_id=2), "float32", True),
    "llama": ("Llama", dict(SMALL, head_dim=8, tie_word_embeddings=True, rope_parameters=dict(LLAMA3, rope_theta=500000.0)), "float32", True),
    "mistral": ("Mistral", dict(SMALL, sliding_window=4, rope_parameters=dict(rope_type="default", rope_theta=1e5)), "bfloat16", True),
    "qwen2": ("Qwen2", dict(SMALL, rope_parameters=dict(rope_type="default", rope_theta=1e6)), "float32", True),
    "gpt_neox": ("GPTNeoX", dict(NEOX, num_attention_heads=3, rope_parameters=dict(rope_type="default", rope_theta=2e4, partial_rotary_factor=0.5)),
                 "float32", True),
    "gpt_neox-memory": ("GPTNeoX", dict(NEOX, num_attention_heads=3), "float32", False),
    "phi3": ("Phi3", dict(SMALL, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), "bfloat16", True),
    "phi3-long": ("Phi3", dict(SMALL, original_max_position_embeddings=24, rope_parameters=dict(
        rope_type="longrope", short_factor=[1.0, 1.5], long_factor=[1.0, 2.0], rope_theta=1e4)), "float32", True),
    "gemma2": ("Gemma2", dict(SMALL, head_dim=8, query_pre_attn_scalar=24, sliding_window=4, attn_logit_softcapping=2.0), "float32", True),
}
RUNS = ("gpt2", "llama", "mistral", "gemma2", "gemma3", "gemma3-scaled", "qwen2", "qwen3", "qwen3-tied", "qwen3-yarn", "llama-yarn", "llama-dynamic", "gpt_neox", "gpt_neox-memory", "phi3", "phi3-long",
        "qwen3_moe", "qwen3_moe-fused", "qwen2_moe-fused", "mixtral-fused")
GRADIENTS = ("qwen3", "qwen3-tied", "gemma3", "gemma3-scaled", "qwen3_moe", "qwen3_moe-fused")  # recorded; those of other families are compared where 4.46 is, in hf.py
NEW = ("Qwen3", "Qwen3Moe", "Gemma3")  # not in 4.46


# ---- files from names --------------------------------------------------------------------------

def numbers(name, shape, dtype):
    """A tensor's bytes: numbers between -0.3 and 0.3 that follow from name and place, in steps that bfloat16 holds."""
    n = int(np.prod(shape))
    z = np.arange(n, dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()) << 20)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    x = ((z >> np.uint64(57)).astype("<i4") - 64).astype("<f4") / 256
    return x.tobytes() if dtype == "F32" else (x.view("<u4") >> np.uint32(16)).astype("<u2").tobytes()


def make_weights(header, path):
    entries = sorted(((k, v) for k, v in json.loads(header).items() if k != "__metadata__"), key=lambda x: x[1]["data_offsets"])
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header.encode())
        for name, v in entries:
            f.write(numbers(name, v["shape"], v["dtype"]))


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def header_of(path):
    with open(path, "rb") as f:
        return f.read(struct.unpack("<Q", f.read(8))[0]).decode()


def make_folder(golden, folder):
    os.makedirs(folder)
    for name, text in golden["files"].items():
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as f:
            f.write(text)
    path = os.path.join(folder, "model.safetensors")
    make_weights(golden["header"], path)
    assert sum_of(path) == golden["sha256"], "not the file that transformers wrote"


# ---- with PyTorch from PyPI --------------------------------------------------------------------

def torch_and_transformers():
    import torch
    import transformers
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    return torch, transformers


def load(folder, transformers):
    config = transformers.AutoConfig.from_pretrained(folder)
    more = {"experts_implementation": "eager"} if "experts" in json.dumps(config.to_dict()) else {}
    return getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype="float32", **more).eval()


def logits_of(folder):
    torch, transformers = torch_and_transformers()
    with torch.no_grad():
        return load(folder, transformers)(torch.tensor([IDS])).logits[0].float().numpy()


def gradients_of(folder):
    """Loss and gradients, a tensor's as 16-bit shares of its largest value."""
    torch, transformers = torch_and_transformers()
    model = load(folder, transformers)
    loss = model(torch.tensor([IDS]), labels=torch.tensor([IDS])).loss
    loss.backward()
    found = {}
    for name, p in model.named_parameters():
        g = p.grad.float().numpy()
        most = float(np.abs(g).max())
        share = np.round(g / (most or 1) * 32767).astype("<i2")
        found[name] = [list(g.shape), most, base64.b64encode(zlib.compress(share.tobytes(), 9)).decode()]
    return {"loss": loss.item(), "tensors": found}


def record(file, names):
    """Saves each model, gives it the numbers of its names, loads and saves it again: that is the file whose sum is kept."""
    torch, transformers = torch_and_transformers()
    out = {"made with": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}, "models": {}}
    for name in names or MODELS:
        family, kwargs, dtype, original = MODELS[name]
        config = getattr(transformers, family + ("Text" if family == "Gemma3" else "") + "Config")(**kwargs)
        kind = getattr(transformers, family + ("LMHeadModel" if family == "GPT2" else "ForCausalLM"))
        with tempfile.TemporaryDirectory() as d:
            kind(config).to(getattr(torch, dtype)).save_pretrained(f"{d}/a", save_original_format=original)
            header = header_of(f"{d}/a/model.safetensors")
            make_weights(header, f"{d}/a/model.safetensors")
            kind.from_pretrained(f"{d}/a", dtype="auto").save_pretrained(f"{d}/b", save_original_format=original)
            assert filecmp.cmp(f"{d}/a/model.safetensors", f"{d}/b/model.safetensors", shallow=False), name
            files = {}
            for x in sorted(os.listdir(f"{d}/b")):
                if x.endswith(".json"):
                    with open(f"{d}/b/{x}", encoding="utf-8") as f:
                        files[x] = f.read()
            logits = logits_of(f"{d}/b").astype("<f4")
            out["models"][name] = {"files": files, "header": header, "sha256": sum_of(f"{d}/b/model.safetensors"),
                                   "logits": base64.b64encode(logits.tobytes()).decode()}
            if name in GRADIENTS:
                out["models"][name]["gradients"] = gradients_of(f"{d}/b")
    with open(file, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=0)
        f.write("\n")


# ---- ours --------------------------------------------------------------------------------------

def run(*args, code=0, words=()):
    r = subprocess.run([CONVERT, *args], capture_output=True, text=True)
    assert r.returncode == code, (args, r.returncode, r.stderr)
    for w in words:
        assert w in r.stderr + r.stdout, (w, r.stderr, r.stdout)


def tensors(folder):
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        blob = f.read()
    header = header_of(path)
    return {k: (v["dtype"], v["shape"], blob[8 + len(header) + v["data_offsets"][0]:8 + len(header) + v["data_offsets"][1]])
            for k, v in json.loads(header).items() if k != "__metadata__"}


def unfused(found, family):
    """Experts one by one, by the names of the Hub; the head of GPT-NeoX by its own."""
    out = {}
    for name, (dtype, shape, data) in found.items():
        base = name.replace(".mlp.", ".block_sparse_moe.") if family == "Mixtral" else name
        names = ("w1", "w3", "w2") if family == "Mixtral" else ("gate_proj", "up_proj", "down_proj")
        if not name.endswith(("gate_up_proj", "experts.down_proj")):
            out["embed_out.weight" if family == "GPTNeoX" and name == "lm_head.weight" else base] = (dtype, shape, data)
            continue
        stem = base.rsplit(".", 1)[0]
        x = np.frombuffer(data, "<f4" if dtype == "F32" else "<u2").reshape(shape)
        for e in range(shape[0]):
            half = shape[1] // 2
            for k, part in ((0, x[e][:half]), (1, x[e][half:])) if "gate_up" in name else ((2, x[e]),):
                out[f"{stem}.{e}.{names[k]}.weight"] = (dtype, list(part.shape), part.tobytes())
    return out


READ = """
import json, sys
if len(sys.argv) > 3:
    sys.path.insert(0, sys.argv[3])
import transformers
assert transformers.__version__ == sys.argv[1], transformers.__version__
print(json.dumps({x: transformers.AutoConfig.from_pretrained(x).to_dict() for x in json.loads(sys.argv[2])}))
"""


def read_by(version, folders):
    """Configurations as that release reads them; none where it is not installed."""
    at = [f"{sys.prefix}/hf446"] if version == "4.46.3" else []
    r = subprocess.run([sys.executable, "-B", "-c", READ, version, json.dumps(folders), *at], capture_output=True, text=True, cwd="/",
                       env=dict(os.environ, TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1"))
    if r.returncode and ("No module named" in r.stderr or "AssertionError" in r.stderr):
        print(f"# transformers {version} is not installed: its reading of configurations is not compared")
        assert not os.environ.get("WEFT_CI"), r.stderr
        return {}
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def check_newer(a, b):
    """The same values in 5.23; what only 4.46 reads may stand beside them."""
    more = {"rope_theta", "rope_scaling", "partial_rotary_factor", "rotary_pct", "rotary_emb_base", "rope_local_base_freq", "torch_dtype"}
    if "rope_parameters" in b:  # where both spellings stand, that of 4.46 is read first, and its word for rope_type is kept
        b["rope_parameters"] = {k: v for k, v in b["rope_parameters"].items() if k != "type"}
    assert {k: v for k, v in b.items() if k not in more or k in a} | {"_name_or_path": 0} == a | {"_name_or_path": 0}, (a, b)


def older_values(config, family):
    """What 4.46 must find in an export, by what 5.23 wrote."""
    rope = config.get("rope_parameters")
    full = (rope or {}).get("full_attention", rope)
    want = {"torch_dtype": config["dtype"], "vocab_size": 37}
    if rope:
        scaling = {k: v for k, v in full.items() if k not in ("rope_theta", "partial_rotary_factor")}
        if family == "Phi3" and scaling["rope_type"] == "longrope":
            scaling = {"type": "longrope", "short_factor": scaling["short_factor"], "long_factor": scaling["long_factor"]}
        want |= {"rope_theta": full["rope_theta"], "rope_scaling": None if scaling == {"rope_type": "default"} else scaling}
    if family == "GPTNeoX":
        want |= {"rotary_pct": full["partial_rotary_factor"], "rotary_emb_base": full["rope_theta"]}
    if family == "Phi3" and full["partial_rotary_factor"] != 1:
        want["partial_rotary_factor"] = full["partial_rotary_factor"]
    if family == "Gemma3":
        want["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    return want


def check_older(config, text, older, family):
    """`text`: the export's; `older`: what 4.46 makes of it, None: it lacks the family."""
    want = older_values(config, family)
    assert {k: text.get(k) for k in want} == want, (want, text)
    if not older:
        return
    passed = {"transformers_version", "rope_parameters", "dtype"} | ({"sliding_window"} if family == "Qwen2Moe" else set())  # 0 is none there
    same = [k for k in want if k != "rope_scaling" and k in older] + [k for k in config if k in older and k not in passed]
    assert all(older[k] == text[k] for k in same), {k: (older[k], text[k]) for k in same if older[k] != text[k]}
    scaling = older.get("rope_scaling")  # it adds the older word for its type
    known = want.get("rope_scaling") or {}
    assert {k: v for k, v in (scaling or {}).items() if k != "type" or k in known} == known, scaling


def check_logits(golden, ckpt, name):
    r = subprocess.run([LOGITS, os.path.join(ckpt, "iter_0000000"), *map(str, IDS)], capture_output=True, check=False)
    if name not in RUNS:
        return
    assert r.returncode == 0, r.stderr
    a = np.frombuffer(r.stdout, "<f4").reshape(len(IDS), -1)
    b = np.frombuffer(base64.b64decode(golden["logits"]), "<f4").reshape(a.shape)
    assert np.abs(a - b).max() < 1e-4 and (a.argmax(-1) == b.argmax(-1)).all(), np.abs(a - b).max()
    if name not in GRADIENTS:
        return
    found = {}
    for tensor, (shape, most, text) in golden["gradients"]["tensors"].items():
        share = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i2").astype("<f4")
        found[tensor] = (shape, (share * np.float32(most / 32767)).tobytes())
    root = os.path.dirname(ckpt)
    gradients.check(CONVERT, LOGITS, ckpt, root, os.path.join(root, "src", "config.json"), found, golden["gradients"]["loss"], IDS)


def live(golden, root, names):
    """All made again with PyTorch, and the exports run there."""
    python = os.environ["WEFT_TORCH"]
    subprocess.run([python, "-B", __file__, "record", f"{root}/again.json", *names], check=True, capture_output=True)
    with open(f"{root}/again.json", encoding="utf-8") as f:
        again = json.load(f)["models"]
    for name in names:
        for k in ("files", "header", "sha256"):
            assert again[name][k] == golden[name][k], (name, k, again[name][k], golden[name][k])
        a, b = (np.frombuffer(base64.b64decode(x[name]["logits"]), "<f4") for x in (again, golden))
        assert np.abs(a - b).max() < 1e-4, name
    pairs = [os.path.join(root, n, x) for n in names for x in ("src", "out")]
    subprocess.run([python, "-B", __file__, "run", *pairs], check=True, capture_output=True)


def case(name, golden, d):
    family = MODELS[name][0]
    src, ckpt, like, out = (os.path.join(d, x) for x in ("src", "ckpt", "like", "out"))
    make_folder(golden, src)
    config = json.loads(golden["files"]["config.json"])
    run("import", "-q", src, ckpt)
    run("verify", ckpt, words=["intact"])
    with open(os.path.join(ckpt, "iter_0000000", "config.json"), encoding="utf-8") as f:
        assert f.read() == golden["files"]["config.json"]
    run("export", "-q", "--like", src, ckpt, like)
    assert sorted(os.listdir(src)) == sorted(os.listdir(like))
    assert all(filecmp.cmp(os.path.join(src, x), os.path.join(like, x), shallow=False) for x in os.listdir(src))
    run("export", "-q", ckpt, out)
    want, got = unfused(tensors(src), family), tensors(out)
    assert want == got, [k for k in set(want) | set(got) if want.get(k) != got.get(k)]
    check_logits(golden, ckpt, name)


def unused_cap(golden, d):
    """Gemma3Attention keeps "attn_logit_softcapping" and does not pass it on: a configuration that has it gives the same logits."""
    src, ckpt = (os.path.join(d, x) for x in ("src", "ckpt"))
    config = json.loads(golden["files"]["config.json"])
    assert config["attn_logit_softcapping"] is None
    config["attn_logit_softcapping"] = 0.5
    make_folder({**golden, "files": {**golden["files"], "config.json": json.dumps(config)}}, src)
    run("import", "-q", src, ckpt)
    check_logits(golden, ckpt, "qwen3-yarn")  # the logits alone
    run("export", "-q", ckpt, os.path.join(d, "out"))


def configurations(golden, root, names):
    """Those of all models at once: each release of transformers takes seconds to start."""
    at = lambda name, which: os.path.join(root, name, which)
    newer = read_by("5.23.0", [at(n, x) for n in names for x in ("src", "out")])
    older = read_by("4.46.3", [at(n, "out") for n in names if MODELS[n][0] not in NEW])
    for name in names:
        if newer:
            check_newer(newer[at(name, "src")], newer[at(name, "out")])
        with open(os.path.join(at(name, "out"), "config.json"), encoding="utf-8") as f:
            text = json.load(f)
        check_older(json.loads(golden[name]["files"]["config.json"]), text, older.get(at(name, "out")), MODELS[name][0])


def main():
    with open(GOLDEN, encoding="utf-8") as f:
        golden = json.load(f)["models"]
    assert sorted(golden) == sorted(MODELS), "hf523.json is not of this table: record it again"
    names = [n for n in MODELS if n in sys.argv[3:] or not sys.argv[3:]]
    root = tempfile.mkdtemp()
    cases = [(n, lambda n=n: case(n, golden[n], os.path.join(root, n))) for n in names]
    if "gemma3" in names:
        cases.append(("gemma3: the cap of scores", lambda: unused_cap(golden["gemma3"], os.path.join(root, "cap"))))
    cases.append(("configurations", lambda: configurations(golden, root, names)))
    if os.environ.get("WEFT_TORCH"):
        cases.append(("live", lambda: live(golden, root, names)))
    failed = 0
    for i, (name, what) in enumerate(cases, 1):
        try:
            what()
            print(f"ok {i} - {name}")
        except (AssertionError, KeyError, OSError, subprocess.CalledProcessError) as e:
            failed += 1
            print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "))
    shutil.rmtree(root)
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "record":
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    if sys.argv[1] == "run":
        for x, y in zip(*(map(logits_of, sys.argv[i::2]) for i in (2, 3))):
            assert np.abs(x - y).max() < 1e-4 and (x.argmax(-1) == y.argmax(-1)).all(), np.abs(x - y).max()
        sys.exit(0)
    CONVERT, LOGITS = sys.argv[1:3]
    sys.exit(main())
