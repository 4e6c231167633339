# SPDX-License-Identifier: Apache-2.0
"""Loss and gradients of a model of transformers against ours: theirs are written as a folder of the same family, imported as its
weights are, and compared tensor by tensor with what hf_logits -g wrote."""
import json
import os
import shutil
import struct
import subprocess

TOLERANCE = 1e-4  # of a tensor's largest value, or of 1 % of the largest of all: the gradient of GPT-2's key biases is rounding alone


def write_folder(folder, config, found):
    """found: name -> (shape, bytes of float32)"""
    header, at = {}, 0
    for name, (shape, data) in found.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    os.makedirs(folder)
    shutil.copy(config, os.path.join(folder, "config.json"))
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, data in found.values():
            f.write(data)


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def read_tensors(folder):
    found = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, file), "rb") as f:
            n, = struct.unpack("<Q", f.read(8))
            header, data = json.loads(f.read(n)), f.read()
        for name, v in header.items():
            if name != "__metadata__":
                assert v["dtype"] == "F32", v
                found[name] = floats(data[slice(*v["data_offsets"])])
    return found


def check(convert, logits, ckpt, d, config, found, loss, ids):
    """ckpt: the imported model; loss: theirs of `ids` with labels `ids`; found: their gradients."""
    theirs, ours = os.path.join(d, "gradients"), os.path.join(d, "ours")
    write_folder(theirs, config, found)
    os.makedirs(ours)
    subprocess.run([convert, "import", "-q", theirs, theirs + ".ckpt"], check=True, capture_output=True)
    r = subprocess.run([logits, "-g", ours, os.path.join(ckpt, "iter_0000000"), *map(str, ids)], capture_output=True, check=False)
    assert r.returncode == 0, r.stderr
    with open(os.path.join(ours, "loss"), encoding="ascii") as f:
        assert abs(float(f.read()) - loss) < TOLERANCE * abs(loss), loss
    want = read_tensors(os.path.join(theirs + ".ckpt", "iter_0000000"))
    assert sorted(want) == sorted(x[2:] for x in os.listdir(ours) if x.startswith("g.")), sorted(want)
    worst, floor = {}, 0.01 * max(max(map(abs, b)) for b in want.values())
    for name, b in want.items():
        with open(os.path.join(ours, "g." + name), "rb") as f:
            a = floats(f.read())
        assert len(a) == len(b), name
        worst[name] = max(abs(x - y) for x, y in zip(a, b)) / max(floor, *map(abs, b))
    bad = {k: v for k, v in worst.items() if v > TOLERANCE}
    assert not bad, bad
