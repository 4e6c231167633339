#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Index maps beside numpy and Megatron-LM's C++ helper, in turn, over one shard of which only the .idx is real.

    maps.py BENCH_MAPS [SEQUENCES] [ROUNDS]

WEFT_MEGATRON names a folder that holds helpers_cpp, built from Megatron-LM's megatron/core/datasets/helpers.cpp; without
it only ours is measured. Seconds by the clock and of the process are both shown, since machines are shared."""
import os
import subprocess
import sys
import tempfile
import time

L = 2048


def peer(prefix, helpers):
    """What GPTDataset does to build its three arrays, one epoch."""
    import numpy as np
    with open(prefix + ".idx", "rb") as f:
        n = int(np.frombuffer(f.read(34)[18:26], "<u8")[0])
    clock, cpu = time.monotonic(), time.process_time()
    lengths = np.fromfile(prefix + ".idx", "<i4", n, offset=34)
    tokens = int(lengths.sum())
    rng = np.random.RandomState(1234)
    doc = np.arange(n, dtype=np.int32)
    rng.shuffle(doc)
    sample = helpers.build_sample_idx_int32(lengths, doc, L, 1, tokens, True, 1)
    shuffle = np.arange(len(sample) - 1, dtype=np.uint32)
    rng.shuffle(shuffle)
    return time.monotonic() - clock, time.process_time() - cpu, len(shuffle)


def main(bench, sequences="20000000", rounds="2"):
    helpers = None
    if os.environ.get("WEFT_MEGATRON"):
        sys.path.insert(0, os.environ["WEFT_MEGATRON"])
        import helpers_cpp as helpers
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "m")
        subprocess.run([bench, "write", prefix, sequences, str(L)], check=True)
        for _ in range(int(rounds)):
            print(subprocess.run([bench, "maps", prefix, "1"], check=True, capture_output=True, text=True).stdout, end="")
            if helpers:
                clock, cpu, samples = peer(prefix, helpers)
                print(f"peer: {sequences} sequences, {samples} samples: {clock:.3f} s, {cpu:.3f} process s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
