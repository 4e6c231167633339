# SPDX-License-Identifier: Apache-2.0
# text with enough words for a small vocabulary
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 500; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
awk '{ printf "{\"text\": \"%s\", \"n\": %d}\n", $0, NR }' text.txt >text.jsonl

t "a model and its list appear"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix a --vocab_size 80
out_is ""
err_has "500 sentences"
err_has "80 pieces"
has_file a.model
check [ "$(wc -l <a.vocab)" = 80 ]
check [ "$(head -n 1 a.vocab)" = "$(printf '<unk>\t0')" ]
no_temps .

t "JSONL, compressed input, several files and standard input give the same model"
expect 0 "$TOK" train --overwrite -q text.jsonl --model_prefix b --vocab_size 80
err_lacks "sentences"
same a.model b.model
gzip -c text.jsonl >z
expect 0 "$TOK" train --overwrite --input z --model_prefix b --vocab-size=80
same a.model b.model
head -n 200 text.txt >1.txt
tail -n 300 text.txt | zstd -q >2.txt.zst
expect 0 "$TOK" train --overwrite --input 1.txt,2.txt.zst --model_prefix b --vocab_size 80
same a.model b.model
expect 0 sh -c '"$0" train --overwrite --input - --model_prefix b --vocab_size 80 <text.txt' "$TOK"
same a.model b.model

t "a document with newlines is cut as a file of lines would be"
printf '{"text": "%s"}\n' "$(sed 's/$/\\n/' text.txt | tr -d '\n')" >one.jsonl
expect 0 "$TOK" train --overwrite --input one.jsonl --model_prefix b --vocab_size 80
err_has "500 sentences"
same a.model b.model

t "the preset of ucllm"
expect 0 "$TOK" train --overwrite --preset ucllm --input text.txt --model_prefix u --vocab_size 330
check [ "$(head -n 8 u.vocab | cut -f 1 | tr '\n' ' ')" = "<unk> <s> </s> <pad> <CLS> <SEP> <EOD> <MASK> " ]
expect 0 "$TOK" inspect --json u.model
out_has '"byte_fallback":true'
out_has '"remove_extra_whitespaces":false'
out_has '"8":{"piece":"\n","kind":"user-defined"}'
out_has '"eod":{"id":6,"piece":"<EOD>"}'

t "a flag overrides the preset"
expect 0 "$TOK" train --overwrite --preset ucllm --input text.txt --model_prefix v --vocab_size 60 --byte_fallback=false
expect 0 "$TOK" inspect --json v.model
out_has '"byte_fallback":false'

t "long lines are left out and counted"
(cat text.txt; head -c 5000 /dev/zero | tr '\0' x; echo) >long.txt
expect 0 "$TOK" train --overwrite --input long.txt --model_prefix b --vocab_size 80
err_has "1 lines were left out: longer than 4192 bytes"
same a.model b.model

t "more pieces than the text yields"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_size 50000
err_has "the input yields only"
err_has "hint: give --vocab_size"
no_file c.model
no_file c.vocab

t "input that cannot be used"
expect 3 "$TOK" train --overwrite --input /dev/null --model_prefix c --vocab_size 80
err_has "there is no document in the input"
expect 4 "$TOK" train --overwrite --input missing.txt --model_prefix c --vocab_size 80
err_has "missing.txt: no such file"
printf '{"text": "a"}\n{"text": 5}\n' >bad.jsonl
expect 3 "$TOK" train --overwrite --input bad.jsonl --model_prefix c --vocab_size 80
err_has "bad.jsonl, line 2: the value under \"text\" is not a string"
zstd -q -c text.txt | head -c 500 >cut.zst
expect 3 "$TOK" train --overwrite --input cut.zst --model_prefix c --vocab_size 80
err_has "cut.zst"
no_file c.model

t "options that cannot be used"
expect 2 "$TOK" train --overwrite --input text.txt --vocab_size 80
err_has "--model_prefix"
expect 2 "$TOK" train --overwrite --model_prefix c
err_has "--input"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_sise 80
err_has "did you mean --vocab_size?"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --character_coverage 0.5
err_has "character_coverage"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --num_threads 1000
err_has "num_threads"
expect 4 "$TOK" train --overwrite --input text.txt --model_prefix text.txt/c --vocab_size 80
err_has "text.txt: "

t "a killed run leaves no model behind"
mkfifo slow
"$TOK" train --input slow --model_prefix k --vocab_size 80 >.out 2>.err &
pid=$!
exec 9>slow # once it reads
cat text.txt >&9
kill -9 $pid
code=0
wait $pid || code=$?
exec 9>&-
check [ $code = 137 ]
no_file k.model
no_file k.vocab

t "a full disk"
if mkdir full && mount -t tmpfs -o size=64k none full 2>/dev/null; then
    expect 4 "$TOK" train --overwrite --input text.txt --model_prefix full/a --vocab_size 80
    err_has "full/a.model: the disk is full"
    check [ -z "$(ls -A full)" ]
    umount full
else
    skip "$(why_no_mount)"
fi

t "our trainers and the library's"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix o --vocab_size 60 --model_type bpe
err_lacks "SentencePiece's own trainer"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix l --vocab_size 60 --model_type bpe --engine sentencepiece --memory 64
err_has "--memory has no effect with SentencePiece's own trainer"
check [ "$(cut -f 1 o.vocab | sort | md5sum)" = "$(cut -f 1 l.vocab | sort | md5sum)" ]
printf '61\t62\n' >rules.tsv
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix l --vocab_size 60 --model_type bpe --denormalization_rule_tsv rules.tsv --workers 2
err_has "--denormalization_rule_tsv needs SentencePiece's own trainer"
err_has "--workers has no effect with SentencePiece's own trainer"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix w --vocab_size 60 --model_type bpe --workers 3 --memory 16
same o.model w.model

t "options of other models, of the library and of other options are named"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix w --vocab_size 60 --model_type bpe --shrinking_factor 0.8 \
    --num_threads 3 --pad_piece P --shuffle_input_sentence --json-keys x
err_has "--shrinking_factor has no effect without --model_type unigram"
err_has "--num_threads has no effect without --engine sentencepiece"
err_has "--pad_piece has no effect with --pad_id -1"
err_has "--shuffle_input_sentence has no effect without --input_sentence_size"
err_has "--json-keys has no effect: no input is JSONL"
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix w --vocab_size 60 --engine sentencepiece --shrinking_factor 0.8 \
    --num_threads 3 --pad_id 3 --pad_piece P
err_lacks "no effect"

t "what our trainers refuse"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_size 9 --model_type bpe
err_has "must be in the vocabulary are"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_size 5000 --model_type bpe
err_has "the input yields only"
err_has "hint: give --vocab_size"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_size 60 --model_type bpe --user_defined_symbols x,x
err_has "occurs twice"
expect 2 "$TOK" train --overwrite --input text.txt --model_prefix c --vocab_size 60 --model_type bpe --use_all_vocab
err_has "--use_all_vocab is for --model_type word and char"
printf 'word\t3\nother\tx\n' >bad.tsv
expect 3 "$TOK" train --overwrite --input bad.tsv --input-format tsv --model_prefix c --vocab_size 60 --model_type bpe
err_has "sentence 2: expected text, a tab and a count"
no_file c.model

t "which files a prefix is for"
expect 2 "$TOK" train --overwrite --input text.txt --vocab_size 80
err_has "needs --model_prefix P, to write P.model and P.vocab"
expect 2 "$TOK" train --overwrite --type bpe --input text.txt --vocab_size 80
err_has "to write P-tokenizer.json, P-vocab.json and P-merges.txt"
expect 2 "$TOK" train --overwrite --type wordpiece --input text.txt --vocab_size 80
err_has "to write P-tokenizer.json and P-vocab.txt"
expect 2 "$TOK" train --overwrite --type bpe --output-type tiktoken --input text.txt --vocab_size 80
err_has "to write files whose names begin with P"

t "the steps of a pattern are counted for each document"
awk 'BEGIN { for (i = 0; i < 60; i++) { for (k = 0; k < 300; k++) printf "abcdef%d", (i + k) % 10; print i } }' >steps.txt
set -- --type bpe --pretokenizer-pattern '.{0,9000}z|\p{L}*' --vocab_size 262 --model_prefix steps --workers 1 --overwrite -q
if printf 'ab ab ab abc abc\n' >one.txt && "$TOK" train "$@" --vocab_size 257 --input one.txt 2>.err; then
    expect 0 "$TOK" train "$@" --input steps.txt
    has_file steps-tokenizer.json
fi
