# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# prep sft by templates in Jinja: where they are found, what reaches them, what is learnt, what is refused.
sft() { "$PREP" sft "$@" --overwrite --output-prefix o; }
mkdir v w
printf 'the user and the assistant say hi\n%.0s' 1 2 3 4 >x.txt
expect 0 "$TOK" train --quiet --type bpe --vocab_size 270 --model_prefix v/ --input x.txt
expect 0 "$TOK" extend --quiet v/tokenizer.json --add-special '<|im_start|>' '<|im_end|>' '<s>' '</s>' --output w/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}}' >w/tokenizer_config.json
printf '%s' '{{ bos_token }}{% for m in messages %}{{ "<|im_start|>" + m.role + "\n" + (m.content or "") }}' \
    '{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|im_end|>' '
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}' >chatml.jinja

# shown TEXT: what the first example is, its learnt stretches in brackets
shown() {
    # shellcheck disable=SC2016
    check python3 -c '
import json, sys
text, on = "", False
for line in open(".out").read().split("\n"):
    if line[:1] in "+-" and len(line) > 5:
        learnt = line[0] == "+"
        text += ("[" if learnt and not on else "]" if on and not learnt else "") + json.loads(line[line.index("\""):])
        on = learnt
text += "]" if on else ""
assert text == sys.argv[1], text' "$1"
}
ask() { "$PREP" sft -q --tokenizer w --show 1 "$@"; }
one='{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "say hi"}]}'

t "a file, and the folder's own template in each of its places"
echo "$one" >one.jsonl
want='<s><|im_start|>user
hi<|im_end|>
<|im_start|>assistant
[say hi<|im_end|>]
'
expect 0 ask --input one.jsonl --template chatml.jinja
shown "$want"
expect 2 ask --input one.jsonl --template auto
err_has "w has no chat template"
expect 2 ask --input one.jsonl --template no.jinja
err_has "unknown template 'no.jinja'; the templates are chatml, llama3"
cp chatml.jinja w/chat_template.jinja
expect 0 ask --input one.jsonl --template auto
shown "$want"
rm w/chat_template.jinja
python3 - <<'END2'
import json
json.dump({"chat_template": open("chatml.jinja", newline="").read()}, open("w/chat_template.json", "w"))
END2
expect 0 ask --input one.jsonl --template auto
shown "$want"
python3 - <<'END2'
import json
d = json.load(open("w/tokenizer_config.json"))
d["chat_template"] = [{"name": "default", "template": open("chatml.jinja", newline="").read()},
                      {"name": "tool_use", "template": "{{ tools[0].name }}{% for m in messages %}{{ m.content }}</s>{% endfor %}"}]
json.dump(d, open("w/tokenizer_config.json", "w"))
END2
expect 0 ask --input one.jsonl --template auto
shown "$want"
echo '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "say"}], "tools": "[{\"name\": \"f\"}]"}' >tools.jsonl
expect 0 ask --input tools.jsonl --template auto
shown 'fhi</s>[say</s>]'

t "the whole record reaches the template"
cat >all.jinja <<'END2'
{%- for m in messages %}{{ m | tojson }}|{% endfor %}{{ tools | tojson }}|{{ documents | tojson }}|{{ mood }}|{{ eos_token }}
END2
echo '{"messages": [{"role": "developer", "content": "d"}, {"role": "assistant", "content": null, "thinking": "t", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}], "tools": [{"x": 1}], "documents": [{"title": "t"}], "chat_template_kwargs": {"mood": "good"}}' >all.jsonl
expect 0 ask --input all.jsonl --template all.jinja --learn all
shown '[{"role": "developer", "content": "d"}|{"thinking": "t", "role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}], "reasoning_content": "t"}|[{"x": 1}]|[{"title": "t"}]|good|</s>]'

t "other forms of records become messages"
printf '%s\n' '{"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "say hi"}]}' >form.jsonl
expect 0 ask --input form.jsonl --template chatml.jinja
shown "$want"
printf '%s\n' '{"prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "say hi"}]}' >form.jsonl
expect 0 ask --input form.jsonl --template chatml.jinja
shown "$want"
printf '%s\n' '{"instruction": "a", "input": "b", "output": "c"}' >form.jsonl
expect 0 ask --input form.jsonl --template chatml.jinja
shown '<s><|im_start|>user
a
b<|im_end|>
<|im_start|>assistant
[c<|im_end|>]
'

t "what is learnt: tool calls with what stands round them, one answer, none that a message excludes"
talk='{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"'
echo "{\"messages\": [$talk, \"tool_calls\": [{\"function\": {\"name\": \"f\"}}]}, $talk, \"weight\": 0}, $talk, \"train\": false}, $talk, \"weight\": 1}]}" >turns.jsonl
u='<|im_start|>user
u<|im_end|>
<|im_start|>assistant
'
expect 0 ask --input turns.jsonl --template chatml.jinja
shown "<s>$u[a<call>{\"name\": \"f\"}</call><|im_end|>]
${u}a<|im_end|>
${u}a<|im_end|>
$u[a<|im_end|>]
"
expect 0 ask --input turns.jsonl --template chatml.jinja --learn last
shown "<s>${u}a<call>{\"name\": \"f\"}</call><|im_end|>
${u}a<|im_end|>
${u}a<|im_end|>
$u[a<|im_end|>]
"
expect 0 ask --input turns.jsonl --template chatml --learn last
shown "${u}a<|im_end|>
${u}a<|im_end|>
${u}a<|im_end|>
$u[a<|im_end|>]
"
expect 0 ask --input turns.jsonl --template chatml
shown "$u[a<|im_end|>]
${u}a<|im_end|>
${u}a<|im_end|>
$u[a<|im_end|>]
"
expect 2 ask --input turns.jsonl --learn last
err_has "--learn last needs conversations: --template"

t "a template that marks what is learnt, and an empty thought"
sed 's/{{ "<|im_start|>" + m.role/{% generation %}&/; s/<|im_end|>$/&{% endgeneration %}/' chatml.jinja >marked.jinja
expect 0 ask --input one.jsonl --template marked.jinja
shown '<s>[<|im_start|>user
hi<|im_end|><|im_start|>assistant
say hi<|im_end|>]'
sed 's/(m.content or "")/("<think>\\n\\n<\/think>\\n\\n" if m.role == "assistant" else "") + &/' chatml.jinja >think.jinja
expect 0 ask --input one.jsonl --template think.jinja
shown '<s><|im_start|>user
hi<|im_end|>
<|im_start|>assistant
<think>

</think>

[say hi<|im_end|>]
'
expect 0 ask --input one.jsonl --template think.jinja --learn-think
shown '<s><|im_start|>user
hi<|im_end|>
<|im_start|>assistant
[<think>

</think>

say hi<|im_end|>]
'
echo '{"text": "hi</s>"}' >text.jsonl
expect 0 sft --tokenizer w --input text.jsonl --learn-think
err_has "--learn-think has no effect with --template text"

t "the begin of an answer at the end, with any template"
for template in chatml chatml.jinja; do
    expect 0 ask --input one.jsonl --template $template --add-generation-prompt
    check python3 -c '
import json
text = "".join(json.loads(x[x.index("\""):]) for x in open(".out").read().split("\n") if x[:1] in "+-" and len(x) > 5)
assert text.endswith("say hi<|im_end|>\n<|im_start|>assistant\n"), text'
done
expect 0 sft --tokenizer w --input text.jsonl --add-generation-prompt
err_has "--add-generation-prompt has no effect with --template text"

t "special tokens of messages are text; --specials parse makes them tokens, with any template"
echo '{"messages": [{"role": "user", "content": "</s>"}, {"role": "assistant", "content": "hi"}]}' >spelt.jsonl
expect 0 sft --input spelt.jsonl --tokenizer w --template chatml.jinja
err_has "1 special token strings in the texts were encoded as plain text"
for template in chatml chatml.jinja; do
    expect 0 sft --input spelt.jsonl --tokenizer w --template $template --specials parse
    err_lacks "encoded as plain text"
    expect 0 ask --input spelt.jsonl --template $template --specials parse
    check grep -q '^-\*.*"</s>"$' .out
    check grep -q '^+.*"hi"$' .out
    expect 0 ask --input spelt.jsonl --template $template
    check [ "$(grep -c '^-\*.*"</s>"$' .out)" = 0 ]
done
expect 3 sft --input spelt.jsonl --tokenizer w --template chatml.jinja --specials error
err_has "spelt.jsonl: line 1: "

t "messages that a template leaves out are counted, unknown roles refused"
echo '{% for m in messages if m.role != "system" %}{{ m.content }}</s>{% endfor %}' >some.jinja
echo '{"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}' >system.jsonl
expect 0 sft --input system.jsonl --tokenizer w --template some.jinja
err_has "1 messages are not in the texts: the template writes nothing of them"
check grep -q '"unwritten": 1' o.manifest.json
echo '{% for m in messages if m.role in ("user", "assistant") %}{{ m.content }}</s>{% endfor %}' >two.jinja
echo '{"messages": [{"role": "narrator", "content": "be"}, {"role": "assistant", "content": "a"}]}' >roles.jsonl
expect 3 sft --input one.jsonl roles.jsonl --tokenizer w --template two.jinja
err_has "roles.jsonl: line 1: message 1 has the role 'narrator', and the template writes nothing of it"

t "a template that refuses, exceeds a limit or is malformed: one sentence with its place"
rm -f o.*
echo '{% if messages[0].role != "user" %}{{ raise_exception("the user comes first") }}{% endif %}{{ messages[1].content }}' >raise.jinja
expect 3 sft --input system.jsonl --tokenizer w --template raise.jinja
err_has "system.jsonl: line 1: raise.jinja: line 1, column 54: the template refuses this: the user comes first"
echo '{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}' >endless.jinja
expect 3 sft --input one.jsonl --tokenizer w --template endless.jinja
err_has "one.jsonl: line 1: endless.jinja: line 1, column 3"
err_has "the template takes more than 20000000 steps"
printf 'x\n{{ messages | nosuch }}' >bad.jinja
expect 3 sft --input one.jsonl --tokenizer w --template bad.jinja
err_has "bad.jinja: line 2, column 15: there is no filter 'nosuch'"
no_file o.bin

t "another template is other work, and a date is told"
expect 0 "$PREP" sft -q --input one.jsonl --tokenizer w --template chatml.jinja --output-prefix o
cp chatml.jinja saved
echo ' ' >>chatml.jinja
expect 2 "$PREP" sft -q --input one.jsonl --tokenizer w --template chatml.jinja --output-prefix o
err_has "--template-sha256"
mv saved chatml.jinja
expect 0 "$PREP" sft --input one.jsonl --tokenizer w --template chatml.jinja --output-prefix o
err_has "nothing to do"
echo '{{ strftime_now("%Y") }}{{ messages[1].content }}</s>' >dated.jinja
expect 0 sft --input one.jsonl --tokenizer w --template dated.jinja
err_has "the template writes the date into the texts: $(date +%Y)-"

t "the bytes do not depend on the workers"
for i in 1 2 3 4 5 6 7; do cat one.jsonl turns.jsonl spelt.jsonl all.jsonl; done >many.jsonl
for k in 1 2 3; do cat many.jsonl many.jsonl many.jsonl >m && mv m many.jsonl; done
for n in 1 3; do
    expect 0 "$PREP" sft -q --input many.jsonl --tokenizer w --template chatml.jinja --workers $n --output-prefix w$n
done
for x in bin idx pack; do same w1.$x w3.$x; done
