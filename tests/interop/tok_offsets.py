#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tok encode --offsets` against the places that the references give: Hugging Face's tokenizers over the files of
testdata.py and the made-up pipelines of tok_pipe.py, and more of them with post-processors; tiktoken's
decode_with_offsets; begin and end of SentencePiece's protobuf.

    tok_offsets.py TOK [FILE...]

WEFT_FULL=1 takes more and longer texts, and all of them for each file."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import tokenizers
except ImportError as e:
    print(f"1..1\nok 1 - tokenizers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

from sp022 import sentencepiece
import tok_pipe
from testdata import MISSING, ranks_are_cl100k, ranks_options
from tok_pipe import DATA, FULL, NORM, PRE, TOK, books, fuzz

BYTES = 1 if FULL else 3  # one text in so many is asked about in bytes, too
MARKS = ["\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u0344", "\u0f73", "\u0f71", "\u05b0", "\u3099", "\u200d", "\ufe0f", "🏽"]
BASES = list("aeoEcAſ ") + ["é", "ậ", "ệ", "ǖ", "が", "ハ", "ﾊ", "한", "\u1112\u1161\u11ab", "ﬁ", "Ⅷ", "İ", "ß", "㌔", "ﷺ", "½", "👨", "Å", "▁", "漢"]


def marks(n, seed):
    """Characters with marks in any order."""
    r = random.Random(seed)
    return ["".join(r.choice(BASES) + "".join(r.choices(MARKS, k=r.choice((0, 0, 1, 2, 3)))) + r.choice(("", "", " ", "\n", "  "))
                    for _ in range(r.randint(1, 12))) for _ in range(n)]


def run(path, docs, *more):
    text = "".join(json.dumps({"text": d}) + "\n" for d in docs)
    p = subprocess.run([TOK, "encode", "--tokenizer", path, "--format", "json", "--specials", "parse", *more], input=text.encode(),
                       capture_output=True)
    if p.returncode:
        return p.stderr.decode()
    return [json.loads(line) for line in p.stdout.splitlines()]


def same(name, got, want, docs):
    """want: ids and offsets of each document."""
    if not isinstance(got, list):
        print(f"# {name}: {got}")
        return False
    bad = [i for i in range(len(want)) if (got[i]["ids"], got[i]["offsets"]) != want[i]]
    if not bad:
        return True
    i = min(bad, key=lambda k: len(docs[k]))
    ids, offsets = want[i]
    k = next((k for k, (a, b) in enumerate(zip(got[i]["offsets"], offsets)) if a != b), 0)
    print(f"# {name}: {len(bad)} of {len(want)} differ; {docs[i][:80]!r}; ids {'equal' if got[i]['ids'] == ids else 'DIFFER'}")
    print(f"#   at {k}: tok {got[i]['offsets'][max(0, k - 2):k + 6]}, reference {offsets[max(0, k - 2):k + 6]}")
    return False


def bytes_before(doc):
    """How many bytes are before each character and the end."""
    return list(itertools.accumulate((1 + (c > "\x7f") + (c > "\u07ff") + (c > "\uffff") for c in doc), initial=0))


def in_bytes(doc, offsets):
    at = bytes_before(doc)
    return [[at[a], at[b]] for a, b in offsets]


def check(path, docs):
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    want = [(e.ids, [list(o) for o in e.offsets]) for e in t.encode_batch(docs)]
    name = "/".join(path.split("/")[-2:])
    yield "characters", same(name, run(path, docs, "--offsets", "char"), want, docs)
    docs, want = docs[::BYTES], [(i, in_bytes(d, o)) for d, (i, o) in zip(docs[::BYTES], want[::BYTES])]
    yield "bytes", same(name, run(path, docs, "--offsets", "byte"), want, docs)


def parts_of(e):
    return [(p.ids, [list(o) for o in p.offsets]) for p in [e, *e.overflowing]]


CUTS = [(3, 0, "right"), (7, 2, "right"), (7, 4, "left"), (5, 0, "left"), (64, 16, "right"), (64, 63 // 2, "left")]


def check_parts(path, docs, cuts):
    """What truncation takes away, part by part."""
    t = tokenizers.Tokenizer.from_file(path)
    t.no_padding()
    name = "/".join(path.split("/")[-2:])
    for most, stride, side in cuts:
        t.enable_truncation(most, stride=stride, direction=side)
        want, texts = [], []
        known = [parts_of(e) for e in t.encode_batch(docs)]
        for d, parts in zip(docs, known):
            want += parts
            texts += [d] * len(parts)
        more = ["--truncation", str(most), "--truncation-side", side]
        got = run(path, docs, "--offsets", "char", "--overflow", "--stride", str(stride), *more)
        ok = same(name, got, want, texts) and len(got) == len(want)
        first = [parts[0] for parts in known]
        ok = same(name, run(path, docs, "--offsets", "char", *more), first, docs) and ok
        plain = run(path, docs, *more)
        yield f"parts of {most}, {stride}, {side}", ok and [g["ids"] for g in plain] == [f[0] for f in first]


def post(folder):
    """Post-processors that trim, normalizers that follow each other."""
    base, free = tok_pipe.byte_level()
    base["added_tokens"].append(dict(base["added_tokens"][0], id=free, content="[MASK]", lstrip=True, rstrip=True,
                                     normalized=False))
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    special = {"id": "<s>", "ids": [7], "tokens": ["<s>"]}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                         {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": special}}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True}
    posts = [level, dict(level, add_prefix_space=False), dict(level, trim_offsets=False), roberta,
             dict(roberta, add_prefix_space=False), {"type": "Sequence", "processors": [level, template]},
             {"type": "Sequence", "processors": [template, level]},
             {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 4]}, None]
    for i, p in enumerate(posts):
        for prefix in (False, True):
            yield f"post{i}{prefix}", dict(base, post_processor=p, pre_tokenizer=dict(level, add_prefix_space=prefix))
    lists = [("NFKC", "Lowercase"), ("NFD", "Lowercase", "StripAccents"), ("NFKD", "NFC"), ("Lowercase", "NFC"), ("Nmt", "NFKC")]
    for i, names in enumerate(lists):
        yield f"norms{i}", dict(base, normalizer={"type": "Sequence", "normalizers": [{"type": t} for t in names]})
    for i, n in enumerate(NORM):
        yield f"stripped{i}", dict(base, pre_tokenizer=dict(level, add_prefix_space=False), normalizer={
            "type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": i % 2 == 0}, n,
                                                {"type": "Prepend", "prepend": "é "}]})
    # each character a token, so that all places show
    letters = dict.fromkeys("".join(tok_pipe.CLASSES) + "".join(MARKS) + "".join(BASES) + "".join(map(chr, range(0x20, 0x180))))
    chars = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": False, "byte_fallback": False, "merges": [],
             "vocab": {c: i for i, c in enumerate(dict.fromkeys(["<unk>", *letters]))}}
    plain = dict(base, added_tokens=[], pre_tokenizer=None, decoder=None, post_processor=None, model=chars)
    for i, n in enumerate(NORM + [{"type": "Sequence", "normalizers": [{"type": t} for t in names]} for names in lists]):
        yield f"chars{i}", dict(plain, normalizer=n)
        scheme = ("always", "first", "never")[i % 3]
        yield f"marks{i}", dict(plain, normalizer=n, pre_tokenizer={
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": i % 2 == 0})


def made(folder):
    for path in tok_pipe.variants(folder):
        if not os.path.basename(path).startswith("dec"):
            yield path
    for name, spec in post(folder):
        yield tok_pipe.save(folder, name, spec)


def check_ranks(docs):
    """tiktoken says where tokens begin, in characters."""
    try:
        import tiktoken
        from tok_refs import CL100K, CL100K_SPECIALS
    except ImportError:
        return
    import base64
    path = f"{DATA}/tokenizers/cl100k/cl100k_base.tiktoken"
    with open(path, "rb") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
    enc = tiktoken.Encoding("cl100k", mergeable_ranks=ranks, pat_str=CL100K,
                            special_tokens=CL100K_SPECIALS if ranks_are_cl100k(path) else {})
    how = ranks_options(path)
    want = [enc.encode(d, allowed_special="all") for d in docs]
    begins = [enc.decode_with_offsets(w)[1] if w else [] for w in want]
    got = run(path, docs, "--offsets", "char", *how)
    ok = isinstance(got, list)
    bad = [d for d, g, w, b in zip(docs, got, want, begins) if g["ids"] != w or [o[0] for o in g["offsets"]] != b] if ok else got
    if bad:
        print(f"# {len(bad)} differ: {bad[0]!r}")
    yield "characters", not bad
    got = run(path, docs, "--offsets", "byte", *how)
    bad = []
    for d, g in zip(docs, got):
        raw = d.encode()
        pieces = [enc.decode_single_token_bytes(i) for i in g["ids"]]
        if b"".join(pieces) != raw or [raw[a:b] for a, b in g["offsets"]] != pieces:
            bad.append(d)
    if bad:
        print(f"# {len(bad)} differ: {bad[0]!r}")
    yield "bytes", not bad


MODELS = [("unigram",), ("unigram", "byte"), ("unigram", "spaces"), ("unigram", "suffix"), ("unigram", "identity", "noprefix"),
          ("unigram", "user"), ("bpe",), ("bpe", "byte", "spaces"), ("bpe", "user", "nmt_nfkc_cf"), ("bpe", "suffix", "nfkc"),
          ("word",), ("word", "suffix", "byte"), ("char",), ("char", "byte", "identity")]


def train(folder, text):
    for kinds in MODELS:
        path = f"{folder}/{'-'.join(kinds)}"
        rule = next((k for k in kinds if k in ("identity", "nfkc", "nmt_nfkc_cf")), "nmt_nfkc")
        more = ["--normalization_rule_name", rule]
        more += ["--byte_fallback"] if "byte" in kinds else []
        more += ["--no-remove_extra_whitespaces"] if "spaces" in kinds else []
        more += ["--treat_whitespace_as_suffix"] if "suffix" in kinds else []
        more += ["--no-add_dummy_prefix"] if "noprefix" in kinds else []
        more += ["--user_defined_symbols", "<u>,n't,aZ,漢"] if "user" in kinds else []
        size = ["--no-hard_vocab_limit", "--vocab_size", "900"] if kinds[0] != "char" else ["--vocab_size", "400"]
        p = subprocess.run([TOK, "train", "-q", "--overwrite", "--input", text, "--model_prefix", path, "--model_type", kinds[0], "--character_coverage",
                            "0.98", *size, *more], capture_output=True)
        if p.returncode:
            print("#", p.stderr.decode().strip())
        yield path + ".model"


def check_sp(path, docs):
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    want = []
    if "word" in path:  # words that are spelt like control and byte pieces: unknown only from 0.2.3 on
        docs = [d for d in docs if not any(x in d for x in ("<s>", "</s>", "<0x"))]
    for d in docs:
        pieces = sp.encode(d, return_type="proto").pieces
        at = {k: i for i, k in enumerate(bytes_before(d))}  # its places are bytes
        want.append(([p.id for p in pieces], [[at[p.begin], at[p.end]] for p in pieces]))
    name = os.path.basename(path)
    yield "characters", same(name, run(path, docs, "--offsets", "char", "--specials", "text"), want, docs)
    want = [(i, in_bytes(d, o)) for d, (i, o) in zip(docs, want)]
    yield "bytes", same(name, run(path, docs, "--offsets", "byte", "--specials", "text"), want, docs)


def sp_jobs(folder, docs):
    print(f"# sentencepiece {sentencepiece.__version__}")
    lines = [d.replace("\n", " ") for d in books()[:8]] + ["é漢 ½ ﬁ ①", "aZ n't"] * 20
    with open(f"{folder}/train.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    yield "mistral-7b/tokenizer.model", check_sp(f"{DATA}/tokenizers/mistral-7b/tokenizer.model", docs)
    for i, path in enumerate(train(folder, f"{folder}/train.txt")):
        yield path, check_sp(path, docs if FULL else docs[i % 3::3])


def main():
    files = sys.argv[2:]
    if not files and not DATA:
        print(f"1..1\nok 1 - tokenizers # SKIP {MISSING}")
        return 0
    small = fuzz(20000 if FULL else 400, 3) + marks(20000 if FULL else 400, 4) + ["", " ", "\n", "a"]
    large = small + books()
    n = bad = 0
    print(f"# tokenizers {tokenizers.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(p, check(p, large)) for p in files if p.endswith(".json")] + \
               [(p, check_sp(p, large)) for p in files if p.endswith(".model")]
        if not files:
            jobs = [(p, check(p, large)) for p in (f"{DATA}/tokenizers/{k}/tokenizer.json" for k in
                                                   ("gpt2", "gpt-neox", "mistral-7b", "bert-base-cased"))]
            jobs += [("cl100k_base.tiktoken", check_ranks(large)), *sp_jobs(folder, large)]
            jobs += [(f"{DATA}/tokenizers/{k}/tokenizer.json", check_parts(f"{DATA}/tokenizers/{k}/tokenizer.json", small[::5] + books()[:2], CUTS))
                     for k in ("gpt2", "bert-base-cased")]
            for i, path in enumerate(made(folder)):
                jobs.append((path, check(path, small if FULL else small[i % 2::2])))
                if os.path.basename(path)[:4] == "post":
                    jobs.append((path, check_parts(path, small[::7], CUTS if FULL else CUTS[i % 3::3])))
        for path, results in jobs:
            for name, ok in results:
                n += 1
                bad += not ok
                print(f"{'ok' if ok else 'not ok'} {n} - {'/'.join(path.split('/')[-2:])}: {name}", flush=True)
    print(f"1..{n}")
    return bad != 0


sys.exit(main())
