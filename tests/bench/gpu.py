#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step on one GPU: ours, its limit (bench_limit) and other trainers, in turn, on the same machine.

    tests/bench/gpu.py --train build/train/train --bench-limit build/tests/bench_limit [--library-path DIRS]
        [--llmc train_gpt2cu] [--llmq train] [--torch PYTHON [--nanogpt FOLDER]] [--rounds 3] [--row-seconds S]
        [ROW...]

Each round runs every program of a row once: from its start to the end of its first step (first round: with empty
caches of compiled kernels, "cold"; later ones: "warm"), some seconds or steps unmeasured, then --steps steps or
--seconds, whichever ends first. A step is the time between two of a program's lines, by the clock of this script, for
all programs alike; the limit is what bench_limit reports. Figures are medians of the steps of all rounds, with the
10th and 90th of 100 in brackets; memory is what the driver says is used of GPU 0 at the end of the steps less what it said
before the start; in brackets what the program says itself. Types: 16-bit weights and activations, fp32 master weights,
moments and gradients, unless a row says otherwise: they are those of its first peer, and another form of ours has those of
the next; dropout 0 and one document, unless a row says otherwise; no recomputation; AdamW; random tokens; an optimizer step
every 131,072 tokens. What has not begun or not ended when a row's --row-seconds are over is left out or cut short, and
said so. With --rounds 1 --seconds 5 the rows that have `takes` take about so many seconds on an H200."""
import argparse
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GRACE = 300  # seconds that a program may take to its first step
TIME_UP = "the row's time is up"
STEPS = 1000  # of a program that is not stopped


def row(limit, layers, width, heads, vocabulary, tokens, micro_batch, **more):
    r = dict(limit=limit, layers=layers, width=width, heads=heads, groups=heads, inner=4 * width,
             vocabulary=vocabulary, tokens=tokens, micro_batch=micro_batch, step=131072, type="bf16", ours=[],
             peers=[], types="wide", also={}, warm=2.0, note="", family="llama", dim=width // heads, window=0,
             dropout=0.0, documents=0, peer_micro_batch=micro_batch, takes=None)
    r.update(more)
    return r


GPT2 = ["llm.c", "gpt"]
OURS_TYPES = {"wide": [], "gradients": ["--grad-reduce-in-bf16"],
              "narrow": ["--grad-reduce-in-bf16", "--use-precision-aware-optimizer", "--main-grads-dtype", "bf16",
                         "--main-params-dtype", "bf16", "--exp-avg-dtype", "bf16", "--exp-avg-sq-dtype", "bf16"]}
LIMIT_TYPES = {"wide": [], "gradients": ["--gradients"], "narrow": ["--narrow"]}
LLMC = dict(peers=GPT2, types="gradients", also={"ours, fp32 gradients": dict(types="wide")},
            note="gradients in bf16, as llm.c's, but where said otherwise; nanoGPT's are fp32")
QWEN = dict(peers=["llm.q"], types="narrow", note="weights, gradients and moments in bf16 and no master weights, but where "
            "said otherwise")
WIDE = {"ours, fp32 master, gradients and moments": dict(types="wide")}
MERGED = "the limit is that of micro-batch 16, since ours computes so many in one pass"
SMALL = ["--preset", "gpt-0.125b"]
PASSES = {"ours, each micro-batch a pass": dict(ours=[*SMALL, "--tokens-per-pass", "0"]),
          "ours, micro-batch 16": dict(micro_batch=16)}
ROWS = {
    "gpt2-124m": row("gpt2-124m", 12, 768, 12, 50257, 1024, 64, ours=["--preset", "gpt2-124m"], llmc="d12",
                     **LLMC),
    "gpt2-350m": row("gpt2-350m", 24, 1024, 16, 50257, 1024, 32, ours=["--preset", "gpt2-345m"], llmc="d24",
                     **LLMC),
    "gpt2-1558m": row("gpt2-1558m", 48, 1600, 25, 50257, 1024, 16, ours=["--preset", "gpt2-1558m"], llmc="d48",
                      **LLMC),
    "qwen2.5-0.5b": row("qwen2.5-0.5b", 24, 896, 14, 151936, 1024, 32, ours=["--preset", "qwen2.5-0.5b"],
                        llmq=["--model", "Qwen2.5-0.5B"], also=WIDE, **QWEN),
    "qwen2.5-1.5b": row("qwen2.5-1.5b", 28, 1536, 12, 151936, 1024, 32, ours=["--preset", "qwen2.5-1.5b"],
                        llmq=["--model", "Qwen2.5-1.5B", "--lmhead-chunks", "4"], also=WIDE, **QWEN),
    "qwen2.5-7b": row("qwen2.5-7b", 28, 3584, 28, 152064, 1024, 4, ours=["--preset", "qwen2.5-7b"],
                      llmq=["--model", "Qwen2.5-7B", "--lmhead-chunks", "2", "--attn-bwd-chunks", "2"], warm=0.0,
                      **QWEN),
    "llama-3.2-1b": row("llama-3.2-1b", 16, 2048, 32, 128256, 4096, 4, groups=8, inner=8192,
                        ours=["--preset", "llama-3.2-1b"], peers=["layers", "chunked", "whole"]),
    "gpt-0.125b": row("gpt-0.125b-16", 12, 768, 12, 2048, 2048, 1, ours=SMALL, peers=["gpt"],
                      step=524288, type="fp16", also=PASSES, note=f"{MERGED}, and in bf16"),
    "gpt-0.125b-bf16": row("gpt-0.125b-16", 12, 768, 12, 2048, 2048, 1, ours=SMALL, peers=["gpt"],
                           step=524288, also=PASSES, note=MERGED),
}


def gpt2_124m(micro_batch, **more):
    return row(more.pop("limit", None), 12, 768, 12, 50257, 1024, micro_batch, ours=["--preset", "gpt2-124m"],
               peers=["gpt"], **more)


def llama_1b(limit, tokens, micro_batch, **more):
    return row(limit, 16, 2048, 32, 128256, tokens, micro_batch, groups=8, inner=8192, ours=["--preset", "llama-3.2-1b"],
               **more)


DROPOUT = dict(dropout=0.1, also={"ours, dropout 0": dict(dropout=0.0)})
ROWS |= {  # attention other than causal over 16-bit values without dropout
    "gpt2-124m-dropout": gpt2_124m(64, limit="gpt2-124m", takes=72, note="the limit is that without dropout", **DROPOUT),
    "gpt2-124m-tf32": gpt2_124m(64, type="tf32", takes=89, peer_micro_batch=32, warm=0.0),
    "gpt2-124m-fp32": gpt2_124m(64, type="fp32", takes=89, peer_micro_batch=32, warm=0.0),
    "gpt-0.125b-dropout": row("gpt-0.125b-16", 12, 768, 12, 2048, 2048, 1, ours=SMALL, peers=["gpt"], step=524288,
                              type="fp16", takes=84, peer_micro_batch=16, note=f"{MERGED}, in bf16 and without dropout",
                              **DROPOUT),
    "gemma-3-1b": row("gemma-3-1b", 26, 1152, 4, 262144, 4096, 4, groups=1, inner=6912, dim=256, window=512, family="gemma3",
                      ours=["--preset", "gemma-3-1b"], peers=["chunked", "flex"], warm=0.0, takes=280),
    "phi-3-mini": row("phi-3-mini", 32, 3072, 32, 32064, 4096, 2, inner=8192, window=2047, family="phi3",
                      ours=["--preset", "phi-3-mini-4k"], peers=["chunked", "flex"], warm=0.0, takes=141),
    "mistral-7b-8-layers": row("mistral-7b-8-layers", 8, 4096, 32, 32000, 4096, 4, groups=8, inner=14336, window=4096,
                               family="mistral", ours=["--preset", "mistral-7b-v0.1", "--num-layers", "8"],
                               peers=["chunked"], warm=0.0, takes=66,
                               note="the window is as long as a sample: full attention"),
    "llama-3.2-1b-documents": llama_1b("llama-3.2-1b", 4096, 4, documents=600, peers=["flex"], takes=118,
                                       also={"ours, one document": dict(documents=0)},
                                       note="the limit is that of one document"),
    "llama-3.2-1b-32k": llama_1b("llama-3.2-1b-32k", 32768, 1, peers=["chunked"], warm=0.0, takes=81),
}


# ---- data --------------------------------------------------------------------------------------------------------


def random_ids(n, below, size):
    """n ids of `size` bytes, uniform below the greatest power of two that is at most `below`."""
    bits, raw, rng = below.bit_length() - 1, bytearray(n * size), random.Random(1)
    for i in range(size):
        mask = (1 << max(0, min(8, bits - 8 * i))) - 1
        if mask:
            raw[i::size] = rng.randbytes(n).translate(bytes(b & mask for b in range(256)))
    return bytes(raw)


class Data:
    """The files of token ids that the programs read, each written when it is first asked for."""

    def __init__(self, folder, tokens):
        self.folder, self.tokens, self.made = folder, tokens, {}

    def ours(self, vocabulary, documents):
        """With an end of document, the last id, after every `documents` tokens in the mean, or none if that is 0."""
        prefix = os.path.join(self.folder, f"ours-{vocabulary}-{documents}")
        wide, rng, at = vocabulary > 65536, random.Random(2), 0
        if prefix not in self.made:
            ids = bytearray(random_ids(self.tokens, vocabulary, 4 if wide else 2))
            while documents and (at := at + rng.randint(documents // 3, documents * 5 // 3)) < self.tokens:
                struct.pack_into("<i" if wide else "<H", ids, at * (4 if wide else 2), vocabulary - 1)
            with open(prefix + ".bin", "wb") as f:
                f.write(ids)
            with open(prefix + ".idx", "wb") as f:
                f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4 if wide else 8, 1, 2))
                f.write(struct.pack("<iqqq", self.tokens, 0, 0, 1))
            self.made[prefix] = True
        return prefix

    def file(self, name, header, vocabulary, size):
        path = os.path.join(self.folder, name)
        if path not in self.made:
            with open(path, "wb") as f:
                f.write(header.ljust(1024, b"\0") + random_ids(self.tokens, vocabulary, size))
            self.made[path] = True
        return path

    def llmc(self):
        return self.file("llmc.bin", struct.pack("<3i", 20240520, 1, self.tokens), 50257, 2)

    def llmq(self):
        return self.file("llmq.bin", b"BIN.TOK\n" + struct.pack("<3i", 1, 4, self.tokens), 151936, 4)


# ---- programs ----------------------------------------------------------------------------------------------------


class Program:
    """What a row runs: `step` is a regular expression of the line at the end of each of its steps."""

    terminal = False  # its output goes to one, so that it comes line by line

    def __init__(self, name, argv, step, env=None):
        self.name, self.argv, self.step, self.env = name, argv, re.compile(step), env
        self.steps, self.first, self.memory, self.said, self.error = [], [], [], {}, ""
        self.wall = 0.0

    def collect(self, line):
        for key, what in (("slabs", r"; together ([\d.]+) MiB"), ("torch", r"^step .*\| ([\d.]+) GiB")):
            m = re.search(what, line)
            if m:
                self.said[key] = float(m.group(1)) / (1024 if "MiB" in what else 1)
        m = re.match(r"alloca(?:ted|ting) (\d+) MiB for", line) or \
            re.match(r"\s+(?!\s|Free|Reserved)[\w. ]+: +(\d+) \| +\d+ \| +\d+", line)
        if m and not self.first:  # llm.c, llm.q: once
            self.said["allocations"] = self.said.get("allocations", 0) + float(m.group(1)) / 1024

    def summary(self):
        if not self.steps:
            return {"error": self.error or "no step"}
        ms = sorted(1e3 * s for s in self.steps)
        s = {"steps": len(ms), "ms": statistics.median(ms), "ms_low": ms[len(ms) // 10],
             "ms_high": ms[len(ms) - 1 - len(ms) // 10], "memory_gib": max(self.memory, default=None),
             "first_step_s": self.first, "wall_s": self.wall, **self.said}
        if self.error:
            s["error"] = self.error
        return s


FREE = """import ctypes as c
cuda, context, free, total = c.CDLL("libcuda.so.1"), c.c_void_p(), c.c_size_t(), c.c_size_t()
for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), cuda.cuCtxSetCurrent(context),
             cuda.cuMemGetInfo_v2(c.byref(free), c.byref(total))):
    assert code == 0
print(total.value - free.value)"""


def gpu_memory():
    """Bytes in use on GPU 0, with those of the process that asks the driver; or None."""
    try:
        return float(subprocess.run([sys.executable, "-c", FREE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True, check=True, timeout=20).stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


class Watch:
    """What has been seen of a program that runs: its lines and when its steps ended."""

    def __init__(self, program, o, warm, deadline):
        self.program, self.o, self.warm, self.deadline = program, o, warm, deadline
        self.start, self.ends, self.tail, self.rest = time.perf_counter(), [], [], ""

    def measured(self):
        """Durations of the steps after the first that began once the time of `warm` was over."""
        return [b - a for a, b in zip(self.ends, self.ends[1:]) if a - self.ends[0] >= self.warm]

    def done(self):
        steps = self.measured()
        return len(steps) >= self.o.steps or len(steps) >= 2 and sum(steps) >= self.o.seconds

    def take(self, data):
        *lines, self.rest = (self.rest + data.decode(errors="replace")).split("\n")
        for line in lines:
            self.tail = self.tail[-30:] + [line.rstrip()]
            self.program.collect(line)
            if self.program.step.search(line):
                self.ends.append(time.perf_counter())

    def late(self):
        return time.perf_counter() - (self.ends or [self.start])[-1] > GRACE


def stop(process):
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(10 if how == signal.SIGTERM else None)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def follow(watch, fd, process):
    """Reads lines until enough steps are measured; why it ended before, or "" ."""
    while not watch.done():
        if time.perf_counter() > watch.deadline:
            return TIME_UP
        if watch.late():
            return f"no step within {GRACE} s"
        if not select.select([fd], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:  # the terminal's other end is closed
            data = b""
        if not data:
            process.wait()
            said = [t for t in watch.tail if t and not t.startswith(" [")]
            return f"ended with code {process.returncode}: " + " / ".join(said[-3:])[-300:]
        watch.take(data)
    return ""


def run(program, o, warm, folder, deadline):
    """One turn of a program; nothing once the deadline is over."""
    if time.perf_counter() > deadline:
        program.error = "" if program.steps else f"not begun, {TIME_UP}"
        return
    before, (fd, other) = gpu_memory(), pty.openpty() if program.terminal else os.pipe()
    env = {**os.environ, **(program.env or {})}
    for name, value in list(env.items()):
        if value is None:
            del env[name]
    watch = Watch(program, o, warm, deadline)
    try:
        process = subprocess.Popen(program.argv, stdin=subprocess.DEVNULL, stdout=other, stderr=other, env=env,
                                   cwd=folder, start_new_session=True)
    except OSError as error:
        os.close(fd)
        os.close(other)
        program.error = str(error)
        return
    os.close(other)
    why = follow(watch, fd, process)
    after = gpu_memory()
    os.close(fd)  # first: a program that waits for its output to be read would not end
    stop(process)
    program.error = why or program.error
    program.wall += time.perf_counter() - watch.start
    if watch.ends:
        program.first.append(watch.ends[0] - watch.start)
    if why in ("", TIME_UP) and watch.ends and None not in (before, after):
        program.memory.append((after - before) / 2**30)
    program.steps += watch.measured()


# ---- which programs a row has ------------------------------------------------------------------------------------


def ours(r, o, data, name="ours"):
    documents = ["--reset-attention-mask", "--reset-position-ids"] if r["documents"] else []
    argv = [o.train, "run", *r["ours"], "--data-path", data.ours(r["vocabulary"], r["documents"]), *documents,
            "--tokenizer-type", "NullTokenizer",
            "--vocab-size", r["vocabulary"] - 1, "--seq-length", r["tokens"], "--micro-batch-size", r["micro_batch"],
            "--global-batch-size", r["step"] // r["tokens"], "--train-iters", STEPS, "--no-save",
            "--no-index-cache", "--lr", 6e-4, "--weight-decay", 0.1, "--adam-beta2", 0.95, "--clip-grad", 1,
            "--eval-iters", 0, "--split", "100,0,0", "--log-interval", 1, "--hidden-dropout", r["dropout"],
            "--attention-dropout", r["dropout"], "--device", "cuda", *OURS_TYPES[r["types"]], *o.ours_args.split()]
    argv += ["--" + r["type"]] if r["type"] != "fp32" else []
    if o.library_path:
        argv += ["--library-path", o.library_path]
    return Program(name, [str(a) for a in argv], r"iteration +\d+/ *\d+ \|")


def libraries(o):
    old = os.environ.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": ":".join(p for p in (o.library_path, old) if p)}


def llmc(r, o, data):
    tokens = data.llmc()
    argv = [o.llmc, "-i", tokens, "-j", tokens, "-e", r["llmc"], "-b", r["micro_batch"], "-t", r["tokens"], "-d",
            r["step"], "-l", 6e-4, "-c", 0.1, "-x", STEPS, "-v", 1000000, "-m", 1, "-s", 0, "-r", 0, "-ge", 2]
    program = Program("llm.c", [str(a) for a in argv], r"^step +\d+/\d+ \|", libraries(o))
    program.terminal = True
    return program


def llmq(r, o, data):
    tokens = data.llmq()
    micros = r["step"] // r["tokens"] // r["micro_batch"]
    argv = [o.llmq, "--from-scratch", *r["llmq"], "--model-dtype=bf16", "--matmul-dtype=bf16", "--opt-m-dtype=bf16",
            "--opt-v-dtype=bf16", "--use-cuda-graphs", "--gpus", 1, "--batch", r["micro_batch"], "--seq-len",
            r["tokens"], "--grad-accumulation", micros, "--lr", 6e-4, "--steps", STEPS, "--train-file", tokens,
            "--eval-file", tokens, "--eval-every-n-steps", 0, "--ckpt-interval", 0, "--log-gpu-util", 0]
    return Program("llm.q", [str(a) for a in argv], r"\[T\] step +\d+ ", libraries(o))


def in_torch(r, o, kind):
    shape = {k: r[k] for k in ("layers", "width", "heads", "groups", "inner", "vocabulary", "tokens", "type", "dim",
                               "window", "dropout", "documents")}
    shape["vocabulary"] = -(-r["vocabulary"] // 128) * 128
    shape["micro_batch"] = r["peer_micro_batch"]
    shape["micros"] = r["step"] // r["tokens"] // shape["micro_batch"]
    argv = [o.torch, os.path.join(HERE, "cuda", "torch_peer.py"), "gpt" if kind == "gpt" else r["family"],
            json.dumps(shape)]
    if kind == "flex":
        argv += ["--compile", "chunked", "--attention", "flex_attention"]
    elif kind != "gpt":
        argv += ["--compile", kind]
    elif o.nanogpt:
        argv += ["--nanogpt", o.nanogpt]
    name = {"gpt": "nanoGPT, compiled" if o.nanogpt else "plain GPT-2 in PyTorch, compiled",
            "whole": "transformers, compiled whole", "layers": "transformers, each layer compiled",
            "chunked": "transformers, each layer compiled, head and loss in compiled chunks",
            "flex": "transformers, FlexAttention, each layer compiled, head and loss in compiled chunks"}[kind]
    return Program(name, argv, r"^step \d+ \|", {"LD_LIBRARY_PATH": None})  # it brings its own libraries


def programs(r, o, data):
    """The row's programs, and the names of those that were not given."""
    found, missing = [ours(r, o, data)], []
    for kind in r["peers"]:
        option = {"llm.c": "llmc", "llm.q": "llmq"}.get(kind, "torch")
        if o.peers and kind not in o.peers:
            continue
        if not getattr(o, option):
            missing.append(f"{kind} (--{option})")
        elif kind == "llm.c":
            found.append(llmc(r, o, data))
        elif kind == "llm.q":
            found.append(llmq(r, o, data))
        else:
            found.append(in_torch(r, o, kind))
    if not o.no_also:
        found += [ours({**r, **changes}, o, data, name) for name, changes in r["also"].items()]
    return found, missing


def limit(r, o, readings, held, deadline):
    """One turn of bench_limit: appends its tokens a second (of the faster form) and the held rate of products."""
    argv = [o.bench_limit, "--whole", *LIMIT_TYPES[r["types"]], "--hold", str(o.hold), r["limit"]]
    if o.library_path:
        argv[1:1] = ["--library-path", o.library_path]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=max(0.1, min(deadline - time.perf_counter(), GRACE)))
    except subprocess.TimeoutExpired:
        return f"bench_limit: not within {GRACE} s, or {TIME_UP}"
    rates = [float(m) for m in re.findall(r"^%s .*\)\s+(\d+)\s+\d+ %%$" % re.escape(r["limit"]), done.stdout, re.M)]
    cube = re.search(r"held: (\d+) TFLOP/s", done.stdout)
    if done.returncode or not rates:
        return f"bench_limit: {' / '.join(done.stdout.split(chr(10))[-3:])[-200:]}"
    readings.append(max(rates))
    held.append(float(cube.group(1)) if cube else 0)
    return ""


# ---- a row -------------------------------------------------------------------------------------------------------


def caches(folder):
    """Empty caches of compiled kernels, for the GPU's driver and for PyTorch."""
    shutil.rmtree(folder, ignore_errors=True)
    names = {"CUDA_CACHE_PATH": "cuda", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
    for variable, name in names.items():
        os.environ[variable] = os.path.join(folder, name)
        os.makedirs(os.environ[variable])


def measure(name, r, o, data, folder):
    found, missing = programs(r, o, data)
    readings, held, why, begun = [], [], "", time.perf_counter()
    deadline = begun + o.row_seconds
    caches(os.path.join(folder, "caches"))
    for i in range(o.rounds):
        if o.bench_limit and r["limit"]:
            why = limit(r, o, readings, held, deadline) or why
        for p in found if i % 2 == 0 else found[::-1]:
            if not p.error:
                run(p, o, r["warm"], folder, deadline)
    result = {"row": name, "tokens_per_step": r["step"], "missing": missing, "note": r["note"],
              "limit_tokens_per_s": statistics.median(readings) if readings else None, "limit_error": why,
              "held_tflops": statistics.median(held) if held else None, "wall_s": time.perf_counter() - begun,
              "programs": {p.name: p.summary() for p in found}}
    for n, s in result["programs"].items():
        if "ms" in s:
            s["tokens_per_s"], s["low"], s["high"] = (1e3 * r["step"] / s[k] for k in ("ms", "ms_high", "ms_low"))
            if readings and n not in r["also"]:
                s["share_of_limit"] = s["tokens_per_s"] / result["limit_tokens_per_s"]
    rate = {n: s["tokens_per_s"] for n, s in result["programs"].items() if "ms" in s}
    others = [v for n, v in rate.items() if not n.startswith("ours")]
    if "ours" in rate and others:
        result["ratio_to_best_peer"] = rate["ours"] / max(others)
    for n in r["also"]:
        if "ours" in rate and n in rate:
            result["ratio_to_" + n.replace(", ", "_").replace(" ", "_")] = rate["ours"] / rate[n]
    return result


def say(result, r):
    held = f", product of 8192 cubed {result['held_tflops']:.0f} TFLOP/s" if result["held_tflops"] else ""
    limit_says = f"limit {result['limit_tokens_per_s']:,.0f} tok/s" if result["limit_tokens_per_s"] else \
        result["limit_error"] or ("no --bench-limit" if r["limit"] else "no limit known")
    peers = f", peers {r['peer_micro_batch']} x {r['tokens']}" if r["peer_micro_batch"] != r["micro_batch"] else ""
    print(f"{result['row']}, {r['micro_batch']} x {r['tokens']}{peers}, {r['type']}: {limit_says}{held}; "
          f"{result['wall_s']:.0f} s")
    for name, s in result["programs"].items():
        if "ms" not in s:
            print(f"  {name}: {s['error']}")
            continue
        text = f"  {name}: {s['tokens_per_s']:,.0f} tok/s ({s['low']:,.0f} to {s['high']:,.0f}, {s['steps']} steps)"
        if "share_of_limit" in s:
            text += f", {100 * s['share_of_limit']:.1f} % of the limit"
        if s["memory_gib"] is not None:
            text += f", {s['memory_gib']:.1f} GiB"
        text += "".join(f" ({k} {s[k]:.1f})" for k in ("slabs", "torch", "allocations") if k in s)
        warm = s["first_step_s"][1:]
        text += f", first step after {s['first_step_s'][0]:.1f} s" + (f", warm {min(warm):.1f} s" if warm else "")
        print(text + (f"; {s['error']}" if "error" in s else ""))
    for key, value in result.items():
        if key.startswith("ratio"):
            print(f"  ours / {key[9:].replace('_', ' ')}: {value:.3f}")
    if result["missing"]:
        print(f"  not given: {', '.join(result['missing'])}")
    if result["note"]:
        print(f"  {result['note']}")
    sys.stdout.flush()


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; default: all")
    p.add_argument("--train", required=True, help="our program")
    p.add_argument("--bench-limit", help="tests/bench_limit of a build with CUDA")
    p.add_argument("--llmc", help="llm.c's train_gpt2cu, built with cuDNN")
    p.add_argument("--llmq", help="llm.q's train")
    p.add_argument("--torch", metavar="PYTHON", help="a Python that has PyTorch (and transformers)")
    p.add_argument("--nanogpt", metavar="FOLDER", help="a checkout of nanoGPT, in place of a plain GPT-2 in PyTorch")
    p.add_argument("--peers", nargs="*", help="of these only: llm.c, llm.q, gpt, layers, chunked, whole, flex")
    p.add_argument("--no-also", action="store_true", help="without a row's other forms of ours")
    p.add_argument("--library-path", help="folders of NVIDIA's libraries, separated by colons")
    p.add_argument("--ours-args", default="", help="further options of ours, in one word")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=20, help="of a turn at most (default 20)")
    p.add_argument("--seconds", type=float, default=40, help="of a turn's steps at most, at least 2 steps (default 40)")
    p.add_argument("--hold", type=float, default=2, help="seconds that bench_limit holds its step (default 2)")
    p.add_argument("--row-seconds", type=float, default=1e9, help="of a row at most; what is measured by then counts")
    p.add_argument("--budget", type=float, default=1e9, help="no row is begun after so many seconds")
    p.add_argument("--json", metavar="FILE", help="also write the figures into this file")
    o = p.parse_args()
    for name in o.rows:
        if name not in ROWS:
            p.error(f"{name} is not a row: {', '.join(ROWS)}")
    for name in ("train", "bench_limit", "llmc", "llmq", "nanogpt"):
        path = getattr(o, name)
        if path and not os.path.exists(path):
            p.error(f"--{name.replace('_', '-')} {path} does not exist")
        if path:
            setattr(o, name, os.path.abspath(path))
    return o


def main():
    o = options()
    results, start = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data = Data(folder, 8 << 20)
        for name in o.rows or ROWS:
            if time.perf_counter() - start > o.budget:
                print(f"{name}: not begun, the time is up")
                continue
            results.append(measure(name, ROWS[name], o, data, folder))
            say(results[-1], ROWS[name])
            if o.json:
                with open(o.json, "w", encoding="utf-8") as f:
                    json.dump(results, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
