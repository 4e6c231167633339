#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The learning rates of `train run --lr-rules hf` beside transformers' schedules, bit for bit: those of the release that this Python
has are taken from its file optimization.py, which needs a newer PyTorch than Debian's as a whole.

    schedules_hf.py TRAIN"""
import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
SHAPES = {"linear": "_get_linear_schedule_with_warmup_lr_lambda", "cosine": "_get_cosine_schedule_with_warmup_lr_lambda",
          "constant": "_get_constant_schedule_with_warmup_lr_lambda"}
# the options of a run's length, its updates, and the options of its warm-up with their updates
LENGTHS = [(["--train-iters", "10"], 10), (["--train-samples", "23", "--global-batch-size", "2"], 11), (["--train-iters", "2"], 2)]
WARMUPS = [([], lambda n: 0), (["--lr-warmup-iters", "3"], lambda n: 3), (["--lr-warmup-fraction", "0.03"], lambda n: math.ceil(n * 0.03)),
           (["--lr-warmup-fraction", "0.35"], lambda n: math.ceil(n * 0.35)), (["--lr-warmup-iters", "12"], lambda n: 12)]
MODEL = ("--num-layers 1 --hidden-size 8 --num-attention-heads 1 --max-position-embeddings 8 --mock-data --tokenizer-type NullTokenizer "
         "--vocab-size 20 --no-save --eval-iters 0 --threads 1 --device cpu --lr 3e-4 --lr-rules hf").split()


def theirs():
    """The functions of a schedule's factor by name, from the file of the package."""
    spec = importlib.util.find_spec("transformers")
    if not spec:
        print("1..1\nok 1 - transformers # SKIP not installed")
        sys.exit(1 if os.environ.get("WEFT_CI") else 0)
    path = os.path.join(os.path.dirname(spec.origin), "optimization.py")
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in SHAPES.values()]
    there = {"math": math}
    exec(compile(tree, path, "exec"), there)
    return {shape: there[name] for shape, name in SHAPES.items()}


def factor(function, shape, update, warmup, updates):
    more = {} if shape == "constant" else {"num_training_steps": updates}
    if shape == "cosine":
        more["num_cycles"] = 0.5
    return function(update, num_warmup_steps=warmup, **more)


def case(train, shape, function, d):
    seen = 0
    for length, updates in LENGTHS:
        for options, warm in WARMUPS:
            out = os.path.join(d, "m.jsonl")
            r = subprocess.run([train, "run", *MODEL, "--lr-decay-style", shape, *length, *options, "--metrics", out], capture_output=True, text=True)
            assert r.returncode == 0, r.stderr
            with open(out, encoding="utf-8") as f:
                got = [json.loads(x)["learning_rate"] for x in f][:-1]  # each is that of the next update
            os.remove(out)
            want = [3e-4 * factor(function, shape, k, warm(updates), updates) for k in range(1, updates)]
            assert got == want, (shape, length, options, got, want)
            seen += len(got)
    return f"{seen} rates"


def main(train):
    failed = 0
    with tempfile.TemporaryDirectory() as d:
        for i, (shape, function) in enumerate(theirs().items(), 1):
            try:
                print(f"ok {i} - {shape}: {case(train, shape, function, d)}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {i} - {shape}\n# " + repr(e)[:1500].replace("\n", "\n# "))
    print(f"1..{len(SHAPES)}")
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
