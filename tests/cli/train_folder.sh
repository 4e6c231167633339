# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Folder to folder: a Hugging Face model is trained on conversations and exported, with its configuration,
# tokenizer and chat templates as they were, and must answer before the folder gets its name.
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 200; i++) { s = ""
        for (k = 0; k < 30; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print "{\"text\": \"" s "\"}" } }' >d.jsonl
mkdir h
"$TOK" train -q --type bpe --input d.jsonl --model_prefix h/ --vocab_size 320 --special_tokens '<|endoftext|>' '<|im_start|>' '<|im_end|>'
awk 'BEGIN { for (i = 0; i < 8; i++) print "{\"messages\": [{\"role\": \"user\", \"content\": \"ba ko\"}, {\"role\": \"assistant\", \"content\": \"mi tsu\"}]}" }' >talk.jsonl
model="--num-layers 1 --hidden-size 16 --ffn-hidden-size 32 --num-attention-heads 2 --max-position-embeddings 64 --swiglu --normalization RMSNorm
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --make-vocab-size-divisible-by 1"
short="--seq-length 32 --micro-batch-size 2 --lr 1e-2 --split 1 --eval-iters 0 --threads 1 --log-interval 50"

t "--export-hf needs no --save, and leaves nothing but the folder"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $model $short --train-iters 1 --mock-data --tokenizer h/tokenizer.json --export-hf deep/base
err_lacks "is not kept"
err_has "exported step 1 to deep/base"
check [ "$(ls -A deep)" = base ]
check [ -z "$(find . -name '*.tmp*' -o -name 'iter_*')" ]
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $model $short --train-iters 1 --mock-data --tokenizer h/tokenizer.json --save kept --export-hf base
same base/model.safetensors deep/base/model.safetensors

t "one that was killed on the way is cleared by the next"
mkdir -p .out.weights.tmp.0/iter_0000001
touch .out.weights.tmp.0/lock .out.weights.tmp.0/iter_0000001/manifest.json
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $model $short --train-iters 1 --mock-data --tokenizer h/tokenizer.json --export-hf out
no_file .out.weights.tmp.0
rm -r out

# A folder as published: templates in each of their places, and keys that nothing here reads.
printf '%s' '{{ "\n" }}{# as it is: é #}{% for m in messages %}{{ m.content }}{% endfor %}' >base/chat_template.jinja
echo '{"chat_template": "{{ messages[0].content }}"}' >base/chat_template.json
mkdir base/additional_chat_templates
echo '{{ tools }}' >base/additional_chat_templates/tool_use.jinja
echo '{{ documents }}' >base/additional_chat_templates/rag.jinja
echo '{"bos_token": null, "eos_token": "<|im_end|>", "chat_template": [{"name": "default", "template": "{{ 1 }}"}], "model_max_length": 64}' >base/tokenizer_config.json
echo '{"eos_token_id": 2, "temperature": 0.6, "do_sample": true}' >base/generation_config.json
python3 - <<'END2'
import json
d = json.load(open("base/config.json"))
d["quirk"] = {"kept": [1, 2.50, "x"]}
d["eos_token_id"] = 2
json.dump(d, open("base/config.json", "w"), indent=1)
END2
templates="chat_template.jinja chat_template.json additional_chat_templates/tool_use.jinja additional_chat_templates/rag.jinja"
beside="tokenizer.json tokenizer_config.json generation_config.json $templates"
expect 0 "$PREP" sft -q --input talk.jsonl --tokenizer base --template chatml --seq-length 32 --output-prefix talk

# folder_same A B: configuration, tokenizer and templates
folder_same() {
    for _f in $beside; do same "$1/$_f" "$2/$_f"; done
    check python3 -c 'import json, sys; a, b = (json.load(open(p + "/config.json")) for p in sys.argv[1:])
assert all(b[k] == v for k, v in a.items()), (a, b)' "$1" "$2"
}

t "weights change, all else is as it was, and the answer is printed and noted"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $short --train-iters 60 --load base --ignore-config-key quirk --data-path talk --export-hf out --test-prompt-text 'ba ko' --chat chatml
out_has "test prompt: ba ko"
out_has "answer: mi tsu"
folder_same base out
differ base/model.safetensors out/model.safetensors
check [ -z "$(find . -name '*.tmp*' -o -name 'out.unanswered')" ]
check python3 - <<'END2'
import hashlib, json
r = json.load(open("out/test_prompt.json"))
assert (r["prompt"], r["template"], r["answer"].strip(), r["decoding"]) == ("ba ko", "chatml", "mi tsu", "greedy"), r
assert r["prompt_ids"][0] == 1 and 0 < len(r["answer_ids"]) < 20 and 2 not in r["answer_ids"], r
for name in ("model.safetensors", "config.json"):
    assert r["sha256"].pop(name) == hashlib.sha256(open("out/" + name, "rb").read()).hexdigest()
assert not r["sha256"] and r["date"].endswith("Z"), r
END2
expect 0 "$TRAIN" generate --load out --ignore-config-key quirk --chat chatml --prompt 'ba ko' --temperature 0
check [ "$(tr -d ' ' <.out)" = mitsu ]
printf '%s' '{% for m in messages %}{{ "<|im_start|>" + m.role + "\n" + m.content + "<|im_end|>\n" }}{% endfor %}' \
    '{% if add_generation_prompt %}{{ "<|im_start|>assistant\n" }}{% endif %}' >chatml.jinja
expect 0 "$TRAIN" generate --load out --ignore-config-key quirk --chat chatml.jinja --prompt 'ba ko' --temperature 0
check [ "$(tr -d ' ' <.out)" = mitsu ]
cp -r out own
cp chatml.jinja own/chat_template.jinja
expect 0 "$TRAIN" generate --load own --ignore-config-key quirk --chat auto --prompt '{"messages": [{"role": "user", "content": "ba ko"}]}' --temperature 0
check [ "$(tr -d ' ' <.out)" = mitsu ]
rm own/chat_template.jinja own/chat_template.json own/tokenizer_config.json
expect 2 "$TRAIN" generate --load own --ignore-config-key quirk --chat auto --prompt 'ba ko'
err_has "own has no chat template"
python3 - <<'END2'
import json
d = json.load(open("out/config.json"))
d.pop("quirk"), d.update(use_cache=False, _name_or_path="somewhere/else")
json.dump(d, open("base/config.json", "w"), indent=1)
END2

t "through checkpoints of a run, of a second run from there, and through convert, all templates go along"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --train-iters 2 --load base --data-path talk --save r1 --export-hf e1
folder_same base e1
same r1/iter_0000002/additional_chat_templates.rag.jinja base/additional_chat_templates/rag.jinja
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --train-iters 2 --load r1 --finetune --data-path talk --save r2
expect 0 "$CONVERT" export -q r2 e2
folder_same base e2
expect 0 "$CONVERT" import -q e2 i2
expect 0 "$CONVERT" export -q i2 e3
folder_same base e3
expect 0 "$CONVERT" import --dry-run base i3
out_lacks_templates=$(grep -c additional_chat .out)
check [ "$out_lacks_templates" = 0 ]

t "a template whose name no checkpoint can have is named"
cp -r base odd
echo x >'odd/additional_chat_templates/a b.jinja'
expect 0 "$CONVERT" import -q odd odd-i
err_has "odd/additional_chat_templates/a b.jinja: is not taken along"

t "no token of text before the end: exit 1, the folder is OUT.unanswered, with the record"
echo '{"text": "ba ko"}' >mute.jsonl
for i in 1 2 3; do cat mute.jsonl mute.jsonl >m2 && mv m2 mute.jsonl; done
expect 0 "$PREP" sft -q --input mute.jsonl --tokenizer base --eod-token '<|im_end|>' --append-eod --seq-length 32 --output-prefix mute
# shellcheck disable=SC2086 # words
expect 1 "$TRAIN" run $short --train-iters 60 --load base --data-path mute --tokenizer base --eod-token '<|im_end|>' \
    --export-hf silent --test-prompt-text 'ba ko'
err_has "silent.unanswered: the exported model has no text in answer to \"ba ko\""
no_file silent
folder_same base silent.unanswered
check python3 -c 'import json; assert json.load(open("silent.unanswered/test_prompt.json"))["answer"] == ""'
check [ -z "$(find . -name '*.tmp*')" ]
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run $short --train-iters 1 --load base --data-path mute --tokenizer base --eod-token '<|im_end|>' \
    --export-hf silent --test-prompt-text 'ba ko'
err_has "silent.unanswered: exists"

t "what cannot be tried is said before the first step"
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run $model $short --train-iters 1 --mock-data --tokenizer-type NullTokenizer --vocab-size 60 --export-hf base
err_has "base: exists"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $short --train-iters 1 --load base --data-path talk --no-save --test-prompt-text 'ba ko'
err_has "--test-prompt-text has no effect without --export-hf"

t "two processes write the same folder without --save"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --train-iters 2 --load base --data-path talk --nproc-per-node 2 --tp 2 --export-hf two
folder_same base two
check [ -z "$(find . -name '*.tmp*')" ]

t "ids above the rows of the table: refused, and rows for them by --resize-vocab, each the mean, also on two processes"
expect 0 "$TOK" extend -q h/tokenizer.json --add-special '<|more|>' '<|and|>' --output more.json
cat >rows.py <<'END2'
import json, struct, sys
def table(path, name):
    b = open(path + "/model.safetensors", "rb").read()
    n, = struct.unpack_from("<Q", b)
    t = json.loads(b[8:8 + n])[name]
    rows, columns = t["shape"]
    v = struct.unpack_from(f"<{rows * columns}f", b, 8 + n + t["data_offsets"][0])
    return [v[i * columns:(i + 1) * columns] for i in range(rows)]
old, new = sys.argv[1:3]
for name in ("model.embed_tokens.weight", "lm_head.weight"):
    a, b = table(old, name), table(new, name)
    mean = [sum(x) / len(a) for x in zip(*a)]
    assert len(b) == len(a) + 2 and len(set(b[-1])) > 1
    for x, y in zip(b, a + [mean, mean]):
        assert all(abs(p - q) < 1e-6 for p, q in zip(x, y)), (name, x, y)
assert json.load(open(new + "/config.json"))["vocab_size"] == len(b)
END2
cp -r base grown-base
cp more.json grown-base/tokenizer.json
sed 's/ba ko/ba ko <|more|>/' talk.jsonl >more.jsonl
expect 0 "$PREP" sft -q --input more.jsonl --tokenizer grown-base --template chatml --seq-length 32 --output-prefix more
# shellcheck disable=SC2086 # words
still=$(echo $short | sed 's/--lr 1e-2/--lr 1e-12/')
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run $still --train-iters 1 --load grown-base --data-path more --no-save
err_has "the tokenizer has 322 ids, but the model of grown-base only 320"
err_has "--resize-vocab adds rows for them, each the mean of the others"
for way in "" "--tp 2 --nproc-per-node 2" "--zero-stage 3 --nproc-per-node 2"; do
    rm -rf grown
    # shellcheck disable=SC2086 # words
    expect 0 "$TRAIN" run $still --train-iters 1 --load grown-base --data-path more --resize-vocab --export-hf grown $way
    err_has "2 rows are added to the 320 of grown-base, each their mean"
    expect 0 python3 rows.py base grown
done
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $still --train-iters 2 --exit-interval 1 --load grown-base --data-path more --resize-vocab --save gr
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $still --train-iters 2 --load grown-base --data-path more --resize-vocab --save gr
err_has "resuming from gr/iter_0000001"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $still --train-iters 1 --load base --data-path talk --resize-vocab --no-save
err_has "--resize-vocab has no effect: base has 320 rows for the tokenizer's 320 ids"
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run $still --train-iters 1 --load gr --finetune --data-path more --resize-vocab --no-save
err_has "--resize-vocab: gr is no model of Hugging Face"

t "data of another tokenizer: what differs"
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run $still --train-iters 1 --load base --data-path more --no-save
err_has "tokenizers differ: more.manifest.json has grown-base/tokenizer.json"
err_has "what differs: size (322, 320), tokens"

t "the three commands of the README, one after the other"
mkdir flow
cp talk.jsonl flow/chat.jsonl
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $(echo $model | sed 's/--max-position-embeddings 64/--max-position-embeddings 4096/') $short --train-iters 1 --mock-data \
    --tokenizer h/tokenizer.json --export-hf flow/HF
cp base/chat_template.jinja flow/HF/
sed -n '/^## A Hugging Face model on conversations/,/^`HF`/s/^    //p' "$SRC/README.md" >flow/commands
check [ "$(cut -d' ' -f1,2 flow/commands | tr '\n' ' ')" = "prep sft train run train generate " ]
# shellcheck disable=SC2016 # words
expect 0 sh -ec 'cd flow; prep() { "$PREP" "$@"; }; train() { "$TRAIN" "$@"; }; . ./commands'
out_has "test prompt: Who are you?"
for f in tokenizer.json chat_template.jinja; do same flow/HF/$f flow/OUT/$f; done
differ flow/HF/model.safetensors flow/OUT/model.safetensors
has_file flow/OUT/test_prompt.json
