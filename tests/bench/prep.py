#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep build beside the same work as a Python loop (json.loads, encode, numpy.tofile), rounds interleaved.

    tests/bench/prep.py PREP BENCH_ENCODE [ROUNDS]

With SentencePiece prep runs twice: with the same version of the library that Python has (--engine sentencepiece), and
with its own engine; besides, the processor time of all but the engine's own Encode is given, as a share of the whole
with one worker. Figures are medians of wall-clock seconds; both sides are
pinned to the same two cores, and their outputs are compared."""
import collections
import filecmp
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import sentencepiece as spm
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

DATA = os.environ.get("WEFT_TEST_DATA")

LOOP = r'''
import json, sys
import numpy as np
kind, model, source, target = sys.argv[1:]
if kind == "sentencepiece":
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=model)
    encode, eod = sp.encode, sp.eos_id()
else:
    vocab = json.load(open(model))
    get, unk, eod = vocab.get, vocab["<unk>"], vocab["<|endoftext|>"]
    def encode(text):
        return [get(w, unk) for w in text.split()]
with open(source, encoding="utf-8") as f, open(target, "wb") as out:
    for line in f:
        ids = encode(json.loads(line)["text"])
        if ids:
            ids.append(eod)
        np.array(ids, dtype=np.uint16).tofile(out)
'''


def corpus(path, size):
    """Lines of some hundred to some thousand bytes, as Python writes them, until there are `size` bytes."""
    with open(os.path.join(DATA, "text/botchan.txt"), encoding="utf-8-sig") as f:
        text = f.read()
    n = i = 0
    with open(path, "w", encoding="utf-8") as f:
        while n < size:
            at, length = i * 7919 % (len(text) - 4000), 200 + i * 104729 % 3000
            n += f.write(json.dumps({"id": i, "text": text[at:at + length], "meta": {"source": "b", "n": [1, 2]}}) + "\n")
            i += 1


def timed(*command):
    """Wall-clock and processor seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Race:
    def __init__(self, prep, folder, kind, model, options, size):
        self.folder, self.kind, self.model, self.size = folder, kind, model, size
        self.source = os.path.join(folder, kind + ".jsonl")
        corpus(self.source, size)
        self.build = [prep, "build", "--quiet", "--overwrite", "--append-eod", "--input", self.source, *options]
        self.wall, self.cpu = collections.defaultdict(list), collections.defaultdict(list)

    def round(self):
        theirs = os.path.join(self.folder, "loop.bin")
        runs = {"loop": [sys.executable, "-c", LOOP, self.kind, self.model, self.source, theirs]}
        for w in 1, 2:
            runs[f"prep {w}"] = self.build + ["--workers", str(w), "--output-prefix", os.path.join(self.folder, f"w{w}")]
        for name, command in runs.items():
            wall, cpu = timed(*command)
            self.wall[name].append(wall)
            self.cpu[name].append(cpu)
        for w in 1, 2:
            ours = os.path.join(self.folder, f"w{w}_text_document.bin")
            assert filecmp.cmp(ours, theirs, shallow=False), f"{ours} and the loop's tokens differ"

    def report(self, targets):
        wall = {name: statistics.median(v) for name, v in self.wall.items()}
        for name, t in wall.items():
            print(f"  {name:8} {t:8.3f} s {self.size * 1e-6 / t:8.1f} MB/s   processor "
                  f"{statistics.median(self.cpu[name]):8.3f} s")
        for what, a, b, want in targets:
            print(f"  {what}: {wall[a] / wall[b]:.2f} times (wanted: {want})")


def main(prep, bench_encode, rounds=5):
    if not DATA:
        print("skipped: WEFT_TEST_DATA is not set")
        return 77
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as folder:
        vocab = os.path.join(folder, "vocab.json")
        with open(os.path.join(DATA, "text/botchan.txt"), encoding="utf-8-sig") as f:
            words = [w for w, _ in collections.Counter(f.read().split()).most_common(8000)]
        with open(vocab, "w") as f:
            json.dump({w: i for i, w in enumerate(["<unk>", "<|endoftext|>", *words])}, f)
        model = os.path.join(folder, "spm")
        spm.SentencePieceTrainer.train(input=os.path.join(DATA, "text/botchan.txt"), model_prefix=model,
                                       vocab_size=2000, byte_fallback=True, minloglevel=2)
        model += ".model"
        white = Race(prep, folder, "whitespace", vocab, ["--tokenizer", vocab], 100_000_000)
        own = Race(prep, folder, "sentencepiece", model, ["--tokenizer", model], 10_000_000)
        library = Race(prep, folder, "sentencepiece", model, ["--tokenizer", model, "--engine", "sentencepiece"],
                       10_000_000)
        encode = {own: [], library: []}
        for _ in range(int(rounds)):
            white.round()
            for race, engine in (own, []), (library, ["sentencepiece"]):
                race.round()
                out = subprocess.run([bench_encode, model, race.source, *engine], check=True, capture_output=True,
                                     text=True)
                encode[race].append(float(out.stdout.split()[0]))
        print(f"two cores, {rounds} rounds, medians; Python {sys.version.split()[0]}, numpy {np.__version__}, "
              f"SentencePiece {spm.__version__}")
        print("whitespace vocab.json, 100 MB of JSONL")
        white.report([("one worker against the loop", "loop", "prep 1", "5"),
                      ("two workers against the loop", "loop", "prep 2", "9")])
        for race, name in (library, "the library's Encode"), (own, "our own engine"):
            print(f"SentencePiece unigram of 2000 pieces, {name}, 10 MB of JSONL")
            race.report([("one worker against the loop", "loop", "prep 1", "1.03"),
                         ("two workers against one", "prep 1", "prep 2", "1.8")])
            whole, alone = statistics.median(race.cpu["prep 1"]), statistics.median(encode[race])
            print(f"  all but Encode: {100 * (1 - alone / whole):.1f} % of the processor time (wanted: 10)")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
