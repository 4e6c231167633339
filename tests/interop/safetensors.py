#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our safetensors files read by others, and theirs by us. The others: a reader and a writer made here from
the format's description alone (numpy), and the reference library, which Debian 12 does not have: where it is
missing ($WEFT_PYTHON names another Python) its cases are skipped.
Usage: safetensors.py CKPT_MAKE-PROGRAM"""
import json
import os
import struct
import subprocess
import sys
import tempfile

# this script bears the library's name: what lies beside it must not be found first
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
try:
    import numpy as np
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)
try:
    import safetensors
    import safetensors.numpy
except ImportError as e:
    if os.environ.get("WEFT_CI"):
        print(f"1..1\nnot ok 1 - the reference library is not installed: {e}")
        sys.exit(1)
    safetensors = None

MAKE = sys.argv[1]
TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I32": "<i4", "I64": "<i8", "U8": "u1"}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}


def plain_writer(tensors, path, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": NAMES[value.dtype], "shape": list(value.shape),
                        "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values()))


def plain_reader(path):
    blob = open(path, "rb").read()
    (n,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8:8 + n])
    header.pop("__metadata__", None)
    data = blob[8 + n:]
    return {k: np.frombuffer(data[v["data_offsets"][0]:v["data_offsets"][1]], TYPES[v["dtype"]]).reshape(v["shape"])
            for k, v in header.items()}


def mix(x):
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def sum128(data):
    """The sum of train/ckpt/FORMAT.md."""
    total = 0
    for i in range(0, len(data), 8):
        word, block = int.from_bytes(data[i:i + 8], "little"), i // 2048
        total += word * (mix(i // 8 % 256) | 1) * (mix(257 + 2 * block) << 64 | mix(256 + 2 * block) | 1)
    return f"{total % 2**128:032x}"


def ours(path):
    """name -> (dtype, shape, digest), as our reader sees the file."""
    r = subprocess.run([MAKE, "read", path], check=True, capture_output=True, text=True)
    rows = {}
    for line in r.stdout.splitlines():
        name, dtype, shape, digest = line.split(" ")
        rows[name] = (dtype, [int(x) for x in shape.split(",") if x], digest)
    return rows


def check_ours(d, read):
    """Every tensor that the manifest names is in the file, in its shape, and no other; returns the weights."""
    subprocess.run([MAKE, "save", d, "7"], check=True)
    ckpt = os.path.join(d, "iter_0000007")
    with open(os.path.join(ckpt, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    found, weights = 0, {}
    for group in ("param", "exp_avg", "exp_avg_sq"):
        path = os.path.join(ckpt, group + "-00000.safetensors")
        theirs, rows = read(path), ours(path)
        assert set(theirs) == set(rows)
        for t in manifest["tensors"]:
            if t["group"] != group:
                continue
            (part,) = t["parts"]
            assert part["file"] == os.path.basename(path) and not any(part["begin"])
            value = theirs[part["entry"]]
            assert list(value.shape) == t["shape"] == part["count"] and value.dtype == np.float32, t
            assert t["dtype"] == "F32" and t["fingerprint"] == sum128(value.tobytes()), t
            found += 1
        weights = weights or theirs
        for file in manifest["files"]:
            if file["name"] == os.path.basename(path):
                with open(path, "rb") as f:
                    blob = f.read()
                assert file["size"] == len(blob) and file["sum128"] == sum128(blob), file
        assert struct.unpack("<Q", blob[:8])[0] % 8 == 0
    assert found == len(manifest["tensors"]) == 3 * 20, found
    assert weights["embed.weight"].shape == (100, 16) and (weights["norm.weight"] == 1).all()
    assert 0.015 < weights["embed.weight"].std() < 0.025
    return weights


def ours_by_the_plain_reader(d):
    check_ours(d, plain_reader)


def ours_by_the_reference(d):
    weights = check_ours(d, safetensors.numpy.load_file)
    path = os.path.join(d, "iter_0000007", "param-00000.safetensors")
    for name, value in plain_reader(path).items():
        assert value.tobytes() == weights[name].tobytes()
    with safetensors.safe_open(path, framework="np") as f:
        assert f.metadata() == {"format": "pt"}, f.metadata()
    again = os.path.join(d, "again.safetensors")
    safetensors.numpy.save_file(weights, again, {"format": "pt"})
    with open(path, "rb") as a, open(again, "rb") as b:
        assert a.read() == b.read(), "the reference writes another file"


def check_theirs(d, write):
    rng = np.random.default_rng(5)
    tensors = {
        "a": rng.standard_normal((3, 5)).astype("f4"),
        "z.weight": rng.standard_normal(17).astype("f8"),
        "half": rng.standard_normal((2, 2, 2)).astype("f2"),
        "ints": rng.integers(-9, 9, (4, 1)).astype("i4"),
        "long": rng.integers(-9, 9, 3).astype("i8"),
        "bytes": rng.integers(0, 255, 13).astype("u1"),
        "none": np.zeros((0, 4), "f4"),
        "scalar": np.full((), 3, "f4"),
        "\u00e9\u4e2d\"\\": np.ones(2, "f4"),
    }
    path, alone = os.path.join(d, "theirs.safetensors"), os.path.join(d, "alone.safetensors")
    write(tensors, path, {"format": "np", "note": "\u00fc"})
    rows = ours(path)
    assert set(rows) == set(tensors), rows
    for name, value in tensors.items():
        dtype, shape, digest = rows[name]
        assert dtype == NAMES[value.dtype] and shape == list(value.shape), (name, rows[name])
        plain_writer({"x": value}, alone)  # the same bytes, alone in a file
        assert ours(alone)["x"][2] == digest, name
        if value.nbytes:
            plain_writer({"x": value + 1}, alone)
            assert ours(alone)["x"][2] != digest, name


def theirs_of_the_plain_writer(d):
    check_theirs(d, plain_writer)


def theirs_of_the_reference(d):
    check_theirs(d, safetensors.numpy.save_file)


def bad_ones_are_refused(d):
    """By us, and by the reference where it is there."""
    path = os.path.join(d, "bad.safetensors")
    one = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[%s]}}'
    cases = [(one % "0,4", 3), (one % "0,4", 5), (one % "4,8", 8), (one % "0,8", 8), ("[]", 0), ("{", 0),
             ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', 4),
             ('{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}', 4),
             ('{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}', 0),
             ('{"a":{"dtype":"F32\\u0000","shape":[1],"data_offsets":[0,4]}}', 4),
             ('{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}', 0),
             ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}', 4),
             ('{"__metadata__":{"a":1}}', 0)]
    for header, n in cases:
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header.encode() + b"\0" * n)
        if safetensors:
            try:
                safetensors.numpy.load_file(path)
                raise AssertionError("the reference reads " + header)
            except safetensors.SafetensorError:
                pass
        r = subprocess.run([MAKE, "read", path], capture_output=True, text=True)
        assert r.returncode == 3 and "bad.safetensors" in r.stderr, (header, r)


def main():
    tests = [ours_by_the_plain_reader, theirs_of_the_plain_writer, bad_ones_are_refused,
             ours_by_the_reference, theirs_of_the_reference]
    print(f"# safetensors {safetensors.__version__ if safetensors else 'is not installed'}")
    failed = 0
    for i, t in enumerate(tests, 1):
        if "reference" in t.__name__ and not safetensors:
            print(f"ok {i} - {t.__name__} # SKIP safetensors is not installed")
            continue
        with tempfile.TemporaryDirectory() as d:
            try:
                t(d)
                print(f"ok {i} - {t.__name__}")
            except (AssertionError, subprocess.CalledProcessError) as e:
                failed += 1
                print(f"not ok {i} - {t.__name__}\n# {e!r}")
    print(f"1..{len(tests)}")
    sys.exit(1 if failed else 0)


main()
