#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of each process of a run against the plan's total: of GPT-2 124M, by 1 and 4 data-parallel processes,
and of a small GPT in layouts that send much, whose communication the plan gives as a maximum.

    plan_memory.py TRAIN PREP      exit 1 where they differ by more than 2 %
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

TRAIN, PREP = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TOKENIZER = "--tokenizer-type NullTokenizer --vocab-size 50256".split()
MODEL = TOKENIZER + "--preset gpt2-124m --threads 1 --lr 1e-4 --device cpu".split()
LARGE = "--seq-length 256 --micro-batch-size 1".split()
SMALL = ("--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
         "--micro-batch-size 2 --global-batch-size 8").split()


def planned(world, more):
    out = subprocess.run([TRAIN, "plan", *MODEL, *more, "--world-size", str(world), "--device-memory", "100G", "--json"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    memory = json.loads(out)["memory"]
    return memory["together"] + memory["beyond"], memory["communication"]


def peak_of(pid):
    """VmHWM in bytes of a process whose command line is a run; 0: gone, or another's."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            found += f.read().split()
    return found


def measured(world, more):
    """The largest peak of each process that trains."""
    with tempfile.TemporaryDirectory() as save:
        with open(os.path.join(save, "d.jsonl"), "w", encoding="ascii") as f:
            for i in range(200):
                f.write(json.dumps({"text": " ".join(str(i * k % 50000) for k in range(100))}) + "\n")
        subprocess.run([PREP, "build", "--input", "d.jsonl", *TOKENIZER, "--append-eod", "--output-prefix", "d", "--quiet"],
                       cwd=save, check=True, stdout=subprocess.DEVNULL)
        several = ["--nproc-per-node", str(world)] if world > 1 else []
        p = subprocess.Popen([TRAIN, "run", *MODEL, *more, *several, "--data-path", "d_text_document", "--train-iters", "12" if "--num-layers" in more else "2",
                              "--eval-iters", "0", "--no-save"], cwd=save, stdout=subprocess.DEVNULL)
        peak = {}

        def watch():
            while p.poll() is None:
                try:
                    for pid in children(p.pid) if world > 1 else [p.pid]:
                        peak[pid] = max(peak.get(pid, 0), peak_of(pid))
                except (FileNotFoundError, ProcessLookupError):
                    pass
                time.sleep(0.01)

        t = threading.Thread(target=watch)
        t.start()
        code = p.wait()
        t.join()
        if code or len(peak) != world:
            sys.exit(f"the run of {world} ended with {code}, {len(peak)} processes were seen")
        return sorted(peak.values())


OVERLAP = "--overlap-grad-reduce --overlap-param-gather".split()
LAYOUTS = ((1, LARGE), (4, LARGE), (1, SMALL), (2, SMALL), (2, [*SMALL, "--tp", "2"]), (2, [*SMALL, "--pp", "2"]),
           (4, [*SMALL, "--overlap-grad-reduce", "--ddp-bucket-size", "200000"]), (4, [*SMALL, "--zero-stage", "3", *OVERLAP]),
           (4, [*SMALL, "--tp", "2", "--pp", "2"]))
wrong = 0
for n, options in LAYOUTS:
    (plan, most), seen = planned(n, options), measured(n, options)
    wrong |= not 0.98 * plan <= seen[-1] <= 1.02 * (plan + most)
    print(f"{n} processes, {' '.join(options[-4:])}: planned {plan / 2**20:.1f} MiB and at most {most / 2**20:.1f} of "
          f"communication, resident {seen[0] / 2**20:.1f} to {seen[-1] / 2**20:.1f} MiB", flush=True)
sys.exit(wrong)
