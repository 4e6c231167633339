# SPDX-License-Identifier: Apache-2.0
# Wrong inputs of tok and prep that a newcomer meets: exit code and the words that lead on. Others: wrong_inputs_train.sh.

"$STORIES" --documents 40 --output s.jsonl
python3 -c '
import json
texts = [json.loads(line)["text"] for line in open("s.jsonl")]
open("t.txt", "w").write("\n".join(texts) + "\n")
open("utf16.txt", "wb").write("\n".join(texts).encode("utf-16"))
open("utf16.jsonl", "wb").write(open("s.jsonl").read().encode("utf-16"))
open("keys.jsonl", "w").writelines(json.dumps({"content": x, "n": 1}) + "\n" for x in texts)
open("null.jsonl", "w").write("{\"text\": null}\n")
open("bytes.jsonl", "wb").write(b"{\"text\": \"\xff\"}\n")
open("half.jsonl", "w").write("{\"text\": \"a\"}\n{\"text\": \"b")
open("pair.jsonl", "w").write("{\"text\": \"\\ud800\"}\n")'
: >empty
"$TOK" train -q --preset ucllm --input t.txt --model_prefix m --vocab_size 400
head -c 2000 m.model >cut.model
build="$PREP build --tokenizer m.model --output-prefix o --overwrite"
$build --quiet --input s.jsonl --output-prefix d --append-eod

t "prep build: no document in all inputs"
expect 3 $build --input empty
err_has "empty: is empty"
err_has "has no documents"
err_has "--allow-empty"

t "prep build: a folder is its files, recursively, hidden ones left out"
mkdir -p dir/sub
cp s.jsonl dir/a.jsonl
cp s.jsonl dir/sub/b.jsonl
cp keys.jsonl dir/.hidden.jsonl
expect 0 $build --input dir
err_has "80 documents"

t "prep build: a file that is not there"
expect 4 $build --input nosuch.jsonl
err_has "nosuch.jsonl: no such file"
expect 4 $build --input 'none*.jsonl'
err_has "none*.jsonl"

t "prep build, tok: UTF-16"
expect 3 $build --input utf16.jsonl
err_has "utf16.jsonl: is text in UTF-16"
err_has "iconv -f UTF-16 -t UTF-8"
for verb in "encode --tokenizer m.model" "train --model_prefix q --vocab_size 300 --input"; do
    expect 3 "$TOK" $verb utf16.txt
    err_has "utf16.txt: is text in UTF-16"
    err_has "iconv -f UTF-16 -t UTF-8"
done
no_file q.model

t "prep build: broken records"
for pair in "null.jsonl:line 1" "bytes.jsonl:line 1" "half.jsonl:line 2" "pair.jsonl:line 1"; do
    expect 3 $build --input "${pair%%:*}"
    err_has "${pair%%:*}"
    err_has "${pair#*:}"
    err_has "--on-bad-record"
done
expect 0 $build --input half.jsonl --on-bad-record skip
err_has "1 documents"

t "prep build: a tar archive, a binary file"
tar -cf a.tar s.jsonl
expect 3 $build --input a.tar
err_has "a.tar: is a tar archive"
err_lacks "--on-bad-record"
expect 3 $build --input d_text_document.bin
err_has "is a binary file, not text"
err_lacks "--on-bad-record"

t "prep build: plain text"
expect 3 $build --input t.txt
err_has "--input-format text"

t "prep build: another key"
expect 3 $build --input keys.jsonl
err_has 'has no key "text"; its keys are content, n'

t "names with a comma, brackets, spaces, a dash"
for name in 'a,b.jsonl' '[x].jsonl' 'a b ü 猫.jsonl'; do
    cp s.jsonl "$name"
    expect 0 $build --input "$name"
    err_has "40 documents"
done
cp s.jsonl ./-dash.jsonl
expect 2 $build --input -dash.jsonl
expect 0 $build --input ./-dash.jsonl

t "prep build: parent folders are made"
expect 0 $build --input s.jsonl --output-prefix none/sub/z
has_file none/sub/z_text_document.bin

t "prep build: values out of range"
expect 2 $build --input s.jsonl --min-tokens 300 --max-tokens 200
err_has "--min-tokens 300 exceeds --max-tokens 200: no document can match"
expect 2 $build --input s.jsonl --workers -1
err_has "--workers"
expect 2 $build --input s.jsonl --eod-token nope --append-eod
err_has "nope"
expect 2 $build --input s.jsonl --split-sentences --lang Deutsch
err_has "Deutsch"

t "tokenizers that are none"
mkdir -p bare
expect 4 $build --input s.jsonl --tokenizer bare
err_has "bare: the folder has no tokenizer file"
expect 3 $build --input s.jsonl --tokenizer t.txt
err_has "t.txt"
expect 3 $build --input s.jsonl --tokenizer cut.model
err_has "cut.model"

t "tok encode: a missing file, a binary file, broken JSONL, no tokenizer"
expect 4 "$TOK" encode --tokenizer m.model nosuch
err_has "nosuch"
expect 3 "$TOK" encode --tokenizer m.model d_text_document.bin
err_has "is a binary file, not text"
err_has "--input-format text"
expect 3 "$TOK" encode --tokenizer m.model half.jsonl
err_has "half.jsonl, line 2"
expect 2 "$TOK" encode t.txt
err_has "no tokenizer was named"

t "tok decode: what is not an id"
echo 99999 >ids
expect 3 "$TOK" decode --tokenizer m.model ids
err_has "99999"
for word in x -1 1.5; do
    echo $word >ids
    expect 3 "$TOK" decode --tokenizer m.model ids
    err_has "ids, line 1"
done

t "tok train: nothing to learn from, sizes that cannot be"
expect 3 "$TOK" train --input empty --model_prefix q --vocab_size 300
err_has "empty"
for size in 5 1000000; do
    expect 2 "$TOK" train --preset ucllm --input t.txt --model_prefix q --vocab_size $size
    err_has "--vocab_size"
done
expect 2 "$TOK" train --input t.txt --model_prefix q --character_coverage 99
err_has "character_coverage"
no_file q.model

t "tok convert: onto itself, to a name without a known format"
cp m.model before.model
expect 2 "$TOK" convert m.model m.model
err_has "m.model: is both an input and the output"
expect 2 "$TOK" convert --overwrite m.model m.model
same m.model before.model
expect 2 "$TOK" convert m.model m.what
err_has "m.what"

t "tok prune: fewer pieces than must stay"
expect 2 "$TOK" prune --size 3 m.model --output q.model
err_has "3 pieces are too few"

t "prep verify: a shard that is cut"
cp d_text_document.idx c_text_document.idx
cp d_text_document.manifest.json c_text_document.manifest.json
head -c 100 d_text_document.bin >c_text_document.bin
expect 3 "$PREP" verify c_text_document
err_has "c_text_document"

t "lists that would take what follows"
expect 2 "$TOK" inspect --corpus t.txt m.model
err_has "--corpus took 'm.model' as a value"
expect 2 "$TOK" extend --output x.model --add-special '<a>' m.model
err_has "--add-special took 'm.model' as a value"
expect 0 "$PREP" inspect --documents 3 d_text_document --tokenizer m.model

t "tokenizers that are none: swapped, empty, any JSON, a name of the Hub"
expect 3 "$TOK" encode --tokenizer s.jsonl t.txt
err_has "s.jsonl"
expect 3 "$TOK" encode --tokenizer empty t.txt
err_has "empty: is empty"
echo '{"a": 1}' >any.json
expect 3 "$TOK" encode --tokenizer any.json t.txt
err_has "any.json: not a vocabulary"
expect 4 "$TOK" encode --tokenizer meta-llama/Llama-3.1-8B t.txt
err_has "Hub"
