#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of five users' projects, with stand-ins for python, torchrun, deepspeed and mpirun in PATH that start our programs:
each command gets as far as seed_scripts.txt says, on a small model and data that are made here. With WEFT_SEED_SCRIPTS, a folder
with checkouts of the projects, each of their scripts is run, unedited, and what becomes of all its options is asked for; without it
that is skipped. Usage: seed_scripts.py TOK PREP TRAIN"""
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "..", "cli", "seeds")
# options of launchers, and those of ours that they are; a port would be that of another test
LAUNCHER_VALUES = {"--nproc_per_node": "--nproc-per-node", "--nproc-per-node": "--nproc-per-node", "--num_gpus": "--nproc-per-node",
                   "--num_nodes": "--nnodes", "--nnodes": "--nnodes"}
OTHERS = "nvidia-smi ssh ds_ssh wget nsys module enroot sbatch qsub srun rm cp mv scp pip conda gpustat".split()


def program_of(words):
    """Of a command line: the options of its launcher as ours, the script, and the script's own arguments."""
    at = next((i for i, w in enumerate(words) if w.endswith(".py")), None)
    if at is None:
        return None
    ours = []
    for name, value in zip(words[:at], words[1:at]):
        if LAUNCHER_VALUES.get(name):
            ours += [LAUNCHER_VALUES[name], value]
    return ours, os.path.basename(words[at]), words[at + 1:]


def stand_in(name, words):
    """What `name` does in the place of the program of that name."""
    if name == "nvidia-smi":
        print("GPU\n" * 8, end="")
    found = program_of(words) if name in ("python", "python3", "torchrun", "deepspeed", "mpirun") else None
    if not found:
        return 0
    launcher, script, args = found
    tok, prep, train = json.loads(os.environ["STAND_IN_PROGRAMS"])
    log, small = os.environ["STAND_IN_LOG"], shlex.split(os.environ.get("STAND_IN_SMALL", ""))
    if script == "preprocess_data.py":
        command = [prep, "build", *args, *small]
    elif "pretrain_gpt" in script and "STAND_IN_SMALL" in os.environ:
        command = [train, "run", *launcher, *args, *small]
    elif "pretrain_gpt" in script:
        command = [train, "run", "--dry-run", *args]
    else:
        return 0
    r = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    with open(log, "a", encoding="utf-8") as f:
        f.write(json.dumps(dict(script=script, command=command, code=r.returncode, out=r.stdout, err=r.stderr)) + "\n")
    return r.returncode


def make_stand_ins(folder):
    os.mkdir(folder)
    for name in ["python", "python3", "torchrun", "deepspeed", "mpirun", *OTHERS]:
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B {shlex.quote(os.path.abspath(__file__))} --stand-in {name} "$@"\n')
        os.chmod(f"{folder}/{name}", 0o755)


def make_data(d, tok, prep):
    """What the scripts take for granted: texts, tokenizers of each kind, and data under the names that they have."""
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=d)
    rng = random.Random(5)
    words = ["".join(rng.choice("aeioubdgklmnprst") for _ in range(rng.randint(2, 7))) for _ in range(300)]
    os.makedirs(f"{d}/dataset")
    with open(f"{d}/dataset/arxiv.jsonl", "w", encoding="ascii") as f:
        for _ in range(300):
            f.write(json.dumps(dict(text=" ".join(rng.choices(words, k=rng.randint(20, 120))))) + "\n")
    learn = [tok, "train", "-q", "--input", "dataset/arxiv.jsonl"]
    subprocess.run([*learn, "--preset", "ucllm", "--model_prefix", "tokenizer", "--vocab_size", "400"], **quiet)
    subprocess.run([*learn, "--model_prefix", "tokenizer/", "--vocab_size", "400", "--type", "bpe", "--special_tokens",
                    "<|begin_of_text|>,<|end_of_text|>"], **quiet)
    subprocess.run([*learn, "--model_prefix", "gpt2", "--vocab_size", "400", "--type", "bpe", "--special_tokens", "<|endoftext|>",
                    "--output-type", "vocab+merges"], **quiet)
    os.makedirs(f"{d}/data/webtext")
    os.makedirs(f"{d}/datasets")
    shutil.copy(f"{d}/dataset/arxiv.jsonl", f"{d}/datasets")
    for name in "gpt2-vocab.json", "gpt2-merges.txt":
        shutil.copy(f"{d}/{name}", f"{d}/data")
        shutil.copy(f"{d}/{name}", f"{d}/dataset")
    gpt2 = ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "gpt2-vocab.json", "--merge-file", "gpt2-merges.txt"]
    llama = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", "tokenizer"]
    for prefix, t in (("data/a", llama), ("data/b", llama), ("my-gpt2", gpt2), ("data/webtext/webtext", gpt2), ("dataset/BookCorpusDataset", gpt2)):
        subprocess.run([prep, "build", "-q", "--input", "dataset/arxiv.jsonl", "--append-eod", "--output-prefix", prefix, *t], **quiet)
    for prefix in "data/a", "data/b":  # the seed's names have no key
        for end in ".bin", ".idx", ".manifest.json":
            os.rename(f"{d}/{prefix}_text_document{end}", f"{d}/{prefix}{end}")


def arguments(text):
    if not text.endswith(".args"):
        return shlex.split(text)
    with open(os.path.join(SEEDS, text), encoding="utf-8") as f:
        return [w for line in f if not line.startswith("#") for w in line.split()]


def table():
    """The rows of commands; and of scripts in which something is not supported, by their names."""
    with open(f"{HERE}/seed_scripts.txt", encoding="utf-8") as f:
        rows = [[x.strip() for x in line.rstrip("\n").split("|")] for line in f if not line.startswith("#")]
    return [r for r in rows if r[0] != "refused"], {r[1]: r[2] for r in rows if r[0] == "refused"}


def run_row(d, row, environ):
    """The command of one script: how far it gets."""
    seed, script, launch, args, small, want, _ = row
    ds = os.path.join(SEEDS, f"{seed}-ds_config.json")
    if os.path.exists(ds):
        shutil.copy(ds, f"{d}/ds_config.json")
    for name in "save", "load", "checkpoint", "checkpoints", "cache", "tensorboard":
        shutil.rmtree(f"{d}/{name}", ignore_errors=True)
    log = f"{d}/log"
    if os.path.exists(log):
        os.remove(log)
    trains = "pretrain" in launch
    if trains:
        small += " --exit-interval 2 --log-interval 1 --eval-iters 0 --threads 1"
        small += "" if "train-samples" in small else " --train-iters 2"
    env = dict(environ, STAND_IN_LOG=log, STAND_IN_SMALL=small)
    words = arguments(args)
    start = dict(cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if "with a checkpoint" in script:  # which the same command writes where it does not look for one
        at = words.index("--load")
        fresh = [w for i, w in enumerate(words) if i not in (at, at + 1) and w != "--exit-on-missing-checkpoint"]
        subprocess.run([*shlex.split(launch), *fresh], env=dict(env, STAND_IN_SMALL=small + " --train-iters 1 --save load"), **start)
        os.remove(log)
    subprocess.run([*shlex.split(launch), *words], env=env, **start)
    with open(log, encoding="utf-8") as f:
        record = json.loads(f.read())
    if not trains and record["code"] == 0:
        prefix = record["command"][record["command"].index("--output-prefix") + 1]
        got = "done" if os.path.getsize(f"{d}/{prefix}_text_document.bin") > 1000 else "no data"
    elif record["code"] == 4 and "error: load: no such folder" in record["err"]:
        got = "no checkpoint"
    elif record["code"]:
        got = f"stopped with {record['code']}"
    else:
        got = "trained" if " iteration        2/" in record["out"] else "no step"
    return got == want, got, record["err"][-600:]


def scripts_below(folder):
    for below, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(below, name)
            if not name.endswith(".sh"):
                continue
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            if "pretrain_gpt" in text or "preprocess_data.py" in text:
                yield path


def run_script(path, d, environ):
    """The commands of an unedited script, each with the options that are not supported or unknown, or a stop at an option."""
    log = f"{d}/script.log"
    if os.path.exists(log):
        os.remove(log)
    args = []
    if "ucllm" in path or "step2_pretrain_model" in path:
        args = ["--input_tokenizer_file", "t.model", "--output_model_dir", f"{d}/out", "--save_interval", "100", "--wandb_entity", "e",
                "--wandb_project", "p"]
    elif path.endswith("_01_run_inter.sh"):
        args = ["0", "localhost"]
    elif "chapter06" in path:
        args = ["load", "save", "tokenizer", f"{d}/data"]
    env = dict(environ, STAND_IN_LOG=log, HOME=f"{d}/home", NHOSTS="2", JOB_ID="77", SLURM_JOB_ID="9", OMPI_COMM_WORLD_RANK="0",
               OMPI_COMM_WORLD_SIZE="16", PE_HOSTFILE=f"{d}/hosts", SGE_JOB_HOSTLIST=f"{d}/hosts", HOSTNAME="host1")
    subprocess.run(["bash", path, *args], cwd=os.path.dirname(path), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=600)
    records = []
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
    bad = []
    for r in records:
        bad += [x for x in r["out"].splitlines() if x.startswith(("not supported", "unknown"))]
        bad += [x for x in r["err"].splitlines() if "unknown option" in x or "is not supported" in x]
    return len(records), bad


def main(tok, prep, train):
    failed = number = 0

    def say(ok, name, more=""):
        nonlocal failed, number
        number += 1
        failed += not ok
        if not ok:
            print("\n".join(f"# {x}" for x in more.splitlines()))
        print(f"{'ok' if ok else 'not ok'} {number} - {name}", flush=True)

    with tempfile.TemporaryDirectory(prefix="weft-seeds-") as d:
        make_stand_ins(f"{d}/bin")
        make_data(d, tok, prep)
        environ = dict(os.environ, PATH=f"{d}/bin:{os.environ['PATH']}", STAND_IN_PROGRAMS=json.dumps([tok, prep, train]))
        rows, refused = table()
        for row in rows:
            good, got, more = run_row(d, row, environ)
            say(good, f"{row[0]} {row[1]}: {got}{', ' + row[6] if row[6] else ''}", more)
        folder = os.environ.get("WEFT_SEED_SCRIPTS")
        if not folder:
            print(f"ok {number + 1} - the scripts themselves # SKIP WEFT_SEED_SCRIPTS names no folder of their projects")
            number += 1
        else:
            os.makedirs(f"{d}/home")
            with open(f"{d}/hosts", "w", encoding="ascii") as f:
                f.write("host1 8 q\nhost2 8 q\n")
            commands = silent = 0
            wrong = []
            copy = shutil.copytree(folder, f"{d}/scripts", symlinks=True)
            paths = list(scripts_below(copy))
            for path in paths:
                n, bad = run_script(path, d, environ)
                commands += n
                silent += not n
                known = refused.get(os.path.basename(path))
                wrong += [f"{os.path.relpath(path, copy)}: {x}" for x in bad if not (known and known in x)]
            print(f"# {len(paths)} scripts: {commands} commands; {silent} give none without their own environment")
            say(not wrong and commands > 0, "no script stops at an option", "\n".join(wrong[:20]))
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(stand_in(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "--stand-in" else main(*(os.path.abspath(x) for x in sys.argv[1:4])))
