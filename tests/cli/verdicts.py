#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train run --dry-run` against a start: the same lists of arguments to both, with the same exit code and the same first
error. A dry run leaves nothing behind.

    verdicts.py FOLDER TRAIN SEEDS [every N]

FOLDER holds what the lists name (train_verdicts.sh makes it); each start gets a copy. With `every N` only each N-th list.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

MODEL = """--num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 32 --seq-length 32
    --micro-batch-size 2 --global-batch-size 4 --lr 5e-3 --eval-iters 1 --threads 1""".split()
NULL = "--tokenizer-type NullTokenizer --vocab-size 60".split()
DATA = "--data-path d_text_document --split 90,5,5".split()
BASE = MODEL + NULL + DATA + ["--train-iters", "1"]


def without(args, *names):
    """The list without these options and their values."""
    out, skips = [], False
    for a in args:
        if a.startswith("--"):
            skips = a[2:].split("=")[0] in names
        if not skips:
            out.append(a)
    return out


def right():
    """Lists that start."""
    yield BASE
    for more in (
        "--save new", "--save deep/er/new --save-interval 1", "--save-interval 5", "--no-save", "--load ckpt --no-save",
        "--load ckpt --save ckpt --train-iters 3", "--load ckpt --save other --finetune", "--load ckpt/iter_0000002 --no-save --finetune",
        "--tensorboard-dir tb", "--tensorboard-dir a/b/tb --metrics m.jsonl", "--data-cache-path cache", "--no-index-cache",
        "--split 100,0,0", "--split 979,20,1", "--full-validation --eval-iters 0", "--eod-mask-loss --reset-attention-mask",
        "--bf16", "--fp16", "--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear",
        "--num-experts 4 --moe-router-topk 2 " + LLAMA, "--optimizer muon", "--optimizer sgd", "--optimizer sgd-sai",
        "--nproc-per-node 2", "--nproc-per-node 2 --tensor-model-parallel-size 2 --save two", "--nproc-per-node 2 --log-dir logs",
        "--nproc-per-node 2 --pipeline-model-parallel-size 2", "--nproc-per-node 2 --context-parallel-size 2",
        "--nproc-per-node 2 --use-distributed-optimizer", "--control-file c", "--tokenizer-type NullTokenizer",
        "--timing-log-level 2 --timing-log-option all --save timed", "--save ckpt", "--train-iters 2 --save ckpt",
        "--use-mcore-models --num-workers 4", "--deepspeed --deepspeed_config ds.json", "--deepspeed --deepspeed_config strange.json", "--export-hf out --save exported " + LLAMA,
    ):
        yield BASE + more.split()
    bare = without(BASE, "data-path", "split")
    yield bare + ["--mock-data", "--split", "90,5,5"]
    yield bare + "--train-data-path d_text_document --valid-data-path 1 d_text_document 2 e_text_document".split()
    yield bare + "--data-path d_text_document e_text_document --split 90,5,5 --eval-iters 400".split()


LLAMA = """--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
    --untie-embeddings-and-output-weights --num-query-groups 2 --group-query-attention"""


def wrong():
    """Lists made wrong: paths, values, sizes, pairs, places that cannot be written, other checkpoints."""
    for option in ("data-path", "data-args-path", "per-split-data-args-path", "load", "hf-config", "tokenizer", "tokenizer-model",
                   "config", "deepspeed_config"):
        rest = without(BASE, option, *(("data-path",) if "args-path" in option else ()))
        for path in ("nosuch", "file", "empty", "nosuch/x", "file/x"):
            yield rest + ([] if option != "deepspeed_config" else ["--deepspeed"]) + ["--" + option, path]
    for option in ("save", "data-cache-path", "tensorboard-dir", "metrics", "export-hf --save kept " + LLAMA,
                   "log-dir --nproc-per-node 2"):
        name, _, rest = option.partition(" ")
        for path in ("file", "file/x", "/proc/nosuch", "/proc/nosuch/x", "/dev/null/x"):
            yield BASE + ["--" + name, path] + rest.split()
    for option, value in (
        ("num-layers", "0"), ("num-layers", "two"), ("hidden-size", "33"), ("hidden-size", "-1"), ("num-attention-heads", "3"),
        ("num-query-groups", "3"), ("seq-length", "64"), ("seq-length", "0"), ("micro-batch-size", "3"), ("micro-batch-size", "0"),
        ("global-batch-size", "5"), ("train-iters", "0"), ("lr", "0"), ("lr", "nan"), ("lr", "-1"), ("min-lr", "1"), ("split", "abc"),
        ("split", "0,0,0"), ("split", "0,50,50"), ("split", "999,1,0"), ("vocab-size", "20"), ("vocab-size", "0"), ("optimizer", "lion"),
        ("lr-decay-style", "none"), ("normalization", "BatchNorm"), ("position-embedding-type", "alibi"), ("device", "tpu"),
        ("device", "cuda"), ("kernels", "sse"), ("log-format", "plain"), ("tokenizer-type", "NoSuchTokenizer"), ("tokenizer-type", ""),
        ("ckpt-step", "99"), ("ffn-hidden-size", "0"), ("kv-channels", "0"), ("hidden-dropout", "2"), ("rampup-batch-size", "3 1 8"),
        ("rampup-batch-size", "2 2 8"), ("data-rules", "v3"), ("seed", "x"), ("eval-interval", "0"), ("lr-warmup-iters", "9"),
        ("micro-batch-size", "100000000"), ("loss-spike-factor", "0.5"), ("fim-rate", "0.5"), ("zero-stage", "4"),
        ("tensor-model-parallel-size", "2"), ("pipeline-model-parallel-size", "3"), ("context-parallel-size", "5"),
    ):
        yield without(BASE, option) + ["--" + option] + value.split(" ")
    for more in (
        "--bf16 --fp16", "--save a --no-save", "--finetune", "--mock-data", "--train-samples 8", "--on-anomaly rewind",
        "--export-hf out", "--export-hf out --save kept", "--use-checkpoint-opt_param-scheduler --override-opt_param-scheduler",
        "--start-weight-decay 1", "--lr-decay-iters 4 --lr-decay-samples 4", "--lr-warmup-fraction 0.1 --lr-warmup-iters 1",
        "--train-data-path d_text_document", "--recompute-method uniform", "--recompute-granularity full",
        "--distribute-saved-activations", "--num-layers-per-virtual-pipeline-stage 1", "--num-experts 4 --moe-router-topk 5",
        "--openai-gelu", "--no-such-option", "--no-such-option --openai-gelu", "--learning-rat 1", "--reset-position-ids --eod-token x",
        "--optimizer sgd-sai --sai-statistics shard --nproc-per-node 2 --zero-stage 1",
        "--nproc-per-node 2 --tensor-model-parallel-size 4", "--nproc-per-node 2 --global-batch-size 2",
        "--nproc-per-node 2 --pipeline-model-parallel-size 2 --num-layers 3", "--nproc-per-node 3 --tensor-model-parallel-size 3",
        "--nproc-per-node 2 --context-parallel-size 2 --seq-length 31", "--nproc-per-node 2 --data-path nosuch",
        "--nproc-per-node 2 --save file", "--nproc-per-node 2 --load ckpt --hidden-size 16", "--nproc-per-node 0",
        "--nnodes 2", "--nnodes 2 --node-rank 5 --master-addr localhost",
        "--load ckpt --hidden-size 16", "--load ckpt --num-layers 3", "--load ckpt --num-attention-heads 2 --swiglu", "--load cut",
        "--save cut", "--load flip --no-save", "--save flip", "--load ckpt --ckpt-step 7", "--load empty --exit-on-missing-checkpoint",
        "--load ckpt --data-path e_text_document", "--save ckpt --data-path e_text_document", "--load ckpt --no-save --vocab-size 61",
        "--load foreign", "--save held", "--data-path bad", "--data-path short", "--data-path pack d_text_document",
        "--deepspeed --deepspeed_config wrong.json", "--deepspeed --deepspeed_config odd.json", "--deepspeed --deepspeed_config ds.json --micro-batch-size 1 --global-batch-size 3",
        "--full-validation --split 100,0,0", "--full-validation --split 999,1,0", "--tune-gemm file/x", "--library-path nosuch --device cuda",
    ):
        yield BASE + more.split()
    yield ["--dry-run=false"]
    yield []
    yield MODEL
    yield without(BASE, "lr")
    yield without(BASE, "train-iters")
    yield without(BASE, "data-path")
    yield without(BASE, "tokenizer-type", "vocab-size") + ["--data-path", "nomanifest"]
    yield without(BASE, "num-layers")


def recorded(seeds):
    """The lists of the users' projects as they are, and with a model, data and processes that are there."""
    small = MODEL + NULL + DATA + "--train-iters 1 --save kept --device cpu".split()
    for path in sorted(glob.glob(os.path.join(seeds, "*.args"))):
        text = [line for line in open(path) if not line.startswith("#")]
        args = " ".join(text).split()
        yield args
        for drop in ((), ("tensor-model-parallel-size", "pipeline-model-parallel-size", "model-parallel-size", "pipe-parallel-size",
                          "balance", "sequence-parallel", "recompute-granularity", "recompute-method", "recompute-num-layers")):
            names = [a[2:] for a in small if a.startswith("--")]
            names += ["train-samples", "train-tokens", "batch-size", "gas", "load", "exit-on-missing-checkpoint", "vocab-file", "merge-file",
                      "tokenizer-model", "data-cache-path", "tensorboard-dir", "ffn-hidden-size", "num-query-groups", "lr-decay-iters",
                      "lr-decay-tokens", "lr-warmup-tokens", "deepspeed", "deepspeed_config", "group-query-attention", "min-lr",
                      "use-rope-scaling", "zero-stage", "warmup", "lr-warmup-fraction"]
            yield without(args, *names, *drop) + small
            if drop:
                yield without(args, *names, *drop) + small + "--nproc-per-node 4 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2".split()


def tree(folder):
    found = {}
    for path, folders, files in os.walk(folder):
        for f in folders + files:
            s = os.lstat(os.path.join(path, f))
            found[os.path.relpath(os.path.join(path, f), folder)] = (s.st_size, s.st_mtime_ns) if f in files else None
    return found


def start(train, folder, args):
    r = subprocess.run([train, "run"] + args, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600)
    first = next((x for x in r.stderr.splitlines() if re.match(r"(\[rank \d+\] )?error: ", x)), "")
    return r.returncode, re.sub(r"127\.0\.0\.1:\d+|0x[0-9a-f]+|rank \d+", "", first), r


def differs(train, folder, place, args):
    """What is different, or None; and the exit code of the start."""
    before = tree(folder)
    code, error, dry = start(train, folder, ["--dry-run"] + args)
    left = tree(folder)
    if left != before:
        return "the dry run left %s" % sorted(k for k in set(left) | set(before) if left.get(k) != before.get(k)), code
    copy = os.path.join(place, "start")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    real_code, real_error, _ = start(train, copy, args)
    listed = re.search(r"^(unknown|not supported) ", dry.stdout, re.M)
    if code != real_code or (error != real_error and not (listed and code == 2)):
        return "dry run: %d %s\n#   start:   %d %s" % (code, error, real_code, real_error), real_code
    return None, real_code


def main():
    folder, train, seeds = sys.argv[1:4]
    every = int(sys.argv[5]) if sys.argv[4:5] == ["every"] else 1
    lists = [("right", a) for a in right()] + [("wrong", a) for a in wrong()] + [("recorded", a) for a in recorded(seeds)]
    place, failed, n = os.path.dirname(os.path.abspath(folder)), 0, {}
    for kind, args in lists[::every]:
        why, code = differs(train, folder, place, args)
        count = n.setdefault(kind, {"lists": 0, "refused": 0})
        count["lists"] += 1
        count["refused"] += code != 0
        if kind == "right" and code:
            why = why or "refused, exit code %d" % code
        if why:
            failed += 1
            shown = " ".join(a for a in args if a not in BASE or kind != "wrong")
            print("# %s: %s\n#   %s" % (kind, shown, why))
    print("# %s, %d verdicts differ" % (json.dumps(n), failed))
    sys.exit(failed > 0)


main()
