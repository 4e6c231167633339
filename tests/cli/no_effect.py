#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
no_effect.py ROWS TOK PREP TRAIN: options without effect, in all programs, from their tables.

ROWS prints every row that has a condition (`needs`) or verbs where it does nothing (`idle`). Each is given to commands
that lack what it needs: a warning must name the option and what would give it an effect, and the command must end as
it does without the option. The commands are below, several for a verb where one cannot lack everything.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROWS = sys.argv[1]
PROGRAMS = dict(zip(("tok", "prep", "train"), (os.path.abspath(p) for p in sys.argv[2:5])))

NULL = "--tokenizer-type NullTokenizer --vocab-size 60"
DATA = "--data-path d_text_document"
MODEL = ("--num-layers 1 --hidden-size 8 --num-attention-heads 2 --max-position-embeddings 8 --seq-length 8 "
         "--micro-batch-size 1 --global-batch-size 1 --lr 1e-3 --train-iters 1 --split 90,5,5 --eval-iters 1")
LEARN = "--input a.txt --model_prefix out/m --overwrite"

EACH = ["--train-data-path d_text_document", "--valid-data-path d_text_document", "--test-data-path d_text_document",
        "--per-split-data-args-path parts.json"]
PARTS = "--num-samples 1 --num-valid-samples 1 --num-test-samples 1 --seq-length 8"

COMMANDS = {
    "tok train": [f"{LEARN} --vocab_size 40", f"{LEARN} --vocab_size 300 --type bpe",
                  f"{LEARN} --vocab_size 40 --type wordpiece", f"{LEARN} --vocab_size 40 --model_type char",
                  f"{LEARN} --vocab_size 40 --model_type word",
                  f"{LEARN} --vocab_size 40 --model_type bpe --engine sentencepiece",
                  f"{LEARN} --vocab_size 300 --type bpe --limit_alphabet 300",
                  f"{LEARN} --vocab_size 40 --bos_id -1 --eos_id -1 --pad_id -1"],
    "tok encode": ["--tokenizer v.json a.txt", "--tokenizer m.model a.txt", "--tokenizer h.json a.txt",
                   "--tokenizer m.model a.txt --output_format sample_id",
                   "--tokenizer h.json a.txt --output_format sample_id"],
    "tok decode": ["--tokenizer v.json ids.txt", "--tokenizer m.model ids.txt", "--tokenizer h.json ids.txt"],
    "tok inspect": ["v.json", "m.model", "m.model --corpus a.txt", "h.json --corpus a.txt",
                    "m.model --corpus r.jsonl --by lang"],
    "tok diff": ["m.model m.model", "m.model m.model a.txt", "v.json v.json a.txt"],
    "tok convert": ["m.model out/c.json --overwrite", "m.model out/c.json --overwrite --proof a.txt"],
    "tok extend": ["h.json --add words.txt --output out/e.json --overwrite"],
    "tok merge": ["h.json h.json --output out/e.json --overwrite"],
    "tok prune": ["h.json --size 290 --output out/p.json --overwrite",
                  "h.json --keep-used a.txt --output out/p.json --overwrite"],
    "prep build": [f"--input d.jsonl {NULL} --output-prefix b --overwrite",
                   f"--pretokenized ids.jsonl --json-keys ids {NULL} --output-prefix b --overwrite",
                   "--input r.jsonl --tokenizer m.model --output-prefix b --overwrite"],
    "prep index": ["--prefix d_text_document --num-samples 2 --seq-length 8"],
    "prep blend": [f"{DATA} --num-samples 2 --seq-length 8", *(f"{each} {PARTS}" for each in EACH)],
    "prep inspect": ["d_text_document", f"d_text_document {NULL}",
                     "d_text_document --samples 0 --num-samples 2 --seq-length 8 --split 1,0,0",
                     *(f"--samples 0 {each} {PARTS} --part {each[2:7].strip('-') if 'data-path' in each else 'train'}"
                       for each in EACH)],
    "prep sft": [f"--input e.jsonl {NULL} --seq-length 64 --output-prefix s --overwrite",
                 "--input chat.jsonl --tokenizer m.model --template alpaca --output-prefix s --overwrite"],
    "prep unpack": [f"p {NULL}"],
    "prep merge": ["d_text_document --output-prefix two --overwrite"],
    "prep verify": [f"d_text_document {NULL}"],
    "prep export": ["d_text_document --ids", f"d_text_document {NULL}"],
    "prep import": ["raw.bin --input-format raw --dtype u16 --boundary none --output-prefix two --overwrite"],
    "train run": [f"{MODEL} {DATA} --no-save {NULL}", f"{MODEL} {DATA} --no-save {NULL} --swiglu --ffn-hidden-size 16",
                  f"{MODEL} --no-save {NULL} --train-data-path d_text_document",
                  f"{MODEL} {DATA} --no-save {NULL} --weight-decay-incr-style linear --start-weight-decay 0 --end-weight-decay 0.1",
                  f"{MODEL} {DATA} --no-save {NULL} --use-precision-aware-optimizer"],
    "train eval": [f"--load run {DATA} --eval-iters 1", *(f"--load run {each} --eval-iters 1 --data-part {each[2:7].strip('-') if each[2] != 'p' else 'valid'}" for each in EACH)],
    "train generate": ["--load run --prompt '1 2' --max-new-tokens 1"],
    "train plan": [f"{MODEL} {NULL}", f"{MODEL} {NULL} --swiglu --ffn-hidden-size 16"],
}

# rows that must be among those that are printed, so that a condition that is lost is noticed
ALWAYS = {
    "train run": "fim-spm-rate fim-prefix-token fim-middle-token fim-suffix-token rope-scaling-factor keep-checkpoints "
                 "exit-on-missing-checkpoint strict specials engine add-special-tokens bias-gelu-fusion",
    "train plan": "lr min-lr seed weight-decay clip-grad adam-beta1 save load eval-iters log-interval",
    "prep inspect": "strict specials add-special-tokens engine seed split seq-length num-samples num-valid-samples "
                    "data-rules part eod-mask-loss exhaustive data-cache-path",
    "tok diff": "specials",
}

# values that must be of their kind
VALUES = {"split": "90,5,5", "dropout": "0.1", "required_chars_file": "a.txt", "lr-warmup-init": "1e-4", "moe-layer-freq": "2"}
PRESETS = {"tok": "ucllm", "train": "gpt-1m"}


def words(text):
    return [w[1:-1] if w[0] == "'" else w for w in re.findall(r"'[^']*'|\S+", text)]


def run(place, *more):
    program, verb = place.split()
    return subprocess.run([PROGRAMS[program], verb, *more], capture_output=True, text=True, errors="replace",
                          env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=900)


def value_of(row):
    """The option with a value of its kind that is not its default."""
    name, kind, default = row["name"], row["type"], row["def"]
    if kind == "switch":
        return [f"--no-{name}" if default == "true" else f"--{name}"]
    if name == "preset":
        return [f"--preset={PRESETS[row['program']]}"]
    if name in VALUES:
        return [f"--{name}={VALUES[name]}"]
    if kind == "choice":
        return [f"--{name}=" + next((c for c in row["meta"].split("|") if c != default), default)]
    if kind in ("int", "real"):
        low = row["min"] if row["min"] > 0 else 0
        high = row["max"] or 1e18
        some = [v for v in (2, 3, 0.5, 0.25, low) if low <= v <= high and (kind == "real" or v == int(v))]
        return [f"--{name}=" + next(f"{v:g}" for v in some if float(default or 0) != v)]
    return [f"--{name}=x"]


def clauses(row):
    """The conditions that hold for the row's verb, as lists of alternatives."""
    for clause in filter(None, (row["needs"] or "").split(";")):
        verb, colon, rest = clause.rpartition(":")
        if not colon or verb.strip() == row["verb"]:
            yield [a.strip() for a in rest.split(",")]


def reasons(text, name):
    """What the warnings about the option say behind "has no effect"."""
    for line in text.splitlines():
        found = re.search(r"warning: (--.*) ha(?:s|ve) no effect(.*)", line)
        if found and f"--{name}" in re.findall(r"--[\w-]+", found[1]):
            yield found[2]


def cures(clause):
    """Names of which a reason must show one; empty for what only the program knows."""
    return [re.sub(r"^!|=.*$", "", a) for a in clause if not a.startswith("@")]


def shows_one(why, names):
    return any(re.search(f"(^| or) (with|without) --{n}\\b", why) for n in names)


def more_options(row):
    """Nothing, or an option under which "!it" does not hold."""
    yield []
    for clause in clauses(row):
        for name, value in re.findall(r"^!([\w-]+)=?(.*)$", clause[0]):
            yield [f"--{name}={value}"] if value else [f"--{name}"]
            if not value:
                yield [f"--{name}=d_text_document"]


class Failed(Exception):
    pass


def shows(place, row, base, extra):
    """The reasons of one command; it must end as without the option."""
    command = words(base) + extra
    plain = bare.setdefault((place, *command), None) or run(place, *command)
    bare[(place, *command)] = plain
    if plain.returncode and extra:
        return []
    if plain.returncode:
        raise Failed(f"{place} {base}: exit code {plain.returncode}: {plain.stderr.strip()}")
    found = list(reasons(plain.stderr, row["name"]))
    if found and f"--{row['name']}" not in command:
        raise Failed(f"{place} {base}: warns of --{row['name']}, which was not given")
    if f"--{row['name']}" in command:
        return found
    given = run(place, *command, *value_of(row))
    found = list(reasons(given.stderr, row["name"]))
    if found and given.returncode:
        raise Failed(f"{place} {' '.join(command + value_of(row))}: exit code {given.returncode}: {given.stderr}")
    return found


def judge(row, shown):
    """
    What is wrong with the warnings of one row under its verb. Notes in `shown` which conditions were warned of: not
    every verb can lack each, but some verb of the program must, and some program what only programs know.
    """
    place = f"{row['program']} {row['verb']}"
    open_clauses = [cures(c) for c in clauses(row) if cures(c)]
    known = [c for c in clauses(row) if not cures(c)]
    for clause in known:
        shown.setdefault((row["name"], *clause), False)
    for clause in [] if row["idle"] else open_clauses:
        shown.setdefault((row["program"], row["name"], *clause), False)
    idle, some = row["idle"], False
    for base in COMMANDS[place]:
        for extra in more_options(row):
            for why in shows(place, row, base, extra):
                idle = idle and f" in {place}" not in why.replace(PREFIX, "")
                some = True
                named = [c for c in open_clauses if shows_one(why, c)]
                for clause in named:
                    shown[(row["program"], row["name"], *clause)] = True
                open_clauses = [c for c in open_clauses if c not in named]
                for clause in known:
                    shown[(row["name"], *clause)] |= not any(shows_one(why, cures(c)) for c in clauses(row))
            if not idle and not open_clauses and (row["idle"] or not known):
                return
    if row["idle"] and idle:
        raise Failed(f"{place} --{row['name']}: no warning that it has no effect there")
    if not some and open_clauses:
        raise Failed(f"{place} --{row['name']}: no warning that names " +
                     " or ".join("/".join(f"--{n}" for n in c) for c in open_clauses))


def prepare():
    """Small files of all that the commands read."""
    def write(name, text):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)

    letters = "abcdefghijklmnop"
    text = "".join(" ".join(letters[(i * k) % 16] + letters[(i + k) % 16] for k in range(1, 9)) + "\n" for i in range(200))
    write("a.txt", text)
    write("v.json", json.dumps({"<unk>": 0, "ab": 1, "<|endoftext|>": 2}))
    write("words.txt", "zzzz\n")
    write("ids.txt", "1 2\n")
    numbers = [" ".join(str((i * k) % 60) for k in range(1, 40)) for i in range(60)]
    write("d.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in numbers))
    write("ids.jsonl", "".join(json.dumps({"ids": [int(x) for x in t.split()]}) + "\n" for t in numbers))
    write("e.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in numbers))
    write("r.jsonl", "".join(json.dumps({"text": t, "lang": "en"}) + "\n" for t in text.splitlines()))
    write("chat.jsonl", json.dumps({"messages": [{"role": "user", "content": "ab"},
                                                 {"role": "assistant", "content": "cd"}]}) + "\n")
    write("parts.json", json.dumps({part: ["d_text_document"] for part in ("train", "valid", "test")}))
    with open("raw.bin", "wb") as f:
        f.write(bytes(range(60)) * 2)
    os.mkdir("out")
    for place, command in (
            ("tok train", "--input a.txt --model_prefix m --vocab_size 40 --model_type bpe"),
            ("tok train", "--input a.txt --model_prefix h/ --vocab_size 300 --type bpe"),
            ("prep build", f"--input d.jsonl {NULL} --append-eod --output-prefix d"),
            ("prep sft", f"--input e.jsonl {NULL} --seq-length 64 --output-prefix p"),
            ("train run", f"{MODEL} {DATA} {NULL} --save run")):
        made = run(place, *words(command))
        if made.returncode:
            sys.exit(f"Bail out! {place} {command}: {made.stderr}")
    os.rename("h/tokenizer.json", "h.json")


bare = {}
table = [json.loads(line) for line in subprocess.run([ROWS], capture_output=True, check=True, text=True).stdout.splitlines()]
PREFIX = re.match(r"(.*)tok$", table[0]["program"])[1]
for one in table:
    one["program"] = one["program"].removeprefix(PREFIX)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    prepare()
    places = sorted({f"{r['program']} {r['verb']}" for r in table})
    told = {}
    for number, at in enumerate(places, 1):
        rows = [r for r in table if f"{r['program']} {r['verb']}" == at]
        wrong = [f"--{name} has no condition any more" for name in ALWAYS.get(at, "").split()
                 if name not in [r["name"] for r in rows]]
        for one in rows:
            try:
                judge(one, told)
            except Failed as f:
                wrong.append(str(f))
        print(f"{'not ok' if wrong else 'ok'} {number} - {at}: {len(rows)} rows", flush=True)
        for line in wrong:
            print("#", line.replace("\n", " "))
    never = [" ".join(key) for key, seen in told.items() if not seen]
    print(f"{'not ok' if never else 'ok'} {len(places) + 1} - every condition of every row is warned of")
    for line in never:
        print("#", line)
    print(f"1..{len(places) + 1}")
    os.chdir("/")
