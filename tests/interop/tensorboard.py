#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
tensorboard.py TRAIN: event files read back by TensorBoard's own reader (event_accumulator), after a run that died
beyond its checkpoint and was resumed: each step once, with the numbers of metrics.jsonl. Python with tensorboard is
WEFT_TENSORBOARD, or the one that runs this; without it the test is skipped.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TRAIN = os.path.abspath(sys.argv[1])
OPTIONS = ("run --num-layers 1 --hidden-size 16 --num-attention-heads 2 --max-position-embeddings 32 --micro-batch-size 2 "
           "--global-batch-size 4 --lr 5e-3 --mock-data --tokenizer-type NullTokenizer --vocab-size 60 --split 90,5,5 "
           "--eval-iters 1 --log-interval 100 --save-interval 4 --save run --tensorboard-dir tb").split()
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator("tb", size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({t: [[e.step, e.value] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}))
"""


def train(steps):
    subprocess.run([TRAIN, *OPTIONS, "--train-iters", str(steps)], check=True, capture_output=True)


def main():
    python = os.environ.get("WEFT_TENSORBOARD") or sys.executable
    if subprocess.run([python, "-c", "import tensorboard"], capture_output=True).returncode:
        print("ok 1 - TensorBoard reads event files # SKIP no tensorboard\n1..1")
        return 0
    os.chdir(tempfile.mkdtemp())
    train(7)
    shutil.rmtree("run/iter_0000007")
    train(12)
    out = subprocess.run([python, "-c", READ], check=True, capture_output=True, text=True).stdout
    curves = json.loads(out)
    with open("run/metrics.jsonl", encoding="utf-8") as f:
        steps = [r for r in map(json.loads, f) if "lm_loss" in r]
    wrong = []
    for tag, key in (("lm loss", "lm_loss"), ("learning-rate", "learning_rate"), ("grad-norm", "grad_norm")):
        for other, of in (("", "iteration"), (" vs samples", "consumed_samples")):
            got = curves.get(tag + other, [])
            want = [[r[of], r[key]] for r in steps]
            if [g[0] for g in got] != [w[0] for w in want] or any(abs(g[1] - w[1]) > 1e-6 * abs(w[1]) for g, w in zip(got, want)):
                wrong.append(f"{tag}{other}: {got} instead of {want}")
    if len(steps) != 12:
        wrong.append(f"{len(steps)} steps")
    print(f"{'not ' if wrong else ''}ok 1 - TensorBoard reads event files: {len(curves)} curves, each step once")
    for w in wrong:
        print("# " + w)
    print("1..1")
    shutil.rmtree(os.getcwd())
    return bool(wrong)


sys.exit(main())
