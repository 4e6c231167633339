# SPDX-License-Identifier: Apache-2.0
# text with ties and long words, and enough distinct words to outgrow a small memory
awk 'BEGIN { srand(3); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 30000; i++) { s = ""
        for (k = 0; k < 12; k++) s = s p[int(rand() * n) + 1] (k % 4 == 3 ? " " : ""); print s } }' >text.txt

t "byte-level BPE: three files, special tokens first"
expect 0 "$TOK" train --overwrite --type bpe --input text.txt --model_prefix a --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>'
out_is ""
err_has "distinct words"
err_has "400 symbols, 142 merges: a-tokenizer.json"
has_file a-vocab.json
check [ "$(head -n 1 a-merges.txt)" = "#version: 0.2" ]
check [ "$(wc -l <a-merges.txt)" = 143 ]
check grep -q '"<|endoftext|>":0,"<pad>":1,"!":2' a-vocab.json
no_temps .

t "any number of threads and little memory give the same files"
expect 0 "$TOK" train --overwrite -q --type bpe --input text.txt --model_prefix b --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>' --workers 5
same a-tokenizer.json b-tokenizer.json
expect 0 "$TOK" train --overwrite --type bpe --input text.txt --model_prefix c --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>' --workers 7 --memory 10
err_has "sorted runs on disk"
err_lacks "left out"
same a-tokenizer.json c-tokenizer.json
same a-merges.txt c-merges.txt

t "words that do not fit are left out aloud"
expect 0 "$TOK" train --overwrite --type bpe --input text.txt --model_prefix c --vocab_size 400 --memory 1
err_has "times were left out to stay within --memory"

t "a prefix that is a folder; JSONL; more symbols than the text yields"
printf '{"text": "ab ab\\nab"}\n' >one.jsonl
expect 0 "$TOK" train --overwrite --type bpe --pretokenizer llama3 one.jsonl --model_prefix out/ --vocab_size 400
err_has "the input yields only 258 symbols, fewer than --vocab_size 400"
has_file out/tokenizer.json
check [ "$(tail -n 1 out/merges.txt)" = "Ġ ab" ]

t "bytes that are no UTF-8 are counted"
printf 'ab\377\376\n' >bad.txt
expect 0 "$TOK" train --overwrite --type bpe bad.txt --model_prefix d --vocab_size 258
err_has "2 invalid UTF-8 bytes count as U+FFFD"

t "what cannot be used"
expect 3 "$TOK" train --overwrite --type bpe --input /dev/null --model_prefix e --vocab_size 300
err_has "there is no document in the input"
expect 2 "$TOK" train --overwrite --type bpe --input text.txt --model_prefix e --special_tokens a b a
err_has "contain a twice"
expect 4 "$TOK" train --overwrite --type bpe --input missing.txt --model_prefix e
err_has "missing.txt: no such file"
expect 2 "$TOK" train --overwrite --type bpe --input text.txt --model_prefix e --pretokenizer gpt3
err_has "pretokenizer"
no_file e-tokenizer.json

t "WordPiece: BERT's tokens, two files, and encoding with them"
expect 0 "$TOK" train --overwrite --type wordpiece --input text.txt --model_prefix w --vocab_size 300
out_is ""
err_has "300 symbols, "
err_has ": w-tokenizer.json"
check [ "$(head -n 5 w-vocab.txt | tr '\n' ' ')" = "[PAD] [UNK] [CLS] [SEP] [MASK] " ]
check [ "$(wc -l <w-vocab.txt)" = 300 ]
check grep -q '^##' w-vocab.txt
no_file w-merges.txt
expect 0 "$TOK" train --overwrite -q --type wordpiece --input text.txt --model_prefix w2 --vocab_size 300 --workers 5 --memory 10
same w-tokenizer.json w2-tokenizer.json
same w-vocab.txt w2-vocab.txt
printf 'BAKOmi \303\211 \347\214\253\n' >some.txt
expect 0 "$TOK" encode --tokenizer w-tokenizer.json --output_format piece some.txt
out_is "[CLS] bako ##mi e [UNK] [SEP]"
expect 0 "$TOK" train --overwrite -q --type wordpiece --no-lowercase --handle_chinese_chars=false --min_frequency 1 --vocab_size 40 --model_prefix w3 \
    --special_tokens '[UNK]' --initial_alphabet 'Zé' some.txt
check [ "$(sed -n '2,$p' w3-vocab.txt | tr '\n' ' ')" = "A B K O Z i m É é 猫 ##A ##K ##O ##i ##m BA ##KO ##mi BAKO BAKOmi " ]

t "which files are written"
expect 0 "$TOK" train --overwrite -q --type wordpiece --output-type vocab.txt --input text.txt --model_prefix v --vocab_size 300
same v-vocab.txt w-vocab.txt
no_file v-tokenizer.json
expect 0 "$TOK" train --overwrite --type bpe --output-type tiktoken --input text.txt --model_prefix r --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>'
err_has "ranks begin at 2: name the special tokens, ids 0 to 1"
check [ "$(head -n 1 r.tiktoken)" = "IQ== 2" ]
check [ "$(wc -l <r.tiktoken)" = 398 ]
expect 0 "$TOK" encode --tokenizer r.tiktoken --tiktoken-pattern r50k --output r.ids text.txt
expect 0 "$TOK" encode --tokenizer a-tokenizer.json --output a.ids text.txt
same a.ids r.ids
expect 2 "$TOK" train --overwrite --type bpe --output-type vocab.txt --input text.txt --model_prefix x --vocab_size 300
err_has "--output-type vocab.txt cannot express a byte-level model"
expect 2 "$TOK" train --overwrite --type wordpiece --output-type tiktoken --input text.txt --model_prefix x --vocab_size 300
err_has "--output-type tiktoken cannot express a WordPiece model"
expect 2 "$TOK" train --overwrite --type bpe --digits three --output-type tiktoken --input text.txt --model_prefix x
err_has "cannot express --digits"

t "digits, a pattern of one's own, tokens of one's own"
printf 'a12345 67\n' >digits.txt
expect 0 "$TOK" train --overwrite -q --type bpe --digits single digits.txt --model_prefix g --vocab_size 400
check [ "$(wc -l <g-merges.txt)" = 1 ]
expect 0 "$TOK" train --overwrite -q --type bpe --digits three digits.txt --model_prefix g --vocab_size 400
check [ "$(sed -n '2,$p' g-merges.txt | tr '\n' ',')" = "1 2,4 5,6 7,12 3," ]
expect 0 "$TOK" train --overwrite -q --type bpe --pretokenizer-pattern '[0-9]|.' digits.txt --model_prefix g --vocab_size 400
check [ "$(wc -l <g-merges.txt)" = 1 ]
expect 0 "$TOK" train --overwrite -q --type bpe --special_tokens '<s>' --user_defined_symbols '<a>,<b>' digits.txt --model_prefix g --vocab_size 260
check grep -q '"<s>":0,"<a>":1,"<b>":2,' g-vocab.json
check [ "$(grep -c '"special": true' g-tokenizer.json)" = 1 ]
check [ "$(grep -c '"special": false' g-tokenizer.json)" = 2 ]
expect 2 "$TOK" train --overwrite --type bpe --pretokenizer-pattern '(' digits.txt --model_prefix x
err_has "--pretokenizer-pattern: byte 1 of the pattern \"(\": a group without an end is not supported"
expect 2 "$TOK" train --overwrite --type bpe --pretokenizer-pattern 'a' --pretokenizer gpt2 digits.txt --model_prefix x
err_has "give one of them"
printf '%03000d\n' 0 >long.txt
expect 3 "$TOK" train --overwrite --type bpe --pretokenizer-pattern '(0+)+\1[bc]' --model_prefix x --vocab_size 300 long.txt
err_has "takes too many steps"

t "options of another type are said to have no effect"
expect 0 "$TOK" train --overwrite --type bpe --character_coverage 1 --lowercase digits.txt --model_prefix g --vocab_size 260
err_has "--character_coverage has no effect without --type sentencepiece"
err_has "--lowercase has no effect without --type wordpiece"
err_lacks "--vocab_size has"
expect 0 "$TOK" train --overwrite --type bpe digits.txt --limit_alphabet 300 --json-keys x --model_prefix g --vocab_size 260
err_has "--limit_alphabet has no effect from 256 on with --type bpe"
err_has "--json-keys has no effect: no input is JSONL"
expect 2 "$TOK" train --overwrite --type bpe --input_format tsv digits.txt --model_prefix g --vocab_size 260
err_has "--input_format tsv"
expect 2 "$TOK" train --overwrite --type wordpiece --special_tokens '[PAD]' --model_prefix x digits.txt
err_has "--special_tokens lacks [UNK]"
no_file x-tokenizer.json

t "bytes that --limit_alphabet leaves out are counted; the most frequent ones are kept"
yes 'int the an on' | head -n 50 >few.txt
echo 'zqj' >>few.txt
expect 0 "$TOK" train --overwrite --type bpe few.txt --limit_alphabet 9 --model_prefix few/ --vocab_size 20
err_has "--limit_alphabet 9 leaves 3 of the bytes that occur without a token"
echo 'int the' >one.txt
expect 0 "$TOK" encode --tokenizer few/tokenizer.json --output one.ids one.txt
expect 0 "$TOK" decode --tokenizer few/tokenizer.json one.ids
out_is "int the"
