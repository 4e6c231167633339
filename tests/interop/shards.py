#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What prep does to shards, against the published rules of their formats, written once more with numpy.

    shards.py PREP"""
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from dataset import TYPES
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)


def run(prep, *args, code=0):
    r = subprocess.run([prep, *args], capture_output=True)
    assert r.returncode == code, f"exit code {r.returncode} of {args}: {r.stderr.decode()}"
    return r


# ---- shards --------------------------------------------------------------------------------------------

class Index:
    """An .idx as lists; empty sequences stay, as tools other than Megatron-LM's own write them."""

    def __init__(self, code):
        self.code, self.lengths, self.documents, self.modes = code, [], [0], []

    def bytes(self):
        size = np.dtype(TYPES[self.code]).itemsize
        at, offsets = 0, []
        for n in self.lengths:
            offsets.append(at)
            at += n * size
        return (b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, self.code, len(self.lengths), len(self.documents))
                + np.array(self.lengths, dtype="<i4").tobytes() + np.array(offsets, dtype="<i8").tobytes()
                + np.array(self.documents, dtype="<i8").tobytes() + np.array(self.modes, dtype="i1").tobytes())


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def random_shard(rng, code, modes, size):
    """(Index, ids as an array) of random documents."""
    x, n = Index(code), 0
    for _ in range(size):
        for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
            x.lengths.append(rng.choice([0, 1, 2, rng.randrange(300)]))
            n += x.lengths[-1]
        x.documents.append(len(x.lengths))
    x.modes = [rng.randrange(3) for _ in x.lengths] if modes else []
    top = np.iinfo(TYPES[code]).max
    return x, np.array([rng.randrange(min(top, 70000)) for _ in range(n)], dtype=TYPES[code])


# ---- merge ---------------------------------------------------------------------------------------------

def merge_rules(shards):
    """(.idx, .bin) as Megatron-LM's builder makes of shards that it is given by add_index."""
    whole, body = Index(shards[0][0].code), b""
    for x, ids in shards:
        behind = len(whole.lengths)
        whole.lengths += x.lengths
        whole.documents += [behind + d for d in x.documents[1:]]
        whole.modes += x.modes
        body += ids.tobytes()
    return whole.bytes(), body


def merge(prep, folder):
    for seed in range(24):
        rng = random.Random(seed)
        code = rng.choice(list(TYPES))
        shards, parts = [], os.path.join(folder, f"parts{seed}")
        os.mkdir(parts)
        names = sorted(f"{rng.randrange(10 ** 6)}_\u00e9_document" for _ in range(rng.randrange(1, 9)))
        modes = seed % 5 == 0
        for name in names:
            shards.append(random_shard(rng, code, modes, rng.choice([0, 1, 30])))
            write(os.path.join(parts, name + ".idx"), shards[-1][0].bytes())
            write(os.path.join(parts, name + ".bin"), shards[-1][1].tobytes())
        out = os.path.join(folder, f"whole{seed}")
        run(prep, "merge", "--quiet", "--input", parts, "--output-prefix", out)
        idx, body = merge_rules(shards)
        assert read(out + ".idx") == idx and read(out + ".bin") == body, f"seed {seed}"


def main():
    prep = sys.argv[1]
    cases = [merge]
    print(f"1..{len(cases)}")
    failed = 0
    for i, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(prep, folder)
                print(f"ok {i} - {case.__name__}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {i} - {case.__name__}\n# {e}")
    print(f"# {len(cases) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
