# SPDX-License-Identifier: Apache-2.0
# prep export.

printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf '{"text": "one two"}\n{"text": ""}\n{"text": "two two one"}\n{"text": "one"}\n' >c.jsonl
"$PREP" build --quiet --input c.jsonl --tokenizer v.json --append-eod --output-prefix c
d=c_text_document

t "the texts come back"
expect 0 "$PREP" export $d --tokenizer v.json
same .out c.jsonl
err_has "4 documents, 9 tokens"
expect 0 "$PREP" export $d --tokenizer v.json --keep-eod --json-key x
out_has '{"x": "one two <|endoftext|>"}'

t "ids, and back to the same dataset"
expect 0 "$PREP" export $d.bin --ids
out_has '{"text": [1, 2]}'
expect 0 sh -c '"$PREP" export --quiet $1 --ids --keep-eod | "$PREP" build --quiet --pretokenized - --vocab-size 4 --output-prefix again' sh $d
same again_text_document.bin $d.bin
same again_text_document.idx $d.idx

t "sequences of a document, and back"
printf '%s\n' '{"text": ["one", "two two", "one two"]}' '{"text": "two"}' '{"text": []}' '{"text": ["", "two", ""]}' >q.jsonl
{
    printf '{"text": ["one"'
    yes ',"two one"' | head -n 600000 | tr -d '\n'
    echo ']}'
} >>q.jsonl
expect 0 "$PREP" build --quiet --input q.jsonl --tokenizer v.json --append-eod --output-prefix q
expect 0 "$PREP" export q_text_document --ids --output q.ids
check [ "$(head -n 4 q.ids | tr '\n' '|')" = '{"text": [[1], [2, 2], [1, 2]]}|{"text": [2]}|{"text": []}|{"text": [2]}|' ]
check [ "$(tail -n 1 q.ids | wc -c)" -gt 4500000 ]
expect 0 "$PREP" build --quiet --pretokenized q.ids --tokenizer v.json --append-eod --output-prefix back --workers 2
same back_text_document.bin q_text_document.bin
same back_text_document.idx q_text_document.idx
expect 0 "$PREP" export q_text_document --ids --keep-eod --output q.ids --overwrite
expect 0 "$PREP" build --quiet --pretokenized q.ids --vocab-size 4 --output-prefix back --overwrite
same back_text_document.idx q_text_document.idx
printf '%s\n' '{"text": [[1], 2]}' >q.bad
expect 3 "$PREP" build --quiet --pretokenized q.bad --vocab-size 4 --output-prefix bad
err_has 'is not an array of ids or of arrays of ids'

t "compressed by name"
for end in zst gz xz; do
    expect 0 "$PREP" export $d --tokenizer v.json --output o.jsonl.$end --workers 2
    differ o.jsonl.$end c.jsonl
    expect 0 "$PREP" build --quiet --input o.jsonl.$end --tokenizer v.json --append-eod --output-prefix z$end
    same z${end}_text_document.bin $d.bin
    same z${end}_text_document.idx $d.idx
done
expect 0 sh -c 'gzip -dc o.jsonl.gz | cmp - c.jsonl && xz -dc o.jsonl.xz | cmp - c.jsonl'
no_temps .

t "an output that is there"
expect 2 "$PREP" export $d --ids --output o.jsonl.gz
err_has "--overwrite"
expect 0 "$PREP" export $d --ids --output o.jsonl.gz --overwrite

t "what it needs, and what does not go"
expect 2 "$PREP" export $d
err_has "--tokenizer"
expect 2 "$PREP" export --ids
expect 4 "$PREP" export nothing --ids --output n.jsonl
no_file n.jsonl
no_temps .
printf '{"<unk>": 0, "two": 1, "one": 2, "<|endoftext|>": 3}' >w.json
expect 2 "$PREP" export $d --tokenizer w.json
err_has "w.json (SHA-256 $(sha256sum <w.json | cut -c 1-12))"
cp $d.idx x.idx
head -c 10 $d.bin >x.bin
expect 3 "$PREP" export x --ids
err_has "x.bin"
expect 0 "$PREP" export -h
out_has "corpus.jsonl.zst"

t "a full device"
if [ -c /dev/full ]; then
    expect 4 sh -c '"$PREP" export "$1" --ids >/dev/full' sh $d
else
    skip "no /dev/full"
fi
