#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
examples.py TOK PREP TRAIN CONVERT: runs every command that -h, --help, the manual pages and the READMEs show.

Each command runs by itself in a fresh folder, which has small files of the names that the commands read, and none of
those that it writes. A training run takes two steps (--train-iters 2 after it, and a shorter warm-up than the run
file's); with WEFT_FULL=1 it runs as written.
The exit codes of README.md and of the manual pages are those of base/core/err.h.
"""
import base64
import fnmatch
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
FULL = bool(os.environ.get("WEFT_FULL"))
PROGRAMS = dict(zip(("tok", "prep", "train", "convert"), (os.path.abspath(p) for p in sys.argv[1:5])))
WRITES = ("--output", "--output-prefix", "--model_prefix", "--save", "--export-hf")  # options that name what is written
TIME = 900  # seconds for a command that does not hang


def run(command, folder, **more):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)


def shown(program, *args):
    return run([PROGRAMS[program], *args], ".", check=True, env={**os.environ, "COLUMNS": "80"}).stdout


# ---- what is shown ---------------------------------------------------------------------------------------------------

def verbs(program):
    return re.findall(r"__fish_use_subcommand .*-a (\S+) ", shown(program, "--completion", "fish"))


def joined(lines):
    """Commands: lines that end in a backslash or a pipe go on in the next one."""
    command = ""
    for line in lines:
        line = line.strip()
        if not line.endswith("\\"):
            yield (command + line) if not line.endswith("|") else ""
            command = command + line + " " if line.endswith("|") else ""
        else:
            command += line[:-1].rstrip() + " "


def of_help(text):
    """The block of examples in -h or --help."""
    lines = text.splitlines()
    first = next(i for i, s in enumerate(lines) if s in ("Example:", "Examples:", "examples:"))
    last = next((i for i in range(first, len(lines)) if not lines[i].strip()), len(lines))
    return joined(lines[first + 1:last])


def of_man(text):
    text = text[text.index(".SH EXAMPLES"):].replace("\\-", "-").replace("\\e", "\\").replace("\\(aq", "'").replace("\\&", "")
    return joined(s for s in text.splitlines() if not s.startswith("."))


def of_readme(text):
    """Indented and fenced blocks, and the rows of tables of commands."""
    lines, fenced, table = [], False, False
    for line in text.splitlines():
        table = line == "| to | command |" or (table and line.startswith("|"))
        if table:
            lines += ["", *re.findall("`([^`]*)`", line)]
        elif line.startswith("```"):
            fenced = not fenced
            lines.append("")
        else:
            lines.append(re.sub(r"\s{2,}# .*", "", line) if fenced or line.startswith("    ") else "")
    return joined(lines)


def commands():
    """Each command once, with the first place that shows it."""
    prefix = os.path.basename(PROGRAMS["tok"])[:-3]
    all_verbs = {v for p in PROGRAMS for v in verbs(p)}
    starts = re.compile(rf"(^|[|;&]\s*)({prefix})?(tok|prep|train|convert) ({'|'.join(sorted(all_verbs))})\b")
    found = {}

    def take(place, some):
        for c in some:
            c = re.sub(r"\s+", " ", re.sub(r"(convert (?:inspect|verify|reshard|average) \S+(?: \S+)*?)  +[a-z].*", r"\1", c)).strip()
            if starts.search(c) and "..." not in c:
                found.setdefault(c, place)

    for p in PROGRAMS:
        for v in ([], *([v] for v in verbs(p))):
            for how in ("-h", "--help"):
                take(" ".join([p, *v, how]), of_help(shown(p, *v, how)))
        take(f"{p} --man", of_man(shown(p, "--man")))
    for folder, inside, files in os.walk(SRC):
        inside[:] = sorted(d for d in inside if not d.startswith((".", "build")))
        for name in sorted(files):
            if name == "README.md":
                path = os.path.join(folder, name)
                with open(path) as f:
                    take(os.path.relpath(path, SRC), of_readme(f.read()))
    return found


# ---- the files that they read ----------------------------------------------------------------------------------------

def words(n, seed):
    """Made-up words, no two alike."""
    r, seen = random.Random(seed), {}
    while len(seen) < n:
        seen["".join(r.choice("bcdfghklmnprstvz") + r.choice("aeiou") for _ in range(r.randint(2, 5)))] = 1
    return list(seen)


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)


def write_texts(root):
    """Text and JSONL under all names: the corpora have the words for 32,000 pieces, the others are small."""
    r = random.Random(5)
    many, few = words(45000, 1), words(2500, 2)
    small = [" ".join(r.choice(few[:int(10 ** r.uniform(1, 3.4))]) for _ in range(r.randint(40, 90))) + "." for _ in range(345)]
    large = small + [" ".join(many[i:i + 50]) + "." for i in range(0, len(many), 50)] * 2
    records = lambda texts: "".join(json.dumps({"text": t, "language": "en" if i % 2 else "de", "source": "a",
                                                "ids": [i % 50, 7]}) + "\n" for i, t in enumerate(texts))
    talk = [{"messages": [{"role": "user", "content": t[:60]}, {"role": "assistant", "content": t[60:150]}]} for t in small]
    guanaco = [{"text": f"### Human: {t[:60]}### Assistant: {t[60:150]}"} for t in small]
    files = {"chat.jsonl": "".join(json.dumps(t) + "\n" for t in talk),
             "guanaco.jsonl": "".join(json.dumps(t) + "\n" for t in guanaco),
             "tokens.txt": "zebra\n<|tool|>\n", "ids.txt": "5 6 7\n8 9\n", "ids.bin": b"".join(bytes([i, 0]) for i in range(200)),
             "corpus.jsonl": records(large), "a.txt": "\n".join(large), "b.jsonl": records(small), "data.jsonl": records(small)}
    for name in ("book", "en", "ja", "corpus", "b"):
        files[f"{name}.txt"] = "\n".join(small)
    for name in ("a", "x", "book"):
        files[f"{name}.jsonl"] = records(small)
    for name, text in files.items():
        write(f"{root}/{name}", text)
    for name in ("x", "a.jsonl", "b.jsonl", "b.txt", "corpus.jsonl", "corpus/a.jsonl", "data/a.jsonl"):
        write(f"{root}/{name}.zst", b"")
        source = files["b.txt"] if name == "b.txt" else records(small)
        with open(f"{root}/{name}.zst", "wb") as f:
            subprocess.run(["zstd", "-qc"], input=source.encode(), stdout=f, check=True)


def write_tokenizers(root, call):
    call("tok", "train", "-q", "--preset", "ucllm", "--input", "b.txt", "--model_prefix", "book", "--vocab_size", "1000")
    for name in ("P", "spm", "tokenizer", "a", "b", "tales", "stories"):
        shutil.copy(f"{root}/book.model", f"{root}/{name}.model")
    call("tok", "train", "-q", "--type", "bpe", "--special_tokens", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "--vocab_size", "800",
         "--input", "b.txt", "--model_prefix", "a/")
    call("tok", "train", "-q", "--type", "bpe", "--special_tokens", "<|endoftext|>", "--vocab_size", "700", "--input", "en.txt",
         "--model_prefix", "b/")
    call("tok", "train", "-q", "--type", "bpe", "--special_tokens", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "--vocab_size",
         "16000", "--input", "a.txt", "--model_prefix", "large/")
    shutil.copy(f"{root}/large/tokenizer.json", f"{root}/tokenizer.json")
    # as many ranks as cl100k_base has, by which it is known
    ranks = [bytes([i]) for i in range(256)] + [bytes([i, j]) for i in range(256) for j in range(256)]
    ranks += [b"abc" + bytes([i, j]) for i in range(256) for j in range(256)]
    text = "".join(f"{base64.b64encode(b).decode()} {i}\n" for i, b in enumerate(ranks[:100256]))
    write(f"{root}/cl100k_base.tiktoken", text)
    write(f"{root}/b.tiktoken", text)


def write_shards(root, call):
    build = ("prep", "build", "-q", "--input", "b.jsonl", "--tokenizer", "book.model", "--append-eod")
    call(*build, "--output-prefix", "book")
    for name in ("corpus", "web", "code", "more", "part_0", "part_1", "data/tales", "parts/a", "parts/b"):
        os.makedirs(os.path.dirname(f"{root}/{name}") or root, exist_ok=True)
        for end in (".bin", ".idx", ".manifest.json"):
            shutil.copy(f"{root}/book_text_document{end}", f"{root}/{name}_text_document{end}")
    # the quick start's corpus is large enough for the default split
    texts = words(6000, 3)
    write(f"{root}/stories.jsonl", "".join(json.dumps({"text": " ".join(texts[i:i + 12])}) + "\n" for i in range(len(texts))))
    call(*build[:3], "--input", "stories.jsonl", *build[5:], "--output-prefix", "runs/quickstart/stories")
    longs = lambda *n: b"".join(i.to_bytes(8, "little") for i in n)
    old = b"TNTIDX\0\0" + longs(1, 4, 4, 2, 2, 4) + longs(0, 1, 2) + longs(0, 2, 5) + longs(2, 3) + longs(0, 1, 1, 2)
    for name in ("old_text_document", "tokenized/a"):
        write(f"{root}/{name}.idx", old)
        write(f"{root}/{name}.bin", b"".join(i.to_bytes(4, "little") for i in range(1, 6)))
    tab = f"{root}/nltk_data/tokenizers/punkt_tab/english"  # the form of NLTK's data
    for name, text in (("abbrev_types.txt", "dr\n"), ("sent_starters.txt", ""), ("collocations.tab", "a\tb"),
                       ("ortho_context.tab", "a\t34\n")):
        write(f"{tab}/{name}", text)
    header = b"".join(int(v).to_bytes(4, "little") for v in (20240520, 1, 300)) + bytes(1012)
    for i in range(2):
        write(f"{root}/fineweb_train_{i:06}.bin", header + b"".join((50256 if k % 50 == 0 else k).to_bytes(2, "little") for k in range(300)))
    write(f"{root}/train.bin", b"".join((50256 if k % 50 == 49 else k).to_bytes(2, "little") for k in range(300)))
    call("prep", "sft", "-q", "--input", "chat.jsonl", "--tokenizer", "tokenizer.json", "--template", "chatml", "--seq-length", "256",
         "--output-prefix", "chat")


def write_runs(root, call):
    shutil.copytree(f"{SRC}/samples", f"{root}/samples")
    tiny = ("train", "run", "-q", "--preset", "gpt-1m", "--lr", "1e-3", "--micro-batch-size", "2", "--global-batch-size", "2")
    call(*tiny, "--data-path", "book_text_document", "--split", "95,5,0", "--train-iters", "2", "--save", "runs/book")
    call(*tiny, "--data-path", "chat", "--tokenizer", "tokenizer.json", "--train-iters", "2", "--split", "100,0,0", "--save", "runs/chat")
    for name in ("runs/tales", "runs/quickstart/run"):
        shutil.copytree(f"{root}/runs/book", f"{root}/{name}")
    call("train", "run", "-q", "--num-layers", "1", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "32",
         "--max-position-embeddings", "32", "--lr", "1e-3", "--data-path", "book_text_document", "--split", "95,5,0",
         "--train-iters", "100", "--save-interval", "10", "--save", "run")
    call("convert", "reshard", "-q", "--ranks", "2", "run/iter_0000100", "cut")
    # a Hugging Face model, and the checkpoint that it is imported as
    call("train", "run", "-q", "--preset", "llama-1m", "--lr", "1e-3", "--micro-batch-size", "2", "--data-path", "book_text_document",
         "--split", "100,0,0", "--seq-length", "32", "--train-iters", "1", "--save", "small")
    call("convert", "export", "-q", "small", "Llama-3.2-1B")
    shutil.rmtree(f"{root}/small")
    call("convert", "import", "-q", "Llama-3.2-1B", "llama")
    # one that conversations fine-tune, and what comes of it
    call("train", "run", "-q", "--preset", "llama-1m", "--lr", "1e-3", "--mock-data", "--tokenizer", "tokenizer.json", "--split", "100,0,0",
         "--train-iters", "1", "--export-hf", "HF")
    shutil.copytree(f"{root}/HF", f"{root}/OUT")
    shutil.copytree(f"{root}/HF", f"{root}/HF_FOLDER")
    write(f"{root}/HF_FOLDER/chat_template.jinja",
          b"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}")
    write_adapter(f"{root}/my-lora", f"{root}/Llama-3.2-1B/config.json")


def write_adapter(folder, config):
    """A LoRA adapter of rank 1 for the first layer's queries."""
    with open(config, encoding="utf-8") as f:
        wide = json.load(f)["hidden_size"]
    name, size = "base_model.model.model.layers.0.self_attn.q_proj.lora_", 4 * wide
    header = json.dumps({f"{name}A.weight": {"dtype": "F32", "shape": [1, wide], "data_offsets": [0, size]},
                         f"{name}B.weight": {"dtype": "F32", "shape": [wide, 1], "data_offsets": [size, 2 * size]}}).encode()
    write(f"{folder}/adapter_model.safetensors", len(header).to_bytes(8, "little") + header + bytes(2 * size))
    write(f"{folder}/adapter_config.json",
          json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"]}))


# ---- running them ----------------------------------------------------------------------------------------------------

def outputs(command):
    """The paths that a command writes, or begins the names of."""
    for stage in re.split(r"[|;&]", command):
        parts = stage.split()
        for option, value in zip(parts, parts[1:]):
            if option in WRITES:
                yield value
        if parts[:2] and parts[0].endswith("tok") and parts[1:2] == ["convert"]:
            yield parts[3]
        if parts[:2] and parts[0].endswith("convert") and parts[1] in ("import", "export", "reshard", "average"):
            yield parts[-1]


def prepare(root, folder, command):
    shutil.copytree(root, folder)
    written = list(outputs(command))
    inputs = [w.strip("'") for w in command.split() if w not in written or command.split().count(w) > 1]
    for path in written:
        base = os.path.join(folder, path)
        parent, begin = os.path.split(base)
        there = os.listdir(parent) if os.path.isdir(parent) else []
        names = [base] if path.endswith("/") else [os.path.join(parent, n) for n in there if n.startswith(begin)]
        for name in names:
            read = os.path.relpath(name, folder)
            if any(fnmatch.fnmatchcase(read, w) for w in inputs) or (path.endswith("/") and not os.path.isdir(name)):
                continue
            shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


def as_run(command):
    if FULL or " run " not in command or "--num-train-epochs" in command:
        return command
    more = " --train-iters 2" + (" --lr-warmup-iters 1" if "--config" in command else "")
    return re.sub(r"((?:^|[|;&]\s*)\S*train run [^|;&#]*)", rf"\1{more}", command).strip()


def missing(command):
    for tool in ("jq", "zstdcat", "xzcat", "zcat"):
        if re.search(rf"\b{tool}\b", command) and not shutil.which(tool):
            return tool
    return None


def codes_agree():
    with open(f"{SRC}/base/core/err.h") as f:
        text = f.read().replace("\\\n", " ")
    want = {int(n): m for n, m in re.findall(r"X\(\w+,\s*(\d+),\s*\"([^\"]*)\"\)", text)}
    with open(f"{SRC}/README.md") as f:
        readme = {int(n): m for n, m in re.findall(r"^\| (\d+) \| (.*?) \|$", f.read(), re.M)}
    assert len(want) > 9 and readme == want, f"README.md has {readme}, base/core/err.h {want}"
    for p in PROGRAMS:
        page = shown(p, "--man").replace("\\-", "-")
        page = page[page.index(".SH EXIT STATUS"):page.index(".SH EXAMPLES")]
        got = {int(n): m for n, m in re.findall(r"\.B (\d+)\n(.*)\.\n", page)}
        assert got == want, f"{p} --man has {got}"


def main():
    number, failed = 0, 0

    def result(name, why, skip=None):
        nonlocal number, failed
        number += 1
        failed += bool(why)
        for line in (why or "").splitlines():
            print(f"# {line}")
        print(f"{'not ok' if why else 'ok'} {number} - {name}".replace("#", "") + (f" # SKIP {skip}" if skip else ""), flush=True)

    try:
        codes_agree()
        result("the exit codes of README.md and the manual pages are those of base/core/err.h", None)
    except AssertionError as e:
        result("the exit codes of README.md and the manual pages are those of base/core/err.h", str(e))
    if not shutil.which("zstd"):
        print(f"ok {number + 1} - examples # SKIP no zstd\n1..{number + 1}")
        return failed
    top = tempfile.mkdtemp(prefix="weft-examples-")
    root, programs = f"{top}/files", f"{top}/bin"
    os.makedirs(root)
    os.makedirs(programs)
    for name, path in PROGRAMS.items():
        for alias in {name, os.path.basename(path)}:
            os.symlink(path, f"{programs}/{alias}")
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def call(program, *args):
        p = run([PROGRAMS[program], *args], root)
        assert p.returncode == 0, f"{program} {' '.join(args)}: {p.stderr}"

    try:
        write_texts(root)
        write_tokenizers(root, call)
        write_shards(root, call)
        write_runs(root, call)
        for command, place in commands().items():
            if missing(command):
                result(command, None, f"no {missing(command)}")
                continue
            folder = f"{top}/now"
            prepare(root, folder, command)
            p = run(["bash", "-o", "pipefail", "-c", as_run(command)], folder, env=env, timeout=TIME)
            differ = "tok diff" in command and p.returncode == 1
            early = "| head" in command and p.returncode == 141  # the reader has seen enough
            result(command, None if p.returncode == 0 or early or differ else
                   f"in {place}\nexit code {p.returncode}\n{p.stderr[-1000:]}")
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"1..{number}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
