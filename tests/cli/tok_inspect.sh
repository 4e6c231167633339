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

t "a tokenizer.json in words"
cat >t.json <<'END'
{"version": "1.0",
 "added_tokens": [{"id": 9, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
  "special": true}],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "NFC"}]},
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<e>", "type_id": 0}},
  {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<e>": {"id": "<e>", "ids": [9], "tokens": ["<e>"]}}},
 "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ã": 2, "Ġ": 3, "ab": 4, "Ġab": 5, "aba": 6, "u": 7, "<e>": 9},
  "merges": ["a b", "Ġ ab"]}}
END
printf 'ab ab\nAb b\n' >small.txt
printf '{"text": "ab", "lang": "x"}\n{"text": "a\\u00e9 zz", "lang": "y"}\n{"text": "ab a"}\n' >by.jsonl
expect 0 "$TOK" inspect t.json
out_has "normalizer                lower case; Unicode's NFC"
out_has "pre_tokenizer             cut by the pattern of GPT-2, bytes as letters"
out_has 'put_before_a_text         ["<e>"]'
out_has 'ids_without_piece         1'
out_has '9                         special       "<e>"'
out_has 'tokens_tested             7'
out_has 'parts_of_characters       1'
out_has 'parts_not_reached         0'
out_has 'unreachable_tokens        1'
out_has 'examples                  ["aba"]'
out_has 'capital_letter            changed'
out_has 'two_spaces                yes'

t "a corpus by file and by language"
expect 0 "$TOK" inspect --json t.json --corpus small.txt
check python3 -c "
import json
f = json.load(open('.out'))
g = f['corpus']['small.txt']
assert g == {'documents': 2, 'bytes': 9, 'characters': 9, 'tokens': 5, 'bytes_per_token': 1.8, 'characters_per_token': 1.8,
             'tokens_per_word': 1.25, 'unknown_tokens': 0, 'unknown_percent': 0.0, 'documents_that_change': 1}, g
assert f['unused'] == {'tokens': 8, 'never_used': 4, 'examples': ['a', '\u00c3', 'aba', 'u']}, f['unused']
assert f['lost_in_corpus']['characters'] == [{'code': 'U+0041', 'character': 'A', 'count': 1, 'becomes': 'another text'}], f
assert f['lost_in_corpus']['changes'] == [{'document': 1, 'offset': 0, 'text': 'Ab b', 'becomes': 'ab b'}], f"
expect 0 "$TOK" inspect --json t.json --corpus by.jsonl --by lang
check python3 -c "
import json
f = json.load(open('.out'))
assert list(f['corpus']) == ['x', 'y', '(none)'] and f['corpus']['y']['documents'] == 1, f['corpus']
assert f['corpus']['y']['documents_that_change'] == 1 and f['corpus']['x']['tokens'] == 1, f['corpus']"
expect 0 "$TOK" inspect --json g.model --corpus text.txt
check python3 -c "
import json
f = json.load(open('.out'))
assert f['corpus']['text.txt']['documents'] == 500 and f['unreachable']['unreachable_tokens'] == 0, f
assert f['survives_round_trip']['two_spaces'] == 'changed' and f['survives_round_trip']['han'] == 'unknown', f"
expect 2 "$TOK" inspect t.json --by lang
err_has "--by needs --corpus"
expect 3 "$TOK" inspect t.json --corpus small.txt --by lang
err_has "small.txt: line 1"
expect 4 "$TOK" inspect t.json --corpus missing.txt

t "what is no tokenizer"
expect 3 "$TOK" inspect text.txt
err_has "neither"
expect 2 "$TOK" inspect g.model vocab.json
err_has "one tokenizer at a time"
expect 2 "$TOK" inspect
err_has "no tokenizer was named"
