#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""import and export of a model of random weights beside `cp --reflink=never` and sync of the same bytes: rounds of all in turn,
files dropped from the page cache before each, in this order and the other way round. Printed are the median seconds, the median
of each round's ratio to cp with its quartiles (1 and above: at least as fast as cp), processor seconds and peak memory.
Where WEFT_PYTHON has torch, safetensors.torch (load_file, save_file of each file) and transformers (from_pretrained,
save_pretrained) take their turn as well, each ending in fsync.
Usage: convert.py CONVERT FOLDER [ROUNDS [MODEL]]     MODEL: 1b (Llama-3.2-1B, 2.5 GB, the default), 8b (Llama-3.1-8B, 16 GB)
FOLDER needs three times the model's bytes; what is made there is removed at the end, except the model."""
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import time

MODELS = {"1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                     head_dim=64, tie_word_embeddings=True),
          "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                     head_dim=128, tie_word_embeddings=False)}
SHARD = 5_000_000_000
SYNC = """
for name in os.listdir(out):
    fd = os.open(os.path.join(out, name), os.O_RDONLY)
    os.fsync(fd)
"""
PEERS = {"safetensors.torch": """
import os, sys
from safetensors.torch import load_file, save_file
model, out = sys.argv[1:]
os.makedirs(out)
for name in os.listdir(model):
    if name.endswith(".safetensors"):
        save_file(load_file(os.path.join(model, name)), os.path.join(out, name), metadata={"format": "pt"})
""" + SYNC, "transformers": """
import os, sys
import torch
from transformers import AutoModelForCausalLM
model, out = sys.argv[1:]
AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.bfloat16, low_cpu_mem_usage=True).save_pretrained(out)
""" + SYNC}


def tensors(m):
    h, f, kv = m["hidden_size"], m["intermediate_size"], m["num_key_value_heads"] * m["head_dim"]
    yield "model.embed_tokens.weight", (m["vocab_size"], h)
    for i in range(m["num_hidden_layers"]):
        p = f"model.layers.{i}."
        for name, shape in (("self_attn.q_proj", (h, h)), ("self_attn.k_proj", (kv, h)), ("self_attn.v_proj", (kv, h)),
                            ("self_attn.o_proj", (h, h)), ("mlp.gate_proj", (f, h)), ("mlp.up_proj", (f, h)),
                            ("mlp.down_proj", (h, f)), ("input_layernorm", (h,)), ("post_attention_layernorm", (h,))):
            yield p + name + ".weight", shape
    yield "model.norm.weight", (h,)
    if not m["tie_word_embeddings"]:
        yield "lm_head.weight", (m["vocab_size"], h)


def size(shape):
    n = 2
    for s in shape:
        n *= s
    return n


def write_shard(path, items):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in sorted(items):
        header[name] = dict(dtype="BF16", shape=shape, data_offsets=[at, at + size(shape)])
        at += size(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    # bytes whose high ones are exponents of numbers around 0.02: no two blocks are equal
    block = bytearray(os.urandom(1 << 24))
    block[1::2] = bytes(0x3c for _ in range(len(block) // 2))
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for k in range(0, at, len(block)):
            block[0:8] = struct.pack("<Q", k)
            f.write(block[:min(len(block), at - k)])
        os.fsync(f.fileno())


def make(folder, name):
    m = dict(MODELS[name], architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=128256, max_position_embeddings=131072,
             rms_norm_eps=1e-5, rope_theta=500000.0, hidden_act="silu", torch_dtype="bfloat16", attention_bias=False, mlp_bias=False,
             rope_scaling=dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
                               original_max_position_embeddings=8192))
    os.makedirs(folder)
    files, have = [[]], 0
    for t in tensors(m):
        if files[-1] and have + size(t[1]) > SHARD:
            files.append([])
            have = 0
        files[-1].append(t)
        have += size(t[1])
    names = ["model.safetensors"] if len(files) == 1 else [f"model-{i + 1:05d}-of-{len(files):05d}.safetensors"
                                                          for i in range(len(files))]
    for path, items in zip(names, files):
        write_shard(os.path.join(folder, path), items)
    if len(files) > 1:
        place = {t[0]: path for path, items in zip(names, files) for t in items}
        total = sum(size(t[1]) for t in tensors(m))
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            json.dump({"metadata": {"total_size": total}, "weight_map": place}, f, indent=2, sort_keys=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(m, f, indent=2)


def drop(folder):
    for root, _, files in os.walk(folder):
        for name in files:
            fd = os.open(os.path.join(root, name), os.O_RDONLY)
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def timed(command, shell=False):
    """(seconds, processor seconds, peak KiB)"""
    begun = time.monotonic()
    p = subprocess.Popen(command, shell=shell)
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{command}: status {status}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    convert, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds, name = int(sys.argv[3]) if len(sys.argv) > 3 else 5, sys.argv[4] if len(sys.argv) > 4 else "1b"
    model, ckpt, out = (os.path.join(work, name + x) for x in ("", "-ckpt", "-out"))
    if not os.path.isdir(model):
        make(model, name)
    if not os.path.isdir(ckpt):
        subprocess.run([convert, "import", "-q", model, ckpt], check=True)
    again = ckpt + "2"
    jobs = {"cp of the model": (model, f"cp -r --reflink=never '{model}' '{out}' && sync -f '{out}' '{out}'/*", True),
            "import": (model, [convert, "import", "-q", model, again], False),
            "cp of the checkpoint": (ckpt, f"cp -r --reflink=never '{ckpt}' '{out}' && sync -f '{out}' '{out}'/*/*", True),
            "export": (ckpt, [convert, "export", "-q", ckpt, out], False)}
    python = os.environ.get("WEFT_PYTHON", sys.executable)
    for k, code in PEERS.items():
        if subprocess.run([python, "-c", "import torch, " + k], capture_output=True, check=False).returncode == 0:
            jobs[k] = (model, [python, "-c", code, model, out], False)
        else:
            print(f"{python} does not import {k}: no row", file=sys.stderr)
    seen = {k: [] for k in jobs}
    for r in range(rounds):
        for k in list(jobs) if r % 2 == 0 else list(jobs)[::-1]:
            source, command, shell = jobs[k]
            drop(source)
            seen[k].append(timed(command, shell))
            for path in (out, again):
                shutil.rmtree(path, ignore_errors=True)
            os.sync()
            print(f"{k}: {seen[k][-1][0]:.2f} s", file=sys.stderr)
    peers = [(k, p) for p in PEERS if p in jobs for k in ("import", "export")]
    for k, peer in [("import", "cp of the model"), ("export", "cp of the checkpoint")] + peers:
        ratio = [p[0] / w[0] for w, p in zip(seen[k], seen[peer])]
        low, _, high = statistics.quantiles(ratio, n=4) if rounds > 1 else (ratio[0], 0, ratio[0])
        print(f"{k}: {statistics.median(x[0] for x in seen[k]):.2f} s, {peer} {statistics.median(x[0] for x in seen[peer]):.2f} s,"
              f" ratio {statistics.median(ratio):.2f} ({low:.2f} to {high:.2f}), processor {statistics.median(x[1] for x in seen[k]):.2f}"
              f" s beside {statistics.median(x[1] for x in seen[peer]):.2f} s, {max(x[2] for x in seen[k]) / 1024:.0f} MiB")
    shutil.rmtree(ckpt)


if __name__ == "__main__":
    main()
