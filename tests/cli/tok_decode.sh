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
    expect 0 "$TOK" encode --tokenizer vocab.json --format $f --output b w
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
err_has "odd: byte 2: 1 of the 2 bytes of an id, then the end"
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
err_has "where text or json is expected"

t "options without effect are named"
echo '1 2' >ids
expect 0 "$TOK" decode --tokenizer vocab.json ids
check [ ! -s .err ]
expect 0 "$TOK" decode --tokenizer vocab.json --strict --specials parse --no-add-special-tokens ids
err_has "--strict has no effect here: tok decode with a WhitespaceTokenizer"
err_has "--specials has no effect here"
err_has "--add-special-tokens has no effect here"
out_is "one two"
printf '{"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "one": 1}}}' >hf.json
expect 0 "$TOK" encode --tokenizer hf.json --strict --specials parse --no-add-special-tokens --seed 2 w
check [ ! -s .err ]
expect 0 "$TOK" encode --tokenizer hf.json --engine sentencepiece --tiktoken-pattern r50k \
    --tiktoken-num-special-tokens 3 --merge-file m --seed 2 --dropout 0 w
for option in engine tiktoken-pattern tiktoken-num-special-tokens merge-file seed; do
    err_has "--$option has no effect here: tok encode with a HuggingFaceTokenizer"
done
expect 0 "$TOK" encode --tokenizer vocab.json --seed 2 w
err_has "--seed has no effect here"
expect 0 "$TOK" convert --tiktoken-pattern r50k hf.json new.json
err_has "--tiktoken-pattern has no effect here: tok convert with a HuggingFaceTokenizer"
