# SPDX-License-Identifier: Apache-2.0
# tok encode --format docs | prep build --pretokenized -, and JSONL with ids.

printf '{"<unk>": 0, "one": 1, "two": 2, "three": 3, "<|endoftext|>": 4}' >v.json
awk 'BEGIN { split("one two three four", w, " "); for (i = 0; i < 20000; i++) {
    s = ""; for (j = 0; j < i * 31 % 53; j++) s = s w[(i + j * j) % 4 + 1] " "
    printf "{\"text\": \"%s\"}\n", s } }' >c.jsonl
build() { "$PREP" build --quiet "$@"; }
encode() { "$TOK" encode --tokenizer v.json --format docs "$@"; }
pipe() { bash -c 'set -o pipefail; '"$1"; }
export TOK PREP

t "the pipeline gives the bytes of prep build"
expect 0 build --input c.jsonl --tokenizer v.json --append-eod --output-prefix want
zstd -qk c.jsonl
expect 0 pipe 'zstdcat c.jsonl.zst | "$TOK" encode --tokenizer v.json --input-format jsonl --format docs - |
    "$PREP" build --quiet --pretokenized - --append-eod --output-prefix got'
same want_text_document.bin got_text_document.bin
same want_text_document.idx got_text_document.idx
encode c.jsonl >c.docs
for w in 1 2 7; do
    expect 0 build --pretokenized c.docs --append-eod --overwrite --workers $w --output-prefix got
    same want_text_document.bin got_text_document.bin
    same want_text_document.idx got_text_document.idx
done
check grep -q "$(sha256sum <v.json | cut -d' ' -f1)" got_text_document.manifest.json

t "the manifest names the tokenizer that the stream names; what it does not tell is null"
check python3 -c "
import json
t = json.load(open('got_text_document.manifest.json'))['tokenizer']
assert t['type'] == 'WhitespaceTokenizer' and t['path'] == 'v.json' and t['eod_piece'] is None and t['eod'] == 4, t"

t "without --append-eod, and with the tokenizer named"
expect 0 build --input c.jsonl --tokenizer v.json --overwrite --output-prefix want
expect 0 build --pretokenized c.docs --tokenizer v.json --overwrite --output-prefix got
same want_text_document.bin got_text_document.bin

t "the stream compressed"
zstd -qc c.docs >c.docs.zst
expect 0 build --pretokenized c.docs.zst --overwrite --output-prefix got
same want_text_document.bin got_text_document.bin

t "head in front of it"
head -n 777 c.jsonl >h.jsonl
expect 0 build --input h.jsonl --tokenizer v.json --overwrite --output-prefix want
expect 0 pipe 'head -n 777 c.jsonl | "$TOK" encode --tokenizer v.json --input-format jsonl --format docs - |
    "$PREP" build --quiet --overwrite --pretokenized - --output-prefix got'
same want_text_document.bin got_text_document.bin
same want_text_document.idx got_text_document.idx

t "a stream that was cut short"
for n in 40 5000 $(($(wc -c <c.docs) - 4)); do
    head -c "$n" c.docs >cut.docs
    expect 3 build --pretokenized cut.docs --output-prefix o
    err_has "cut.docs"
    check [ -z "$(ls | grep '^o_')" ]
done

t "an encoder that fails fails the pipeline, and nothing is written"
{ head -n 5000 c.jsonl; echo oops; } >bad.jsonl
expect 3 pipe '"$TOK" encode --tokenizer v.json --format docs bad.jsonl | "$PREP" build --pretokenized - --output-prefix o'
check [ -z "$(ls -A | grep 'o_text')" ]

t "something that is not a stream"
printf 'WEFTDOX!................................................................' >x.docs
expect 3 build --pretokenized x.docs --output-prefix o
err_has "x.docs"

t "another tokenizer is an error with both digests"
printf '{"<unk>": 0, "one": 2, "two": 1, "three": 3, "<|endoftext|>": 4}' >w.json
expect 2 build --pretokenized c.docs --tokenizer w.json --output-prefix o
err_has "$(sha256sum <v.json | cut -d' ' -f1)"
err_has "$(sha256sum <w.json | cut -d' ' -f1)"
expect 2 build --pretokenized c.docs --vocab-size 77 --output-prefix o
err_has "77"

t "JSONL with arrays of ids"
printf '{"text": [1, 2, 0]}\n{"text": []}\n{"other": [9], "text": [3]}\n' >ids.jsonl
printf '{"text": "one two x"}\n{"text": ""}\n{"text": "three"}\n' >words.jsonl
expect 0 build --input words.jsonl --tokenizer v.json --append-eod --overwrite --output-prefix want
expect 0 build --pretokenized ids.jsonl --tokenizer v.json --append-eod --overwrite --output-prefix got
same want_text_document.bin got_text_document.bin
same want_text_document.idx got_text_document.idx
expect 0 build --input words.jsonl --tokenizer v.json --overwrite --output-prefix want
expect 0 build --pretokenized - --vocab-size 5 --overwrite --output-prefix got <ids.jsonl
same want_text_document.bin got_text_document.bin

t "ids: no vocabulary, an id outside it, no end of document, not ids"
expect 2 "$PREP" build --pretokenized ids.jsonl --output-prefix o
err_has "--vocab-size"
expect 3 build --pretokenized ids.jsonl --vocab-size 3 --output-prefix o
err_has "ids.jsonl: line 3: "
err_has "id 3"
expect 2 build --pretokenized ids.jsonl --vocab-size 5 --append-eod --output-prefix o
err_has "no end of document"
printf '{"text": [1, 2.5]}\n' >real.jsonl
expect 3 build --pretokenized real.jsonl --vocab-size 5 --output-prefix o
err_has "not an array of ids"
printf '{"text": [1, -2]}\n' >minus.jsonl
expect 3 build --pretokenized minus.jsonl --vocab-size 5 --output-prefix o
err_has "id -2"

t "a long array of ids"
awk 'BEGIN { printf "{\"text\": [0"; for (i = 1; i < 1000000; i++) printf ", %d", i % 70000; print "]}" }' >long.jsonl
expect 0 build --pretokenized long.jsonl --vocab-size 70000 --output-prefix long
check [ "$(od -An -v -w4 -td4 long_text_document.bin | awk '$1 != (NR - 1) % 70000' | wc -l)" = 0 ]
check [ "$(wc -c <long_text_document.bin)" = 4000000 ]
