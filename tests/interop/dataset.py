#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards, index maps and batches against Megatron-LM's published rules, written once more with numpy.

    dataset.py DATASET_DUMP

Nothing of weft is used but the program DATASET_DUMP, whose files and batches are judged here; foreign shards
(other types, multimodal ones) are written here and read by it."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
PARTS = ("train", "valid", "test")


# ---- the rules -----------------------------------------------------------------------------------

def builder(documents, code):
    """(.bin, .idx) of documents, each a list of sequences; empty sequences are dropped."""
    lengths, bounds, body = [], [0], b""
    for document in documents:
        for sequence in document:
            if sequence:
                lengths.append(len(sequence))
                body += np.array(sequence, dtype=TYPES[code]).tobytes()
        bounds.append(len(lengths))
    lengths = np.array(lengths, dtype="<i4")
    size = np.dtype(TYPES[code]).itemsize
    offsets = np.concatenate([[0], np.cumsum(lengths.astype("<i8") * size)])[:-1] if len(lengths) else []
    idx = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(bounds))
    idx += lengths.tobytes() + np.array(offsets, dtype="<i8").tobytes() + np.array(bounds, dtype="<i8").tobytes()
    return body, idx


def reader(prefix):
    """Sequences of a shard, as views."""
    with open(prefix + ".idx", "rb") as f:
        raw = f.read()
    assert raw[:9] == b"MMIDIDX\x00\x00"
    version, code, n, _ = struct.unpack_from("<QBQQ", raw, 9)
    assert version == 1
    lengths = np.frombuffer(raw, "<i4", n, 34)
    offsets = np.frombuffer(raw, "<i8", n, 34 + 4 * n)
    body = np.memmap(prefix + ".bin", dtype="u1", mode="r") if os.path.getsize(prefix + ".bin") else b""
    return [np.frombuffer(body, TYPES[code], int(k), int(o)) for k, o in zip(lengths, offsets)]


def shares(split, n):
    w = np.array([float(x) for x in split.replace("/", ",").split(",")] + [0.0] * 3)[:3]
    w = w / np.sum(w)
    edge = [0.0]
    for x in w:
        edge.append(edge[-1] + float(x))
    return [(int(round(edge[i] * float(n))), int(round(edge[i + 1] * float(n)))) if edge[i + 1] > edge[i] else None
            for i in range(3)]


def index_maps(lengths, first, end, samples, length, seed):
    tokens = int(lengths[first:end].sum())
    epochs = 1
    while epochs * tokens < samples * length + 1:
        epochs += 1
    before = ((epochs - 1) * tokens - 1) // length
    alone = epochs > 1 and samples - before < int(0.80 * ((tokens - 1) // length))
    rng = np.random.RandomState(seed)
    doc = np.tile(np.arange(first, end, dtype=np.int32), epochs)
    cut = (epochs - 1) * (end - first) if alone else len(doc)
    rng.shuffle(doc[:cut])
    rng.shuffle(doc[cut:])
    count = (epochs * tokens - 1) // length
    ends = np.cumsum(lengths[doc])
    at = np.arange(count + 1) * length
    place = np.searchsorted(ends, at, side="right")
    sample = np.stack([place, at - (ends[place] - lengths[doc][place])], 1).astype(np.int32)
    shuffle = np.arange(count, dtype=np.uint32)
    cut = before if alone else count
    rng.shuffle(shuffle[:cut])
    rng.shuffle(shuffle[cut:])
    return {"doc": doc, "sample": sample, "shuffle": shuffle}, alone


def text_of(sequences, maps, length, k):
    """Sample k: everything joined, then cut."""
    joined = np.concatenate([sequences[d] for d in maps["doc"]]).astype(np.int64)
    at = int(maps["shuffle"][k]) * length
    return joined[at:at + length + 1]


# ---- the judging ---------------------------------------------------------------------------------

class Case:
    def __init__(self, program, folder, number):
        self.program, self.rng, self.number = program, random.Random(number), number
        self.prefix = os.path.join(folder, f"c{number}_text_document")

    def run(self, *argv, stdin=None):
        r = subprocess.run([self.program, *map(str, argv)], input=stdin, capture_output=True)
        assert r.returncode == 0, r.stderr.decode()
        return r.stdout

    def documents(self, vocab):
        rng = self.rng
        docs = []
        for _ in range(rng.choice([1, 2, 7, 40, 150])):
            shape = [] if rng.random() < 0.15 else [rng.randint(1, rng.choice([3, 30, 300]))
                                                    for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            docs.append([[rng.randrange(vocab) for _ in range(k)] for k in shape])
        docs.append([[rng.randrange(vocab) for _ in range(5)]])
        return docs

    def check_writer(self):
        vocab = self.rng.choice([3, 50257, 65499, 65500, 65536, 200000])
        docs = self.documents(vocab)
        lines = "".join("|".join(" ".join(map(str, s)) for s in d) + "\n" for d in docs)
        self.run("write", self.prefix, vocab, stdin=lines.encode())
        want = builder(docs, 8 if vocab < 65500 else 4)
        for ext, data in zip((".bin", ".idx"), want):
            with open(self.prefix + ext, "rb") as f:
                assert f.read() == data, f"{ext} differs"
        with open(self.prefix + ".manifest.json", encoding="utf-8") as f:
            m = json.load(f)
        assert m["documents"] == len(docs) and m["tokens"] == sum(len(s) for d in docs for s in d)
        assert m["bin"]["bytes"] == len(want[0]) and m["idx"]["bytes"] == len(want[1])

    def foreign(self):
        code = self.rng.choice([1, 2, 3, 5])
        docs = self.documents(100)
        body, idx = builder(docs, code)
        modes = bytes(sum(1 for d in docs for s in d if s)) if self.rng.random() < 0.5 else b""
        for ext, data in ((".bin", body), (".idx", idx + modes)):
            with open(self.prefix + ext, "wb") as f:
                f.write(data)

    def check_maps_and_batches(self):
        rng = self.rng
        sequences = reader(self.prefix)
        lengths = np.array([len(s) for s in sequences], dtype=np.int64)
        split = rng.choice(["969,30,1", "90,10", "100,0,0", "1/1/1", "0,1", ".7,.2,.1"])
        length, seed = rng.choice([1, 2, 16, 64, 100]), rng.randrange(2 ** 32)
        wanted = [rng.choice([1, 5, 50, 400]) for _ in PARTS]
        states = self.run("maps", self.prefix, split, length, seed, *wanted).decode().split()
        separate = 0
        for p, share in enumerate(shares(split, len(sequences))):
            if share is None or share[0] == share[1]:
                assert states[p] == ("absent" if share is None else "empty"), states
                continue
            assert states[p] == "built", states
            maps, alone = index_maps(lengths, *share, wanted[p], length, seed)
            separate += alone
            for kind, array in maps.items():
                name = f"{self.prefix}_{PARTS[p]}_indexmap_{wanted[p]}ns_{length}sl_{seed}s_{kind}_idx.npy"
                with tempfile.TemporaryFile() as f:
                    np.save(f, array)
                    f.seek(0)
                    with open(name, "rb") as ours:
                        assert ours.read() == f.read(), f"{name} differs"
            self.check_batches(sequences, maps, split, length, seed, wanted[p], p)
        return separate

    def check_batches(self, sequences, maps, split, length, seed, wanted, p):
        rng, total = self.rng, len(maps["shuffle"])
        rows, ranks = rng.randint(1, 3), rng.randint(1, 3)
        consumed = rng.randrange(total)
        count = min(4, (total - consumed) // (rows * ranks))
        for rank in range(ranks):
            out = self.run("batches", self.prefix, split, length, seed, wanted, p, rows, rank, ranks, consumed, count)
            got = np.frombuffer(out, "<i4").reshape(count, 3, rows, length)
            for m in range(count):
                for q in range(rows):
                    text = text_of(sequences, maps, length, consumed + m * rows * ranks + rank * rows + q)
                    assert (got[m, 0, q] == text[:-1]).all(), "tokens differ"
                    assert (got[m, 1, q] == text[1:]).all(), "labels differ"
            assert (np.frombuffer(out, "<f4").reshape(count, 3, rows, length)[:, 2] == 1).all(), "mask differs"


def main(program):
    number = failed = separate = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, 41):
            case = Case(program, folder, number)
            kind = "foreign shard" if number % 4 == 0 else "written shard"
            try:
                case.foreign() if number % 4 == 0 else case.check_writer()
                separate += case.check_maps_and_batches()
                print(f"ok {number} - {kind} {number}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - {kind} {number}\n# {e}")
    number += 1
    failed += separate == 0
    print(f"{'ok' if separate else 'not ok'} {number} - {separate} shares had a separate last epoch\n1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
