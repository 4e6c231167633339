#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do two builds write the same bytes?

    same_outputs.py [--data DIR] [--plain OLD NEW] [--brief] OLD_BUILD NEW_BUILD

Both are build folders of this project, with `tok`, `prep` and `train`. Each runs the same commands
in a folder of its own, and the SHA-256 of everything they write are compared: ids of every tokenizer
under DIR/tokenizers and of some that are trained here, over the texts under DIR/text (each text as
one document, and all of them as one that is encoded in parts), by 1, 2 and 8 threads; decoded text;
what `tok train` writes; shards, manifests, packed sets and index maps; checkpoints and log lines of
50 training steps. DIR is $WEFT_TEST_DATA if it is not given.

--plain names two more builds, in which no code for a certain processor runs, configured with

    meson setup BUILD -Dc_args='-D__builtin_cpu_supports(x)=0'

They are compared with each other likewise, and their ids with those of OLD_BUILD. --brief leaves out
what takes long: unigram models and 8 threads.

A line for each output: "equal" or "DIFFERENT", the first twelve digits, what it is. Exit code 1 if
any is different.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

STEPS = 50
LONG = 5 << 20  # above DOCS_LONG of tok/stream/documents.h: encoded in parts


class Failed(Exception):
    """A command that failed, with its output."""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def file_digest(path):
    with open(path, "rb") as f:
        return digest(f.read())


class Build:
    """A build folder's programs at work in a folder of their own."""

    def __init__(self, folder, place, data):
        self.folder, self.place, self.data = os.path.abspath(folder), place, data
        os.makedirs(place)
        os.symlink(data, os.path.join(place, "data"))

    def program(self, name):
        found = [p for p in glob.glob(os.path.join(self.folder, name, "*" + name))
                 if os.path.isfile(p) and os.access(p, os.X_OK)]
        if len(found) != 1:
            raise Failed(f"{self.folder}: no program {name}, or several")
        return found[0]

    def run(self, name, *args, stdin=None):
        done = subprocess.run([self.program(name), *args], cwd=self.place, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failed(f"{name} {' '.join(args)}: exit code {done.returncode}: "
                         + done.stderr.decode(errors="replace").strip()[-500:])
        return done

    def path(self, name):
        return os.path.join(self.place, name)


# ---- inputs, the same for each build ----------------------------------------------------------------


def write_inputs(build):
    """texts: each as one document of JSONL; long.jsonl: one document that is encoded in parts."""
    texts = []
    for path in sorted(glob.glob(os.path.join(build.data, "text", "*.txt"))):
        with open(path, encoding="utf-8") as f:
            texts.append((os.path.basename(path)[:-4], f.read()))
    for name, text in texts:
        with open(build.path(f"{name}.whole.jsonl"), "w", encoding="utf-8") as f:
            f.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    whole = "\n".join(t for _, t in texts)
    if not whole:
        raise Failed(f"{build.data}: no text/*.txt")
    with open(build.path("long.jsonl"), "w", encoding="utf-8") as f:
        size = len(whole.encode())
        f.write(json.dumps({"text": "\n".join([whole] * (LONG // size + 1))},
                           ensure_ascii=False) + "\n")
    with open(build.path("docs.jsonl"), "w", encoding="utf-8") as f:
        for _, text in texts:
            for part in text.split("\n"):
                if part.strip():
                    f.write(json.dumps({"text": part}, ensure_ascii=False) + "\n")
    with open(build.path("chat.jsonl"), "w", encoding="utf-8") as f:
        lines = [x.strip() for _, t in texts for x in t.split("\n")[:600] if x.strip()]
        for ask, answer in zip(lines[::2], lines[1::2]):
            f.write(json.dumps({"messages": [{"role": "user", "content": ask[:300]},
                                             {"role": "assistant", "content": answer[:300]}]},
                               ensure_ascii=False) + "\n")
    numbers = build.path("numbers.jsonl")
    with open(numbers, "w", encoding="utf-8") as f:
        x = 7
        for _ in range(60):
            ids = []
            for _ in range(90):
                x = (x * 1103515245 + 12345) % 2**31
                a = x // 65536 % 12
                ids += [a, a + 12, a + 24, 40 + a % 5]
            f.write('{"text": "%s"}\n' % " ".join(map(str, ids)))
    return [name for name, _ in texts]


# ---- what is compared: generators of (kind, name, digest) -----------------------------------------


def trained(build, texts, brief):
    """What tok train writes; yields the tokenizers' paths at the end."""
    first = f"data/text/{texts[0]}.txt"
    kinds = [("bpe", ["--model_type", "bpe", "--byte_fallback"]), ("char", ["--model_type", "char"]),
             ("word", ["--model_type", "word"])]
    if not brief:
        kinds.append(("unigram", ["--model_type", "unigram"]))
    for name, options in kinds:
        build.run("tok", "train", "--input", "docs.jsonl", "--model_prefix", f"sp-{name}",
                  "--vocab_size", "8000" if name == "char" else "4000", "--hard_vocab_limit=false",
                  "--character_coverage", "0.999", *options)
        for end in ("model", "vocab"):
            yield "learn", f"sp-{name}.{end}", file_digest(build.path(f"sp-{name}.{end}"))
    for kind, options in (("bpe", ["--pretokenizer", "llama3", "--special_tokens", "<|endoftext|>"]),
                          ("wordpiece", [])):
        build.run("tok", "train", "--type", kind, "--input", first, "docs.jsonl", "--model_prefix",
                  f"hf-{kind}/", "--vocab_size", "4000", *options)
        for path in sorted(glob.glob(build.path(f"hf-{kind}/*"))):
            yield "learn", os.path.relpath(path, build.place), file_digest(path)


def tokenizers(build):
    """(name, options) of the data's and the trained ones."""
    root = build.path("data/tokenizers")
    for folder in sorted(os.listdir(root)):
        for path in sorted(glob.glob(os.path.join(root, folder, "*"))):
            name = os.path.basename(path)
            if name != "merges.txt":
                yield f"{folder}/{name}", ["--tokenizer", os.path.relpath(path, build.place)]
    for path in sorted(glob.glob(build.path("sp-*.model")) + glob.glob(build.path("hf-*/tokenizer.json"))):
        name = os.path.relpath(path, build.place)
        yield name, ["--tokenizer", name]


def ids(build, texts, brief):
    for name, options in tokenizers(build):
        for text in [*(f"{t}.whole" for t in texts), "long", "docs"]:
            for workers in (1, 2) if brief else (1, 2, 8):
                out = build.run("tok", "encode", *options, "--workers", str(workers), f"{text}.jsonl")
                yield "ids", f"{name} {text} {workers} threads", digest(out.stdout)
            if text == "docs":
                back = build.run("tok", "decode", *options, stdin=out.stdout)
                yield "text", f"{name} {text} decoded", digest(back.stdout)
        out = build.run("tok", "encode", *options, "--output_format", "piece", "docs.jsonl")
        yield "ids", f"{name} docs pieces", digest(out.stdout)


def manifest_digest(path):
    """Without what differs between builds and moments."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return digest(re.sub(r'"(created|time|version|weft_version)": *("[^"]*"|\d+)', "", text).encode())


def files(build, kind, pattern):
    found = sorted(p for p in glob.glob(build.path(pattern), recursive=True) if os.path.isfile(p))
    if not found:
        raise Failed(f"nothing was written under {pattern}")
    for path in found:
        if path.endswith("-seal.json"):
            continue  # sizes and times of the shard's files
        json_file = path.endswith(".json")
        yield kind, os.path.relpath(path, build.place), (manifest_digest if json_file else file_digest)(path)


def shards(build, texts, brief):
    chosen = [("json", "hf-bpe/tokenizer.json", []), ("sp", "sp-bpe.model", []),
              ("wp", "hf-wordpiece/tokenizer.json", ["--eod-token", "[SEP]"])]
    for short, tokenizer, options in chosen:
        for workers in (1, 2) if brief else (1, 2, 8):
            prefix = f"shards/{short}-{workers}"
            os.makedirs(build.path("shards"), exist_ok=True)
            build.run("prep", "build", "--input", "docs.jsonl", "--tokenizer", tokenizer, "--append-eod",
                      "--workers", str(workers), "--output-prefix", prefix, *options)
            yield from files(build, "shard", f"{prefix}_*")
    build.run("prep", "index", "--prefix", "shards/json-1_text_document", "--seq-length", "64",
              "--num-samples", "2000", "--split", "90,5,5", "--data-cache-path", "maps")
    yield from files(build, "maps", "maps/**")
    build.run("prep", "sft", "--input", "chat.jsonl", "--tokenizer", "hf-bpe/tokenizer.json", "--template",
              "vicuna", "--seq-length", "512", "--output-prefix", "packed")
    yield from files(build, "packed", "packed*")


def without_times(line):
    return re.sub(r'"(ms|data_ms|tflops|time|tokens_per_s|mfu)": *[^,}]*', "", line)


def training(build, texts, brief):
    build.run("prep", "build", "--input", "numbers.jsonl", "--tokenizer-type", "NullTokenizer",
              "--vocab-size", "60", "--append-eod", "--output-prefix", "numbers")
    tiny = ("--num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 32 "
            "--seq-length 32 --micro-batch-size 2 --global-batch-size 4 --tokenizer-type NullTokenizer "
            "--vocab-size 60 --lr 5e-3 --log-interval 1 --eval-interval 25 --eval-iters 2 --split 90,5,5 "
            "--data-path numbers_text_document").split()
    llama = ("--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
             "--untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2").split()
    for name, more in (("gpt", []), ("llama", llama)):
        for threads in (1, 2):
            run = f"run-{name}-{threads}"
            build.run("train", "run", *tiny, *more, "--train-iters", str(STEPS), "--save", run, "--threads",
                      str(threads))
            with open(build.path(f"{run}/metrics.jsonl"), encoding="utf-8") as f:
                yield "log", run, digest("".join(map(without_times, f)).encode())
            for path in sorted(glob.glob(build.path(f"{run}/iter_*/*.safetensors"))):
                yield "checkpoint", os.path.relpath(path, build.place), file_digest(path)


PARTS = [trained, ids, shards, training]


# ---- comparing --------------------------------------------------------------------------------------


def compare(builds, plain, brief):
    """Prints a line for each output; returns how many are equal and how many not."""
    count = {True: 0, False: 0}
    texts = [write_inputs(b) for b in builds][0]
    for part in PARTS:
        for rows in zip(*(part(b, texts, brief) for b in builds), strict=True):
            kind, name, first = rows[0]
            same = []
            for i, row in enumerate(rows):
                if row[:2] != (kind, name):
                    raise Failed(f"one build wrote {row[1]}, another {name}")
                # floats may be added up in another order by code for another processor
                against = first if i not in plain or kind in ("ids", "text") else rows[plain[0]][2]
                same.append(row[2] == against)
            count[all(same)] += 1
            print("equal    " if all(same) else "DIFFERENT", first[:12], kind, name, flush=True)
    return count


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--data", default=os.environ.get("WEFT_TEST_DATA"))
    ask.add_argument("--plain", nargs=2, metavar=("OLD", "NEW"), default=[])
    ask.add_argument("--brief", action="store_true")
    ask.add_argument("builds", nargs=2, metavar="BUILD")
    args = ask.parse_args()
    if not args.data or not os.path.isdir(args.data):
        ask.error("no folder of test data: --data, or WEFT_TEST_DATA")
    place = tempfile.mkdtemp(prefix="same-outputs-")
    try:
        builds = [Build(b, os.path.join(place, str(i)), os.path.abspath(args.data))
                  for i, b in enumerate(args.builds + args.plain)]
        count = compare(builds, list(range(2, len(builds))), args.brief)
    except Failed as e:
        print(f"same_outputs.py: {e}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(place)
    print(f"{count[True]} equal, {count[False]} different")
    return 1 if count[False] else 0


if __name__ == "__main__":
    sys.exit(main())
