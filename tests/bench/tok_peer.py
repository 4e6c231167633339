#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer of tok over a text in memory, with bench_tok's protocol (see there), one thread.

    tok_peer.py ENGINE TOKENIZER TEXT DOCUMENT

ENGINE is tokenizers, tiktoken, sentencepiece, gigatoken or quicktok, each through the call that returns its ids with the
least ado."""
import contextlib
import hashlib
import json
import os
import sys
import time

import numpy as np

CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
          r"\s++$|\s*[\r\n]|\s+(?!\S)|\s")


def load_tokenizers(path):
    import tokenizers
    t = tokenizers.Tokenizer.from_file(path)

    def encode(docs):
        found = t.encode_batch_fast(docs, add_special_tokens=False)
        return found, lambda: [np.array(e.ids, np.int32) for e in found]
    return encode, "text"


def load_tiktoken(path):
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    t = tiktoken.Encoding("t", pat_str=CL100K, mergeable_ranks=load_tiktoken_bpe(path), special_tokens={})

    def encode(docs):
        found = [t.encode_to_numpy(d, disallowed_special=()) for d in docs]
        return found, lambda: [np.asarray(x, np.int32) for x in found]
    return encode, "text"


def load_sentencepiece(path):
    import sentencepiece
    t = sentencepiece.SentencePieceProcessor(model_file=path)

    def encode(docs):
        found = t.encode(docs, num_threads=1)
        return found, lambda: [np.array(x, np.int32) for x in found]
    return encode, "text"


def load_gigatoken(path):
    import awkward
    import gigatoken
    kind = gigatoken.Tokenizer
    t = (kind.from_sentencepiece(path) if path.endswith(".model") else
         kind.from_tiktoken(path) if path.endswith(".tiktoken") else kind(path))

    t.encode_batch([b""], parallel=False)  # what Python imports at the first call

    def encode(docs):
        found = t.encode_batch(docs, parallel=False)

        def arrays():
            flat, counts = np.asarray(awkward.flatten(found)), np.asarray(awkward.num(found))
            return np.split(flat.astype(np.int32), np.cumsum(counts)[:-1])
        return found, arrays
    return encode, "bytes"


def load_quicktok(path):
    import quicktok
    if path.endswith(".tiktoken"):
        t = quicktok.get_encoding(os.path.basename(path).removesuffix(".tiktoken"))
    else:
        folder = os.path.dirname(path) + "/quicktok"
        os.makedirs(folder, exist_ok=True)
        name = os.path.basename(os.path.dirname(path))
        if not os.path.exists(f"{folder}/{name}.vocab"):
            quicktok.import_tokenizer(path, name, folder)
        t = quicktok.get_encoding(name, folder)

    def encode(docs):
        flat, offsets = t.encode_batch(docs, 1)
        return flat, lambda: np.split(np.asarray(flat).astype(np.int32), np.asarray(offsets)[1:-1])
    return encode, "text"


def documents(path, size):
    """As bench_tok cuts them."""
    with open(path, "rb") as f:
        text = f.read()
    docs, at = [], 0
    while at < len(text):
        end = len(text)
        if size and end - at > size:
            end = text.find(b"\n", at + size - 1) + 1 or len(text)
        docs.append(text[at:end])
        at = end
    return docs


def main(engine, path, text, size):
    start = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        encode, kind = globals()["load_" + engine](path)
    print(f"ready {time.perf_counter() - start:.6f}", flush=True)
    docs = documents(text, int(size))
    for line in sys.stdin:
        limit, total, n = int(line.split()[1]), 0, 0
        while n < len(docs) and total < limit:
            total += len(docs[n])
            n += 1
        given = docs[:n] if kind == "bytes" else [d.decode() for d in docs[:n]]
        start = time.process_time()
        _, arrays = encode(given)
        seconds = time.process_time() - start
        ids = arrays()
        h = hashlib.sha256()
        for x in ids:
            h.update(x.tobytes())
        h.update(np.array([len(x) for x in ids], np.uint32).tobytes())
        print(f"{seconds:.6f} {total} {sum(map(len, ids))} {h.hexdigest()}", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as e:  # the driver wants one line
        print("failed " + json.dumps(f"{type(e).__name__}: {e}"[:300]), flush=True)
        sys.exit(1)
