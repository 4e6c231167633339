#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of tok beside its peers: one pinned core, text in memory, ids compared in the same run.

    tok.py BENCH_TOK [--corpus FOLDER] [--vocab FOLDER] [--rounds N] [--bytes N] [--slow N] [--doc N]
           [--only NAME,...] [--texts NAME,...] [--peers NAME,...] [--core N] [--decode] [--threads N]

The texts are those that corpus.sh makes (--corpus, or $WEFT_CORPUS), the tokenizers those of $WEFT_TEST_DATA and those
that interop/vocabularies.py trained (--vocab), where --only finds any other NAME/tokenizer.json, too. Each round starts every engine afresh and lets it encode --bytes twice:
the first pass is cold (its caches hold what loading put there), the second warm. Slow peers get --slow bytes, and ours
again the same. Within a round the engines take turns to be first. A ratio is the median over rounds of ours / theirs in
the same round; speeds are best and median, in MB/s of processor time, which other work on the machine disturbs least. --doc is the size of documents, 0 for one document.

--threads N instead compares one process of N threads over many documents with N processes of one thread on as many
cores: cold, these share the documents out among them; warm, each encodes all of them, as each thread meets all.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SLOW = ("tokenizers", "tiktoken", "sentencepiece")
ROWS = [  # name, file below the test data or (trained) below --vocab, peers
    ("gpt2", "gpt2/tokenizer.json", ["gigatoken", "quicktok", "tokenizers"]),
    ("gpt-neox", "gpt-neox/tokenizer.json", ["gigatoken", "tokenizers"]),
    ("cl100k", "cl100k/cl100k_base.tiktoken", ["gigatoken", "quicktok", "tiktoken"]),
    ("mistral-7b.model", "mistral-7b/tokenizer.model", ["gigatoken", "sentencepiece"]),
    ("mistral-7b.json", "mistral-7b/tokenizer.json", ["gigatoken", "tokenizers"]),
    ("bert-base-cased", "bert-base-cased/tokenizer.json", ["gigatoken", "tokenizers"]),
    ("llama3", None, ["gigatoken", "quicktok", "tokenizers"]),
    ("qwen2", None, ["gigatoken", "quicktok", "tokenizers"]),
    ("o200k", None, ["gigatoken", "quicktok", "tokenizers"]),
    ("deepseek3", None, ["gigatoken", "tokenizers"]),
    ("bert-uncased", None, ["tokenizers"]),
    ("unigram", None, ["tokenizers"]),
]


class Engine:
    """A process that encodes: ours or a peer's."""

    def __init__(self, command, core):
        def pin():
            if core is not None:
                os.sched_setaffinity(0, {core})
        env = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, preexec_fn=pin, env=env)
        self.load = float(self.answer()[1])

    def answer(self):
        line = self.p.stdout.readline().strip()
        if not line or line.startswith("failed "):
            raise RuntimeError(" ".join((line[7:] or self.p.stderr.read()).split()))
        return line.split()

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def ask(self, line):
        self.say(line)
        return self.answer()

    def encode(self, size):
        seconds, done, ids, digest = self.ask(f"encode {size} 1")
        return int(done) / 1e6 / float(seconds), (int(ids), digest)

    def decode(self):
        seconds, done, same = self.ask("decode")
        return int(done) / 1e6 / float(seconds), same

    def close(self):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.stderr.close()
        self.p.wait()


def one(a, command, size):
    """Cold and warm speed, ids and other results of a new process."""
    e = Engine(command, a.core)
    try:
        cold, ids = e.encode(size)
        warm, again = e.encode(size)
        if again != ids:
            raise RuntimeError("the second pass gave other ids")
        found = {"cold": cold, "warm": warm, "ids": ids, "load": e.load}
        if a.decode and command[0] == a.bench_tok:
            found["decode"], found["same"] = e.decode()
        return found
    finally:
        e.close()


def rounds(a, path, text, peers):
    """[{engine: what it did}] and what could not be run."""
    ours = [a.bench_tok, path, text, str(a.doc)]
    jobs = [("ours", ours, a.bytes)]
    if set(peers) & set(SLOW):
        jobs.append(("ours, slow", ours, a.slow))
    for p in peers:
        command = [sys.executable, "-B", os.path.join(HERE, "tok_peer.py"), p, path, text, str(a.doc)]
        jobs.append((p, command, a.slow if p in SLOW else a.bytes))
    done, failed = [], {}
    for r in range(a.rounds):
        done.append({})
        for name, command, size in jobs[r % len(jobs):] + jobs[:r % len(jobs)]:
            if name in failed:
                continue
            try:
                done[-1][name] = one(a, command, size)
            except (RuntimeError, OSError) as e:
                failed[name] = str(e)
                if name == "ours":
                    return [], failed
    return done, failed


def threads(a, path, text):
    """[{kind: (one process of many threads, many processes of one)}], MB/s of the clock."""
    done = []
    command = [a.bench_tok, path, text, str(a.doc)]
    for _ in range(a.rounds):
        done.append({})
        alone = Engine(command, None)
        many = [Engine(command, None) for _ in range(a.threads)]
        for kind, times in (("cold", 1), ("warming", 8), ("warm", 3)):
            passes = times * a.threads if kind == "warm" else times
            seconds, size, *_ = alone.ask(f"encode {a.bytes} {a.threads} {passes}")
            for k, e in enumerate(many):
                e.say(f"share {a.bytes} {k} {a.threads} 1" if kind == "cold" else f"share {a.bytes} 0 1 {times}")
            shares = [e.answer() for e in many]
            done[-1][kind] = (int(size) / 1e6 / float(seconds), sum(int(s[1]) / 1e6 / float(s[0]) for s in shares))
        for e in [alone] + many:
            e.close()
    return done


def report_threads(a, name, text, done):
    for kind in ("cold", "warm"):
        both = [r[kind] for r in done]
        ratio = statistics.median(one / many for one, many in both)
        print(f"| {name} | {text} | {a.threads} threads, {kind} | {figures([b[0] for b in both])} | {ratio:.2f} of "
              f"{a.threads} processes: {figures([b[1] for b in both])} |", flush=True)


def figures(values):
    return f"{max(values):.1f} | {statistics.median(values):.1f}"


def report(a, name, text, done, failed, peers):
    for p, why in failed.items():
        print(f"| {name} | {text} | {p} | not run: {why} |", flush=True)
    if not done:
        return True
    good = True
    for kind in ("cold", "warm"):
        mine = [r["ours"][kind] for r in done]
        print(f"| {name} | {text} | ours {kind} | {figures(mine)} | |", flush=True)
        for p in peers:
            if p in failed:
                continue
            base = "ours, slow" if p in SLOW else "ours"
            ratio = statistics.median(r[base][kind] / r[p][kind] for r in done)
            same = all(r[base]["ids"] == r[p]["ids"] for r in done)
            good = good and same
            theirs = figures([r[p][kind] for r in done])
            print(f"| {name} | {text} | {p} {kind} | {theirs} | {ratio:.2f}{'' if same else ', IDS DIFFER'} |", flush=True)
    loads = [r["ours"]["load"] * 1000 for r in done]
    print(f"| {name} | {text} | ours, loading, ms | {min(loads):.1f} | {statistics.median(loads):.1f} | |")
    if a.decode:
        print(f"| {name} | {text} | ours, decoding ({done[0]['ours']['same']}) | "
              f"{figures([r['ours']['decode'] for r in done])} | |", flush=True)
    return good


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("bench_tok")
    p.add_argument("--corpus", default=os.environ.get("WEFT_CORPUS", ""))
    p.add_argument("--vocab", default="")
    for name, default in (("rounds", 7), ("bytes", 60000000), ("slow", 3000000), ("doc", 100000),
                          ("core", os.cpu_count() - 1), ("threads", 0)):
        p.add_argument("--" + name, type=int, default=default)
    for name, default in (("only", ""), ("peers", ""), ("texts", "english,code,mixed,chinese,japanese")):
        p.add_argument("--" + name, default=default)
    p.add_argument("--decode", action="store_true")
    return p.parse_args()


def main():
    a = arguments()
    data = os.environ.get("WEFT_TEST_DATA")
    if not a.corpus:
        print("1..0 # SKIP no corpus: tests/bench/corpus.sh makes one, WEFT_CORPUS names it")
        return 0
    a.bench_tok = os.path.abspath(a.bench_tok)
    print(json.dumps({"rounds": a.rounds, "bytes": a.bytes, "slow": a.slow, "doc": a.doc, "core": a.core}))
    print("| tokenizer | text | engine | best | median | ours / theirs |\n|---|---|---|---|---|---|")
    good = True
    other = [n for n in a.only.split(",") if n and n not in [row[0] for row in ROWS]]
    for name, below, peers in ROWS + [(n, None, ["gigatoken"]) for n in other]:
        path = f"{data}/tokenizers/{below}" if below else f"{a.vocab or a.corpus + '/vocab'}/{name}/tokenizer.json"
        if a.only and name not in a.only.split(","):
            continue
        if below and not data or not os.path.exists(path):
            print(f"| {name} | | | not there: {path} |")
            continue
        peers = [p for p in peers if not a.peers or p in a.peers.split(",")]
        for text in a.texts.split(","):
            if a.threads:
                report_threads(a, name, text, threads(a, path, f"{a.corpus}/{text}.txt"))
                continue
            done, failed = rounds(a, path, f"{a.corpus}/{text}.txt", peers)
            good = report(a, name, text, done, failed, peers) and good
            if not done:
                break
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
