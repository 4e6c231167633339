#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok/chat by published templates against transformers: the same text, ids and mask out of a tokenizer's folder.

    chat_jinja.py PROGRAM

PROGRAM is chat_dump. Ids are those of apply_chat_template: always with `parse`, else where no message spells a special
token. Masks are those of templates with {% generation %}, and of templates without it, those of the same template with it.
WEFT_FULL=1 takes the pairs of trl 1.16.0, an original and one for training, where both render the same text: what trl
learns besides is the white space behind an end token, headers of the answer, and thoughts that the template writes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import tokenizers
    import transformers
except ImportError as error:
    print(f"ok 1 - chat_jinja # SKIP {error}\n1..1\n# 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

import datetime

import chat
import jinja

jinja.peer.datetime = datetime.datetime  # transformers tells the real date here
FULL = "WEFT_FULL" in os.environ
SPECIAL = re.compile(r"<\|[\w ./▁-]+\|>|<｜[^｜]+｜>|</?s>|\[/?[A-Z_]+\]|<(?:start|end)_of_\w+>|<\|?(?:bos|eos|pad|turn)\|?>"
                     r"|<turn\|>|<\|turn>|<\|channel>|<channel\|>")
ENDS = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|return|>", "<|end|>", "</s>", "<｜end▁of▁sentence｜>",
        "<|END_OF_TURN_TOKEN|>", "<turn|>"]
BEGINS = ["<|begin_of_text|>", "<bos>", "<s>", "<｜begin▁of▁sentence｜>", "<BOS_TOKEN>"]

# A template in two spellings: G and E are where {% generation %} begins and ends in one, and nothing in the other.
TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}G{{ m.content }}"
              "{% for c in m.tool_calls or [] %}\n<call>\n{{ c.function|tojson }}\n</call>{% endfor %}{{ '<|im_end|>' }}E"
              "{% else %}{{ (m.content if m.content is string else m.content|map(attribute='text')|join) + '<|im_end|>' }}"
              "{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama": "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content|trim + ' [/INST]' }}"
             "{% elif m.role == 'assistant' %}{{ ' ' }}G{{ m.content|trim }}{{ ' ' + eos_token }}E{% endif %}{% endfor %}",
    "roles": "{% for m in messages if m.content is string %}{{ '<|' + m.role + '|>' }}{% if m.role == 'assistant' %}G{{ m.content }}<|end|>E"
             "{% else %}{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "thought": "{% for m in messages if m.content is string %}{{ '<|im_start|>' ~ m.role ~ '\n' }}{% if m.role == 'assistant' %}"
               "{% if not m.reasoning_content %}{{ '<think>\n\n</think>\n\n' }}{% endif %}G{% if m.reasoning_content %}"
               "{{ '<think>\n' ~ m.reasoning_content ~ '\n</think>\n\n' }}{% endif %}{{ m.content }}<|im_end|>E{% else %}{{ m.content }}<|im_end|>"
               "{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "loose": "{% for i in range(messages|length) %}{% set m = messages[i] %}{% if m.content is string %}{% if m.role == 'assistant' %}"
             "{{ '<|assistant|>' }}G{{ m.content }}<|end|>E{% else %}{{ '<|user|>' + m.content + '<|end|>' }}{% endif %}{% endif %}"
             "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
}


def spell(template, marked):
    return template.replace("G", "{% generation %}" if marked else "").replace("E{", "{% endgeneration %}{" if marked else "{")


def make_folder(folder, base, templates, chat_template):
    """A tokenizer with the special tokens of the templates."""
    specials = sorted({x for t in templates for x in SPECIAL.findall(t)} | {"<|user|>", "<|assistant|>", "<|end|>", "</s>", "<s>"})
    t = tokenizers.Tokenizer.from_str(base)
    t.add_special_tokens(specials)
    t.save(folder + "/tokenizer.json")
    pick = lambda names: next((x for x in names if any(x in y for y in templates)), "</s>")  # noqa: E731
    with open(folder + "/tokenizer_config.json", "w", encoding="utf-8") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": pick(ENDS), "bos_token": pick(BEGINS),
                   "clean_up_tokenization_spaces": False, "chat_template": chat_template}, f)
    return transformers.AutoTokenizer.from_pretrained(folder), {t.token_to_id(x) for x in specials}, specials


def records(spelling):
    """(record, arguments of apply_chat_template)."""
    for c in jinja.CONVERSATIONS:
        keys = {k: v for k, v in c.items() if k not in ("messages", "tools", "documents", "add_generation_prompt")}
        record = {"messages": c["messages"], "chat_template_kwargs": keys,
                  **{k: c[k] for k in ("tools", "documents") if k in c}}
        if spelling or not any(isinstance(m.get("content"), str) and SPECIAL.search(m["content"]) for m in c["messages"]):
            yield record, dict(conversation=c["messages"], tools=c.get("tools"), documents=c.get("documents"), **keys)


def ours(program, folder, name, lines, *words):
    done = subprocess.run([program, folder, name, *words], input="".join(json.dumps(x) + "\n" for x in lines).encode(),
                          capture_output=True)
    if done.returncode:
        raise SystemExit(f"chat_dump: {done.stderr.decode()}")
    return [json.loads(x) for x in done.stdout.decode().split("\n") if x]


def theirs(hf, template, arguments, **more):
    try:
        return hf.apply_chat_template(chat_template=template, **arguments, **more)
    except Exception:  # noqa: BLE001 (the template refuses the conversation)
        return None


def masked(hf, template, arguments):
    """transformers' mask. Where a character is in several tokens it ends with the first; here all belong to it."""
    out = theirs(hf, template, arguments, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    text = theirs(hf, template, arguments, tokenize=False)
    mask = list(out["assistant_masks"])
    places = hf(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    for i in range(1, len(mask)):
        mask[i] |= mask[i - 1] and places[i][0] < places[i - 1][1]
    return mask


def is_other(name, record):
    """The template drops an answer; or the answer is empty, and there is no generation prompt or no loop over messages to
    tell where it begins."""
    answers = [m for m in record["messages"] if m["role"] == "assistant"]
    return name != "chatml" and any(m.get("tool_calls") or not isinstance(m["content"], str) for m in answers) or \
        name in ("llama", "loose") and any(m["content"] == "" for m in answers)


def compare(program, base, name):
    marked, plain = spell(TEMPLATES[name], True), spell(TEMPLATES[name], False)
    with tempfile.TemporaryDirectory() as folder:
        hf, _, _ = make_folder(folder, base, [plain], marked)
        with open(folder + "/plain.jinja", "w", encoding="utf-8", newline="") as f:
            f.write(plain)
        compared = 0
        for words, spelling in ((("parse",), True), ((), False), (("parse", "open"), True), (("open",), False)):
            given = list(records(spelling))
            lines = [x for x, _ in given]
            prompt = {"add_generation_prompt": "open" in words}
            both = zip(given, ours(program, folder, "auto", lines, *words), ours(program, folder, folder + "/plain.jinja", lines, *words))
            for (record, arguments), a, b in both:
                text = theirs(hf, plain, arguments, tokenize=False, **prompt)
                if text is None:
                    if "error" not in a:
                        return f"{record}: transformers refuses it"
                    continue
                ids = hf(text, add_special_tokens=False)["input_ids"]
                compared += 1
                for got in (a, b):
                    if got.get("text") != text or got["ids"] != ids:
                        return f"{words} {record}: {got} is not {text!r} {ids}"
                if "open" in words:
                    continue
                want = masked(hf, marked, arguments)
                if a["mask"] != want:
                    return f"{words} {record}: mask {a['mask']} is not {want} of {text!r}"
                if b["mask"] != want and not is_other(name, record):
                    return f"{words} {record}: mask without generation {b['mask']} is not {want} of {text!r}"
    return None if compared > 20 else f"only {compared} texts were compared"


def places_of_templates(program, base):
    """chat_template.jinja, with tool_use beside it, comes before tokenizer_config.json."""
    template, tools = "{{ messages[0].content }}<|end|>", "T{{ messages[0].content }}</s>"
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder, base, [template], "{{ 'not this' }}")
        os.mkdir(folder + "/additional_chat_templates")
        for path, text in (("chat_template.jinja", template), ("additional_chat_templates/tool_use.jinja", tools)):
            with open(f"{folder}/{path}", "w", encoding="utf-8") as f:
                f.write(text)
        hf = transformers.AutoTokenizer.from_pretrained(folder)
        lines = [{"messages": jinja.HELLO}, {"messages": jinja.HELLO, "tools": [jinja.ADD]}, {"messages": jinja.HELLO, "tools": []}]
        for line, got in zip(lines, ours(program, folder, "auto", lines)):
            want = hf.apply_chat_template(line["messages"], tools=line.get("tools"), tokenize=False)
            if got.get("text") != want:
                return f"{line}: {got} is not {want!r}"
    return None


# ---- trl's pairs ------------------------------------------------------------------------------------

# What else the training variants learn, by intent, as text of learnt tokens that we do not learn.
MORE = re.compile(r"(?:\s|<\|start\|>assistant|<｜Assistant｜>|<think>\s*(?:</think>)?|<\|channel\|>analysis<\|message\|><\|end\|>|"
                  r"<\|end\|>|<end_of_utterance>|<\|im_end\|>|<\|eot_id\|>|<end_of_turn>|<turn\|>|<｜tool▁outputs▁end｜>|<｜end▁of▁sentence｜>)*")
# Ends and headers count as more only where nothing of a message is learnt, or behind the end: named here with their reason.
DROPPED = {"idefics3": "drops contents that are strings", "smolvlm": "drops contents that are strings", "lfm2": "drops tool calls", "llama3": "drops tool calls", "gemma": "drops tool calls",
           "qwen2_5_vl": "drops tool calls", "qwen3_instruct_2507": "drops lists", "diffusion_gemma": "writes tool results into the turn",
           "deepseek_r1_distill": "writes the end of tool results", "phi3": "ends the text once more", "phi3_5": "ends the text once more"}
WHITE_OR_HEAD = re.compile(r"(?:\s|<\|start\|>assistant|<｜Assistant｜>|<think>\s*(?:</think>)?|<\|channel\|>analysis<\|message\|><\|end\|>)*")


def only(hf, ids, a, b):
    """Text of tokens that mask a has and b lacks."""
    return "".join(hf.decode([i]) for i, x, y in zip(ids, a, b) if x and not y)


def compare_pair(program, base, name, original, training):
    with tempfile.TemporaryDirectory() as folder:
        hf, _, _ = make_folder(folder, base, [original, training], original)
        given = [(r, a) for r, a in records(False) if theirs(hf, original, a, tokenize=False) is not None]
        count = 0
        for (record, arguments), got in zip(given, ours(program, folder, "auto", [r for r, _ in given])):
            text = theirs(hf, original, arguments, tokenize=False)
            if got.get("text") != text or got["ids"] != hf(text, add_special_tokens=False)["input_ids"]:
                return f"{record}: {got} is not {text!r}", 0
            if theirs(hf, training, arguments, tokenize=False) != text:
                continue
            want = masked(hf, training, arguments)
            more, less = only(hf, got["ids"], want, got["mask"]), only(hf, got["ids"], got["mask"], want)
            count += 1
            if less and name != "diffusion_gemma":
                return f"{record}: learns {less!r} besides", 0
            if not (MORE if name in DROPPED else WHITE_OR_HEAD).fullmatch(more):
                return f"{record}: does not learn {more!r}", 0
    return None, count


def pairs(program, base):
    found = {name: text for _, name, text in jinja.published()}
    count = 0
    for name in sorted(found):
        original = name.replace("_training.jinja", ".jinja")
        if name.endswith("_training.jinja") and original in found:
            why, n = compare_pair(program, base, name[:-len("_training.jinja")], found[original], found[name])
            if why:
                return f"{name}: {why}"
            count += n
    return None if count > 200 else f"only {count} texts are the same in both"


def main():
    program, base = sys.argv[1], chat.learnt_tokenizer().to_str()
    cases = {name: lambda n=name: compare(program, base, n) for name in TEMPLATES}
    cases["where templates are"] = lambda: places_of_templates(program, base)
    if FULL:
        cases["pairs of trl"] = lambda: pairs(program, base)
    failed = 0
    for number, (name, run) in enumerate(cases.items(), 1):
        why = run()
        failed += why is not None
        print(f"{'not ' if why else ''}ok {number} - {name}")
        if why:
            print("# " + why.replace("\n", "\n# "))
    print(f"1..{len(cases)}\n# {len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
