#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One bit of a checkpoint is flipped, at 200 places (10,000 under WEFT_FULL=1): convert verify finds each and names the tensor that
it belongs to. Usage: flips.py CONVERT CKPT_MAKE"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

CONVERT, MAKE = sys.argv[1:3]
PLACES = 10000 if os.environ.get("WEFT_FULL") else 200
WORKERS = 2


def places(folder):
    """(file, first byte, bytes, what the message must have) of everything in a checkpoint; headers belong to no tensor."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        size = os.path.getsize(path)
        if not name.endswith(".safetensors"):
            yield path, 0, size, name
            continue
        with open(path, "rb") as f:
            n = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(n))
        yield path, 0, 8 + n, name
        group = name.rsplit("-", 2 if name.count("-") > 1 else 1)[0]
        for tensor, v in header.items():
            if tensor != "__metadata__":
                begin, end = v["data_offsets"]
                yield path, 8 + n + begin, end - begin, f"damaged: {group} '{tensor.split('[')[0]}'"


def try_some(folder, chosen):
    """The first of these flips that was not found, or None."""
    for path, at, bit, want in chosen:
        path = os.path.join(folder, os.path.basename(path))
        with open(path, "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1 << bit]))
            f.flush()
            r = subprocess.run([CONVERT, "verify", folder], capture_output=True, text=True)
            f.seek(at)
            f.write(bytes([byte]))
        if r.returncode not in (3, 7) or want not in r.stderr:
            return f"{path}: bit {bit} of byte {at}: exit {r.returncode}, expected \"{want}\": {r.stderr}"
    return None


def flips(d, ranks):
    run = lambda *a: subprocess.run(a, check=True, capture_output=True)
    run(MAKE, "save", f"{d}/run", "10")
    run(CONVERT, "reshard", "-q", "--ranks", str(ranks), f"{d}/run", f"{d}/cut")
    folder = f"{d}/cut/iter_0000010"
    everything = [p for p in places(folder) if p[2]]
    rng = random.Random(ranks)
    chosen = []
    for path, at, n, want in rng.choices(everything, [p[2] for p in everything], k=PLACES // 2):
        chosen.append((path, at + rng.randrange(n), rng.randrange(8), want))
    copies = [shutil.copytree(folder, f"{d}/{i}") for i in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        for bad in pool.map(try_some, copies, [chosen[i::WORKERS] for i in range(WORKERS)]):
            assert bad is None, bad
    named = sum("damaged" in c[3] for c in chosen)
    print(f"# {len(chosen)} flips, {named} of them in tensors")
    assert named > len(chosen) // 2


def main():
    failed = 0
    for i, ranks in enumerate((1, 3), 1):
        with tempfile.TemporaryDirectory() as d:
            try:
                flips(d, ranks)
                print(f"ok {i} - files of {ranks} ranks")
            except (AssertionError, subprocess.CalledProcessError) as e:
                failed += 1
                print(f"not ok {i} - files of {ranks} ranks\n# " + str(e)[:1500].replace("\n", "\n# "))
    print("1..2")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
