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
curves = {t: [[e.step, e.value] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}
texts = {t: [[e.step, e.tensor_proto.string_val[0].decode()] for e in a.Tensors(t)] for t in a.Tags()["tensors"]}
plugins = {a.SummaryMetadata(t).plugin_data.plugin_name for t in texts}
print(json.dumps([curves, texts, sorted(plugins)]))
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
    curves, texts, plugins = json.loads(out)
    with open("run/metrics.jsonl", encoding="utf-8") as f:
        steps = [r for r in map(json.loads, f) if "lm_loss" in r]
    wrong = []
    for tag, key in (("lm loss", "lm_loss"), ("learning-rate", "learning_rate"), ("grad-norm", "grad_norm")):
        for other, of in (("", "iteration"), (" vs samples", "consumed_samples")):
            got = curves.get(tag + other, [])
            want = [[r[of], r[key]] for r in steps]
            if [g[0] for g in got] != [w[0] for w in want] or any(abs(g[1] - w[1]) > 1e-6 * abs(w[1]) for g, w in zip(got, want)):
                wrong.append(f"{tag}{other}: {got} instead of {want}")
    arguments = {"num_layers": [[0, "1"], [4, "1"]], "train_iters": [[0, "7"], [4, "12"]], "lr": [[0, "0.005"], [4, "0.005"]],
                 "tokenizer_type": [[0, "NullTokenizer"], [4, "NullTokenizer"]], "load": [[0, "None"], [4, "None"]]}
    got = {k: texts.get(k + "/text_summary") for k in arguments}
    if got != arguments or plugins != ["text"] or len(texts) < 150:
        wrong.append(f"{got} and {len(texts)} texts of {plugins}")
    if len(steps) != 12:
        wrong.append(f"{len(steps)} steps")
    print(f"{'not ' if wrong else ''}ok 1 - TensorBoard reads event files: {len(curves)} curves, each step once, {len(texts)} arguments")
    for w in wrong:
        print("# " + w)
    print("1..1")
    shutil.rmtree(os.getcwd())
    return bool(wrong)


sys.exit(main())
