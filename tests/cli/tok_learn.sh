# SPDX-License-Identifier: Apache-2.0
# text with ties and long words, and enough distinct words to outgrow a small memory
awk 'BEGIN { srand(3); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 30000; i++) { s = ""
        for (k = 0; k < 12; k++) s = s p[int(rand() * n) + 1] (k % 4 == 3 ? " " : ""); print s } }' >text.txt

t "byte-level BPE: three files, special tokens first"
expect 0 "$TOK" train --type bpe --input text.txt --model_prefix a --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>'
out_is ""
err_has "distinct words"
err_has "400 symbols, 142 merges: a-tokenizer.json"
has_file a-vocab.json
check [ "$(head -n 1 a-merges.txt)" = "#version: 0.2" ]
check [ "$(wc -l <a-merges.txt)" = 143 ]
check grep -q '"<|endoftext|>":0,"<pad>":1,"!":2' a-vocab.json
no_temps .

t "any number of threads and little memory give the same files"
expect 0 "$TOK" train -q --type bpe --input text.txt --model_prefix b --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>' --workers 5
same a-tokenizer.json b-tokenizer.json
expect 0 "$TOK" train --type bpe --input text.txt --model_prefix c --vocab_size 400 --special_tokens '<|endoftext|>' '<pad>' --workers 7 --memory 10
err_has "sorted runs on disk"
err_lacks "left out"
same a-tokenizer.json c-tokenizer.json
same a-merges.txt c-merges.txt

t "words that do not fit are left out aloud"
expect 0 "$TOK" train --type bpe --input text.txt --model_prefix c --vocab_size 400 --memory 1
err_has "times were left out: with them the memory would not do"

t "a prefix that is a folder; JSONL; more symbols than the text yields"
mkdir out
printf '{"text": "ab ab\\nab"}\n' >one.jsonl
expect 0 "$TOK" train --type bpe --pretokenizer llama3 one.jsonl --model_prefix out/ --vocab_size 400
err_has "the input yields only 258 symbols, fewer than --vocab_size 400"
has_file out/tokenizer.json
check [ "$(tail -n 1 out/merges.txt)" = "Ġ ab" ]

t "bytes that are no UTF-8 are counted"
printf 'ab\377\376\n' >bad.txt
expect 0 "$TOK" train --type bpe bad.txt --model_prefix d --vocab_size 258
err_has "2 bytes were no UTF-8"

t "what cannot be used"
expect 3 "$TOK" train --type bpe --input /dev/null --model_prefix e --vocab_size 300
err_has "the input has no text to learn from"
expect 2 "$TOK" train --type bpe --input text.txt --model_prefix e --special_tokens a b a
err_has "--special_tokens names a twice"
expect 4 "$TOK" train --type bpe --input missing.txt --model_prefix e
err_has "missing.txt: cannot open"
expect 2 "$TOK" train --type bpe --input text.txt --model_prefix e --pretokenizer gpt3
err_has "pretokenizer"
no_file e-tokenizer.json
