#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ucllm recipe, small: tokenizer, pretraining, export, samples/sft.sh on both forms of its data, a folder. transformers
4.46.3 loads the folder, encodes the question to the same ids and answers with the same ids, greedily.
Usage: seed001.py TOK PREP TRAIN STORIES SFT"""
import json
import os
import subprocess
import sys
import tempfile

from hf446 import torch, transformers

TOK, PREP, TRAIN, STORIES, SFT = (os.path.abspath(p) for p in sys.argv[1:6])
QUESTION, ANSWER, END = "Who are you?", "A small fox.", 2
TURNS = [[(QUESTION, ANSWER), ("And who is that?", "The old bear.")], [("And who is that?", "The old bear."), (QUESTION, ANSWER)]]
done = []


def run(*args, code=0):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       env=dict(os.environ, TOK=TOK, PREP=PREP, TRAIN=TRAIN))
    assert p.returncode == code, (args, p.returncode, p.stdout, p.stderr)
    return p


def case(name):
    done.append(name)
    print(f"ok {len(done)} - {name}", flush=True)


def pretrain():
    run(STORIES, "--seed", "1", "--bytes", "300k", "--output", "s.jsonl")
    run(TOK, "train", "-q", "--preset", "ucllm", "--input", "s.jsonl", "--model_prefix", "t", "--vocab_size", "700")
    run(PREP, "build", "-q", "--input", "s.jsonl", "--tokenizer", "t.model", "--append-eod", "--output-prefix", "s")
    run(TRAIN, "run", "-q", "--num-layers", "2", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "128",
        "--max-position-embeddings", "128", "--micro-batch-size", "4", "--lr", "3e-3", "--train-iters", "40", "--split", "100,0,0",
        "--eval-iters", "0", "--data-path", "s_text_document", "--export-hf", "base", "--threads", "1")


def write_data():
    with open("text.jsonl", "w") as text, open("messages.jsonl", "w") as messages:
        for i in range(8):
            turns = TURNS[i % 2]
            print(json.dumps({"text": "".join(f"### Human: {q}### Assistant: {a}" for q, a in turns)}), file=text)
            print(json.dumps({"messages": [m for q, a in turns for m in ({"role": "user", "content": q},
                                                                         {"role": "assistant", "content": a})]}), file=messages)


def fine_tune(form):
    p = run("sh", SFT, "--model", "base", "--data", f"{form}.jsonl", "--output", form, "--form", form, "--seq-length", "128",
            "--question", QUESTION, "--num-train-epochs", "20", "--lr", "3e-3", "--threads", "1", "--max-new-tokens", "20")
    assert "warning: " not in p.stderr, p.stderr
    assert f"answer:  {ANSWER}" in p.stdout, p.stdout


def answer(form):
    """What transformers makes of the folder: ids of the prompt, and greedily of the answer, up to the end."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(form)
    model = transformers.AutoModelForCausalLM.from_pretrained(form, torch_dtype=torch.float32).eval()
    prompt = tokenizer(f"### Human: {QUESTION}### Assistant:", add_special_tokens=False)["input_ids"]
    ids = list(prompt)
    with torch.no_grad():
        while len(ids) < len(prompt) + 20:
            best = int(model(torch.tensor([ids])).logits[0, -1].argmax())
            if best == END:
                break
            ids.append(best)
    return prompt, ids[len(prompt):], tokenizer.decode(ids[len(prompt):])


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    pretrain()
    write_data()
    case("a tokenizer, a model of it and its folder")
    for form in ("text", "messages"):
        fine_tune(form)
        prompt, ids, text = answer(form)
        record = json.load(open(f"{form}/test_prompt.json"))
        assert (prompt, ids) == (record["prompt_ids"], record["answer_ids"]), (prompt, ids, record)
        assert text.strip() == record["answer"].strip() == ANSWER, (text, record)
        asked = run(TRAIN, "generate", "-q", "--load", form, "--tokenizer", form, "--eod-token", "</s>", "--chat", "guanaco",
                    "--prompt", QUESTION, "--temperature", "0")
        assert asked.stdout.strip() == ANSWER, asked.stdout
        case(f"{form}: fine-tuned, and transformers answers with the same ids")
    for x in ("bin", "idx", "pack"):
        assert open(f"text.data.{x}", "rb").read() == open(f"messages.data.{x}", "rb").read(), x
    case("both forms are the same examples with the same masks")
print(f"1..{len(done)}")
