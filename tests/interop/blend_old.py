#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Splits, orders, blends and index files of the rules before Megatron core's, written once more with numpy.

    blend_old.py PREP

Random corpora under random lists, weights and splits; what `prep index --data-rules v1|v2|deepspeed` leaves beside the
data and in its cache folder is compared with what the rules say should be there, name by name and byte by byte, and
`prep blend` against the same numbers. WEFT_FULL=1: more of them. The walk over documents, the shuffles and the corpora
are blend.py's."""
import hashlib
import json
import math
import os
import random
import sys
import tempfile

import blend
from blend import PARTS, np, npy, random_documents, weave, write_shard

RULES = ("v1", "v2", "deepspeed")


def shares(text, n):
    """Ranges of the three parts: each share rounded alone, the surplus shifts all bounds."""
    w = [float(x) for x in text.split("," if "," in text else "/")]
    w = (w + [0.0] * 3)[:3]
    edge = [0]
    for x in w:
        edge.append(edge[-1] + int(round(x / sum(w) * float(n))))
    return [0] + [x - (edge[3] - n) for x in edge[1:]]


def maps(lengths, first, end, samples, length, seed, rules):
    """Document, sample and shuffle map, and the number of epochs."""
    tokens = int(lengths[first:end].sum())
    epochs = max(1, -(-(samples * length + 1) // tokens))
    before = ((epochs - 1) * tokens - 1) // length
    alone = rules != "v1" and epochs > 1 and samples - before < int(0.80 * ((tokens - 1) // length))
    rng = np.random.RandomState(seed)
    doc = np.tile(np.arange(first, end, dtype=np.int32), epochs)
    cut = (epochs - 1) * (end - first) if alone else len(doc)
    rng.shuffle(doc[:cut])
    rng.shuffle(doc[cut:])
    count = (epochs * tokens - 1) // length
    ends = np.cumsum(lengths[doc])
    at = np.arange(count + 1) * length
    place = np.searchsorted(ends, at, side="right")
    rows = np.stack([place, at - (ends[place] - lengths[doc][place])], 1)
    order = np.arange(count, dtype=np.uint32)
    cut = before if alone else count
    rng.shuffle(order[:cut])
    rng.shuffle(order[cut:])
    return (doc, rows.astype(np.int64 if rules == "deepspeed" else np.int32), order), epochs


class Expected:
    """Files that should be there, by path."""

    def __init__(self, case):
        self.case, self.files, self.taken = case, {}, {}

    def one(self, prefix, part, samples, own):
        """Description (or True) and number of samples of a dataset; None without documents."""
        c, lengths = self.case, self.case.lengths[prefix]
        edge, p = shares(c.split, len(lengths)), PARTS.index(part)
        first, end = (0, len(lengths)) if own else (edge[p], edge[p + 1])
        if end <= first:
            return None
        if lengths[first:end].sum() < 2:
            raise ValueError("one token")
        arrays, epochs = maps(lengths, first, end, samples, c.length, c.seed, c.rules)
        names, text = ("doc_idx", "sample_idx", "shuffle_idx"), True
        if c.rules == "deepspeed":
            text = (f"GPT Dataset\n\nData prefix {prefix}\nDataset name {part}\nNumber of samples {samples}\n"
                    f"Number of epochs {epochs}\nSequence length {c.length}\nRandom seed {c.seed}\nSplit {c.split}\n")
            base = f"{c.cache or 'index-cache'}/{hashlib.md5(text.encode()).hexdigest()}_"
            self.files[base[:-1] + ".dsc"] = text.encode()
        else:
            base = f"{prefix}_{part}_indexmap_{samples}ns_{c.length}sl_{c.seed}s_"
        for name, array in zip(names, arrays):
            self.files[f"{base}{name}.npy"] = npy(array)
        return text, len(arrays[2])

    def part(self, part, words, samples, own):
        """False where the old code fails."""
        c = self.case
        if len(words) == 1:
            self.one(words[0], part, samples, own)
            return True
        given, prefixes = [float(x) for x in words[::2]], words[1::2]
        total = 0.0
        for w in given:
            total += w
        w = [x / total for x in given]
        targets = [int(math.ceil(samples * x * 1.005)) for x in w]
        sets = [self.one(x, part, t, own) for x, t in zip(prefixes, targets)]
        if all(s is None for s in sets):
            return True
        if None in sets:
            return False
        w, size = np.array(w, dtype=np.float64), sum(targets)
        w /= np.sum(w)
        which, sample, had = weave(w.tolist(), size)
        if any(h > n for h, (_, n) in zip(had, sets)):  # is only missed if the run gets there
            had = [int((which[:samples] == i).sum()) for i in range(len(sets))]
            if any(h > n for h, (_, n) in zip(had, sets)):
                return False
        self.taken[part] = had
        if c.rules == "deepspeed" and c.cache:
            text = "Blendable dataset\n\nDatasets:\n" + "".join(d + "\n\n" for d, _ in sets)
            text += f"Weights: {w}\nSize: {size}\n"
            base = f"{c.cache}/{hashlib.md5(text.encode()).hexdigest()}"
            self.files[base + ".dsc"] = text.encode()
            self.files[base + "_index.npy"] = npy(which.astype(np.uint8))
            self.files[base + "_sample_index.npy"] = npy(sample)
        return True


class Case(blend.Case):
    def words(self, names):
        rng = self.rng
        if self.rules == "v1" or rng.random() < 0.3:
            return [rng.choice(names)]
        chosen = rng.sample(names, rng.randint(1, len(names)))
        return [x for n in chosen
                for x in (rng.choice(["1", "0.3", "2.5", "1e-1", "1e-5", repr(rng.random() + 1e-3)]), n)]

    def check(self):
        rng = self.rng
        names = [f"{rng.choice('abc')}{i}" for i in range(rng.choice([1, 2, 3, 6, 40]))]
        self.lengths = {n: write_shard(os.path.join(self.cwd, n), random_documents(rng)) for n in names}
        self.rules = rng.choice(RULES)
        self.cache = rng.choice([None, "cache"]) if self.rules == "deepspeed" else None
        self.length, self.seed = rng.choice([2, 3, 16, 64, 128]), rng.choice([1234, 0, 7, 2 ** 32 - 1])
        samples = [rng.choice([1, 5, 50, 400, 3000]) for _ in PARTS]
        own = rng.random() < 0.4
        self.split = "969, 30, 1" if own else rng.choice(["969,30,1", "90/10", "100,0,0", "1,1,1", "0,1,0", ".7,.2,.1", "7"])
        lists = {p: self.words(names) for p in PARTS if p == "train" or rng.random() < 0.7} if own else \
            dict.fromkeys(PARTS, self.words(names))
        argv = [x for p, w in lists.items() for x in (f"--{p}-data-path", *w)] if own else \
            ["--split", self.split, "--data-path", *lists["train"]]
        argv += ["--data-rules", self.rules, "--seq-length", self.length, "--seed", self.seed]
        argv += [x for f, n in zip(("", "-valid", "-test"), samples) for x in (f"--num{f}-samples", n)]
        argv += ["--data-cache-path", self.cache] if self.cache else []
        want, possible = Expected(self), True
        try:
            for p, w in lists.items():
                possible &= want.part(p, w, samples[PARTS.index(p)], own)
        except ValueError:
            possible = False
        r = self.run("index", *argv)
        if not possible:
            return "refused" if r.returncode == 2 or "share is empty" in r.stderr else "more"
        assert r.returncode == 0, r.stderr[-400:]
        got = {os.path.relpath(os.path.join(d, f), self.cwd) for d, _, fs in os.walk(self.cwd) for f in fs}
        got = {n for n in got if not n.endswith(("seal.json", ".bin", ".idx"))}
        assert got == set(want.files), (sorted(got - set(want.files))[:2], sorted(set(want.files) - got)[:2])
        for name, data in want.files.items():
            with open(os.path.join(self.cwd, name), "rb") as f:
                assert f.read() == data, f"{name} differs"
        again = self.run("index", *argv)
        assert again.returncode == 0 and again.stdout.count("built") == 0, again.stdout[-400:]
        r = self.run("blend", *argv, "--json")
        assert r.returncode == 0, r.stderr[-400:]
        answer = json.loads(r.stdout)
        for part, had in want.taken.items():
            assert [s["samples"] for s in answer[part]["sets"]] == had, (part, had)
        return self.rules


def main(prep):
    prep = os.path.abspath(prep)
    count, seen, failed = 400 if os.environ.get("WEFT_FULL") else 40, {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, count + 1):
            try:
                how = Case(prep, folder, number).check()
                seen[how] = seen.get(how, 0) + 1
                print(f"ok {number} - {how} {number}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - case {number}\n# {e}")
    enough = all(seen.get(r, 0) >= count // 10 for r in RULES)
    failed += not enough
    print(f"{'ok' if enough else 'not ok'} {count + 1} - seen: {seen}\n1..{count + 1}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
