#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the quick start's model, with Python's standard library alone: its loss on held-out text against the
cross-entropy of a unigram model (the best that a model without context can do), and whether the words that
it writes are words of its corpus. Fails unless the loss is at most half and 98 % of the words are known."""
import argparse
import array
import json
import math
import re
import struct
import subprocess
import sys
from collections import Counter

HALF, KNOWN = 0.5, 0.98
PROMPTS = ["Once upon a time", "One morning", "The little", "Long ago", "There was"]
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")


def shard(prefix):
    """Token ids of PREFIX.bin in order, and the length of each sequence."""
    with open(prefix + ".idx", "rb") as f:
        head = f.read(34)
        code, count = head[17], struct.unpack("<Q", head[18:26])[0]
        lengths = array.array("i")
        lengths.frombytes(f.read(4 * count))
    ids = array.array({8: "H", 4: "i"}[code])
    with open(prefix + ".bin", "rb") as f:
        ids.frombytes(f.read())
    return ids, lengths


def unigram(prefix):
    """Cross-entropy (nats a token) of the validation share under the training share's counts, one added to
    each so that no token has probability 0. The shares are those of --split 969,30,1."""
    ids, lengths = shard(prefix)
    bounds = [round(x * len(lengths)) for x in (0.969, 0.969 + 0.03)]
    first = sum(lengths[: bounds[0]])
    last = first + sum(lengths[bounds[0] : bounds[1]])
    counts = Counter(ids[:first])
    size = max(ids) + 1
    total = first + size
    return sum(math.log(total / (counts[t] + 1)) for t in ids[first:last]) / (last - first)


def words(text):
    return [w.lower() for w in WORD.findall(text)]


def known_words(corpus):
    seen = set()
    with open(corpus, encoding="utf-8") as f:
        for line in f:
            seen.update(words(json.loads(line)["text"]))
    return seen


def train(program, *args):
    return subprocess.run([program, *args], check=True, capture_output=True, text=True).stdout


def main():
    p = argparse.ArgumentParser(description=__doc__)
    for name in ("run", "data", "corpus", "train"):
        p.add_argument("--" + name, required=True)
    a = p.parse_args()

    base = unigram(a.data)
    answer = train(a.train, "eval", "--load", a.run, "--data-path", a.data, "--split", "969,30,1",
                   "--micro-batch-size", "16", "--eval-iters", "30")
    print(answer.strip())
    loss = float(re.search(r"loss ([0-9.]+)", answer).group(1))
    print(f"unigram cross-entropy of the same text {base:.4f}; the model reaches {loss / base:.0%} of it")

    text = []
    for i, prompt in enumerate(PROMPTS):
        out = train(a.train, "generate", "--load", a.run, "--prompt", prompt, "--max-new-tokens", "100",
                    "--temperature", "0.7", "--top-k", "40", "--seed", str(i + 1))
        print(f"\n> {out.strip()}")
        text += words(out)
    seen = known_words(a.corpus)
    strange = [w for w in text if w not in seen]
    share = 1 - len(strange) / max(1, len(text))
    print(f"\n{share:.1%} of {len(text)} words are words of the corpus" +
          (f"; not: {', '.join(strange[:10])}" if strange else ""))

    good = loss <= HALF * base and share >= KNOWN and len(text) >= 100
    print("the quick start worked" if good else
          f"the model falls short: loss at most {HALF:.0%} of unigram and {KNOWN:.0%} known words are expected")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
