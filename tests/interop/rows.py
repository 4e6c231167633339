#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings that follow the maps of rows that `tok extend` and `tok prune` write, on import, reshard and export, held against
numpy: rows that stay have their bytes, a new one is the mean of its sources, one without sources that of all.
Usage: rows.py CONVERT TOK CKPT_MAKE"""
import json
import os
import struct
import subprocess
import sys
import tempfile

# safetensors.py beside this file is a test and not the library
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
try:
    import numpy as np
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

CONVERT, TOK, MAKE = sys.argv[1:4]
TYPES = {"F32": "<f4", "BF16": "<u2"}
H, F, L = 12, 20, 2


def run(*args, code=0, words=()):
    r = subprocess.run(args, capture_output=True, text=True)
    assert r.returncode == code, (args, r.returncode, r.stderr)
    for w in words:
        assert w in r.stderr + r.stdout, (w, r.stderr, r.stdout)
    return r


def narrow(x):
    """float32 to the bits of bfloat16, ties to even."""
    u = np.asarray(x, "<f4").view("<u4").astype(np.uint64)
    return ((u + 0x7FFF + ((u >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype("<u2")


def wide(u):
    return (u.astype("<u4") << np.uint32(16)).view("<f4") if u.dtype == np.dtype("<u2") else u


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    names = {np.dtype(v): k for k, v in TYPES.items()}
    for name in sorted(tensors):
        v = tensors[name]
        header[name] = {"dtype": names[v.dtype], "shape": list(v.shape), "data_offsets": [at, at + v.nbytes]}
        at += v.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(tensors[k].tobytes() for k in sorted(tensors)))


def read_file(path, boxes=None):
    with open(path, "rb") as f:
        blob = f.read()
    (n,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8:8 + n])
    header.pop("__metadata__", None)
    return {k: np.frombuffer(blob[8 + n:][slice(*v["data_offsets"])], TYPES[v["dtype"]]).reshape(v["shape"])
            for k, v in header.items()}


def read_ckpt(folder, name):
    """A tensor by its group and name, put together from its parts: those of one rank here."""
    run(CONVERT, "verify", folder, words=["intact"])
    group, tensor = name
    found = []
    for file in sorted(os.listdir(folder)):
        if file.startswith(group + "-") and file.endswith(".safetensors"):
            found += [v for k, v in read_file(os.path.join(folder, file)).items() if k.split("@")[0] == tensor]
    assert len(found) == 1, (folder, name, len(found))
    return found[0]


def read_map(path):
    with open(path, encoding="ascii") as f:
        head, *lines = f.read().splitlines()
    magic, version, was, size = head.split()
    assert (magic, version, int(size)) == ("weft-rows", "1", len(lines))
    return int(was), [[int(x) for x in line.split()[1:]] for line in lines]


def follow(x, path):
    """The oracle."""
    was, lines = read_map(path)
    y = wide(x).astype("f8")
    out = np.empty((len(lines), x.shape[1]), x.dtype)
    for i, (old, *sources) in enumerate(lines):
        if old >= 0:
            out[i] = x[old]
            continue
        mean = (y[sources] if sources else y[:was]).sum(0) / (len(sources) or was)
        out[i] = narrow(mean.astype("<f4")) if x.dtype == np.dtype("<u2") else mean.astype("<f4")
    return out


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (a.shape, b.shape)


def tokenizers(d):
    """A small tokenizer, one with ids more, one with ids less; the map of each."""
    os.mkdir(f"{d}/tok")
    rng = np.random.default_rng(1)
    with open(f"{d}/text.txt", "w", encoding="ascii") as f:
        for _ in range(300):
            f.write(" ".join(rng.choice(["bako", "mi", "tsu", "delo", "vista", "en"], 9)) + "\n")
    with open(f"{d}/new.txt", "w", encoding="ascii") as f:
        f.write("tsuran!\n<|user|>\n")
    with open(f"{d}/some.txt", "w", encoding="ascii") as f:
        f.write("bako mi\n" * 9)
    run(TOK, "train", "-q", "--type", "bpe", "--input", f"{d}/text.txt", "--model_prefix", f"{d}/tok/", "--vocab_size", "300",
        "--special_tokens", "<|endoftext|>")
    run(TOK, "extend", "-q", f"{d}/tok/tokenizer.json", "--add", f"{d}/new.txt", "--add-special", "<|tool|>", "--output", f"{d}/more.json")
    run(TOK, "prune", "-q", f"{d}/tok/tokenizer.json", "--keep-used", f"{d}/some.txt", "--output", f"{d}/less.json")
    return read_map(f"{d}/more.json.rows")[0]


def folder(d, vocab, tied, eos):
    """A Llama with rows beyond the tokenizer's, as Qwen's models have."""
    os.mkdir(f"{d}/src")
    rng = np.random.default_rng(2)
    t = {"model.embed_tokens.weight": (vocab, H), "model.norm.weight": (H,)}
    for i in range(L):
        p = f"model.layers.{i}."
        t |= {p + f"self_attn.{k}_proj.weight": (H, H) for k in "qo"} | {p + f"self_attn.{k}_proj.weight": (H // 3, H) for k in "kv"}
        t |= {p + f"mlp.{k}_proj.weight": (F, H) for k in ("gate", "up")} | {p + "mlp.down_proj.weight": (H, F)}
        t |= {p + f"{k}_layernorm.weight": (H,) for k in ("input", "post_attention")}
    if not tied:
        t["lm_head.weight"] = (vocab, H)
    t = {k: narrow(rng.normal(0, 1, v)) for k, v in t.items()}
    write(f"{d}/src/model.safetensors", t)
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=H, intermediate_size=F, num_hidden_layers=L,
                  num_attention_heads=3, num_key_value_heads=1, vocab_size=vocab, max_position_embeddings=32, rms_norm_eps=1e-5,
                  hidden_act="silu", rope_theta=1e4, tie_word_embeddings=tied, torch_dtype="bfloat16", bos_token_id=None,
                  eos_token_id=[eos, 5], pad_token_id=eos)
    with open(f"{d}/src/config.json", "w", encoding="ascii") as f:
        json.dump(config, f, indent=1)
    with open(f"{d}/src/generation_config.json", "w", encoding="ascii") as f:
        json.dump(dict(eos_token_id=eos, temperature=0.5), f)
    with open(f"{d}/src/tokenizer_config.json", "w", encoding="ascii") as f:
        json.dump(dict(added_tokens_decoder={str(eos): dict(content="<|endoftext|>", special=True)}, chat_template="{{ x }}",
                       eos_token="<|endoftext|>"), f)
    os.link(f"{d}/tok/tokenizer.json", f"{d}/src/tokenizer.json")
    return t


def check_export(out, t, rows, eos):
    got = read_file(f"{out}/model.safetensors")
    assert sorted(got) == sorted(t)
    for k, v in t.items():
        same(got[k], follow(v, rows) if k in ("model.embed_tokens.weight", "lm_head.weight") else v)
    lines = read_map(rows)[1]
    new = lambda old: [[old] == line for line in lines].index(True)
    config, generation, special = (json.load(open(f"{out}/{x}.json", encoding="utf-8"))
                                   for x in ("config", "generation_config", "tokenizer_config"))
    assert config["vocab_size"] == len(lines) and config["pad_token_id"] == new(eos), config
    kept = [new(k) for k in (eos, 5) if [k] in lines]
    assert config["eos_token_id"] == kept and config["bos_token_id"] is None, (config, kept)
    assert generation == dict(eos_token_id=new(eos), temperature=0.5), generation
    assert special == dict(added_tokens_decoder={}, chat_template="{{ x }}", eos_token="<|endoftext|>"), special
    with open(f"{out}/tokenizer.json", "rb") as a, open(rows[:-5], "rb") as b:
        assert a.read() == b.read(), "another tokenizer"


def ways(d, tied):
    """On import, on reshard and on export: one result."""
    n = tokenizers(d)
    with open(f"{d}/tok/tokenizer.json", encoding="utf-8") as f:
        eos = json.load(f)["model"]["vocab"]["<|endoftext|>"]
    t = folder(d, n + 7, tied, eos)
    run(CONVERT, "import", "-q", f"{d}/src", f"{d}/ckpt")
    for name in ("more", "less"):
        rows = f"{d}/{name}.json.rows"
        run(CONVERT, "import", "--dry-run", "--rows", rows, f"{d}/src", f"{d}/none", words=[f"{len(read_map(rows)[1])} ids instead of {n + 7}"])
        run(CONVERT, "import", "-q", "--rows", rows, f"{d}/src", f"{d}/{name}-a")
        run(CONVERT, "reshard", "-q", "--ranks", "3", "--rows", rows, f"{d}/ckpt", f"{d}/{name}-b")
        run(CONVERT, "verify", "--same", f"{d}/{name}-a", f"{d}/{name}-b")
        run(CONVERT, "export", "-q", "--rows", rows, f"{d}/ckpt", f"{d}/{name}-c")
        run(CONVERT, "export", "-q", f"{d}/{name}-a", f"{d}/{name}-d")
        run(CONVERT, "export", "-q", f"{d}/{name}-b", f"{d}/{name}-e")
        for way in "cde":
            check_export(f"{d}/{name}-{way}", t, rows, eos)


def optimizer(d):
    """Moments follow, too, and a row without sources is the mean of all; counters stay."""
    tokenizers(d)
    lines = [[k] for k in range(99, -1, -1)] + [[-1, 3], [-1], [-1, 0, 0, 96, 50], [7]]
    rows = f"{d}/more.json.rows"
    with open(rows, "w", encoding="ascii") as f:
        f.write(f"weft-rows 1 100 {len(lines)}\n" + "".join(f"{i} {' '.join(map(str, x))}\n" for i, x in enumerate(lines)))
    run(MAKE, "save", f"{d}/run", "10", "gsnr")
    run(CONVERT, "reshard", "-q", "--rows", rows, f"{d}/run", f"{d}/cut")
    was, now = f"{d}/run/iter_0000010", f"{d}/cut/iter_0000010"
    for group in ("param", "exp_avg", "exp_avg_sq"):
        before = read_ckpt(was, (group, "embed.weight"))
        assert before.shape[0] == 100
        same(read_ckpt(now, (group, "embed.weight")), follow(before, rows))
        same(read_ckpt(now, (group, "norm.weight")), read_ckpt(was, (group, "norm.weight")))
    same(read_ckpt(now, ("gsnr", "stray")), read_ckpt(was, ("gsnr", "stray")))
    j = json.loads(run(CONVERT, "inspect", "--json", now).stdout)
    assert j["model"]["vocab-size"] == len(lines) and j["iteration"] == 10 and j["consumed_samples"] == 10240, j
    assert j["tokenizer"]["type"] == "HuggingFaceTokenizer" and j["data_digest"] is None, j


def bad(d):
    """Each wrong map is one sentence with the line, and nothing appears."""
    tokenizers(d)
    run(MAKE, "save", f"{d}/run", "10")
    rows = f"{d}/more.json.rows"
    for text, code, *words in [("", 3, "line 1", "weft-rows 1 OLD NEW"), ("weft-rows 2 5 5\n", 3, "line 1"),
                               ("weft-rows 1 100 2\n0 0\n", 3, "line 3", "next id"), ("weft-rows 1 100 2\n0 0\n2 0\n", 3, "line 3"),
                               ("weft-rows 1 100 1\n0 100\n", 3, "line 2", "old row"), ("weft-rows 1 100 1\n0 -2\n", 3, "line 2"),
                               ("weft-rows 1 100 1\n0 -1 7 100\n", 3, "line 2", "mean"), ("weft-rows 1 100 1\n0 5 6\n", 3, "line 2"),
                               ("weft-rows 1 100 1\n0 5\n1 6\n", 3, "end of the file"), ("weft-rows 1 100 99999999\n0 0\n", 3, "too short"),
                               ("weft-rows 1 101 1\n0 5\n", 2, "a vocabulary of 101 ids", "has 100"),
                               ("weft-rows 1 97 1\n0 5\n", 2, "a vocabulary of 97 ids", "has 100"),
                               ("weft-rows 1 99999999999999999999 1\n0 5\n", 3, "line 1")]:
        with open(rows, "w", encoding="ascii") as f:
            f.write(text)
        run(CONVERT, "reshard", "-q", "--rows", rows, f"{d}/run", f"{d}/none", code=code, words=words)
        assert not os.path.isdir(f"{d}/none") or not os.listdir(f"{d}/none"), text
    run(CONVERT, "reshard", "--rows", f"{d}/more.json", f"{d}/run", f"{d}/none", code=2, words=["ends in .rows"])
    run(CONVERT, "reshard", "--rows", f"{d}/lost.json.rows", f"{d}/run", f"{d}/none", code=2, words=["lost.json is not beside it"])
    run(CONVERT, "import", "--rows", rows, "--adapter", f"{d}/a", d, f"{d}/none", code=2, words=["--adapter cannot be given beside --rows"])


def main():
    cases = [("tied", lambda d: ways(d, True)), ("untied", lambda d: ways(d, False)), ("optimizer", optimizer), ("bad", bad)]
    failed = 0
    for i, (name, case) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as d:
            try:
                case(d)
                print(f"ok {i} - {name}")
            except (AssertionError, ValueError, KeyError, OSError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "))
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
