# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Folders shaped like popular models: imported, trained on their data, exported, imported again, from other folders.
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 300; i++) { s = ""
        for (k = 0; k < 30; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print "{\"text\": \"" s "\"}" } }' >d.jsonl
mkdir h
"$TOK" train -q --type bpe --input d.jsonl --model_prefix h/ --vocab_size 320 --special_tokens '<|endoftext|>'
"$TOK" train -q --model_type bpe --input d.jsonl --model_prefix s --vocab_size 300 --byte_fallback --normalization_rule_name identity
"$TOK" convert -q s.model s.json --tokenizer-type Llama2Tokenizer
model="--num-layers 1 --hidden-size 16 --ffn-hidden-size 32 --num-attention-heads 2 --max-position-embeddings 64 --swiglu --normalization RMSNorm
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --make-vocab-size-divisible-by 1"
short="--seq-length 32 --micro-batch-size 2 --train-iters 2 --lr 1e-3 --split 95,5,0 --eval-iters 0 --threads 1"

# weights NAME TOKENIZER: NAME/config.json and weights for the tokenizer
weights() {
    # shellcheck disable=SC2086 # words
    expect 0 "$TRAIN" run -q $model $short --mock-data --tokenizer "$2" --save "w-$1" --export-hf "$1"
    rm -f "$1"/*token* "$1"/vocab.json "$1"/merges.txt
}

# files_same A B: all files of tokenizers in A are in B, byte for byte, and no other there
files_same() {
    for _f in "$1"/*token* "$1"/vocab.json "$1"/merges.txt "$1"/*.jinja; do [ ! -e "$_f" ] || same "$_f" "$2/${_f##*/}"; done
    for _f in "$2"/*token* "$2"/vocab.json "$2"/merges.txt; do [ ! -e "$_f" ] || has_file "$1/${_f##*/}"; done
}

cat >gguf.py <<'END'
import struct, sys
f = open(sys.argv[1], "rb")
def n(c): return struct.unpack("<" + c, f.read(struct.calcsize(c)))[0]
def text(): return f.read(n("Q"))
def value(t):
    if t == 8: return text()
    if t == 9:
        k = n("I"); return [value(k) for _ in range(n("Q"))]
    return n("BbHhIif?__QqD".replace("D", "d")[t])
assert f.read(4) == b"GGUF"
n("I"), n("Q")
keys = {}
for _ in range(n("Q")):
    name = text(); keys[name.decode()] = value(n("I"))
print(keys["tokenizer.ggml.model"].decode())
sys.stdout.buffer.write(b"\n".join(x.replace(b"\n", b"\\n") for x in keys["tokenizer.ggml.tokens"]) + b"\n")
END

# with_texts NAME: what lies beside the weights in a published folder, original/ with its own weights and tokenizer in it
with_texts() {
    echo "the licence of $1" >"$1/LICENSE"
    echo "how to use $1" >"$1/USE_POLICY.md"
    mkdir "$1/original"
    head -c 3000 /dev/urandom >"$1/original/consolidated.00.pth"
    echo '{"dim": 16, "n_layers": 1}' >"$1/original/params.json"
    cp h/tokenizer.json "$1/original/tokenizer.model"
}

# texts_came A B: the texts did, and a line of the import named what did not
texts_came() {
    same "$1/LICENSE" "$2/LICENSE"
    same "$1/USE_POLICY.md" "$2/USE_POLICY.md"
    no_file "$2/original"
}

# around NAME KIND TOKEN: the whole way; the tokens of the GGUF file are those of the folder
around() {
    with_texts "$1"
    expect 0 "$PREP" build -q --input d.jsonl --tokenizer "$1" --append-eod --output-prefix "$1-d"
    expect 0 "$CONVERT" import "$1" "$1-i"
    out_has "not copied  original"
    mkdir -p "$1-elsewhere"
    # shellcheck disable=SC2086,SC2164 # words
    expect 0 sh -c 'cd "$1" && shift && "$@"' sh "$1-elsewhere" "$TRAIN" run -q $short --load "$PWD/$1-i" --finetune \
        --data-path "$PWD/$1-d_text_document" --save run --export-hf "$PWD/$1-e"
    files_same "$1" "$1-e"
    texts_came "$1" "$1-e"
    expect 0 "$CONVERT" import -q "$1-e" "$1-i2"
    # shellcheck disable=SC2086 # words
    expect 0 "$TRAIN" run -q $short --load "$1-i2" --finetune --data-path "$1-d_text_document" --save "$1-run2"
    expect 0 "$CONVERT" export -q "$1-run2" "$1-e2"
    files_same "$1" "$1-e2"
    texts_came "$1" "$1-e2"
    # shellcheck disable=SC2086 # words
    expect 0 "$TRAIN" run -q $short --load "$1-e2" --data-path "$1-d_text_document" --save "$1-run3"
    expect 0 "$CONVERT" export -q --to gguf "$1-run3" "$1.gguf"
    expect 0 python3 gguf.py "$1.gguf"
    check [ "$(head -n 1 .out)" = "$2" ]
    tail -n +2 .out >tokens
    expect 0 "$TOK" inspect "$1-e2"
    check [ "$(wc -l <tokens)" -ge "$(sed -n 's/^vocab_size *//p' .out)" ]
    check grep -qx -- "$3" tokens
}

t "GPT-2 and Qwen: tokenizer.json beside vocab.json and merges.txt"
weights gpt h
cp h/tokenizer.json h/vocab.json h/merges.txt gpt/
echo '{"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "model_max_length": 64}' >gpt/tokenizer_config.json
echo '{"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}' >gpt/special_tokens_map.json
around gpt gpt2 '<|endoftext|>'

t "and instructions between: on conversations, and then on the same data again"
awk 'BEGIN { for (i = 0; i < 40; i++) print "{\"messages\": [{\"role\": \"user\", \"content\": \"ba ko" i "\"}, {\"role\": \"assistant\", \"content\": \"mi tsu\"}]}" }' >talk.jsonl
expect 0 "$PREP" sft -q --input talk.jsonl --tokenizer gpt-e2 --template guanaco --seq-length 32 --output-prefix talk
# shellcheck disable=SC2086 # words
sft=$(echo $short | sed 's/--split 95,5,0/--split 1/')
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $sft --load gpt-e2 --data-path talk --save gpt-sft --export-hf gpt-se
files_same gpt gpt-se
differ gpt-se/model.safetensors gpt-e2/model.safetensors
expect 0 "$CONVERT" import -q gpt-se gpt-si
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $sft --load gpt-si --finetune --data-path talk --save gpt-sft2
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --load gpt-sft2 --finetune --data-path gpt-d_text_document --save gpt-run4
err_lacks differ
expect 0 "$CONVERT" export -q gpt-run4 gpt-e4
files_same gpt gpt-e4
expect 0 "$CONVERT" export -q --to gguf gpt-sft2 gpt-sft.gguf

t "Llama 3: written by another program, with byte_fallback left out, and a template"
weights l3 h
python3 - <<'END'
import json
d = json.load(open("h/tokenizer.json"))
for k in ("byte_fallback", "ignore_merges", "fuse_unk"):
    d["model"].pop(k, None)
d["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}}
json.dump(d, open("l3/tokenizer.json", "w"))
END
echo '{"eos_token": "<|endoftext|>", "chat_template": "{{ messages }}"}' >l3/tokenizer_config.json
around l3 gpt2 '<|endoftext|>'

t "Llama 2 and Mistral: tokenizer.json beside tokenizer.model"
weights l2 s.json
cp s.json l2/tokenizer.json
cp s.model l2/tokenizer.model
echo '{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": true}' >l2/tokenizer_config.json
echo '{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}' >l2/special_tokens_map.json
around l2 llama '</s>'

t "Phi-3: the same with added tokens"
python3 - <<'END'
import json
d = json.load(open("s.json"))
for i, x in enumerate(["<|end|>", "<|user|>"]):
    d["added_tokens"].append({"id": 300 + i, "content": x, "single_word": False, "lstrip": False, "rstrip": True,
                              "normalized": False, "special": i == 0})
json.dump(d, open("p3.json", "w"))
END
weights p3 p3.json
cp p3.json p3/tokenizer.json
cp s.model p3/tokenizer.model
echo '{"<|end|>": 300, "<|user|>": 301}' >p3/added_tokens.json
echo '{"bos_token": "<s>", "eos_token": "<|end|>", "unk_token": "<unk>"}' >p3/tokenizer_config.json
around p3 llama '<|user|>'

t "Gemma: the model alone"
weights gm s.model
cp s.model gm/tokenizer.model
with_texts gm
expect 0 "$CONVERT" import -q gm gm-i
expect 0 "$PREP" build -q --input d.jsonl --tokenizer gm/tokenizer.model --append-eod --output-prefix gm-d
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --load gm-i --finetune --data-path gm-d_text_document --save gm-run --export-hf gm-e
same gm/tokenizer.model gm-e/tokenizer.model
expect 0 "$CONVERT" import -q gm-e gm-i2
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --load gm-i2 --finetune --data-path gm-d_text_document --save gm-run2
expect 0 "$CONVERT" export -q gm-run2 gm-e2
same gm/tokenizer.model gm-e2/tokenizer.model
texts_came gm gm-e2
expect 0 "$CONVERT" export -q --to gguf gm-run2 gm.gguf
expect 0 python3 gguf.py gm.gguf
check [ "$(head -n 1 .out)" = llama ]

t "a model by hand, as the README says"
expect 0 "$TOK" train -q --preset ucllm --input d.jsonl --model_prefix book --vocab_size 330
expect 0 "$PREP" build -q --input d.jsonl --tokenizer book.model --output-prefix book --append-eod
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $model $short --data-path book_text_document --save book-run --export-hf book-hf
expect 0 "$CONVERT" export --dry-run book-run book-dry
expect 0 "$CONVERT" export -q book-run book-hf2
same book.model book-hf2/tokenizer.model
same book-hf/tokenizer.json book-hf2/tokenizer.json
expect 0 "$CONVERT" import -q book-hf book-i
mkdir far
# shellcheck disable=SC2016,SC2086 # words
expect 0 sh -c 'cd far && "$@"' sh "$TRAIN" run -q $short --load ../book-i --finetune --data-path ../book_text_document --save run

t "checkpoints have the files of a tokenizer under their own names"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $model $short --mock-data --tokenizer h/tokenizer.json --save own
same own/iter_0000002/tokenizer.json h/tokenizer.json
no_file own/iter_0000002/tokenizer.model
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $model $short --mock-data --tokenizer h/vocab.json --save own2
same own2/iter_0000002/merges.txt h/merges.txt
mkdir away
mv h/merges.txt away
expect 0 "$TRAIN" generate -q --load own2 --prompt ba --max-new-tokens 2
mv away/merges.txt h

t "another file that does the same is the same tokenizer, with no word; of an earlier version's manifest its own file tells"
python3 - <<'END'
import json
d = json.load(open("h/tokenizer.json"))
d["model"].update(byte_fallback=False, ignore_merges=False, fuse_unk=False)
json.dump(d, open("r.json", "w"), indent=1)
END
expect 0 "$PREP" build -q --input d.jsonl --tokenizer r.json --append-eod --output-prefix r
differ r.json h/tokenizer.json
for from in gpt-i gpt; do
    # shellcheck disable=SC2086 # words
    expect 0 "$TRAIN" run -q $short --load $from --finetune --data-path r_text_document --save "r-$from"
    err_lacks differ
done
grep -v '"meaning"' r_text_document.manifest.json >r.manifest
mv r.manifest r_text_document.manifest.json
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run -q $short --load gpt-i --finetune --data-path r_text_document --save r-old
err_lacks differ
rm r.json
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run -q $short --load gpt-i --finetune --data-path r_text_document --save r-gone
err_has "tokenizers differ: r_text_document.manifest.json has r.json (SHA-256 "

t "another tokenizer: what differs, and the way to go on"
"$TOK" train -q --type bpe --input d.jsonl --model_prefix g --vocab_size 321 --special_tokens '<|endoftext|>'
expect 0 "$PREP" build -q --input d.jsonl --tokenizer g-tokenizer.json --append-eod --output-prefix g
sed 's/ba/ab/g; s/ko/ok/g' d.jsonl >d2.jsonl
"$TOK" train -q --type bpe --input d2.jsonl --model_prefix k --vocab_size 320 --special_tokens '<|endoftext|>'
expect 0 "$PREP" build -q --input d.jsonl --tokenizer k-tokenizer.json --append-eod --output-prefix k
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run -q $short --load gpt-i --finetune --data-path g_text_document --save gr
err_has "what differs: merges, size (321, 320), tokens; the first id that differs is 320: "
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run -q $short --load gpt-i --finetune --data-path k_text_document --save gr
err_has "tokenizers differ: k_text_document.manifest.json has k-tokenizer.json"
err_has "--tokenizer-differs goes on all the same"
# shellcheck disable=SC2086 # words
expect 0 "$TRAIN" run $short --load gpt-i --finetune --data-path k_text_document --save gr --tokenizer-differs
err_has "warning: tokenizers differ: "
# shellcheck disable=SC2086 # words
expect 2 "$TRAIN" run -q $short --load gpt --data-path k_text_document --save gr2
err_has "use data that were made with the model's tokenizer"

t "prep goes on with another tokenizer, too, where it is told to"
for verb in "merge g_text_document --output-prefix gk" "export --tokenizer g-tokenizer.json --output k.jsonl" \
    "verify --tokenizer g-tokenizer.json" "inspect --tokenizer g-tokenizer.json --documents 0" \
    "inspect --tokenizer g-tokenizer.json --samples 0 --seq-length 8 --num-samples 10"; do
    # shellcheck disable=SC2086 # words
    expect 2 "$PREP" $verb k_text_document
    err_has "k_text_document"
    err_has "; --tokenizer-differs goes on all the same"
    # shellcheck disable=SC2086 # words
    expect 0 "$PREP" $verb k_text_document --tokenizer-differs
    err_has " was tokenized with "
    err_has "(--tokenizer-differs)"
done
expect 0 "$PREP" verify gk
check grep -q '"vocab_size": 321' gk.manifest.json
check [ "$(wc -l <k.jsonl)" = 300 ]
