#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok train beside the trainers of tokenizers and sentencepiece on the same text, rounds interleaved, results compared.

    learn.py TOK [--corpus FOLDER] [--text NAME,...] [--bytes N] [--rounds N] [--jobs bpe,wordpiece,sp-bpe,sp-unigram]

The texts are those that corpus.sh makes (--corpus, or $WEFT_CORPUS). Both sides have the same two cores. Ours is the
wall-clock time of the whole process; the peer's that of its training alone, without its start and without writing.
Medians, the best round in brackets. What must be equal in the same run:

bpe         30,000 symbols, gpt2's pattern: tokenizer.json, byte for byte
wordpiece   30,000, the whole alphabet (whom a limit drops of characters that tie is by chance): vocab.txt, where the peer
            is told the order of the alphabet, its own being by chance, by special tokens
sp-bpe      32,000 pieces, no byte fallback: the share of pieces that are the peer's, if its version is not ours
sp-unigram  32,000: the share of pieces that are the peer's
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PEER = r'''
import json, os, sys, time
job, path, size, out = sys.argv[1:5]
size = int(size)
if job.startswith("sp-"):
    import sentencepiece
    start = time.perf_counter()
    sentencepiece.SentencePieceTrainer.train(input=path, model_prefix=out, vocab_size=size, model_type=job[3:],
                                             num_threads=2, minloglevel=2)
else:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    if job == "bpe":
        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.post_processor = processors.ByteLevel(trim_offsets=False)
        tok.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tok.normalizer = normalizers.BertNormalizer()
        tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        with open(sys.argv[5], encoding="utf-8", newline="\n") as f:
            pin = json.load(f)
        trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False, min_frequency=2,
                                            special_tokens=pin)
    start = time.perf_counter()
    tok.train([path], trainer)
seconds = time.perf_counter() - start
if job == "bpe":
    tok.save(out + "-tokenizer.json")
elif job == "wordpiece":
    vocab = tok.get_vocab()
    with open(out + "-vocab.txt", "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(p + "\n" for p in sorted(vocab, key=vocab.get)))
print(seconds)
'''

JOBS = {"bpe": (30000, ["--type", "bpe"], "tokenizers"),
        "wordpiece": (30000, ["--type", "wordpiece", "--limit_alphabet", "0"], "tokenizers"),
        "sp-bpe": (32000, ["--model_type", "bpe"], "sentencepiece"),
        "sp-unigram": (32000, ["--model_type", "unigram"], "sentencepiece")}


def ours(tok, job, path, out):
    size, args, _ = JOBS[job]
    start = time.perf_counter()
    p = subprocess.Popen([tok, "train", "-q", "--overwrite", *args, "--vocab_size", str(size), "--input", path, "--model_prefix", out])
    _, status, used = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"tok train {job}: status {status}")
    return time.perf_counter() - start, used.ru_maxrss >> 10


def peer(job, path, out, pin):
    p = subprocess.Popen([sys.executable, "-c", PEER, job, path, str(JOBS[job][0]), out, pin], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    said = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{JOBS[job][2]} {job}: status {status}")
    return float(said), used.ru_maxrss >> 10


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return f.read().split("\n")[:-1]


def write_pin(folder):
    """Special tokens, alphabet, characters within words: what our vocabulary begins with."""
    vocab = lines(f"{folder}/ours-vocab.txt")
    letter = re.compile(r"(##)?.", re.S)
    n = next(i for i, p in enumerate(vocab) if i >= 5 and not letter.fullmatch(p))
    with open(f"{folder}/pin.json", "w", encoding="utf-8") as f:
        json.dump(vocab[:n], f)


def compare(job, folder):
    if job in ("bpe", "wordpiece"):
        name = "tokenizer.json" if job == "bpe" else "vocab.txt"
        with open(f"{folder}/ours-{name}", "rb") as a, open(f"{folder}/peer-{name}", "rb") as b:
            return "equal" if a.read() == b.read() else "DIFFERENT"
    a, b = ([p.split("\t")[0] for p in lines(f"{folder}/{side}.vocab")] for side in ("ours", "peer"))
    return f"{len(set(a) & set(b)) / len(b):.2%} of pieces" + (", in order" if a == b else "")


def run(a, job, path, folder):
    t = {"ours": [], "peer": []}
    memory = {"ours": 0, "peer": 0}
    for _ in range(a.rounds):
        for side in "ours", "peer":
            if side == "peer" and job == "wordpiece":
                write_pin(folder)
            s, m = (ours(a.tok, job, path, f"{folder}/ours") if side == "ours" else
                    peer(job, path, f"{folder}/peer", f"{folder}/pin.json"))
            t[side].append(s)
            memory[side] = max(memory[side], m)
    ratio = statistics.median(q / p for p, q in zip(t["ours"], t["peer"]))
    what = compare(job, folder)
    print(f"| {job} | {os.path.basename(path)} | {statistics.median(t['ours']):.2f} ({min(t['ours']):.2f}), {memory['ours']} MB |"
          f" {statistics.median(t['peer']):.2f} ({min(t['peer']):.2f}), {memory['peer']} MB | {ratio:.1f} | {what} |", flush=True)
    return what != "DIFFERENT"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tok", type=os.path.abspath)
    p.add_argument("--corpus", default=os.environ.get("WEFT_CORPUS", ""))
    p.add_argument("--text", default="english,mixed")
    p.add_argument("--bytes", type=lambda s: int(float(s)), default=60000000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--jobs", default="bpe,wordpiece,sp-bpe,sp-unigram")
    a = p.parse_args()
    if not a.corpus:
        print("skipped: tests/bench/corpus.sh makes the texts, WEFT_CORPUS names their folder")
        return 77
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    good = True
    with tempfile.TemporaryDirectory() as folder:
        print("| job | text | ours, s | peer, s | ratio | result |\n|---|---|---|---|---|---|", flush=True)
        for text in a.text.split(","):
            path = f"{folder}/{text}.txt"
            with open(f"{a.corpus}/{text}.txt", "rb") as f, open(path, "wb") as out:
                whole = f.read(a.bytes)
                out.write(whole[:whole.rindex(b"\n") + 1])
            for job in a.jobs.split(","):
                try:
                    module = __import__(JOBS[job][2])
                except ImportError as e:
                    print(f"| {job} | {text} | | | | skipped: {e} |")
                    continue
                good &= run(a, job, path, folder)
                print(f"# peer: {module.__name__} {module.__version__}", file=sys.stderr)
    return 0 if good else 1


sys.exit(main())
