# SPDX-License-Identifier: Apache-2.0
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 500; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
"$TOK" train -q --input text.txt --model_prefix g --vocab_size 60 --model_type bpe --control_symbols '<c>'
printf '{"<unk>": 0, "one": 1, "<|endoftext|>": 2}' >vocab.json

t "a model"
expect 0 "$TOK" inspect g.model
out_has "GPTSentencePieceTokenizer"
out_has "algorithm                 bpe"
out_has "pieces                    60"
out_has 'eod                         2 "</s>"'
out_has "$(sha256sum g.model | cut -d ' ' -f 1)"
out_has 'control       "<c>"'

t "the same as JSON"
expect 0 "$TOK" inspect --json --tokenizer g.model
check python3 -c "
import json
f = json.load(open('.out'))
assert f['type'] == 'GPTSentencePieceTokenizer' and f['vocab_size'] == 60, f
assert f['eod'] == {'id': 2, 'piece': '</s>'} and f['pad'] is None, f
assert f['model']['algorithm'] == 'bpe' and f['model']['normal_pieces'] == 56, f
assert f['normalization']['name'] == 'nmt_nfkc', f
assert f['symbols']['3'] == {'piece': '<c>', 'kind': 'control'}, f"

t "the wrapper that was asked for"
expect 0 "$TOK" inspect --tokenizer-type SentencePieceTokenizer --json g.model
check python3 -c "
import json
f = json.load(open('.out'))
assert f['vocab_size'] == 65 and f['eod'] == {'id': 62, 'piece': '<EOD>'}, f
assert f['pad'] == {'id': 64, 'piece': '<PAD>'} and f['symbols']['64']['kind'] == 'added', f"
expect 0 "$TOK" inspect --eod-token '<c>' g.model
out_has 'eod                         3 "<c>"'

t "a vocab.json and the null tokenizer"
expect 0 "$TOK" inspect vocab.json
out_has "WhitespaceTokenizer"
out_has 'eod                         2 "<|endoftext|>"'
expect 0 "$TOK" inspect --tokenizer-type NullTokenizer --vocab-size 10 --json
out_has '"vocab_size":11'
out_has '"eod":{"id":10,"piece":"10"}'

t "what is no tokenizer"
expect 3 "$TOK" inspect text.txt
err_has "neither"
expect 2 "$TOK" inspect g.model vocab.json
err_has "one tokenizer at a time"
expect 2 "$TOK" inspect
err_has "no tokenizer was named"
