#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One long document without split points: time, peak of memory and work, and Hugging Face's time.

    long_text.py BUILD [--mb 1 8] [--kinds letters dna ...] [--workers 1 2] [--prep] [--peer MB] [--other] TOKENIZER...

Each text is one JSONL record (newlines are escaped there). Printed for each tokenizer, kind, size and number of workers:
processor seconds, peak of memory, and the steps that tok counts for each byte (tok_work_steps; a line below 4 MiB is encoded whole, so
that these are counted by bench_long). --steps: these alone. --peer: seconds and
peak of Hugging Face's tokenizers on so many MB, where the tokenizer is a tokenizer.json (in this Python). --other: the first
tokenizer, a byte-level tokenizer.json, also with a pattern of no known family."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

PUNCTUATION = set("、。「」『』（）！？…―・　 \n\t")


def text_of(kind, n, japanese):
    r = random.Random(1)
    if kind == "dna":
        return "".join(r.choices("ACGT", k=n))
    if kind == "digits":
        return "".join(r.choices("0123456789", k=n))
    if kind == "japanese":
        words = "".join(c for c in open(japanese, encoding="utf-8").read() if c > "\u3000" and c not in PUNCTUATION)
        return (words * (n // (3 * len(words)) + 1))[:n // 3]
    one = {"letters": "a", "ab": "ab", "spaces": " ", "newlines": "\n", "marks": "\u0301", "han": "\u6f22"}[kind]
    return one * (n // len(one.encode()))


def run(command):
    """(processor seconds, peak in MB, standard error)"""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = p.stderr.read()
    _, status, use = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: {said}")
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, said


PEER = """
import json, sys, tokenizers
t = tokenizers.Tokenizer.from_file(sys.argv[1])
t.encode(json.load(open(sys.argv[2]))["text"], add_special_tokens=False)
"""


def write(name, kind, mb, japanese):
    with open(name, "w", encoding="utf-8") as f:
        json.dump({"text": text_of(kind, int(mb) * 1000000, japanese)}, f, ensure_ascii=False)


def steps_of(build, tokenizer, name, mb):
    """Steps for each byte of the record, in parts."""
    with open(name, encoding="utf-8") as f, open(name + ".txt", "w", encoding="utf-8", newline="") as to:
        to.write(json.load(f)["text"])
    said = subprocess.run([f"{build}/tests/bench_long", tokenizer, name + ".txt"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"(\d+) steps", said)[1]) / mb / 1e6


OTHER = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,4}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"


def with_other_pattern(path, to):
    """The tokenizer.json with another pattern, under the name `to`."""
    with open(path, encoding="utf-8") as f:
        t = json.load(f)
    split = {"type": "Split", "pattern": {"Regex": OTHER}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    t["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, level]}
    with open(to, "w", encoding="utf-8") as f:
        json.dump(t, f)
    return to


def main():
    if sys.argv[1:2] == ["--write"]:
        write(*sys.argv[2:])
        return
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("build")
    p.add_argument("tokenizer", nargs="+")
    p.add_argument("--mb", type=int, nargs="+", default=[1, 8])
    p.add_argument("--kinds", nargs="+", default=["letters", "dna", "ab", "digits", "spaces", "newlines", "marks", "han", "japanese"])
    p.add_argument("--workers", type=int, nargs="+", default=[1])
    p.add_argument("--japanese", default=os.environ.get("WEFT_TEST_DATA", "") + "/text/wagahaiwa_nekodearu.txt")
    p.add_argument("--prep", action="store_true", help="prep build, too")
    p.add_argument("--other", action="store_true", help="the first tokenizer with another pattern, too")
    p.add_argument("--steps", action="store_true", help="only count the steps")
    p.add_argument("--peer", type=int, default=0, metavar="MB")
    o = p.parse_args()
    print("| tokenizer | text | MB | workers | tok s | peak MB | steps a byte |" + (" prep s | peak MB |" if o.prep else ""), flush=True)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as d:
        name, out = f"{d}/text.jsonl", f"{d}/out"
        if o.other:
            o.tokenizer.append(with_other_pattern(o.tokenizer[0], f"{d}/other.json"))
        for kind in o.kinds:
            for mb in o.mb + ([o.peer] if o.peer else []):
                # in a process of its own: a child's peak counts that of the process that started it
                subprocess.run([sys.executable, __file__, "--write", name, kind, str(mb), o.japanese], check=True)
                for t in o.tokenizer:
                    if o.steps:
                        print(f"| {t} | {kind} | {mb} | {steps_of(o.build, t, name, mb):.1f} |", flush=True)
                        continue
                    if o.peer and mb == o.peer and t.endswith(".json"):
                        s, peak, _ = run([sys.executable, "-c", PEER, t, name])
                        print(f"| {t} | {kind} | {mb} | tokenizers | {s:.2f} | {peak:.0f} | |", flush=True)
                    for w in o.workers:
                        s, peak, said = run([f"{o.build}/tok/tok", "encode", "--tokenizer", t, "--workers", str(w), "--overwrite",
                                             "--verbose", "--output", out, name])
                        steps = re.search(r"(\d+) steps", said)
                        each = steps_of(o.build, t, name, mb) if mb < 5 else int(steps[1]) / mb / 1e6 if steps else 0
                        line = f"| {t} | {kind} | {mb} | {w} | {s:.2f} | {peak:.0f} | {each:.1f} |"
                        if o.prep:
                            s, peak, _ = run([f"{o.build}/prep/prep", "build", "--quiet", "--overwrite", "--tokenizer", t,
                                              "--workers", str(w), "--input", name, "--output-prefix", out])
                            line += f" {s:.2f} | {peak:.0f} |"
                        print(line, flush=True)


if __name__ == "__main__":
    main()
