#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blends and index caches against Megatron core's published rules, written once more with numpy.

    blend.py PREP

Random corpora (empty documents, one document, several sequences a document, more epochs than data) under random lists,
weights, splits; what `prep index` leaves in its cache folder is compared with what the rules say should be there, name
by name and byte by byte, and `prep blend` against the same numbers. WEFT_FULL=1: more of them."""
import hashlib
import io
import json
import math
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

PARTS = ("train", "valid", "test")


# ---- the rules -----------------------------------------------------------------------------------

def npy(array):
    f = io.BytesIO()
    np.save(f, array)
    return f.getvalue()


def shares(split):
    w = np.array([float(x) for x in split.replace("/", ",").split(",")] + [0.0] * 3)[:3]
    edge = [0]
    for x in (w / np.sum(w)).tolist():
        edge.append(edge[-1] + x)
    return [(a, b) if b > a else None for a, b in zip(edge, edge[1:])]


def maps(lengths, first, end, samples, length, seed):
    """Document, sample and shuffle map; samples None: one epoch."""
    tokens, epochs = int(lengths[first:end].sum()), 1
    while samples is not None and epochs * tokens < samples * length + 1:
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
    rows = np.stack([place, at - (ends[place] - lengths[doc][place])], 1).astype(np.int32)
    order = np.arange(count, dtype=np.uint32)
    cut = before if alone else count
    rng.shuffle(order[:cut])
    rng.shuffle(order[cut:])
    return doc, rows, order


def weave(weights, size):
    """Greedy: the one furthest behind comes next. Without size, weights are counts to exhaust."""
    counts = weights if size is None else None
    w = [x / sum(counts) for x in counts] if counts else weights
    had, which, sample = [0] * len(w), [], []
    for s in range(sum(counts) if counts else size):
        behind = [x * max(float(s), 1.0) - h if not counts or h < counts[d] else -math.inf
                  for d, (x, h) in enumerate(zip(w, had))]
        d = behind.index(max(behind))
        which.append(d)
        sample.append(had[d])
        had[d] += 1
    return np.array(which, dtype=np.int16), np.array(sample, dtype=np.int64), had


def normalized(weights):
    w = np.array(weights, dtype=np.float64)
    return (w / np.sum(w)).tolist()


# One epoch of no documents, as a helper without assertions makes it.
NOTHING = np.zeros(0, np.int32), np.zeros((1, 2), np.int32), np.zeros(0, np.uint32)


class Expected:
    """Files that a cache folder should hold, by name."""

    def __init__(self, lengths, length, seed, split, tokenizer):
        self.lengths, self.length, self.seed, self.split = lengths, length, seed, split
        self.tokenizer, self.files, self.taken = tokenizer, {}, {}

    def put(self, kind, part, description, arrays):
        text = json.dumps(description, indent=4)
        base = f"{hashlib.md5(text.encode()).hexdigest()}-{kind}-{part}-"
        self.files[base + "description.txt"] = text.encode()
        for name, array in arrays.items():
            self.files[base + name + ".npy"] = npy(array)

    def one(self, prefix, part, samples):
        """Description and number of samples of one dataset; None if its share is empty."""
        lengths, p = self.lengths[prefix], PARTS.index(part)
        matrix = shares(self.split) if self.split else None
        low, high = matrix[p] if matrix else (0.0, 1.0)
        first, end = round(low * float(len(lengths))), round(high * float(len(lengths)))
        tokens = lengths[first:end].sum()
        if tokens == 1 or (tokens == 0 and samples is not None):  # Megatron's helper aborts; epochs without end
            return None
        description = {"class": "GPTDataset", "dataset_path": prefix, "num_samples": samples, "index_split": part,
                       "random_seed": self.seed, "sequence_length": self.length, "split": self.split,
                       "split_matrix": matrix, "tokenizer": self.tokenizer}
        doc, rows, order = maps(lengths, first, end, samples, self.length, self.seed) if tokens else NOTHING
        self.put("GPTDataset", part, description, {"document_index": doc, "sample_index": rows, "shuffle_index": order})
        return description, len(order)

    def part(self, part, prefixes, weights, samples, own):
        """False where there is nothing that could be made."""
        if len(prefixes) == 1 and (own or weights is None):
            made = self.one(prefixes[0], part, samples)
            return made is not None
        if weights is None:
            sets = [self.one(x, part, None) for x in prefixes]
            if None in sets or 0 in [n for _, n in sets]:
                return False
            counts = [n for _, n in sets]
            size = None if samples is None else min(samples, sum(counts))
            w = counts if size is None else normalized(counts)
        else:
            w = normalized(weights)
            targets = [math.ceil(samples * x) for x in w]
            sets = [self.one(x, part, math.ceil(t * 1.005)) for x, t in zip(prefixes, targets)]
            if None in sets:
                return False
            size, w = sum(targets), normalized(w)
        which, sample, had = weave(w, size)
        if any(h > n for h, (_, n) in zip(had, sets)):
            return False
        self.taken[part] = had
        self.put("BlendedDataset", part, {"class": "BlendedDataset", "datasets": [d for d, _ in sets], "split": part,
                                          "weights": w, "size": size},
                 {"dataset_index": which, "dataset_sample_index": sample})
        return True


# ---- the judging ---------------------------------------------------------------------------------

def write_shard(prefix, documents):
    flat = [n for d in documents for n in d]
    bounds = np.concatenate([[0], np.cumsum([len(d) for d in documents])]).astype("<i8")
    lengths = np.array(flat, dtype="<i4")
    offsets = (np.cumsum(lengths.astype("<i8")) - lengths) * 2
    with open(prefix + ".idx", "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(flat), len(bounds)))
        f.write(lengths.tobytes() + offsets.astype("<i8").tobytes() + bounds.tobytes())
    with open(prefix + ".bin", "wb") as f:
        f.truncate(2 * int(lengths.sum()))
    return lengths.astype(np.int64)


def random_documents(rng):
    longest = rng.choice([1, 2, 30, 300, 2000])
    documents = [[] if rng.random() < 0.15 else
                 [rng.randint(1, longest) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
                 for _ in range(rng.choice([0, 1, 5, 40, 300, 1000]))]
    return documents + [[rng.randint(1, longest)]]


def random_list(rng, names):
    chosen = rng.sample(names, rng.randint(1, len(names)))
    if rng.random() < 0.5:
        return chosen, None, list(chosen)
    weights = [rng.choice(["1", "0.3", "2.5", "1e-1", repr(rng.random() + 1e-3)]) for _ in chosen]
    return chosen, [float(w) for w in weights], [x for pair in zip(weights, chosen) for x in pair]


class Case:
    def __init__(self, prep, folder, number):
        self.prep, self.rng = prep, random.Random(number)
        self.cwd = os.path.join(folder, str(number))
        os.makedirs(self.cwd)

    def run(self, *argv):
        return subprocess.run([self.prep, *map(str, argv)], cwd=self.cwd, capture_output=True, text=True)

    def lists(self, names):
        """(part -> list), split, arguments."""
        rng = self.rng
        if rng.random() < 0.7:
            one = random_list(rng, names)
            split = rng.choice(["969,30,1", "90,10,0", "100,0,0", "1,1,1", "0,1,0", ".7,.2,.1", "969, 30, 1"])
            argv = ["--split", split, "--data-path", *one[2]]
            if rng.random() < 0.3 and not any(" " in n for n in one[2]):
                with open(os.path.join(self.cwd, "list"), "w", encoding="utf-8") as f:
                    f.write("\n ".join(one[2]))
                argv[2:] = ["--data-args-path", "list"]
            return {p: one for p, s in zip(PARTS, shares(split)) if s}, split, argv
        own = {p: random_list(rng, names) for p in PARTS if p == "train" or rng.random() < 0.7}
        argv = [x for p, one in own.items() for x in (f"--{p}-data-path", *one[2])]
        if rng.random() < 0.5:
            with open(os.path.join(self.cwd, "parts.json"), "w", encoding="utf-8") as f:
                json.dump({p: one[2] for p, one in own.items()}, f)
            argv = ["--per-split-data-args-path", "parts.json"]
        return own, None, argv

    def check(self):
        """"same" or "refused"; AssertionError for a difference."""
        rng = self.rng
        names = [rng.choice(["a", "b\u00e9", "c c", 'q"x', "\U0001f642"]) + str(i) for i in range(rng.choice([1, 2, 3, 6, 20]))]
        lengths = {n: write_shard(os.path.join(self.cwd, n), random_documents(rng)) for n in names}
        lists, split, argv = self.lists(names)
        exhaustive = rng.random() < 0.3 and all(one[1] is None for one in lists.values())
        samples = [None] * 3 if exhaustive else [rng.choice([1, 5, 50, 400, 3000]) for _ in PARTS]
        length, seed = rng.choice([2, 3, 16, 64, 128]), rng.choice([1234, 0, 7, 2 ** 32 - 1])
        argv += ["--seq-length", length, "--seed", seed]
        argv += ["--exhaustive"] if exhaustive else [x for f, n in zip(("", "-valid", "-test"), samples)
                                                     for x in (f"--num{f}-samples", n)]
        tokenizer = {"class": "_NullTokenizer", "tokenizer_path": [None], "vocab_size": "50256"}
        want = Expected(lengths, length, seed, split, tokenizer)
        possible = True
        for p, one in lists.items():
            possible &= want.part(p, one[0], one[1], samples[PARTS.index(p)], split is None)
        r = self.run("index", *argv, "--data-cache-path", "cache", "--tokenizer-type", "NullTokenizer",
                     "--vocab-size", 50256)
        if not possible:
            return "refused" if r.returncode == 2 or "share is empty" in r.stderr else "more"
        assert r.returncode == 0, r.stderr[-400:]
        self.compare(want)
        self.check_blend(argv, want)
        return "same"

    def compare(self, want):
        folder = os.path.join(self.cwd, "cache")
        got = {n for n in os.listdir(folder) if not n.endswith("-seal.json")}
        assert got == set(want.files), (sorted(got - set(want.files))[:2], sorted(set(want.files) - got)[:2])
        for name, data in want.files.items():
            with open(os.path.join(folder, name), "rb") as f:
                assert f.read() == data, f"{name} differs"

    def check_blend(self, argv, want):
        r = self.run("blend", *argv, "--json")
        assert r.returncode == 0, r.stderr[-400:]
        answer = json.loads(r.stdout)
        for part, had in want.taken.items():
            assert [s["samples"] for s in answer[part]["sets"]] == had, (part, had)


def main(prep):
    prep = os.path.abspath(prep)
    count, seen, failed = 400 if os.environ.get("WEFT_FULL") else 60, {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, count + 1):
            try:
                how = Case(prep, folder, number).check()
                seen[how] = seen.get(how, 0) + 1
                print(f"ok {number} - {how} {number}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - case {number}\n# {e}")
    enough = seen.get("same", 0) >= count // 4
    failed += not enough
    print(f"{'ok' if enough else 'not ok'} {count + 1} - seen: {seen}\n1..{count + 1}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
