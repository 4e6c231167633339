#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The walk of ARCHITECTURE.md ("A token's way"), run: `prep build` and `train run` in gdb, with a breakpoint at each function
that it names, and each is met. Files that it names exist.

    walk.py ROOT PREP TRAIN TOK STORIES
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import house

MODEL = ("--num-layers 1 --hidden-size 16 --num-attention-heads 2 --max-position-embeddings 32 --seq-length 32 --micro-batch-size 2 "
         "--global-batch-size 2 --lr 1e-3 --train-iters 2 --eval-iters 0 --threads 2 --device cpu --hidden-dropout 0 "
         "--attention-dropout 0 --split 100,0,0 --log-interval 1 --save-interval 2").split()


def steps(root):
    """(step, [(file, [functions])]) of each row of the walk; a file without a folder is in that of the file before."""
    text = house.read(root, "ARCHITECTURE.md")
    table = text[text.index("## A token's way"):]
    table = table[:table.index("\n## ", 1)]
    for line in table.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) != 2 or "`" not in cells[1]:
            continue
        places, folder = [], ""
        for word in re.findall(r"`([^`]+)`", cells[1]):
            if word.endswith((".c", ".h")):
                folder = os.path.dirname(word) or folder
                places.append((os.path.join(folder, os.path.basename(word)), []))
            elif "/" in word:
                places.append((word, []))
            elif places:
                places[-1][1].append(word)
        yield cells[0], places


def files_exist(root):
    return [f"'{step}' names {path}, which does not exist" for step, places in steps(root) for path, _ in places
            if not os.path.exists(os.path.join(root, path))]


def line_of(root, path, name):
    """The first line of a function's body; None: the file does not define it."""
    lines = house.read(root, path).split("\n")
    for i, line in enumerate(lines):
        if re.match(rf"(?!#|\s)[^;=]*\b{name}\(", line):
            rest = next((k for k in range(i, len(lines)) if lines[k] == "{" or lines[k].endswith(";")), None)
            if rest is not None and lines[rest] == "{":
                return rest + 2
    return None


def breakpoint_of(root, program, path, name):
    """By name, which finds inlined copies, too; of a function that is nothing but inlined copies by its line."""
    symbols = subprocess.run([house.tool("nm"), program], check=True, text=True, stdout=subprocess.PIPE).stdout
    return f"{path}:{name}" if re.search(rf" [tT] {name}$", symbols, re.M) else f"{path}:{line_of(root, path, name)}"


def not_met(root, functions, command, folder):
    """Of the functions, [(file, name)], those at which the command did not stop; its exit code; what gdb said."""
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as f:
        f.write("set pagination off\nset confirm off\nset breakpoint pending on\nset debuginfod enabled off\n")
        for path, name in functions:
            f.write(f"tbreak {breakpoint_of(root, command[0], path, name)}\n"
                    f"commands\nsilent\necho met {path} {name}\\n\ncontinue\nend\n")
        f.write("run\nprint $_exitcode\n")
    run = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", script, "--args", *command], cwd=folder, text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if "ptrace: Operation not permitted" in run.stdout:
        raise house.Skip("this system lets nobody trace a process")
    met = set(re.findall(r"^met (\S+) (\S+)$", run.stdout, re.M))
    ended = re.search(r"^\$1 = (\S+)$", run.stdout, re.M)
    return [f for f in functions if f not in met], ended[1] if ended else "none", run.stdout


def walk_is_run(root, prep, train, tok, stories):
    if not shutil.which("gdb"):
        raise house.Skip("gdb is not installed")
    walk = [(path, name) for _, row in steps(root) for path, names in row for name in names]
    of_train = [path for path, _ in walk].index("dataset/sample/loader.c")
    with tempfile.TemporaryDirectory() as folder:
        def quiet(*argv):
            subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        quiet(stories, "--documents", "60", "--output", "text.jsonl")
        quiet(tok, "train", "--type", "bpe", "--vocab-size", "400", "--special_tokens", "<|endoftext|>", "--model_prefix", "./",
              "--input", "text.jsonl")
        wrong = []
        for functions, command in (
                (walk[:of_train], [prep, "build", "--input", "text.jsonl", "--output-prefix", "data", "--tokenizer",
                                   "tokenizer.json", "--append-eod"]),
                (walk[of_train:], [train, "run", "--data-path", "data_text_document", "--save", "run", *MODEL])):
            missed, code, said = not_met(root, functions, command, folder)
            name = " ".join((os.path.basename(command[0]), command[1]))
            if code != "0":
                wrong.append(f"{name} ended with {code}: {said[-800:]}")
            wrong += [f"{name} does not come by {function} of {path}" for path, function in missed]
        return wrong


def main(root, *programs):
    found = [os.path.abspath(p) for p in programs]
    return house.report([("files_exist", lambda: files_exist(root)), ("walk_is_run", lambda: walk_is_run(root, *found))])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
