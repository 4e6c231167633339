#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
tensorboard.py TRAIN: event files read back by TensorBoard's own reader (event_accumulator), after a run that was killed
beyond its checkpoint and resumed: each step once, with the numbers of metrics.jsonl. Python with tensorboard is
WEFT_TENSORBOARD, or the one that runs this; without it the test is skipped.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TRAIN = os.path.abspath(sys.argv[1])
LONG = 1000000  # steps
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


def command(steps):
    return [TRAIN, *OPTIONS, "--train-iters", str(steps)]


def metrics():
    """The steps in the metrics, the last of which may be half written."""
    try:
        with open("run/metrics.jsonl", encoding="utf-8") as f:
            lines = f.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [r for r in map(json.loads, lines) if "lm_loss" in r]


def newest():
    return max([0, *(int(d[5:]) for d in os.listdir("run") if d.startswith("iter_"))])


def killed():
    """Starts a long run and kills it two steps or more beyond its newest checkpoint, of which the step is returned."""
    with subprocess.Popen(command(LONG), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while True:
            time.sleep(0.01)
            run.send_signal(signal.SIGSTOP)
            assert os.WIFSTOPPED(os.waitpid(run.pid, os.WUNTRACED)[1]), "the run ended"
            if len(metrics()) > 5 and metrics()[-1]["iteration"] > newest() + 1:
                run.send_signal(signal.SIGKILL)
                return newest()
            run.send_signal(signal.SIGCONT)


def main():
    python = os.environ.get("WEFT_TENSORBOARD") or sys.executable
    if subprocess.run([python, "-c", "import tensorboard"], capture_output=True).returncode:
        print("ok 1 - TensorBoard reads event files # SKIP no tensorboard\n1..1")
        return 0
    os.chdir(tempfile.mkdtemp())
    saved = killed()
    end = saved + 8
    event_file = os.path.join("tb", *os.listdir("tb"))
    size = os.path.getsize(event_file)
    subprocess.run(command(end), check=True, capture_output=True)
    out = subprocess.run([python, "-c", READ], check=True, capture_output=True, text=True).stdout
    curves, texts, plugins = json.loads(out)
    steps = metrics()
    wrong = [] if os.path.getsize(event_file) < size else ["the killed run's points beyond its checkpoint are still there"]
    for tag, key in (("lm loss", "lm_loss"), ("learning-rate", "learning_rate"), ("grad-norm", "grad_norm")):
        for other, of in (("", "iteration"), (" vs samples", "consumed_samples")):
            got = curves.get(tag + other, [])
            want = [[r[of], r[key]] for r in steps]
            if [g[0] for g in got] != [w[0] for w in want] or any(abs(g[1] - w[1]) > 1e-6 * abs(w[1]) for g, w in zip(got, want)):
                wrong.append(f"{tag}{other}: {got} instead of {want}")
    arguments = {"num_layers": ("1", "1"), "train_iters": (str(LONG), str(end)), "lr": ("0.005", "0.005"),
                 "tokenizer_type": ("NullTokenizer", "NullTokenizer"), "load": ("None", "None")}
    arguments = {k: [[0, first], [saved, second]] for k, (first, second) in arguments.items()}
    got = {k: texts.get(k + "/text_summary") for k in arguments}
    if got != arguments or plugins != ["text"] or len(texts) < 150:
        wrong.append(f"{got} and {len(texts)} texts of {plugins}")
    if len(steps) != end:
        wrong.append(f"{len(steps)} steps")
    print(f"{'not ' if wrong else ''}ok 1 - TensorBoard reads event files: {len(curves)} curves, each step once, {len(texts)} arguments")
    for w in wrong:
        print("# " + w)
    print("1..1")
    shutil.rmtree(os.getcwd())
    return bool(wrong)


sys.exit(main())
