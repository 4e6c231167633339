#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok/chat against transformers' chat templates: the same text, ids and mask of what an assistant says.

    chat.py PROGRAM

PROGRAM is chat_dump. The templates are written here a second time, in Jinja, with the marks by which
transformers finds what an assistant says. Vocabularies: those of testdata.py with the special tokens
added, and a byte-level one that is learnt here.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import jinja2  # noqa: F401 (transformers renders with it)
    import tokenizers
    import transformers
except ImportError as error:
    print(f"ok 1 - chat # SKIP {error}\n1..1\n# 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

import testdata

RECORDS = 2000 if os.environ.get("WEFT_FULL") else 300
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
          "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{% else %}"
          "{{ m.content + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}")
LLAMA3 = ("{{ '<|begin_of_text|>' }}{% for m in messages %}"
          "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' }}{% if m.role == 'assistant' %}"
          "{% generation %}{{ m.content | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}"
          "{{ m.content | trim + '<|eot_id|>' }}{% endif %}{% endfor %}")
VICUNA = ("{% if messages[0].role != 'system' %}{{ \"A chat between a curious user and an artificial "
          "intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user's "
          "questions. \" }}{% endif %}{% for m in messages %}{% if m.role == 'system' %}{{ m.content + ' ' }}"
          "{% elif m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}{% else %}{{ 'ASSISTANT:' }}"
          "{% generation %}{{ ' ' + m.content + '</s>' }}{% endgeneration %}{% endif %}{% endfor %}")
GUANACO = ("{% for m in messages %}{% if m.role == 'user' %}{{ '### Human: ' + m.content }}{% else %}"
           "{{ '### Assistant:' }}{% generation %}{{ ' ' + m.content }}{% endgeneration %}{% endif %}"
           "{% endfor %}")
ALPACA = ("{% if messages[0].role == 'system' %}{{ messages[0].content }}{% else %}{{ 'Below is an instruction "
          "that describes a task. Write a response that appropriately completes the request.' }}{% endif %}"
          "{{ '\n\n' }}{% for m in messages %}{% if m.role == 'user' %}"
          "{{ '### Instruction:\n' + m.content + '\n\n' }}{% elif m.role == 'assistant' %}"
          "{{ '### Response:\n' }}{% generation %}{{ m.content + '</s>' }}{% endgeneration %}{% endif %}"
          "{% endfor %}")
OPEN = {"chatml": "<|im_start|>assistant\n", "llama3": "<|start_header_id|>assistant<|end_header_id|>\n\n", "vicuna": "ASSISTANT:",
        "guanaco": "### Assistant:", "alpaca": "### Response:\n"}
TEMPLATES = {"chatml": CHATML, "llama3": LLAMA3, "vicuna": VICUNA, "guanaco": GUANACO, "alpaca": ALPACA}
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
            "<|eot_id|>", "</s>"]
PIECES = ["hi", " ", "\n", "\n\n", "The end.", "  ", "日本語", "é", "e\u0301", "\t", "12345", "'s", "😀",
          " a b", "\u3000", "x" * 40, "\r\n", "### Human:", "<|im", "user\n", ":", "", "\u200b", "\x1c"]


def text(rng, plain=False):
    t = "".join(rng.choice(PIECES) for _ in range(rng.randrange(9)))
    return t.replace("\u0301", "") if plain else t


def conversation(rng, system, plain):
    messages = [{"role": "system", "content": text(rng, plain)}] if system and rng.random() < 0.4 else []
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": text(rng, plain)})
        messages.append({"role": "assistant", "content": text(rng, plain)})
    return messages[:-1] if rng.random() < 0.1 else messages


def learnt_tokenizer():
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    rng = random.Random(5)
    t.train_from_iterator([" ".join(text(rng) for _ in range(50)) for _ in range(50)], trainer)
    return t


def vocabularies():
    yield "learnt", learnt_tokenizer()
    folder = testdata.DATA
    for name in ("gpt2", "gpt-neox", "mistral-7b") if folder else ():
        t = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizers", name, "tokenizer.json"))
        t.post_processor = tokenizers.processors.TemplateProcessing(single="$A", special_tokens=[])
        yield name, t


def oracle(tokenizer, template, messages):
    """Text, ids and mask. Where a character is in several tokens, transformers ends what an assistant says with
    the first of them; here all belong to it."""
    out = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=True, tokenize=True,
                                        return_assistant_tokens_mask=True)
    text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
    mask = out["assistant_masks"]
    places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    for i in range(1, len(mask)):
        mask[i] |= mask[i - 1] and places[i][0] < places[i - 1][1]
    return out["input_ids"], mask, text


def compare(program, path, tokenizer, name, seed):
    rng = random.Random(seed)
    # A character that its normal form takes in has no token, and transformers then masks what it should not
    plain = tokenizer.backend_tokenizer.normalizer is not None
    records = [conversation(rng, name != "guanaco", plain) for _ in range(RECORDS)]
    lines = "".join(json.dumps({"messages": r}) + "\n" for r in records)
    done = subprocess.run([program, path, name], input=lines.encode(), capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    if len(answers) != len(records):
        return f"{len(answers)} answers to {len(records)} records"
    learnt = 0
    template = TEMPLATES[name].replace("</s>", tokenizer.eos_token)
    for record, answer in zip(records, answers):
        ids, mask, rendered = oracle(tokenizer, template, record)
        learnt += sum(mask)
        for key, want in (("text", rendered), ("ids", ids), ("mask", mask)):
            if answer.get(key) != want:
                return f"{record}: {key} {answer.get(key, answer)} is not {want}"
    return None if learnt else "nothing was learnt"


def compare_open(program, path, tokenizer, name, seed):
    """The beginning of an answer, as add_generation_prompt gives it."""
    rng = random.Random(seed)
    plain = tokenizer.backend_tokenizer.normalizer is not None
    records = [conversation(rng, name != "guanaco", plain) for _ in range(RECORDS // 3)]
    lines = "".join(json.dumps({"messages": r}) + "\n" for r in records)
    done = subprocess.run([program, path, name, "open"], input=lines.encode(), capture_output=True, check=True)
    template = TEMPLATES[name].replace("</s>", tokenizer.eos_token)
    template += "{% if add_generation_prompt %}{{ " + json.dumps(OPEN[name]) + " }}{% endif %}"
    for record, line in zip(records, done.stdout.splitlines()[:-1], strict=True):
        answer = json.loads(line)
        text = tokenizer.apply_chat_template(record, chat_template=template, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if (answer.get("text"), answer.get("ids")) != (text, ids):
            return f"{record}: {answer} is not {text} {ids}"
    return None


def main():
    program = sys.argv[1]
    count = failed = 0
    for vocabulary, t in vocabularies():
        t.add_special_tokens(SPECIALS)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            t.save(path)
            eos = "<|endoftext|>" if t.token_to_id("<|endoftext|>") is not None else "</s>"
            hf = transformers.PreTrainedTokenizerFast(tokenizer_object=t, eos_token=eos)
            for name in TEMPLATES:
                count += 1
                why = compare(program, path, hf, name, count) or compare_open(program, path, hf, name, count)
                failed += why is not None
                print(f"{'not ' if why else ''}ok {count} - {name} with {vocabulary}")
                if why:
                    print("# " + why.replace("\n", "\n# "))
    print(f"1..{count}\n# {count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
