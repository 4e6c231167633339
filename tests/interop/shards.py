#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What prep does to shards, against the published rules of their formats, written once more with numpy.

    shards.py PREP"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from dataset import TYPES, builder, index_maps, shares, text_of
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

from testdata import DATA


def run(prep, *args, code=0):
    r = subprocess.run([prep, *args], capture_output=True)
    assert r.returncode == code, f"exit code {r.returncode} of {args}: {r.stderr.decode()}"
    return r


# ---- shards --------------------------------------------------------------------------------------------

class Index:
    """An .idx as lists; empty sequences stay, as tools other than Megatron-LM's own write them."""

    def __init__(self, code):
        self.code, self.lengths, self.documents, self.modes = code, [], [0], []

    def bytes(self):
        size = np.dtype(TYPES[self.code]).itemsize
        at, offsets = 0, []
        for n in self.lengths:
            offsets.append(at)
            at += n * size
        return (b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, self.code, len(self.lengths), len(self.documents))
                + np.array(self.lengths, dtype="<i4").tobytes() + np.array(offsets, dtype="<i8").tobytes()
                + np.array(self.documents, dtype="<i8").tobytes() + np.array(self.modes, dtype="i1").tobytes())


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def random_shard(rng, code, modes, size):
    """(Index, ids as an array) of random documents."""
    x, n = Index(code), 0
    for _ in range(size):
        for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
            x.lengths.append(rng.choice([0, 1, 2, rng.randrange(300)]))
            n += x.lengths[-1]
        x.documents.append(len(x.lengths))
    x.modes = [rng.randrange(3) for _ in x.lengths] if modes else []
    top = np.iinfo(TYPES[code]).max
    return x, np.array([rng.randrange(min(top, 70000)) for _ in range(n)], dtype=TYPES[code])


# ---- merge ---------------------------------------------------------------------------------------------

def merge_rules(shards):
    """(.idx, .bin) as Megatron-LM's builder makes of shards that it is given by add_index."""
    whole, body = Index(shards[0][0].code), b""
    for x, ids in shards:
        behind = len(whole.lengths)
        whole.lengths += x.lengths
        whole.documents += [behind + d for d in x.documents[1:]]
        whole.modes += x.modes
        body += ids.tobytes()
    return whole.bytes(), body


def merge(prep, folder):
    for seed in range(24):
        rng = random.Random(seed)
        code = rng.choice(list(TYPES))
        shards, parts = [], os.path.join(folder, f"parts{seed}")
        os.mkdir(parts)
        names = sorted(f"{rng.randrange(10 ** 6)}_\u00e9_document" for _ in range(rng.randrange(1, 9)))
        modes = seed % 5 == 0
        for name in names:
            shards.append(random_shard(rng, code, modes, rng.choice([0, 1, 30])))
            write(os.path.join(parts, name + ".idx"), shards[-1][0].bytes())
            write(os.path.join(parts, name + ".bin"), shards[-1][1].tobytes())
        out = os.path.join(folder, f"whole{seed}")
        run(prep, "merge", "--quiet", "--input", parts, "--output-prefix", out)
        idx, body = merge_rules(shards)
        assert read(out + ".idx") == idx and read(out + ".bin") == body, f"seed {seed}"


# ---- verify --repair -----------------------------------------------------------------------------------

def deepspeed(documents, eod):
    """(.idx, .bin, what the .idx should have been) by the loop of Megatron-DeepSpeed's preprocess_data.py: lengths
    are taken before the end of document is appended."""
    bad, good, body = Index(8), Index(8), []
    for sentences in documents:
        sentences = [s for s in sentences if s]
        ids = [i for s in sentences for i in s]
        if ids:
            ids.append(eod)
        body += ids
        bad.lengths += map(len, sentences)
        good.lengths += map(len, sentences)
        if ids:
            good.lengths[-1] += 1
        for x in (bad, good):
            x.documents.append(len(x.lengths))
    return bad.bytes(), np.array(body, dtype="<u2").tobytes(), good.bytes()


def repair(prep, folder):
    for seed in range(12):
        rng = random.Random(seed)
        several = seed % 3 == 0
        documents = [[[rng.randrange(50256) for _ in range(rng.randrange(60))]
                      for _ in range(rng.randrange(4) if several else rng.randrange(8) > 0)] for _ in range(200)]
        bad, body, good = deepspeed(documents, 50256)
        at = os.path.join(folder, f"d{seed}_text_" + ("sentence" if several else "document"))
        write(at + ".idx", bad)
        write(at + ".bin", body)
        r = run(prep, "verify", at, code=3)
        assert b"ends of document not counted" in r.stderr, r.stderr
        assert read(at + ".idx") == bad
        run(prep, "verify", "--repair", "--quiet", at)
        assert read(at + ".idx") == good and read(at + ".bin") == body, f"seed {seed}"
        # offsets in 32 bits, as numpy 2 gave them to Megatron-LM before 0.15
        n = struct.unpack_from("<Q", good, 18)[0]
        offsets = np.frombuffer(good, "<i8", n, 34 + 4 * n).copy()
        offsets[n // 3:] -= 1 << 32
        write(at + ".idx", good[:34 + 4 * n] + offsets.tobytes() + good[34 + 12 * n:])
        run(prep, "verify", at, code=3)
        run(prep, "verify", "--repair", "--quiet", at)
        assert read(at + ".idx") == good


# ---- export --------------------------------------------------------------------------------------------

def export(prep, folder):
    """Real texts there and back; ids against the .bin itself."""
    rng = random.Random(7)
    x, ids = random_shard(rng, 4, False, 500)
    at = os.path.join(folder, "r")
    write(at + ".idx", x.bytes())
    write(at + ".bin", ids.tobytes())
    lines = run(prep, "export", "--ids", at).stdout.splitlines()
    begin = np.concatenate([[0], np.cumsum(x.lengths)])
    assert len(lines) == len(x.documents) - 1
    for line, first, end in zip(lines, x.documents, x.documents[1:]):
        parts = [ids[begin[i]:begin[i + 1]].tolist() for i in range(first, end)]
        assert json.loads(line) == {"text": parts if len(parts) > 1 else sum(parts, [])}, line
    for name in ("botchan", "wagahaiwa_nekodearu") if DATA else ():
        tokenizer = os.path.join(DATA, "tokenizers/gpt2/tokenizer.json")
        source, out = os.path.join(DATA, f"text/{name}.jsonl"), os.path.join(folder, name)
        run(prep, "build", "--quiet", "--input", source, "--tokenizer", tokenizer, "--append-eod", "--output-prefix", out)
        got = run(prep, "export", "--tokenizer", tokenizer, out + "_text_document").stdout.splitlines()
        with open(source, encoding="utf-8") as f:
            want = [json.loads(line)["text"] for line in f]
        assert [json.loads(line)["text"] for line in got] == want, name


# ---- import --------------------------------------------------------------------------------------------

class Skip(Exception):
    pass


def tntidx(items, documents):
    """(.idx, .bin) by the rules of Megatron-LM's first IndexedDatasetBuilder: 32 bits always."""
    offsets = np.concatenate([[0], np.cumsum([len(i) for i in items])]).astype("<i8")
    idx = b"TNTIDX\x00\x00" + struct.pack("<6Q", 1, 4, 4, len(items), len(items), len(documents))
    for a in (range(len(items) + 1), offsets, [len(i) for i in items], documents):
        idx += np.array(a, dtype="<i8").tobytes()
    return idx, np.array([t for i in items for t in i], dtype="<i4").tobytes()


def llmc(ids, llama):
    """A token file by the rules of llm.c's dev/data."""
    header = np.zeros(256, dtype="<i4")
    header[:3] = (20240801, 7, len(ids)) if llama else (20240520, 1, len(ids))
    return header.tobytes() + np.array(ids, dtype="<u4" if llama else "<u2").tobytes()


def imported(prep, folder, name, path, documents, code, *options):
    out = os.path.join(folder, name)
    run(prep, "import", "--quiet", path, "--output-prefix", out, *options)
    body, idx = builder(documents, code)
    assert read(out + ".bin") == body, f"{name}: .bin"
    assert read(out + ".idx") == idx, f"{name}: .idx"
    run(prep, "verify", out)


def import_rules(prep, folder):
    for seed in range(10):
        rng = random.Random(seed)
        path = lambda name: os.path.join(folder, f"{seed}{name}")
        texts = [[rng.randrange(50256) for _ in range(rng.choice([1, 2, 500]))] for _ in range(rng.randrange(1, 60))]
        # items and documents, empty ones too
        items, documents, bounds = [], [], [0]
        for t in texts:
            k = rng.randrange(3)
            documents.append([t] * k)
            items += [t] * k
            bounds.append(len(items))
        for suffix, data in zip((".idx", ".bin"), tntidx(items, bounds)):
            write(path("tnt" + suffix), data)
        imported(prep, folder, f"{seed}from_tnt", path("tnt"), documents, 4)
        imported(prep, folder, f"{seed}from_tnt2", path("tnt"), documents, 8, "--vocab-size", "50257")
        for llama, eot in ((False, 50256), (True, 128000)):
            flat = [i for t in texts for i in [eot] + t]
            write(path("llm.bin"), llmc(flat, llama))
            imported(prep, folder, f"{seed}from_llm{eot}", path("llm.bin"), [[[eot] + t] for t in texts], 4 if llama else 8)
        ended = [t + [50256] if rng.randrange(5) else [] for t in texts]
        for width, code in (("<u2", 8), ("<u4", 4)):
            flat = [i for t in ended for i in t]
            name = path(f"{code}.ds")
            write(name, np.array(flat, dtype=width).tobytes())
            if flat:
                write(name + ".index", np.cumsum([len(t) for t in ended]).astype("<u8").tobytes())
                imported(prep, folder, f"{seed}from_ds{code}", name, [[t] for t in ended], code)
                os.remove(name + ".index")
            full = [[t] for t in ended if t]
            imported(prep, folder, f"{seed}from_flat{code}", name, full, code, "--boundary", "50256", "--dtype",
                     "u16" if code == 8 else "u32")
            np.save(path(f"{code}.npy"), np.array(flat, dtype=width))
            imported(prep, folder, f"{seed}from_npy{code}", path(f"{code}.npy"), full, code, "--boundary", "50256")


def import_datatrove(prep, folder):
    """Files that datatrove itself writes."""
    try:
        from datatrove.pipeline.tokens.tokenizer import TokenizedFile
    except ImportError as e:
        raise Skip(f"datatrove is not installed: {e}")
    rng = random.Random(3)
    for size, code, top in ((2, 8, 50256), (4, 4, 200000)):
        documents = [[rng.randrange(top) for _ in range(rng.choice([1, 30, 400]))] for _ in range(100)]
        for loss in (False, True):
            f = TokenizedFile(folder, f"x{size}{loss}.ds", save_loss_metadata=loss, tokenizer_name_or_path="a|b",
                              save_final_metadata=True, token_size=size)
            for d in documents:
                f.write(d, np.ones(len(d)) if loss else None)
            f.close()
            imported(prep, folder, f"trove{size}{loss}", os.path.join(folder, f"x{size}{loss}.ds"), [[d] for d in documents],
                     code)
    f = TokenizedFile(folder, "masked.ds", save_loss_metadata=True, token_size=2)
    f.write([1, 2, 3], np.array([1, 0, 1]))
    f.close()
    r = run(prep, "import", os.path.join(folder, "masked.ds"), "--output-prefix", os.path.join(folder, "m"), code=2)
    assert b"masks token 1" in r.stderr, r.stderr


# ---- inspect --samples ---------------------------------------------------------------------------------

def ends_of_document(tokens, eod):
    """(loss mask, positions, starts) by Megatron-LM's get_ltor_masks_and_position_ids, all resets on."""
    mask, position, starts = [float(t != eod) for t in tokens], list(range(len(tokens))), [0]
    for i, t in enumerate(tokens):
        if t == eod and i + 1 < len(tokens):
            starts.append(i + 1)
    for a, b in zip(starts, starts[1:] + [len(tokens)]):
        position[a:b] = range(b - a)
    return mask, position, starts


def samples(prep, folder):
    for seed in range(12):
        rng = random.Random(seed)
        x, _ = random_shard(rng, 8, False, 150)
        ids = np.array([rng.randrange(40) for _ in range(sum(x.lengths))], dtype="<u2")
        at = os.path.join(folder, f"s{seed}")
        write(at + ".idx", x.bytes())
        write(at + ".bin", ids.tobytes())
        sequences = np.split(ids, np.cumsum(x.lengths)[:-1])
        split, part = rng.choice([("1,0,0", 0), ("60,30,10", 0), ("60,30,10", 1)])
        length, count = rng.choice([1, 7, 64]), rng.randrange(1, 2000)
        share = shares(split, len(x.lengths))[part]
        maps, _ = index_maps(np.array(x.lengths), *share, count, length, seed)
        ask = sorted({rng.randrange(len(maps["shuffle"])) for _ in range(20)})
        asked = ["--num-samples", "--num-valid-samples"][part]
        out = run(prep, "inspect", at, "--json", "--samples", *map(str, ask), "--part", ["train", "valid"][part], asked,
                  str(count), "--seq-length", str(length), "--seed", str(seed), "--split", split, "--tokenizer-type",
                  "NullTokenizer", "--vocab-size", "39", "--eod-mask-loss", "--reset-position-ids",
                  "--reset-attention-mask").stdout.splitlines()
        assert len(out) == len(ask)
        for k, line in zip(ask, out):
            got, text = json.loads(line), text_of(sequences, maps, length, k).tolist()
            mask, position, starts = ends_of_document(text[:-1], 39)
            assert got["tokens"] == text[:-1] and got["labels"] == text[1:], f"seed {seed}, sample {k}"
            assert (got["loss_mask"], got["position_ids"], got["starts"]) == (mask, position, starts), f"sample {k}"


def main():
    prep = sys.argv[1]
    cases = [merge, repair, export, import_rules, import_datatrove, samples]
    print(f"1..{len(cases)}")
    failed = skipped = 0
    for i, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(prep, folder)
                print(f"ok {i} - {case.__name__}")
            except Skip as e:
                skipped += 1
                print(f"ok {i} - {case.__name__} # SKIP {e}")
            except AssertionError as e:
                failed += 1
                print(f"not ok {i} - {case.__name__}\n# {e}")
    print(f"# {len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
