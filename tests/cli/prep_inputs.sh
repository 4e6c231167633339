# SPDX-License-Identifier: Apache-2.0
# prep build: the kinds of input besides JSONL, recognized by content or name.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
build() { "$PREP" build --quiet --overwrite "$@"; }
ids() { od -An -v -w2 -tu2 "$1" | tr -d ' \n' | sed 's/50256/./g'; }

t "a JSON array is recognized by its first byte, and equals the same records on lines"
awk 'BEGIN { for (i = 0; i < 20000; i++) { s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i + j) % 50256
    printf "{\"id\": %d, \"text\": \"%s\", \"more\": [\"]},[{\\\"\", null, {\"text\": true}]}\n", i, s } }' >lines.jsonl
{ echo '['; sed '$!s/$/,/' lines.jsonl; echo ']'; } >array.jsonl
{ printf '\357\273\277 [ '; sed '$!s/$/ ,/; s/, "text"/,\n  "text"/' lines.jsonl; } >pretty.json
printf ']' >>pretty.json
expect 0 build --input lines.jsonl $null --append-eod --output-prefix l
for f in array.jsonl pretty.json; do
    for w in 1 3; do
        expect 0 build --input $f $null --append-eod --workers $w --output-prefix a
        same l_text_document.bin a_text_document.bin
        same l_text_document.idx a_text_document.idx
    done
done
zstd -qc array.jsonl >array.zst
expect 0 sh -c '"$@" <array.zst' sh "$PREP" build --quiet --overwrite --input - --input-format json $null --append-eod --output-prefix a
same l_text_document.bin a_text_document.bin
expect 0 build --input lines.jsonl pretty.json $null --append-eod --output-prefix a
check [ "$(wc -c <a_text_document.bin)" = $(($(wc -c <l_text_document.bin) * 2)) ]

t "an empty array; arrays of ids"
echo '[]' >empty.json
expect 0 build --input empty.json --allow-empty $null --output-prefix e
check [ ! -s e_text_document.bin ]
echo '[{"text": [1, 2]}, {"text": []}, {"text": [3]}]' >ids.json
expect 0 build --pretokenized ids.json --vocab-size 10 --output-prefix e
check [ "$(ids e_text_document.bin)" = 123 ]

t "an element of many megabytes"
{ printf '[{"text": "1"}, {"text":\n"'; yes '12 345' | head -n 1000000 | tr '\n' ' '; printf '"},{"text": "2"}]'; } >large.json
expect 0 build --input large.json $null --output-prefix e
check [ "$(wc -c <e_text_document.bin)" = 4000004 ]

t "what is wrong in an element is a bad record, what is wrong with the array is not"
echo '[{"text": "1"}, {"text": 2}, {"text": "3"}, 4, {"text": "5" "6"}]' >bad.json
expect 3 "$PREP" build --input bad.json $null --overwrite --output-prefix b
err_has 'bad.json: record 2: the value of "text" is not a string'
expect 0 build --input bad.json $null --on-bad-record quarantine --output-prefix b
check [ "$(ids b_text_document.bin)" = 13 ]
check [ "$(wc -l <b.bad.jsonl)" = 3 ]
echo '[{"text": "1"}, {"text": "2"},]' >trailing.json
expect 3 build --input trailing.json $null --on-bad-record skip --output-prefix b
err_has 'trailing.json: byte 30: expected a record'
printf '[{"text": "1"}, {"text": "2"}' >cut.json
expect 3 build --input cut.json $null --on-bad-record skip --output-prefix b
err_has 'cut.json: byte 29: the file ends inside the array of records'
expect 3 build --input lines.jsonl --input-format json $null --output-prefix b
err_has "lines.jsonl: byte 0: expected '['"
expect 3 build --input empty.json --input-format jsonl $null --output-prefix b
err_has "empty.json: line 1: byte 0"

t "plain text by lines, and the level that names the files"
printf '1 2\r\n\n3\n4 5' >t.txt
expect 0 build --input t.txt --input-format text --level sentence $null --append-eod --output-prefix t
check [ "$(ids t_text_sentence.bin)" = 12.3.45. ]
expect 0 "$PREP" inspect t_text_sentence
out_has "documents   4"
out_has "sequences   3"
expect 0 build --input t.txt t.txt --input-format text --json-keys body $null --append-eod --output-prefix t
check [ "$(ids t_body_document.bin)" = 12.3.45.12.3.45. ]

t "lines keep their newlines if asked to"
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf 'one\n\ntwo' >n.txt
mkdir bytes
expect 0 "$TOK" train --quiet --type bpe --vocab_size 256 --input n.txt --model_prefix bytes/
expect 0 build --input n.txt --input-format text --tokenizer bytes/tokenizer.json --output-prefix n
check [ "$(wc -c <n_text_document.bin)" = 12 ]
expect 0 build --input n.txt --input-format text --keep-newlines --tokenizer bytes/tokenizer.json --output-prefix n
check [ "$(wc -c <n_text_document.bin)" = 16 ]

t "plain text by a separator, also long documents of it"
printf '1 2\n3<|end|>4<|end|>\n<|end|>5\n<|end|>\n' >s.txt
expect 0 build --input s.txt --input-format text --text-separator '<|end|>' $null --append-eod --output-prefix s
check [ "$(ids s_text_document.bin)" = 123.4.5. ]
{ yes '12 345' | head -n 1000000; printf '\n7\n\n'; yes '12 345' | head -n 1000000; } >long.txt
for w in 1 3; do
    expect 0 build --input long.txt --input-format text --text-separator '\n\n' $null --append-eod --workers $w --output-prefix s
    check [ "$(od -An -v -w2 -tu2 s_text_document.bin | grep -c 50256)" = 3 ]
    check [ "$(wc -c <s_text_document.bin)" = 8000008 ]
done

t "text that is not UTF-8"
printf 'good\n1 \377\n' >u.txt
expect 3 build --input u.txt --input-format text --tokenizer v.json --output-prefix u
err_has "u.txt: line 2: byte 2: invalid UTF-8"
expect 0 build --input u.txt --input-format text --tokenizer v.json --on-bad-record quarantine --output-prefix u
check [ "$(od -An -tx1 u.bad.jsonl | tr -d ' ')" = 3120ff0a ]
{ yes 'one' | head -n 2000000 | tr '\n' ' '; printf '\377\none\n'; } >u.txt
expect 3 build --input u.txt --input-format text --tokenizer v.json --output-prefix u
err_has "u.txt: line 1: byte 8000000: invalid UTF-8"

t "Parquet is recognized by its first bytes, nulls are bad records, columns may be in structs"
cp "$SRC/tests/fuzz/corpus/parquet/snappy-dictionary" p.bin
expect 0 build --input p.bin --tokenizer bytes/tokenizer.json --on-bad-record quarantine --output-prefix p
check [ "$(wc -c <p_text_document.bin)" = $((2 * 3 * (3 + 9 + 10 + 3))) ]
check [ "$(sort -u p.bad.jsonl)" = '{"text": null}' ]
expect 0 build --input p.bin --json-keys m.t --tokenizer bytes/tokenizer.json --on-bad-record skip --output-prefix p
check [ "$(wc -c <p_m.t_document.bin)" = 12 ]
expect 3 build --input p.bin --tokenizer bytes/tokenizer.json --output-prefix p
err_has 'p.bin: row 2: the value of "text" is not a string'
expect 3 build --input p.bin --json-keys words --tokenizer bytes/tokenizer.json --output-prefix p
err_has 'p.bin: has no column "words"; it has text, n, m'
expect 3 build --input lines.jsonl --input-format parquet $null --output-prefix p
err_has "lines.jsonl: is not a Parquet file"
expect 2 sh -c '"$@" <p.bin' sh "$PREP" build --quiet --overwrite --input - $null --output-prefix p
err_has "standard input: a Parquet file is read from its end"
head -c 1000 p.bin >cut.bin
expect 3 build --input cut.bin $null --output-prefix p
err_has "cut.bin: is not a Parquet file"

t "options without effect are named"
expect 0 build --input lines.jsonl --text-separator x $null --output-prefix noeffect
err_has "--text-separator has no effect without --input-format text"
expect 0 "$PREP" inspect noeffect_text_document --strict --specials parse --no-add-special-tokens --engine own --seed 3 \
    --split 9,1,0 --seq-length 8 --num-samples 4 --num-valid-samples 4 --data-rules core --part valid --eod-mask-loss \
    --exhaustive --data-cache-path x
err_has "--specials, --engine, --strict and --add-special-tokens have no effect in $(basename "$PREP") inspect"
err_has "--data-cache-path, --data-rules, --seq-length, --num-samples, --num-valid-samples, --exhaustive, --seed, --split, --part and --eod-mask-loss have no effect without --samples"

t "contradictory options are rejected"
expect 2 build --input t.txt --input-format text --text-separator '\q' $null --output-prefix o
err_has "a backslash is followed by"
expect 2 build --input t.txt --input-format text --json-keys a b $null --output-prefix o
err_has "has one text a document"
expect 2 build --pretokenized t.txt --input-format text --vocab-size 10 --output-prefix o
err_has "--pretokenized"
expect 2 build --input t.txt --input-format texts $null --output-prefix o
err_has "expected auto, jsonl"

t "lists of ids in Parquet"
for f in ids_dict ids_delta ids_plain; do
    expect 0 build --pretokenized "$SRC/tests/fuzz/corpus/parquet/$f" --json-keys ids --vocab-size 8 --on-bad-record quarantine --output-prefix l
    check [ "$(ids l_ids_document.bin)" = 123712371237 ]
    check [ "$(sort -u l.bad.jsonl)" = '{"ids": null}' ]
    expect 3 build --pretokenized "$SRC/tests/fuzz/corpus/parquet/$f" --json-keys ids --vocab-size 8 --output-prefix l
    err_has "$f: row 3: the value of \"ids\" is not an array of ids"
    expect 3 build --pretokenized "$SRC/tests/fuzz/corpus/parquet/$f" --json-keys m --vocab-size 8 --output-prefix l2
    expect 3 build --pretokenized "$SRC/tests/fuzz/corpus/parquet/$f" --json-keys m.l --vocab-size 5 --output-prefix l2
    err_has "row 1: id 5 at place 0 is outside the vocabulary of 5"
done
expect 3 build --input "$SRC/tests/fuzz/corpus/parquet/ids_dict" --json-keys ids $null --output-prefix l2
err_has "is a group of fields, not text"

t "what is left of a compressed file is not text, whatever the format is said to be"
printf '\050\265' >cut.jsonl.zst
: >empty.txt.gz
printf '{"text": "1 2"}\n' >plain.jsonl.xz
for format in auto text jsonl; do
    expect 3 build --input cut.jsonl.zst --input-format $format $null --output-prefix cut
    err_has "cut.jsonl.zst: does not begin as a zstd file"
    expect 3 build --input empty.txt.gz --input-format $format $null --output-prefix cut
    err_has "empty.txt.gz: is empty, and a gzip file is not"
done
expect 3 "$TOK" encode --tokenizer_type NullTokenizer --vocab_size 9 --output - cut.jsonl.zst
err_has "cut.jsonl.zst: does not begin as a zstd file"
expect 3 build --input plain.jsonl.xz $null --output-prefix cut
err_has "give a file that is not compressed a name without .xz"
mv plain.jsonl.xz plain.jsonl
expect 0 build --input plain.jsonl $null --output-prefix cut

t "a rate of compressed input says so"
zstd -q plain.jsonl
expect 0 "$PREP" build --input plain.jsonl.zst $null --output-prefix packed
err_has " tokens from 0.0 MB, compressed, in "
expect 0 "$PREP" build --input plain.jsonl $null --output-prefix unpacked
err_has " tokens from 0.0 MB in "

# the last hint
hint() { sed -n 's/^hint: //p' .err; }

t "text in another encoding: the hint's own command makes it readable"
printf 'na\357ve caf\351 \340 l\222\351t\351, d\351j\340 vu \350\340\371 gar\347on \351l\350ve\n' >latin.txt
expect 3 build --input latin.txt --input-format text $null --output-prefix latin
err_has "latin.txt: is not in UTF-8"
check sh -c "$(hint | sed 's/^convert it: //; s/FILE/latin.txt/') >utf8.txt"
expect 0 "$TOK" train -q --type bpe --vocab_size 260 --input utf8.txt --model_prefix latin/
expect 0 build --input utf8.txt --input-format text --tokenizer latin/tokenizer.json --output-prefix latin
expect 3 build --input latin.txt $null --output-prefix latin
err_lacks "--input-format text"

t "plain text without its option: the hint's option reads it"
printf '1 2 3\n4\n' >t3.txt
expect 3 build --input t3.txt $null --output-prefix t3
err_has "--input-format text takes each line as a document"
expect 0 build --input t3.txt --input-format text $null --output-prefix t3
printf '%%PDF-1.4\n\377\376\200\n' >doc.txt
expect 3 build --input doc.txt $null --output-prefix pdf
err_has "is a PDF document"
err_lacks "--input-format text"

t "a folder's documents are built, and what is beside them is counted"
mkdir folder
cp lines.jsonl folder/a.jsonl
cp folder/a.jsonl folder/b.jsonl
printf '# Data\n' >folder/README.md
: >folder/LICENSE
expect 0 "$PREP" build --input folder $null --output-prefix folder
err_has "2 files are passed over, folder/LICENSE first"
expect 0 build --input lines.jsonl lines.jsonl $null --output-prefix twice
same folder_text_document.bin twice_text_document.bin
rm folder/*.jsonl
expect 4 build --input folder $null --output-prefix none
err_has "folder: this folder has no files of documents"

t "an address names the pipe that reads it"
expect 4 build --input s3://bucket/a.jsonl $null --output-prefix none
err_has "s3://bucket/a.jsonl: is an address"
err_has "aws s3 cp 's3://bucket/a.jsonl' - | ... -"
expect 4 "$TOK" train --type bpe --input https://host/a.txt --model_prefix none
err_has "curl -fsSL 'https://host/a.txt'"
