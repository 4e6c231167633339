# SPDX-License-Identifier: Apache-2.0
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >vocab.json
printf 'one two\n\ntwo\n' >w

for f in u16 u32; do
    t "$f becomes documents again"
    expect 0 "$TOK" encode --tokenizer vocab.json --format $f --append-eod --output w.$f w
    expect 0 "$TOK" decode --tokenizer vocab.json --input_format $f w.$f
    same .out w
    expect 0 sh -c 'cat w.$1 | "$0" decode --tokenizer vocab.json --input-format $1 --format json' "$TOK" $f
    out_is "$(printf '{"text":"one two"}\n{"text":""}\n{"text":"two"}')"
    expect 0 sh -c 'zstd -qc w.$1 | "$0" decode --tokenizer vocab.json --input-format $1' "$TOK" $f
    same .out w

    t "$f without an end of document is one text"
    expect 0 "$TOK" encode --tokenizer vocab.json --format $f --overwrite --output b w
    expect 0 "$TOK" decode --tokenizer vocab.json --input_format $f b
    out_is "one two two"
    : >none
    expect 0 "$TOK" decode --tokenizer vocab.json --input_format $f none
    check [ ! -s .out ]
done

t "more than is read at once"
awk 'BEGIN { for (i = 0; i < 30000; i++) print (i % 3 ? "one two" : i % 2 ? "two two one" : "") }' >long
for f in u16 u32; do
    expect 0 "$TOK" encode --tokenizer vocab.json --format $f --append-eod --output long.$f long
    expect 0 sh -c 'cat long.$1 | "$0" decode --tokenizer vocab.json --input-format $1' "$TOK" $f
    same .out long
done

t "bad numbers"
printf '\1\0\2' >odd
expect 3 "$TOK" decode --tokenizer vocab.json --input_format u16 odd
err_has "odd: byte 2: the file ends after 1 of the 2 bytes of an id"
printf '\1\0\0\0\2\0\0\200' >wide
expect 3 "$TOK" decode --tokenizer vocab.json --input_format u32 wide
err_has "wide: byte 4: id 2147483650 is outside any vocabulary"
printf '\1\0\3\0\11\0' >high
expect 3 "$TOK" decode --tokenizer vocab.json --input_format u16 high
err_has "high, document 2: id 9 is outside the vocabulary of 4"
out_is one

t "the help names what decode reads and writes"
expect 0 "$TOK" decode --help
out_has "u16, u32"
check sh -c '! grep -q "text|json|u16" .out'
expect 2 "$TOK" decode --tokenizer vocab.json --format u16 w
err_has "expected text or json, got"

t "options without effect are named"
echo '1 2' >ids
expect 0 "$TOK" decode --tokenizer vocab.json ids
check [ ! -s .err ]
expect 0 "$TOK" decode --tokenizer vocab.json --strict --specials parse --no-add-special-tokens ids
err_has "--specials, --strict and --add-special-tokens have no effect in $(basename "$TOK") decode"
check [ "$(wc -l <.err)" = 1 ]
out_is "one two"
printf '{"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "one": 1}}}' >hf.json
expect 0 "$TOK" encode --tokenizer hf.json --strict --specials parse --no-add-special-tokens w
check [ ! -s .err ]
expect 0 "$TOK" encode --tokenizer hf.json --engine sentencepiece --tiktoken-pattern r50k \
    --tiktoken-num-special-tokens 3 --merge-file m --seed 2 --dropout 0 w
err_has "--merge-file, --tiktoken-pattern, --tiktoken-num-special-tokens and --engine have no effect with a HuggingFaceTokenizer"
err_has "--seed has no effect without --dropout or sampling"
expect 0 "$TOK" encode --tokenizer vocab.json --seed 2 w
err_has "--seed has no effect without"
expect 0 "$TOK" convert --tiktoken-pattern r50k hf.json new.json
err_has "--tiktoken-pattern has no effect with a HuggingFaceTokenizer"
expect 0 "$TOK" encode --tokenizer hf.json --eod-token one --json-keys x w
err_has "--eod-token has no effect without --append-eod"
err_has "--json-keys has no effect: no input is JSONL"
expect 0 "$TOK" decode --tokenizer vocab.json --eod-token one --json-keys x ids
err_has "--eod-token has no effect without --input_format u16 or u32"
err_has "--json-keys has no effect: no input is JSONL"
echo '{"x": [1]}' >ids.jsonl
expect 0 "$TOK" decode --tokenizer vocab.json --json-keys x ids.jsonl
check [ ! -s .err ]
out_is one
"$TOK" encode -q --tokenizer vocab.json --format u16 w >b
expect 0 "$TOK" decode --tokenizer vocab.json --eod-token two --input_format u16 b
check [ ! -s .err ]
expect 2 "$TOK" decode --tokenizer vocab.json --input_format tsv ids
expect 0 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 5 --specials parse ids
err_has "--specials has no effect with a NullTokenizer"
printf '{"x": "one"}\n' >x.jsonl
expect 0 "$TOK" encode --tokenizer vocab.json --json-keys x --no-add-special-tokens x.jsonl
err_has "--add-special-tokens has no effect with a WhitespaceTokenizer"
err_lacks json-keys

t "options about texts do nothing without one"
expect 0 "$TOK" inspect --tokenizer vocab.json --strict --input_format text --json-keys x --no-add-special-tokens
err_has "--input_format, --json-keys, --strict and --add-special-tokens have no effect without --corpus"
expect 0 "$TOK" inspect --tokenizer hf.json --corpus w --no-add-special-tokens
err_has "--add-special-tokens has no effect in $(basename "$TOK") inspect"
expect 0 "$TOK" inspect --tokenizer vocab.json --corpus w --json-keys x
err_has "--json-keys has no effect: no input is JSONL"
expect 0 "$TOK" inspect --tokenizer vocab.json --corpus x.jsonl --json-keys x --by lang --input_format jsonl
err_has "--input_format has no effect with --by"
err_lacks json-keys
expect 0 "$TOK" diff vocab.json vocab.json --show 3 --specials parse --tiktoken-pattern v1
err_has "--show and --specials have no effect without a corpus"
err_has "--tiktoken-pattern has no effect with a WhitespaceTokenizer and a WhitespaceTokenizer"
expect 0 "$TOK" diff vocab.json vocab.json x.jsonl --show 3 --specials parse --json-keys x
check [ ! -s .err ]
expect 0 "$TOK" diff vocab.json vocab.json w --json-keys x
err_has "--json-keys has no effect: no input is JSONL"
expect 0 "$TOK" convert --json --json-keys x --input_format text --overwrite hf.json new.json
err_has "--input_format, --json-keys and --json have no effect without --proof"
expect 0 "$TOK" prune hf.json --size 2 --json-keys x --overwrite --output new.json
err_has "--json-keys has no effect without --keep-used"
expect 0 "$TOK" prune hf.json --keep-used w --json-keys x --overwrite --output new.json
check [ "$(grep -c "no input is JSONL" .err)" = 1 ]

t "special tokens are left out of a text"
cat >special.json <<'J'
{"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "one": 1, "two": 2}},
 "added_tokens": [
  {"id": 3, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
  {"id": 4, "content": "<tag>", "special": false, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}]}
J
printf '3 1 4 2 3\n3\n' >ids
expect 0 "$TOK" decode --tokenizer special.json ids
out_is "$(printf '</s> one <tag> two </s>\n</s>')"
expect 0 "$TOK" decode --tokenizer special.json --skip-special-tokens ids
printf 'one <tag> two\n\n' >want
same .out want
check [ ! -s .err ]
echo '1 2' >ids
expect 0 "$TOK" decode --tokenizer vocab.json --skip-special-tokens ids
err_has "--skip-special-tokens has no effect with a WhitespaceTokenizer"

t "the steps of a decoder's pattern are counted for each document"
cat >replace.json <<'J'
{"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "oneoneoneoneoneoneone": 1}},
 "decoder": {"type": "Sequence", "decoders": [
  {"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": ".{0,9000}z| *$"}, "content": ""}]}}
J
awk 'BEGIN { for (i = 0; i < 60; i++) { for (k = 0; k < 60; k++) printf "1 "; print "1" } }' >ids
if "$TOK" decode --tokenizer replace.json /dev/null 2>.err; then
    expect 0 "$TOK" decode --tokenizer replace.json ids
    check [ "$(wc -l <.out)" = 60 ]
fi
