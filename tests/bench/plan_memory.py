#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of each process of a run of GPT-2 124M, by 1 and 4 data-parallel processes, against the plan's total.

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
MODEL = TOKENIZER + ("--preset gpt2-124m --seq-length 256 --micro-batch-size 1 --threads 1 "
                     "--lr 1e-4 --device cpu").split()


def planned(world):
    out = subprocess.run([TRAIN, "plan", *MODEL, "--world-size", str(world), "--device-memory", "100G", "--json"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    memory = json.loads(out)["memory"]
    return memory["together"] + memory["beyond"]


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


def measured(world):
    """The largest peak of each process that trains."""
    with tempfile.TemporaryDirectory() as save:
        with open(os.path.join(save, "d.jsonl"), "w", encoding="ascii") as f:
            for i in range(200):
                f.write(json.dumps({"text": " ".join(str(i * k % 50000) for k in range(100))}) + "\n")
        subprocess.run([PREP, "build", "--input", "d.jsonl", *TOKENIZER, "--append-eod", "--output-prefix", "d", "--quiet"],
                       cwd=save, check=True, stdout=subprocess.DEVNULL)
        several = ["--nproc-per-node", str(world)] if world > 1 else []
        p = subprocess.Popen([TRAIN, "run", *MODEL, *several, "--data-path", "d_text_document", "--train-iters", "2",
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


wrong = 0
for n in (1, 4):
    plan, seen = planned(n), measured(n)
    share = [s / plan - 1 for s in seen]
    wrong |= any(abs(s) > 0.02 for s in share)
    print(f"{n} processes: planned {plan / 2**20:.1f} MiB, resident {seen[0] / 2**20:.1f} to {seen[-1] / 2**20:.1f} MiB, "
          f"{100 * share[0]:+.2f} to {100 * share[-1]:+.2f} %")
sys.exit(wrong)
