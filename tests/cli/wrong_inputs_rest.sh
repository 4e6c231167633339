# SPDX-License-Identifier: Apache-2.0
# Wrong inputs that a newcomer meets and wrong_inputs_prep.sh and wrong_inputs_train.sh do not have. At the end, all 98 of
# the list, each with the case that shows what it answers.

"$STORIES" --documents 345 --output s.jsonl
python3 -c '
import json
open("t.txt", "w").writelines(json.loads(x)["text"] + "\n" for x in open("s.jsonl"))'
"$TOK" train -q --preset ucllm --input t.txt --model_prefix m --vocab_size 400
"$TOK" train -q --type bpe --vocab_size 300 --input t.txt --model_prefix h/
"$PREP" build --quiet --input s.jsonl --tokenizer m.model --output-prefix d --append-eod
run="$TRAIN run --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16
    --micro-batch-size 1 --train-iters 2 --lr 1e-3 --eval-iters 0 --data-path d_text_document"

t "tokenizers that are cut short"
size=$(($(wc -c <m.model) / 2))
head -c $size m.model >cut.model
expect 3 "$TOK" encode --tokenizer cut.model t.txt
err_has "cut.model: not a valid protobuf message: at byte "
err_has "the file ends early, after $size bytes: download or copy it again"
head -c 900 h/tokenizer.json >cut.json
expect 3 "$TOK" encode --tokenizer cut.json t.txt
err_has "cut.json: byte "
err_has "the file ends early, after 900 bytes: download or copy it again"
python3 -c 'open("wrong.json", "w").write(open("h/tokenizer.json").read().replace(",", ";", 1))'
expect 3 "$TOK" encode --tokenizer wrong.json t.txt
err_lacks "ends early"

t "tok decode: words, negative and large numbers"
echo "3 cat" >ids
expect 3 "$TOK" decode --tokenizer m.model ids
err_has "ids, line 1: byte 2: 'cat' is not an id; expected integers in decimal, separated by spaces"
err_has "for text to ids use"
echo "3 -1" >ids
expect 3 "$TOK" decode --tokenizer m.model ids
err_has "ids, line 1: byte 2: -1 is negative, but ids begin at 0"
echo "1.5" >ids
expect 3 "$TOK" decode --tokenizer m.model ids
err_has "'1.5' is not an id"
echo "99999999999999999999" >ids
expect 3 "$TOK" decode --tokenizer m.model ids
err_has "99999999999999999999 is above the highest possible id"

t "prep unpack of what is not packed"
expect 4 "$PREP" unpack d_text_document
err_has "d_text_document: is token data, but not a packed set: there is no d_text_document.pack"
err_has "prep sft writes packed sets"

t "numbers from text, formats that do not go together, data of another tokenizer"
printf 'odd' >odd
expect 3 "$TOK" decode --tokenizer m.model --input-format u16 odd
err_has "odd: byte 2: the file ends after 1 of the 2 bytes of an id"
expect 2 "$TOK" convert h/tokenizer.json q.model
err_has "cannot express"
expect 2 "$TOK" merge m.model h/tokenizer.json --output q.model
no_file q.model
expect 0 $run --split 100,0,0 --save e
"$PREP" build --quiet --input s.jsonl --tokenizer h --output-prefix other
expect 2 "$TRAIN" eval --load e --data-path other_text_document --split 90,5,5 --micro-batch-size 1
err_has "other_text_document"

t "convert: a folder of runs, a Hugging Face model, a missing verb"
expect 0 $run --split 100,0,0 --save runs/a
for verb in inspect verify; do
    expect 3 "$CONVERT" $verb runs
    err_has "runs: is a folder of runs, not a checkpoint or a run"
    err_has "name a run in it, or a checkpoint: runs/a/iter_0000002"
done
mkdir -p hf
echo '{"architectures": ["LlamaForCausalLM"]}' >hf/config.json
echo x >hf/model.safetensors
expect 3 "$CONVERT" verify hf
err_has "hf: is a Hugging Face model (config.json and weights), not a checkpoint of train"
expect 3 "$CONVERT" inspect hf
err_has 'hf/config.json: no "model_type"'
expect 2 "$CONVERT" hf out
err_has "hf"

t "train run: the default split on 345 documents"
expect 0 $run --no-save --eval-iters 2
err_has "the test share is empty"
err_has "--split 98,1,1 works here"

# plain COMMAND...: without the right of root to pass over permissions
plain() { if [ "$(id -u)" = 0 ]; then unshare -U "$@"; else "$@"; fi; }

t "train run: a read-only folder of data"
mkdir -p ro
cp d_text_document.* ro
chmod 555 ro
if ! plain true 2>/dev/null || plain touch ro/x 2>/dev/null; then
    rm -f ro/x
    skip "this user may write into any folder"
else
    expect 4 plain $run --no-save --split 100,0,0 --data-path ro/d_text_document
    err_has "--data-cache-path FOLDER"
    err_has "--no-index-cache"
fi
chmod 755 ro

t "a terminal that is dumb, another locale"
expect 0 env LANG=C TERM=dumb "$TOK" encode --tokenizer m.model t.txt --output /dev/null
expect 0 env LANG=C TERM=dumb "$PREP" build --input s.jsonl --tokenizer m.model --output-prefix l --append-eod
same l_text_document.bin d_text_document.bin

t "a pipe that its reader closes"
expect 141 bash -c '"$@" | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}' sh "$PREP" export --ids d_text_document
check [ ! -s .err ]

t "a file that may not be read"
echo "a text" >secret
chmod 0 secret
if ! plain true 2>/dev/null || plain cat secret >/dev/null 2>&1; then
    skip "this user may read any file"
else
    expect 4 plain "$TOK" encode --tokenizer m.model secret
    err_has "secret: cannot open: Permission denied"
fi

# rows: what is wrong, the script and the case that has it
t "all rows of the list have their case"
_rows=0
while IFS='|' read -r _row _script _case; do
    _rows=$((_rows + 1))
    grep -qF "t \"$_case\"" "$SRC/tests/cli/$_script.sh" || _wrong "row $_rows, $_row: $_script.sh has no case '$_case'"
done <"$SRC/tests/cli/wrong_inputs_rows.txt"
echo "# $_rows of 98 wrong inputs have a case"
check [ $_rows = 98 ]
