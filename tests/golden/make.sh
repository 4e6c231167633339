#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh BUILD DIR: golden files of today's programs, in a new folder (README.md).
set -eu
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")" && pwd)
TOK=$build/tok/tok PREP=$build/prep/prep TRAIN=$build/train/train CONVERT=$build/convert/convert
mkdir "$2"
cd "$2"
. "$here/options.sh"

awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en é 日 本 語", p, " ")
    for (i = 0; i < 100; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : "")
        print s "." } }' >text.txt
awk '{ printf "{\"text\": \"%s\"}\n", $0 }' text.txt >docs.jsonl
printf '{"text": "9 8 1 9 7 2 9 8 3 9 7 4"}\n{"text": "1 2"}\n{"text": "9 7 5"}\n' >sft.jsonl

plain="--input text.txt --normalization_rule_name identity --vocab_size 60"
"$TOK" train $plain --model_prefix unigram
"$TOK" train $plain --model_prefix bpe --model_type bpe
"$TOK" train --input text.txt --type bpe --vocab_size 280 --model_prefix bytes
"$TOK" train --input text.txt --type wordpiece --vocab_size 60 --model_prefix words
rm -f ./*.vocab bytes-merges.txt bytes-vocab.json words-vocab.txt
for t in unigram.model bpe.model bytes-tokenizer.json words-tokenizer.json; do
    "$TOK" encode --tokenizer $t text.txt >"$t.ids"
done

"$PREP" build --input docs.jsonl --tokenizer unigram.model --append-eod --output-prefix data
"$PREP" index $maps
"$PREP" inspect $samples >samples.json
"$PREP" sft --input sft.jsonl --tokenizer-type NullTokenizer --vocab-size 1000 --response-template '9 7' \
    --instruction-template '9 8' --seq-length 14 --append-eod --output-prefix packed
"$PREP" unpack packed >unpacked.jsonl

"$TRAIN" run $run --save whole
losses whole >losses.txt
rm -r whole
"$TRAIN" run $run --save run --exit-interval 4
tensors run/iter_0000004 >tensors.json
ls data_text_document_*_indexmap_* | grep -v _40ns_ | xargs rm
