#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ids of a folder against transformers' AutoTokenizer, which Megatron-LM's HuggingFaceTokenizer is: random tokens in
tokenizer.json, tokenizer_config.json, special_tokens_map.json and added_tokens.json.

    tok_folder.py TOK

40 folders, with WEFT_FULL=1 1500."""
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
try:
    import transformers
except ImportError as e:
    print(f"1..1\nok 1 - transformers # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

TOK = os.path.abspath(sys.argv[1])
FOLDERS = 1500 if os.environ.get("WEFT_FULL") else 40
CONTENT = ["<s>", "[PAD]", "</s>", "<pad>", "[CLS]", "<x>", "<y>", "one", "<z w>", "Q", "ab", "<unk>", "<mask>", " q", "é"]
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token", "x_token"]


def flags(r, all_of_them=False):
    return {k: r.random() < .3 for k in FLAGS if all_of_them or r.random() < .7}


def tokenizer(r):
    vocab = {w: i for i, w in enumerate(["u"] + [w for w in ("one", "two", "a", "b", "ab", "<s>", "Q") if r.random() < .8])}
    added = [{"id": vocab.get(c, -1), "content": c, **flags(r, True)} for c in r.sample(CONTENT, r.randint(0, 4))]
    for a in added:
        a["id"] = a["id"] if a["id"] >= 0 else max([len(vocab) - 1] + [b["id"] for b in added]) + 1
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
               "pad_token": r.choice(["[PAD]", "<pad>", "one"])}
    return {"version": "1.0", "truncation": None, "padding": r.choice([None, None, padding]), "added_tokens": added,
            "normalizer": r.choice([None, {"type": "Lowercase"}]), "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": r.choice([None, {"type": "BertProcessing", "sep": ["one", 1], "cls": ["u", 0]}]),
            "decoder": None, "model": {"type": "WordLevel", "unk_token": "u", "vocab": vocab}}


def config(r, added):
    def value(c):
        return c if r.random() < .5 else {"__type": "AddedToken", "content": c, **flags(r)}
    out = {"tokenizer_class": r.choice(["PreTrainedTokenizerFast", "TokenizersBackend"]), "add_bos_token": r.random() < .5}
    out.update((k, value(r.choice(CONTENT))) for k in ROLES if r.random() < .3)
    if r.random() < .2:
        out["eos_token"] = None
    if r.random() < .3:
        out["additional_special_tokens"] = [value(c) for c in r.sample(CONTENT, r.randint(0, 3))]
    if r.random() < .2:
        out["extra_special_tokens"] = [value(c) for c in r.sample(CONTENT, r.randint(0, 3))]
    elif r.random() < .2:
        out["extra_special_tokens"] = {f"e{i}_token": r.choice(CONTENT) for i in range(r.randint(0, 3))}
    if r.random() < .5:
        some = r.sample(CONTENT, r.randint(0, 5))
        out["added_tokens_decoder"] = {str(i): {"content": c, **flags(r)} for i, c in zip(r.sample(range(30), 5), some)}
        out["added_tokens_decoder"].update((str(a["id"]), {k: v for k, v in a.items() if k != "id"}) for a in added
                                           if a["content"] not in some and r.random() < .6)
    return out


def role_map(r):
    out = {}
    for k in ("bos_token", "eos_token", "unk_token", "pad_token", "y_token"):
        c, f = r.choice(CONTENT), flags(r)
        f.pop("special", None)
        if r.random() < .4:
            out[k] = r.choice([c, {"content": c, **f}])
    if r.random() < .3:
        out["additional_special_tokens"] = r.sample(CONTENT, 2)
    return out


def differs(folder, seed):
    r = random.Random(seed)
    files = {"tokenizer.json": tokenizer(r)}
    if files["tokenizer.json"]["padding"] or r.random() < .9:
        files["tokenizer_config.json"] = config(r, files["tokenizer.json"]["added_tokens"])
    if r.random() < .5:
        files["special_tokens_map.json"] = role_map(r)
    if r.random() < .4:
        first = len(files["tokenizer.json"]["model"]["vocab"]) + len(files["tokenizer.json"]["added_tokens"])
        files["added_tokens.json"] = {c: first + i for i, c in enumerate(r.sample(CONTENT, r.randint(0, 4)))}
    for name, content in files.items():
        with open(f"{folder}/{name}", "w") as f:
            json.dump(content, f)
    texts = [r.choice(["", " "]).join(r.choices(CONTENT + [" ", "two", "a b", "zz"], k=r.randint(1, 8))) for _ in range(30)]
    reference = transformers.AutoTokenizer.from_pretrained(folder)
    p = subprocess.run([TOK, "encode", "--tokenizer", folder, "--specials", "parse", "--format", "json", "--input-format", "jsonl",
                        "-"], input="".join(json.dumps({"text": t}) + "\n" for t in texts), capture_output=True, text=True)
    if p.returncode:
        return p.stderr
    for text, line in zip(texts, p.stdout.splitlines()):
        want, got = reference(text).input_ids, json.loads(line)["ids"]
        if want != got:
            return f"{text!r}: {want}, ours {got}; {files}"
    return None


def main():
    bad = 0
    for seed in range(FOLDERS):
        with tempfile.TemporaryDirectory() as folder:
            what = differs(folder, seed)
        if what:
            bad += 1
            print(f"# folder {seed}: {what[:3000]}")
    print(f"1..1\n{'not ok' if bad else 'ok'} 1 - {FOLDERS} folders as transformers {transformers.__version__}")
    return bad > 0


sys.exit(main())
