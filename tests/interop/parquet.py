#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep build of Parquet against pyarrow: files of every variant that pyarrow writes.

    parquet.py PREP TOK KILL_AT

Each file's texts, as pyarrow itself reads them back, also go through prep as JSONL; .bin and .idx must be the
same bytes. The tokenizer is one of 256 bytes, so nothing of a text is lost. With WEFT_FULL=1 more of it."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as e:
    print(f"1..1\nok 1 - pyarrow # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

FULL = bool(os.environ.get("WEFT_FULL"))
WORDS = ["the", "of", "caf\u00e9", "\u6f22\u5b57", "\U0001F600", "\n", "\"", "\\", "\t", "x" * 50, "\u0000", "0"]
ENCODINGS = [None, "PLAIN", "DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
CODECS = ["NONE", "snappy", "gzip", "zstd"]


class Case:
    def __init__(self, prep, tok, kill_at, folder):
        self.prep, self.kill_at, self.folder = prep, kill_at, folder
        words = self.path("words.txt")
        with open(words, "w") as f:
            f.write("a text\n")
        os.mkdir(self.path("tok"))
        subprocess.run([tok, "train", "--quiet", "--type", "bpe", "--vocab_size", "256", "--input", words,
                        "--model_prefix", self.path("tok/")], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args):
        return subprocess.run([self.prep, "build", "--quiet", "--overwrite", "--allow-empty", "--tokenizer",
                               self.path("tok/tokenizer.json"), *args], capture_output=True, timeout=600)

    def build(self, prefix, *args):
        run = self.run("--output-prefix", self.path(prefix), *args)
        assert run.returncode == 0, run.stderr.decode()

    def outputs(self, prefix, keys):
        out = []
        for key in keys:
            for suffix in (".bin", ".idx"):
                with open(self.path(f"{prefix}_{key}_document{suffix}"), "rb") as f:
                    out.append(f.read())
        return out

    def check(self, table, keys, *args, workers=2, again=False, **how):
        """Writes the table, and compares; rows with a null are left out."""
        name = self.path("t.parquet")
        pq.write_table(table, name, **how)
        same = ["--json-keys", *keys, "--on-bad-record", "skip"]
        self.build("p", "--input", name, *same, "--workers", str(workers), *args)
        if not again:  # the same table in another form
            rows = pq.read_table(name).to_pylist()
            with open(self.path("t.jsonl"), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(row) + "\n" for row in rows)
            self.build("j", "--input", self.path("t.jsonl"), *same)
        assert self.outputs("p", keys) == self.outputs("j", keys), f"other documents: {how}"


def text(rng, most=40):
    return " ".join(rng.choice(WORDS) for _ in range(rng.choice([0, 1, 3, most])))


def texts(rng, n, nulls):
    pool = [text(rng) for _ in range(20)]
    one = [rng.choice(pool) if rng.random() < 0.5 else text(rng) for _ in range(n)]
    return [None if nulls and rng.random() < nulls else t for t in one]


def how(encoding, columns, codec, version):
    h = {"compression": codec, "data_page_version": version, "use_dictionary": encoding in (None, "DICTIONARY")}
    if encoding not in (None, "DICTIONARY"):
        h["column_encoding"] = {c: encoding for c in columns}
    return h


def variants(case):
    for seed, (encoding, codec, version) in enumerate(itertools.product(ENCODINGS, CODECS, ("1.0", "2.0"))):
        for more in range(4 if FULL else 1):
            rng = random.Random(seed * 10 + more)
            n = rng.choice([0, 1, 7, 300, 3000])
            nulls = rng.choice([0, 0.1, 0.9, 1])
            kind = rng.choice([pa.string(), pa.large_string(), pa.binary()])
            a, b = texts(rng, n, nulls), texts(rng, n, 0)
            raw = [t if t is None or kind != pa.binary() else t.encode() for t in a]
            table = pa.table({"n": pa.array(range(n)), "a": pa.array(raw, kind), "b": pa.array(b, pa.string())})
            h = how(encoding, ["a", "b"], codec, version)
            h.update(row_group_size=rng.choice([1 if n < 300 else 50, 100, 10000]), data_page_size=rng.choice(
                [1, 200, 1 << 20]), write_page_checksum=rng.random() < 0.5, write_statistics=rng.random() < 0.7)
            if kind == pa.binary():
                h.pop("column_encoding", None)
                pq.write_table(table, case.path("t.parquet"), **h)
                compare_binary(case, a, b)
            else:
                case.check(table, ["a", "b"], workers=rng.choice([1, 3]), **h)


def compare_binary(case, a, b):
    with open(case.path("t.jsonl"), "w", encoding="utf-8") as f:
        for x, y in zip(a, b):
            f.write(json.dumps({"a": x, "b": y}) + "\n")
    same = ["--json-keys", "a", "b", "--on-bad-record", "skip"]
    case.build("p", "--input", case.path("t.parquet"), *same)
    case.build("j", "--input", case.path("t.jsonl"), *same)
    assert case.outputs("p", ["a", "b"]) == case.outputs("j", ["a", "b"]), "binary"


def nested(case):
    rng = random.Random(5)
    n = 2000
    rows = [rng.choice([None, {"x": None}, {"x": {"t": None, "u": 1}}, {"x": {"t": text(rng), "u": None}}])
            for _ in range(n)]
    kind = pa.struct([("x", pa.struct([("u", pa.int32()), ("t", pa.string())]))])
    table = pa.table({"l": [[1, 2]] * n, "s": pa.array(rows, kind), "a.b": texts(rng, n, 0.1)})
    for version in ("1.0", "2.0"):
        for codec in CODECS:
            name = case.path("t.parquet")
            pq.write_table(table, name, compression=codec, data_page_version=version, row_group_size=700)
            for key, want in (("s.x.t", [r["x"]["t"] for r in rows if r and r["x"] and r["x"]["t"] is not None]),
                              (r"a\.b", [t for t in table["a.b"].to_pylist() if t is not None])):
                with open(case.path("t.jsonl"), "w", encoding="utf-8") as f:
                    for t in want:
                        f.write(json.dumps({"text": t}) + "\n")
                case.build("p", "--input", name, "--json-keys", key, "--on-bad-record", "skip")
                case.build("j", "--input", case.path("t.jsonl"))
                assert case.outputs("p", [key]) == case.outputs("j", ["text"]), (key, codec, version)


def large(case):
    """Values, pages and dictionaries of many megabytes."""
    rng = random.Random(9)
    size = 2000000 if FULL else 600000
    long = [text(rng, 400) * 60, "\u3042\u3044 " * size, "x" + "\u3042\u3044 " * size]
    rows = long + [text(rng) for i in range(30)] + long[:2]
    rows.insert(7, None)
    table = pa.table({"a": rows, "b": ["short"] * len(rows)})
    for i, encoding in enumerate(ENCODINGS):
        for codec in CODECS if FULL else ["zstd" if i % 2 else "snappy"]:
            case.check(table, ["a", "b"], again=bool(i), **how(encoding, ["a"], codec, rng.choice(["1.0", "2.0"])),
                       data_page_size=1 << 28, dictionary_pagesize_limit=1 << 30)


def several(case):
    rng = random.Random(11)
    for i in range(3):
        rows = texts(rng, 500, 0)
        pq.write_table(pa.table({"text": rows}), case.path(f"part-{i}.parquet"))
        with open(case.path("all.jsonl"), "a" if i else "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"text": r}) + "\n" for r in rows)
    case.build("p", "--input", case.path("part-*.parquet"), "--input-format", "parquet")
    case.build("j", "--input", case.path("all.jsonl"))
    assert case.outputs("p", ["text"]) == case.outputs("j", ["text"])


def id_lists(case):
    """Lists of ids, as --pretokenized takes them, against the same as JSONL."""
    kinds = [pa.int32(), pa.int64(), pa.uint16(), pa.uint32()]
    encodings = ["DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED"]
    for seed, (kind, encoding, version) in enumerate(itertools.product(kinds, encodings, ("1.0", "2.0"))):
        rng = random.Random(100 + seed)
        n, most, nulls = rng.choice([1, 50, 2000]), rng.choice([3, 200]), rng.choice([0, 0.2])

        def rows():
            return [None if rng.random() < nulls else [rng.choice([rng.randrange(65000), 7]) for _ in range(
                rng.choice([0, 1, rng.randrange(most)]))] for _ in range(n)]
        a, b = rows(), rows()
        form = pa.large_list(kind) if seed % 3 == 0 else pa.list_(pa.field("item", kind, nullable=seed % 2 == 0))
        deep = pa.array([{"b": x} for x in b], pa.struct([pa.field("b", form)]))
        table = pa.table({"s": [str(i) for i in range(n)], "a": pa.array(a, form), "d": deep})
        name = case.path("ids.parquet")
        h = how(encoding, [], rng.choice(CODECS), version)
        if encoding != "DICTIONARY":
            h["column_encoding"] = {"a.list.element": encoding, "d.b.list.element": encoding, "s": "PLAIN"}
        pq.write_table(table, name, row_group_size=rng.choice([30, 700, 10000]), data_page_size=rng.choice(
            [1, 300, 1 << 20]), **h)
        with open(case.path("ids.jsonl"), "w") as f:
            f.writelines(json.dumps({"a": x, "d": {"b": y}}) + "\n" for x, y in zip(a, b))
        same = ["--json-keys", "a", "d.b", "--vocab-size", "65000", "--on-bad-record", "quarantine"]
        for prefix, file in (("ip", name), ("ij", case.path("ids.jsonl"))):
            run = subprocess.run([case.prep, "build", "--quiet", "--overwrite", "--allow-empty", "--pretokenized", file, *same,
                                  "--output-prefix", case.path(prefix)], capture_output=True, timeout=600)
            assert run.returncode == 0, run.stderr
        assert case.outputs("ip", ["a", "d.b"]) == case.outputs("ij", ["a", "d.b"]), (seed, kind, h)
        lost = [(x, y) for x, y in zip(a, b) if x is None or y is None]
        if lost:
            with open(case.path("ip.bad.jsonl")) as f:
                assert [(x["a"], x["d.b"]) for x in map(json.loads, f)] == lost
    # a row of more than 4 MiB, one with a null among its ids, one beyond the vocabulary
    big = list(range(60000)) * 20
    table = pa.table({"text": pa.array([[1], big, [2, None], [65000], [-1], big + [None], [3]], pa.list_(pa.int64()))})
    pq.write_table(table, case.path("ids.parquet"))
    run = subprocess.run([case.prep, "build", "--overwrite", "--pretokenized", case.path("ids.parquet"), "--vocab-size",
                          "65000", "--on-bad-record", "quarantine", "--output-prefix", case.path("ip")],
                         capture_output=True, timeout=600, text=True)
    assert run.returncode == 0, run.stderr
    for words in ("row 3: there is a null instead of an id at place 1", "row 4: id 65000 at place 0", "row 5: id -1",
                  "row 6: there is a null"):
        assert words in run.stderr, run.stderr
    with open(case.path("ids.jsonl"), "w") as f:
        f.writelines(json.dumps({"text": x}) + "\n" for x in ([1], big, [3]))
    subprocess.run([case.prep, "build", "--quiet", "--overwrite", "--pretokenized", case.path("ids.jsonl"), "--vocab-size",
                    "65000", "--output-prefix", case.path("ij")], check=True)
    assert case.outputs("ip", ["text"]) == case.outputs("ij", ["text"])
    with open(case.path("ip.bad.jsonl")) as f:
        assert [json.loads(x)["text"] for x in f] == [[2, None], [65000], [-1], big + [None]]
    # what is not a list of ids
    table = pa.table({"s": ["a"], "n": [1], "l": [["x"]], "ll": [[[1]]], "f": [[1.5]],
                      "m": pa.array([[{"a": 1, "b": 2}]])})
    pq.write_table(table, case.path("ids.parquet"))
    for key, words in (("s", "has one value in a row"), ("n", "has one value"), ("l", "has no whole numbers"), (
            "ll", "is a list of lists"), ("f", "has no whole numbers"), ("m", "has several fields"), ("z", "no column")):
        run = subprocess.run([case.prep, "build", "--quiet", "--pretokenized", case.path("ids.parquet"), "--json-keys", key,
                              "--vocab-size", "9", "--output-prefix", case.path("r")], capture_output=True, text=True)
        assert run.returncode == 3 and words in run.stderr, (key, run)


def resumed(case):
    """Killed anywhere among several row groups, the same command resumes to the bytes of an undisturbed run."""
    rng = random.Random(12)
    n = 30000
    table = pa.table({"a": texts(rng, n, 0.01), "b": [f"{i}. " + "x" * rng.randrange(150) for i in range(n)]})
    name = case.path("groups.parquet")
    pq.write_table(table, name, row_group_size=4001, data_page_size=5000, data_page_version="2.0")
    work = ["--input", name, "--json-keys", "a", "b", "--on-bad-record", "skip", "--sync-interval", "0"]
    case.build("want", *work)
    points = [*range(3, 600, 8)] if FULL else [12, 40, 75, 110, 150, 190]
    killed = 0
    for point in points + ["data:1", "data:2"]:
        command = [case.prep, "build", "--quiet", "--tokenizer", case.path("tok/tokenizer.json"), *work,
                   "--output-prefix", case.path("k")]
        code = subprocess.run([case.kill_at, str(point), *command], capture_output=True, timeout=600,
                              env={**os.environ, "WEFT_KILLS": case.path("kills")}).returncode
        if code == 4:
            return
        assert code in (0, 3), f"kill_at ends with {code} at {point}"
        killed += code == 0
        run = subprocess.run(command, capture_output=True, timeout=600)
        assert run.returncode == 0, run.stderr
        assert case.outputs("k", ["a", "b"]) == case.outputs("want", ["a", "b"]), f"killed at {point}"
        for f in os.listdir(case.folder):
            if f.startswith("k_"):
                os.unlink(case.path(f))
    assert killed >= 5, f"only {killed} runs were killed"
    with open(case.path("kills")) as f:
        struck = f.read().split()
    print(f"# resumed: struck {len(struck)} times, {struck.count('data')} of them at writes of data")
    assert struck.count("data") > 0


def refused(case):
    name = case.path("t.parquet")
    table = pa.table({"text": ["a"], "n": [1], "l": [["x"]], "s": pa.array([{"t": "a"}])})
    pq.write_table(table, name)
    for key, words in (("none", "has no column"), ("n", "numbers"), ("s", "group of fields"), ("s.u", "no column"),
                       ("l.list.element", "is a list of texts")):
        run = case.run("--input", name, "--json-keys", key, "--output-prefix", case.path("r"))
        assert run.returncode == 3 and words in run.stderr.decode(), (key, run)
    for codec in ("brotli", "lz4"):
        pq.write_table(table, name, compression=codec)
        run = case.run("--input", name, "--output-prefix", case.path("r"))
        assert run.returncode == 3 and "is compressed with" in run.stderr.decode(), run
    for key in ("text", "t"):
        table = pa.table({"text": pa.array([b"good", b"\xff"], pa.binary())})
        pq.write_table(table, name)
    run = case.run("--input", name, "--output-prefix", case.path("r"))
    assert run.returncode == 3 and b"row 2: byte 0: invalid UTF-8" in run.stderr, run


def damaged(case):
    """A page that was changed does not match its checksum; any other damage is an error or harmless, no crash."""
    rng = random.Random(13)
    name, bad = case.path("t.parquet"), case.path("bad.parquet")
    for codec in CODECS:
        table = pa.table({"a": texts(rng, 300, 0.1), "b": texts(rng, 300, 0)})
        pq.write_table(table, name, compression=codec, write_page_checksum=True, data_page_size=500)
        with open(name, "rb") as f:
            good = f.read()
        for i in range(150 if FULL else 25):
            b = bytearray(good)
            for _ in range(rng.choice([1, 1, 4])):
                b[rng.randrange(4, len(b) - 8)] ^= 1 << rng.randrange(8)
            if rng.random() < 0.2:
                del b[rng.randrange(len(b)):]
            with open(bad, "wb") as f:
                f.write(b)
            run = case.run("--input", bad, "--json-keys", "a", "b", "--on-bad-record", "skip", "--input-format",
                           "parquet", "--output-prefix", case.path("d"))
            assert run.returncode in (0, 3), run
            assert run.returncode == 0 or run.stderr.startswith(b"error: " + bad.encode()), run


def main(prep, tok, kill_at):
    failed = 0
    cases = [variants, nested, large, several, id_lists, resumed, refused, damaged]
    with tempfile.TemporaryDirectory() as folder:
        case = Case(prep, tok, kill_at, folder)
        for number, run in enumerate(cases, 1):
            try:
                run(case)
                print(f"ok {number} - {run.__name__}", flush=True)
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - {run.__name__}\n# " + str(e).replace("\n", "\n# "), flush=True)
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
