# SPDX-License-Identifier: Apache-2.0
# byte_level FILE VOCAB MERGES: a tokenizer.json of bytes
byte_level() {
    cat >"$1" <<END
{"version": "1.0", "added_tokens": [], "normalizer": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "vocab": $2, "merges": $3}}
END
}
byte_level a.json '{"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "Ġab": 5}' '["a b", "Ġ ab"]'
byte_level b.json '{"a": 0, "b": 1, "c": 2, "Ġ": 3, "bc": 4, "ab": 5}' '["b c", "a b"]'
printf 'ab ab\nabc\ncc\nab abc\n' >text.txt
printf '{"text": "cc c"}\n{"text": "ccc"}\n' >same.jsonl

t "a tokenizer and itself"
expect 0 "$TOK" diff a.json a.json text.txt
out_has "documents_other_ids       0"
out_has "same_id                   6"
expect 0 "$TOK" diff a.json a.json

t "where they cut otherwise"
expect 1 "$TOK" diff a.json b.json text.txt
err_has "a.json and b.json give different ids for the same text"
err_lacks error
out_has '  0  2  " ab"  [5]  [3,5]'
out_has '  1  0  "abc"  [4,2]  [0,4]'
out_has '  3  2  " abc"  [5,2]  [3,0,4]'
out_has '  1  " ab"  ["Ġab"]  ["Ġ","ab"]'
out_has "only_in_a                 1"
out_has "other_id                  1"

t "as JSON, and only so many segments"
expect 1 "$TOK" diff --json --show 1 a.json b.json text.txt
check python3 -c "
import json
f = json.load(open('.out'))
assert f['vocabulary']['examples_only_in_b'] == ['bc'], f
assert f['corpus']['documents'] == 4 and f['corpus']['bytes'] == 16 and f['corpus']['tokens_a'] == 9, f
assert f['corpus']['tokens_b'] == 11 and f['corpus']['documents_other_ids'] == 3, f
assert f['segments'] == [{'document': 0, 'offset': 2, 'text': ' ab', 'ids_a': [5], 'ids_b': [3, 5]}], f"

t "different vocabularies may give the same ids"
expect 0 "$TOK" diff a.json b.json same.jsonl
expect 1 "$TOK" diff a.json b.json
err_has "different vocabularies"
err_lacks error
expect 1 "$TOK" diff -q a.json b.json
check [ ! -s .err ]
expect 4 "$TOK" diff a.json none.json
err_has "error: none.json"

t "pieces that are spelt otherwise stand for the same text"
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 500; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >words.txt
"$TOK" train -q --input words.txt --model_prefix g --vocab_size 60 --model_type bpe
"$TOK" train -q --type bpe --input words.txt --model_prefix h --vocab_size 400
expect 1 "$TOK" diff --json g.model h-tokenizer.json words.txt
check python3 -c "
import json
f = json.load(open('.out'))
assert f['vocabulary']['pieces_compared_as'] == 'the text they stand for', f
lines = open('words.txt').read().split('\n')
for s in f['segments']:
    assert lines[s['document']][s['offset']:].startswith(s['text']), s"

t "what cannot be compared"
expect 2 "$TOK" diff a.json
err_has "needs two tokenizers"
expect 3 "$TOK" diff a.json text.txt
err_has "text.txt: neither"
expect 4 "$TOK" diff a.json b.json missing.txt
err_has "missing.txt"
