#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep sft against the rules of the collators that learn answers only, written here a second time over Hugging
Face's tokenizers, and its files read by their description with numpy.

    sft.py PROGRAM

PROGRAM is prep. trl itself brings torch; the rules are those of its DataCollatorForCompletionOnlyLM, with the
first id of each string left out, as llm-jp's programs do.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import tokenizers
except ImportError as error:
    print(f"ok 1 - sft # SKIP {error}\n1..1\n# 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

import testdata

RECORDS = 20000 if os.environ.get("WEFT_FULL") else 2000
LENGTH = 96
PIECES = ["### Human:", "### Assistant:", " Assistant:", "Human:", " ", "\n", "hi", "1 2 3", "日本語", "the end",
          "é", "###", ":", " Human", "🙂"]


def texts(seed):
    rng = random.Random(seed)
    for k in range(RECORDS):
        if k % 3:
            turns = ("### Human: " + "".join(rng.choices(PIECES[4:], k=rng.randrange(8))) + "### Assistant:" +
                     "".join(rng.choices(PIECES[4:], k=rng.randrange(8))) for _ in range(rng.randrange(1, 4)))
            yield "".join(turns)
        else:
            yield "".join(rng.choices(PIECES, k=rng.randrange(12)))


def places(ids, mark):
    return [i for i in range(len(ids)) if ids[i:i + len(mark)] == mark]


def masked(ids, response, instruction):
    """The labels' mask, and whether the marks were there."""
    keep = [1] * len(ids)
    r = [i + len(response) for i in places(ids, response)]
    if not instruction:
        keep[:r[-1] if r else len(ids)] = [0] * (r[-1] if r else len(ids))
        return keep, bool(r)
    h = places(ids, instruction)
    if not r or not h:
        return [0] * len(ids), False
    if h[0] > r[0]:
        h = [0] + h
    for k, (start, end) in enumerate(zip(h, r)):
        for i in range(start if k else 0, end):
            keep[i] = 0
    if len(h) > len(r):
        keep[h[-1]:] = [0] * (len(ids) - h[-1])
    return keep, True


def read_set(prefix):
    """[(ids, mask, ends)] of a packed set, by FORMAT.md."""
    idx = open(prefix + ".idx", "rb").read()
    pack = open(prefix + ".pack", "rb").read()
    manifest = json.load(open(prefix + ".manifest.json", encoding="utf-8"))
    dtype = {8: "<u2", 4: "<i4"}[idx[17]]
    n = int.from_bytes(idx[18:26], "little")
    lengths = numpy.frombuffer(idx, "<i4", n, 34)
    tokens = numpy.fromfile(prefix + ".bin", dtype)
    assert pack[:8] == b"WEFTPACK" and pack[8:16] == (1).to_bytes(4, "little") + LENGTH.to_bytes(4, "little")
    count, examples, total = (int.from_bytes(pack[k:k + 8], "little") for k in (16, 24, 32))
    assert count == n and total == len(tokens) and pack[40:56].hex() == manifest["idx"]["xxh3_128"]
    first = numpy.frombuffer(pack, "<u8", n + 1, 72)
    end = numpy.frombuffer(pack, "<u4", examples, 72 + 8 * (n + 1))
    bits = numpy.frombuffer(pack, "u1", (total + 7) // 8, 72 + 8 * (n + 1) + 4 * examples)
    assert len(pack) == 72 + 8 * (n + 1) + 4 * examples + (total + 7) // 8
    mask = numpy.unpackbits(bits, bitorder="little")
    assert not mask[total:].any()
    at, out = 0, []
    for k in range(n):
        out.append((tokens[at:at + lengths[k]].tolist(), mask[at:at + lengths[k]].tolist(),
                    end[first[k]:first[k + 1]].tolist()))
        at += lengths[k]
    return out, manifest


def examples_of(sequences):
    for ids, mask, ends in sequences:
        start = 0
        for end in ends:
            yield ids[start:end], mask[start:end]
            start = end


def best_fit(lengths):
    """Sequences that best fit, the longest first, takes."""
    room = []
    for n in sorted(lengths, reverse=True):
        fits = [(r, k) for k, r in enumerate(room) if r >= n]
        if fits:
            room[min(fits)[1]] -= n
        else:
            room.append(LENGTH - n)
    return len(room)


def compare(program, folder, path, tokenizer, instruction, seed):
    lines = list(texts(seed))
    response = "### Assistant:"
    data = os.path.join(folder, "data.jsonl")
    with open(data, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t, "other": 1}) + "\n" for t in lines)
    want, unmatched = [], 0
    marks = [tokenizer.encode(s, add_special_tokens=False).ids[1:] if s else None for s in (response, instruction)]
    for t in lines:
        ids = tokenizer.encode(t).ids[:LENGTH]
        if ids:
            mask, found = masked(ids, *marks)
            want.append((ids, mask))
            unmatched += not found
    for packing in ("none", "best-fit"):
        prefix = os.path.join(folder, f"set_{seed}_{packing}")
        args = [program, "sft", "--quiet", "--input", data, "--tokenizer", path, "--response-template", response,
                "--seq-length", str(LENGTH), "--packing", packing, "--specials", "parse", "--output-prefix", prefix]
        subprocess.run(args + (["--instruction-template", instruction] if instruction else []), check=True,
                       stderr=subprocess.DEVNULL)
        sequences, manifest = read_set(prefix)
        got = list(examples_of(sequences))
        if packing == "best-fit":
            if len(sequences) != best_fit([len(ids) for ids, _ in want]):
                return f"{len(sequences)} sequences, best fit takes another number"
            got, ordered = sorted(got), sorted(want)
        else:
            ordered = want
        for k, (a, b) in enumerate(zip(got, ordered)):
            if tuple(a) != tuple(b):
                return f"{packing}: example {k} is {a}, not {b}"
        if len(got) != len(ordered) or manifest["counts"]["unmatched"] != unmatched:
            return f"{packing}: {len(got)} of {len(ordered)} examples, {manifest['counts']}, {unmatched} unmatched"
    return None if 0 < unmatched < len(want) and any(sum(m) for _, m in want) else "nothing to compare"


def main():
    program = sys.argv[1]
    root = testdata.DATA
    count = failed = 0
    for name in ("gpt2", "gpt-neox", "mistral-7b") if root else ():
        path = os.path.join(root, "tokenizers", name, "tokenizer.json")
        tokenizer = tokenizers.Tokenizer.from_file(path)
        for instruction in (None, "### Human:"):
            count += 1
            with tempfile.TemporaryDirectory() as folder:
                why = compare(program, folder, path, tokenizer, instruction, count)
            failed += why is not None
            print(f"{'not ' if why else ''}ok {count} - {name} {'with' if instruction else 'without'} questions")
            if why:
                print("# " + why[:2000])
    if not count:
        count = 1
        print(f"ok 1 - sft # SKIP {testdata.MISSING}\n1..1\n# 0 passed, 0 failed, 1 skipped")
        return 0
    print(f"1..{count}\n# {count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
