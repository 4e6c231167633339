# SPDX-License-Identifier: Apache-2.0
# prep merge.

printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf '{"text": "one two"}\n{"text": ""}\n{"text": "two two one"}\n' >a.jsonl
printf '{"text": ""}\n' >b.jsonl
printf '{"text": "one"}\n{"text": "two"}\n' >c.jsonl
mkdir parts
for f in a b c; do
    "$PREP" build --quiet --input $f.jsonl --tokenizer v.json --append-eod --output-prefix parts/$f
done
"$PREP" build --quiet --input a.jsonl b.jsonl c.jsonl --tokenizer v.json --append-eod --output-prefix all

t "parts by prefixes give the whole"
expect 0 "$PREP" merge parts/a_text_document parts/b_text_document.idx parts/c_text_document.bin --output-prefix m
err_has "3 shards: 6 documents, 4 sequences, 11 tokens"
same m.bin all_text_document.bin
same m.idx all_text_document.idx
expect 0 "$PREP" inspect m --check
out_has "WhitespaceTokenizer, 4 ids"
out_has "inputs      3"

t "a folder, a pattern, --input"
expect 0 "$PREP" merge parts --output-prefix n
same n.idx m.idx
same n.manifest.json m.manifest.json
expect 0 "$PREP" merge 'parts/?_text_document' --output-prefix n2
same n2.bin m.bin
expect 0 "$PREP" merge --input parts/a_text_document 'parts/[bc]_*' --output-prefix n3
same n3.idx m.idx
no_temps .

t "an output that is there"
expect 2 "$PREP" merge parts --output-prefix n
err_has "--overwrite"
expect 0 "$PREP" merge parts/a_text_document --output-prefix n --overwrite
same n.idx parts/a_text_document.idx
expect 2 "$PREP" merge parts --output-prefix parts/a_text_document --overwrite
err_has "both"

t "a prefix beside a folder of its name is the prefix"
cp m.bin own.bin
cp m.idx own.idx
mkdir own
expect 0 "$PREP" merge m own --output-prefix two
rm -r own own.bin own.idx two*

t "what does not go together"
expect 2 "$PREP" merge
err_has "--output-prefix"
expect 2 "$PREP" merge --output-prefix o
err_has "no dataset given"
expect 4 "$PREP" merge nothing --output-prefix o
printf '{"<unk>": 0, "two": 1, "one": 2, "<|endoftext|>": 3}' >w.json
"$PREP" build --quiet --input a.jsonl --tokenizer w.json --append-eod --output-prefix w
expect 2 "$PREP" merge m w_text_document --output-prefix o
err_has "w.json (SHA-256 $(sha256sum <w.json | cut -c 1-12))"
printf '{"text": "70000"}\n' >wide.jsonl
"$PREP" build --quiet --input wide.jsonl --tokenizer-type NullTokenizer --vocab-size 70001 --output-prefix wide
expect 2 "$PREP" merge m wide_text_document --output-prefix o
err_has "type i32"
head -c 10 m.bin >cut.bin
cp m.idx cut.idx
expect 3 "$PREP" merge m cut --output-prefix o
err_has "cut.bin"
no_file o.idx
no_temps .

t "memory does not grow with the shards"
if [ -x /usr/bin/time ]; then
    yes '{"text": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"}' | head -n 200000 >big.jsonl
    "$PREP" build --quiet --input big.jsonl --tokenizer-type NullTokenizer --vocab-size 100 --output-prefix big
    i=0
    set --
    while [ $i -lt 20 ]; do set -- "$@" big_text_document; i=$((i + 1)); done
    expect 0 /usr/bin/time -f %M -o .peak "$PREP" merge --quiet "$@" --output-prefix huge
    check [ "$(wc -c <huge.bin)" = $((20 * 200000 * 32)) ]
    check [ "$(tail -n 1 .peak)" -le 40000 ]
else
    skip "no /usr/bin/time"
fi

t "help"
expect 0 "$PREP" merge -h
out_has "prep merge parts/"
