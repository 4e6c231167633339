#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep build, GPT-2 and --append-eod, beside its peers on the same text and the same cores, rounds interleaved, outputs compared.

    prep_peers.py PREP BENCH_ENCODE [--peers NAME,...] [--rounds N] [--slow MB] [--fast MB] [--cores LIST] [--memory GB,...]
                  [--text FILE]

    megatron   Megatron-LM's tools/preprocess_data.py with Hugging Face's tokenizer; $WEFT_MEGATRON names the sources
    fast       its tools/preprocess_data_fast.py with gigatoken
    datatrove  JsonlReader and DocumentTokenizer; on two cores two processes with half of the records each
    tok        our own tok_encode over the same texts in memory, cold: on two cores two processes with half of them each
    prep       ours with one worker: on sixteen cores sixteen processes with a sixteenth of the records each

The Python of the first two is $WEFT_MEGATRON_PYTHON (transformers, gigatoken, awkward), datatrove's $WEFT_DATATROVE_PYTHON; what is
not named is skipped aloud. Records of some 4 kB come from --text ($WEFT_CORPUS/english.txt), again from its beginning where it is too
short: cold figures want a long one. GPT-2 is that of $WEFT_TEST_DATA. The slow peers get --slow MB, the others --fast MB, ours in each
round the same. Ratios are peer's time / ours, median of rounds, by processor time of all processes and by the clock; both include
start and loading. --memory instead prints the peak of one run for each size, fed through standard input."""
import argparse
import filecmp
import glob
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
source, tokenizer, out, part = sys.argv[1:]
LocalPipelineExecutor(pipeline=[JsonlReader(source, glob_pattern=part), DocumentTokenizer(
    out, tokenizer_name_or_path=tokenizer, eos_token="<|endoftext|>", shuffle_documents=False, save_filename="t")],
    logging_dir=out + "/logs", skip_completed=False).run()
"""


def records(path):
    """JSONL lines of some 4 kB of text each, without end: after the first pass each begins with its number."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    docs, at = [], 0
    while at < len(text):
        end = text.find("\n", at + 4000)
        end = len(text) if end < 0 else end + 1
        docs.append(text[at:end])
        at = end
    for i in itertools.count():
        for k, doc in enumerate(docs):
            yield json.dumps({"id": k, "text": f"{i * k} {doc}" if i else doc}).encode() + b"\n"


def write(text, path, size, parts=1):
    """`parts` files of size / parts bytes, and all of it in one."""
    whole, n = f"{path}/all.jsonl", 0
    lines = records(text)
    with open(whole, "wb") as out:
        for p in range(parts):
            with open(f"{path}/part{p}.jsonl", "wb") as part:
                while n < size * (p + 1) // parts:
                    line = next(lines)
                    n += out.write(line)
                    part.write(line)
    return n


def timed(cores, *commands):
    """Processor and clock seconds of commands that run side by side, and what they print."""
    start, running, cpu = time.perf_counter(), [], 0.0
    for c in commands:
        log = tempfile.TemporaryFile()
        running.append((c, log, subprocess.Popen(c, stdout=log, stderr=subprocess.STDOUT, preexec_fn=lambda: os.sched_setaffinity(0, cores))))
    said = []
    for c, log, p in running:
        _, status, used = os.wait4(p.pid, 0)
        cpu += used.ru_utime + used.ru_stime
        log.seek(0)
        said.append(log.read().decode(errors="replace"))
        if status:
            raise RuntimeError(f"{' '.join(c)[:200]}: {said[-1][-2000:]}")
    return cpu, time.perf_counter() - start, said


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.model = f"{os.environ['WEFT_TEST_DATA']}/tokenizers/gpt2/tokenizer.json"
        self.hf = f"{folder}/gpt2"  # a folder as Hugging Face's library wants it
        os.mkdir(self.hf)
        shutil.copy(self.model, self.hf)
        with open(f"{self.hf}/tokenizer_config.json", "w") as f:
            json.dump({"tokenizer_class": "GPT2TokenizerFast", "eos_token": "<|endoftext|>", "model_max_length": 10 ** 9}, f)

    def build(self, source, workers, output="ours"):
        return [self.args.prep, "build", "--quiet", "--overwrite", "--append-eod", "--input", source, "--tokenizer", self.model,
                "--workers", str(workers), "--output-prefix", f"{self.folder}/{output}"]

    def peer(self, name, source, cores):
        """Commands of a peer."""
        out = f"{self.folder}/{name}"
        tool = [os.environ.get("WEFT_MEGATRON_PYTHON", ""), f"{HERE}/megatron_tool.py", os.environ.get("WEFT_MEGATRON", "")]
        how = ["--input", f"{source}/all.jsonl", "--output-prefix", out, "--append-eod", "--tokenizer-type", "HuggingFaceTokenizer",
               "--tokenizer-model", self.hf, "--tokenizer-hf-no-include-special-tokens"]
        if name == "megatron":
            return [[*tool, "preprocess_data.py", *how, "--workers", str(cores), "--log-interval", "1000000"]]
        if name == "fast":
            return [[*tool, "preprocess_data_fast.py", *how, "--use-gigatoken"]]
        if name == "datatrove":
            for i in range(cores):
                shutil.rmtree(f"{out}{i}", ignore_errors=True)
            return [[os.environ["WEFT_DATATROVE_PYTHON"], "-c", TROVE, source, self.model, f"{out}{i}", f"part{i}.jsonl"] for i in range(cores)]
        if name == "prep":
            return [self.build(f"{source}/part{i}.jsonl", 1, f"{name}{i}") for i in range(cores)]
        return [[self.args.encode, self.model, f"{source}/{'part%d' % i if cores > 1 else 'all'}.jsonl"] for i in range(cores)]

    def same(self, name, cores):
        """The peer's bytes are ours."""
        ours = f"{self.folder}/ours_text_document"
        if name in ("datatrove", "prep"):
            parts = [f"{name}{i}" + ("/t_*.ds" if name == "datatrove" else "_text_document.bin") for i in range(cores)]
            with open(f"{self.folder}/joined", "wb") as f:
                for part in (x for p in parts for x in sorted(glob.glob(f"{self.folder}/{p}"))):
                    with open(part, "rb") as p:
                        shutil.copyfileobj(p, f)
            return filecmp.cmp(ours + ".bin", f"{self.folder}/joined", shallow=False)
        return name == "tok" or all(filecmp.cmp(ours + x, f"{self.folder}/{name}_text_document{x}", shallow=False) for x in (".bin", ".idx"))

    def race(self, name, size, cores):
        source = f"{self.folder}/source"
        shutil.rmtree(source, ignore_errors=True)
        os.mkdir(source)
        n = write(self.args.text, source, size, cores)
        allowed = set(sorted(os.sched_getaffinity(0))[:cores])
        rows = []
        for i in range(self.args.rounds):
            runs = {"ours": [self.build(f"{source}/all.jsonl", cores)], "theirs": self.peer(name, source, cores)}
            for old in glob.glob(f"{self.folder}/*_text_document*"):  # to free its blocks would take our or the peer's time
                os.remove(old)
            took = {k: timed(allowed, *runs[k]) for k in (("ours", "theirs") if i % 2 else ("theirs", "ours"))}
            if name == "tok":  # it says itself how long the encoding took, without reading and parsing
                said = [[float(x) for x in text.split()] for text in took["theirs"][2]]
                took["theirs"] = sum(s[0] for s in said), max(s[1] for s in said)
            assert self.same(name, cores), f"{name} writes other bytes"
            rows.append([took[k][j] for k in ("ours", "theirs") for j in (0, 1)])
        cpu, wall = (statistics.median(r[j + 2] / r[j] for r in rows) for j in (0, 1))
        best = [min(r[j] for r in rows) for j in range(4)]
        print(f"{name:10} {cores} core{'s' * (cores > 1)} {n / 1e6:6.0f} MB  theirs / ours: {cpu:7.2f} processor, {wall:7.2f} clock;  best, "
              f"processor and clock: ours {best[0]:.2f} {best[1]:.2f} s, theirs {best[2]:.2f} {best[3]:.2f} s", flush=True)


def watch(pid, peaks):
    """The peak in /proc, in KiB, until the process ends: wait4's has what this process had when it forked."""
    while True:
        try:
            with open(f"/proc/{pid}/status") as f:
                peaks.append(max(int(x.split()[1]) for x in f if x.startswith("VmHWM:")))
        except (OSError, ValueError):
            return
        time.sleep(0.05)


def peak(bench, folder, size):
    """MiB of one run whose input comes by a pipe."""
    command = bench.build("-", 2)
    lines = records(bench.args.text)
    with subprocess.Popen(command, stdin=subprocess.PIPE) as p:
        def feed():
            n = 0
            while n < size:
                part = b"".join(itertools.islice(lines, 500))
                n += p.stdin.write(part)
            p.stdin.close()
        peaks = []
        sides = [threading.Thread(target=feed), threading.Thread(target=watch, args=(p.pid, peaks))]
        for t in sides:
            t.start()
        sides[0].join()
        sides[1].join()
        status = p.wait()
    made = os.path.getsize(f"{folder}/ours_text_document.bin")
    print(f"{size / 1e9:g} GB through a pipe: peak {max(peaks) / 1024:.0f} MiB, {made / 1e9:.2f} GB written, status {status}", flush=True)
    return status != 0


def missing(name):
    need = {"megatron": ("WEFT_MEGATRON", "WEFT_MEGATRON_PYTHON"), "datatrove": ("WEFT_DATATROVE_PYTHON",)}
    return [v for v in need.get("megatron" if name == "fast" else name, ()) if not os.environ.get(v)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("prep", type=os.path.abspath)
    p.add_argument("encode", type=os.path.abspath)
    p.add_argument("--peers", default="tok,fast,megatron,datatrove")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--slow", type=float, default=16)
    p.add_argument("--fast", type=float, default=256)
    p.add_argument("--cores", default="1,2")
    p.add_argument("--memory", default="")
    p.add_argument("--text", default=os.path.join(os.environ.get("WEFT_CORPUS", ""), "english.txt"))
    args = p.parse_args()
    lacks = [v for v in ("WEFT_CORPUS", "WEFT_TEST_DATA") if not os.environ.get(v)]
    if lacks:
        print(f"skipped: {' and '.join(lacks)} not set")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        if args.memory:
            return max(peak(bench, folder, float(gb) * 1e9) for gb in args.memory.split(","))
        for name in args.peers.split(","):
            if missing(name):
                print(f"{name}: skipped, {' and '.join(missing(name))} not set", flush=True)
                continue
            for cores in map(int, args.cores.split(",")):
                bench.race(name, 1e6 * (args.slow if name in ("megatron", "datatrove") else args.fast), cores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
