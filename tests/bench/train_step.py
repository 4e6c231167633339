#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our CPU training step beside PyTorch's and llm.c's: GPT-2 in fp32, same shapes, same cores, rounds interleaved.

    tests/bench/train_step.py --train build/train/train [--size 1m|124m] [--rounds 5] [--llmc FOLDER]

PyTorch runs in the fastest of its thread settings, which are all tried and printed. llm.c is built from FOLDER, a
checkout of its sources, with B and T set in its main and a weights file of random numbers in its header's layout.
Every figure is a median of step times; ratios are of tokens per second."""
import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy

SIZES = {
    "1m": dict(layers=4, hidden=128, heads=4, vocab=2048, steps=40, products=100),
    "124m": dict(layers=12, hidden=768, heads=12, vocab=50257, steps=4, products=5),
}
T, B = 256, 4
CORES = "0,1"

TORCH = r'''
import json, sys, time, torch
import torch.nn as nn, torch.nn.functional as F
c = json.loads(sys.argv[1]); torch.manual_seed(0); torch.set_num_threads(c["threads"])
C, H, L, V, T, B = c["hidden"], c["heads"], c["layers"], c["vocab"], c["T"], c["B"]
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1, s.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
        s.qkv, s.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        s.up, s.down, s.act = nn.Linear(C, 4 * C), nn.Linear(4 * C, C), nn.GELU(approximate="tanh")
        s.register_buffer("mask", torch.tril(torch.ones(T, T)).bool().view(1, 1, T, T))
    def forward(s, x):
        q, k, v = (t.view(B, T, H, C // H).transpose(1, 2) for t in s.qkv(s.n1(x)).split(C, 2))
        a = (q @ k.transpose(-2, -1)) * (C // H) ** -0.5
        a = F.softmax(a.masked_fill(~s.mask, float("-inf")), dim=-1) @ v
        x = x + s.out(a.transpose(1, 2).reshape(B, T, C))
        return x + s.down(s.act(s.up(s.n2(x))))
class GPT(nn.Module):
    def __init__(s):
        super().__init__()
        s.wte, s.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        s.h, s.n = nn.ModuleList(Block() for _ in range(L)), nn.LayerNorm(C)
        s.head = nn.Linear(C, V, bias=False); s.head.weight = s.wte.weight
    def forward(s, x, y):
        h = s.wte(x) + s.wpe.weight
        for b in s.h: h = b(h)
        return F.cross_entropy(s.head(s.n(h)).view(-1, V), y.view(-1))
m = GPT()
for p in m.parameters():  # as GPT-2: with unit embeddings the softmax is full of denormal numbers, and a step eight times slower
    if p.dim() > 1: nn.init.normal_(p, std=0.02)
opt = torch.optim.AdamW(m.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=c["foreach"])
print(torch.__version__, torch.get_num_threads(), flush=True)
N = B * T
shapes = [(torch.randn(N, k), torch.randn(k, n), torch.empty(N, n)) for k, n in ((C, 3 * C), (C, C), (C, 4 * C), (4 * C, C))]
def sgemm():  # flops a second over the products of a block's forward pass
    t = time.perf_counter()
    for _ in range(c["products"]):
        for a, b, out in shapes: torch.mm(a, b, out=out)
    return c["products"] * N * 24 * C * C / (time.perf_counter() - t)
for line in sys.stdin:
    if line.strip() == "sgemm":
        print(json.dumps(max(sgemm() for _ in range(3))), flush=True)
        continue
    ms = []
    for _ in range(int(line)):
        x = torch.randint(V, (B, T)); y = torch.randint(V, (B, T)); t = time.perf_counter()
        loss = m(x, y); opt.zero_grad(set_to_none=True); loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0); opt.step()
        ms.append((time.perf_counter() - t) * 1000)
    print(json.dumps(ms), flush=True)
'''


class Torch:
    """A PyTorch process that takes steps when asked, so that building the model is not timed."""

    def __init__(self, size, threads, blas, foreach):
        self.name = f"torch threads {threads}, OpenBLAS threads {blas}, {'foreach' if foreach else 'single'} AdamW"
        cfg = dict(size, T=T, B=B, threads=threads, foreach=foreach)
        # its buffers of hundreds of megabytes stay with it between steps
        env = dict(os.environ, OPENBLAS_NUM_THREADS=str(blas), OMP_NUM_THREADS=str(threads),
                   MALLOC_MMAP_THRESHOLD_=str(1 << 40), MALLOC_TRIM_THRESHOLD_=str(1 << 40), MALLOC_TOP_PAD_=str(1 << 28))
        self.p = subprocess.Popen(["taskset", "-c", CORES, "/usr/bin/python3", "-c", TORCH, json.dumps(cfg)], env=env,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.p.stdout.readline().strip()

    def ask(self, what):
        self.p.stdin.write(f"{what}\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def steps(self, n):
        return self.ask(n)

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def write_shard(prefix, vocab, tokens):
    """One document of tokens in Megatron's format; ids by a small generator, no two runs differ."""
    x, ids = 1, bytearray()
    for _ in range(tokens):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        ids += struct.pack("<H", (x >> 8) % vocab)
    with open(prefix + ".bin", "wb") as f:
        f.write(ids)
    with open(prefix + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", tokens, 0, 0, 1))


class Ours:
    def __init__(self, program, size, folder):
        self.prefix, self.folder, self.program = os.path.join(folder, "random"), folder, program
        write_shard(self.prefix, size["vocab"], 200000)
        self.args = ["--num-layers", size["layers"], "--hidden-size", size["hidden"], "--num-attention-heads",
                     size["heads"], "--max-position-embeddings", T, "--seq-length", T, "--micro-batch-size", B,
                     "--tokenizer-type", "NullTokenizer", "--vocab-size", size["vocab"] - 1,
                     "--hidden-dropout", 0, "--attention-dropout", 0, "--lr", 1e-4, "--adam-beta2", 0.95,
                     "--weight-decay", 0.1, "--split", "100,0,0", "--eval-iters", 0, "--threads", 2,
                     "--log-interval", 1000000, "--data-path", self.prefix, "--no-index-cache"]

    def steps(self, n):
        metrics = os.path.join(self.folder, "metrics.jsonl")
        if os.path.exists(metrics):
            os.remove(metrics)
        subprocess.run(["taskset", "-c", CORES, self.program, "run", *map(str, self.args), "--train-iters", str(n + 1),
                        "--metrics", metrics, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        with open(metrics, encoding="utf-8") as f:
            return [json.loads(line)["ms"] for line in f][1:]


class LlmC:
    """llm.c's train_gpt2 at 124M, from a checkout, with B and T of this benchmark."""

    def __init__(self, source, folder):
        self.folder = folder
        with open(os.path.join(source, "train_gpt2.c"), encoding="utf-8") as f:
            text = f.read()
        text = re.sub(r"int B = 4;", f"int B = {B};", text)
        text = re.sub(r"int T = 64;", f"int T = {T};", text)
        text = re.sub(r"step <= 40", "step <= 3", text)
        text = re.sub(r"step % 10 == 0", "step < 0", text)
        text = re.sub(r"step > 0 && step % 20 == 0", "step < 0", text)
        with open(os.path.join(folder, "train_gpt2.c"), "w", encoding="utf-8") as f:
            f.write(text)
        if not os.path.exists(os.path.join(folder, "llmc")):
            shutil.copytree(os.path.join(source, "llmc"), os.path.join(folder, "llmc"))
        subprocess.run(["gcc", "-Ofast", "-march=native", "-fno-finite-math-only", "-Wno-unused-result", "-DOMP",
                        "-fopenmp", "train_gpt2.c", "-o", "train_gpt2", "-lm"], cwd=folder, check=True)
        self.weights(os.path.join(folder, "gpt2_124M.bin"))
        data = os.path.join(folder, "dev/data/tinyshakespeare")
        os.makedirs(data, exist_ok=True)
        for part in ("train", "val"):
            tokens = B * T * 40
            with open(os.path.join(data, f"tiny_shakespeare_{part}.bin"), "wb") as f:
                f.write(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253))
                f.write(bytes((i * 7919 >> 3) & 0x3F for i in range(2 * tokens)))

    @staticmethod
    def weights(path):
        L, C, V, P, M = 12, 768, 50257, 50304, 1024
        n = P * C + M * C + L * (2 * C + 3 * C * C + 3 * C + C * C + C + 2 * C + 8 * C * C + 5 * C) + 2 * C
        with open(path, "wb") as f:
            f.write(struct.pack("<256i", 20240326, 3, M, V, L, 12, C, P, *[0] * 248))
            (numpy.random.default_rng(0).standard_normal(n, dtype="f4") * 0.02).tofile(f)

    def steps(self, _):
        env = dict(os.environ, OMP_NUM_THREADS="2")
        out = subprocess.run(["taskset", "-c", CORES, "./train_gpt2"], cwd=self.folder, env=env, check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        return [float(x) for x in re.findall(r"\(took ([0-9.]+) ms\)", out)][1:]


def step_flops(size):
    """Of all products of a step: linear layers and head forward, and twice that backward; attention on half its square."""
    n, c = B * T, size["hidden"]
    return 6 * n * (12 * size["layers"] * c * c + size["vocab"] * c) + 6 * n * T * c * size["layers"]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return f"{model.group(1) if model else 'unknown processor'}, {os.cpu_count()} cores"


def pick_torch(size):
    best, least = None, 0
    for threads, blas in ((2, 2), (2, 1), (1, 2), (1, 1)):
        for foreach in (False, True):
            t = Torch(size, threads, blas, foreach)
            t.steps(1)
            ms = statistics.median(t.steps(max(3, size["steps"] // 4)))
            print(f"  {t.name}: {ms:.1f} ms", flush=True)
            if not best or ms < least:
                best, t, least = t, best, ms
            if t:
                t.close()
    print(f"  taken: {best.name} (torch {best.version.split()[0]})")
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--train", required=True)
    p.add_argument("--size", choices=SIZES, default="1m")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--llmc")
    a = p.parse_args()
    size = SIZES[a.size]
    print(f"{machine()}; GPT-2 {a.size}, fp32, T {T}, batch {B}; pinned to cores {CORES}")
    with tempfile.TemporaryDirectory() as folder:
        peers = {"ours": Ours(os.path.abspath(a.train), size, folder), "torch": pick_torch(size)}
        if a.llmc and a.size == "124m":
            peers["llm.c"] = LlmC(a.llmc, folder)
        ratios = {name: [] for name in peers}
        shares, products = [], Torch(size, 2, 2, False)
        for r in range(a.rounds):
            ms = {name: statistics.median(peer.steps(size["steps"])) for name, peer in peers.items()}
            for name in peers:
                ratios[name].append(ms[name] / ms["ours"])
            rate = products.ask("sgemm")
            shares.append(step_flops(size) / (ms["ours"] / 1000) / rate)
            print(f"  round {r + 1}: OpenBLAS sgemm {rate / 1e9:.0f} GFLOP/s, " + ", ".join(f"{n} {v:.1f} ms" for n, v in ms.items()), flush=True)
        for name in peers:
            if name != "ours":
                print(f"ours / {name}: {statistics.median(ratios[name]):.2f} times the tokens per second "
                      f"(rounds {min(ratios[name]):.2f} to {max(ratios[name]):.2f})")
        print(f"products of our whole step: {statistics.median(shares):.2f} of OpenBLAS's sgemm rate "
              f"(rounds {min(shares):.2f} to {max(shares):.2f})")
        peers["torch"].close()
        products.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
