# SPDX-License-Identifier: Apache-2.0
# prep build of arrays of strings: each is a sequence of its document, in short and long records, over parts and kills.

printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
build() { "$PREP" build --quiet --tokenizer v.json --append-eod "$@"; }
lengths() { od -An -v -w4 -td4 -j34 -N$((4 * $(count 18 "$1"))) "$1.idx" | tr -d ' ' | tr '\n' ' '; }
bounds() { od -An -v -w8 -td8 -j$((34 + 12 * $(count 18 "$1"))) "$1.idx" | tr -d ' ' | tr '\n' ' '; }
count() { od -An -td8 -j"$1" -N8 "$2.idx" | tr -d ' '; }

cat >a.jsonl <<'X'
{"text": "one two"}
{"text": ["one", "", "two two", "one"]}
{"text": []}
{"text": ["", " "]}
{"text": ["one. Two"]}
{"text": "two"}
X

t "strings of an array are sequences, the end of document belongs to the last"
expect 0 build --input a.jsonl --output-prefix a
check [ "$(lengths a_text_document)" = "3 1 2 2 3 2 " ]
check [ "$(bounds a_text_document)" = "0 1 4 4 4 5 6 " ]
expect 0 "$PREP" verify a_text_document --tokenizer v.json

t "with --split-sentences they are sentences already, as in Megatron-LM's _ss files"
expect 0 build --input a.jsonl --split-sentences --output-prefix s
check [ "$(lengths s_text_sentence)" = "3 1 2 2 3 2 " ]

t "partitions and shares"
expect 0 build --input a.jsonl --partitions 2 --output-prefix p
check [ "$(lengths p_0_text_document)" = "3 3 " ]
check [ "$(lengths p_1_text_document)" = "1 2 2 2 " ]
expect 0 build --input a.jsonl --shard 0/2 --output-prefix h
expect 0 build --input a.jsonl --shard 1/2 --output-prefix h
expect 0 "$PREP" merge --quiet h_00000_text_document h_00001_text_document --output-prefix m
same m.idx a_text_document.idx
same m.bin a_text_document.bin

t "an array that has something else is a bad record"
printf '%s\n' '{"text": ["one", 2]}' >b.jsonl
expect 3 build --input b.jsonl --output-prefix b
err_has 'b.jsonl: line 1: the value of "text" is not a string or an array of strings'
expect 3 build --input a.jsonl --input-format jsonl --json-keys text.x --output-prefix b
err_has 'has no key'

t "a record of more than 4 MiB, a string in it too"
{
    printf '{"text": ["one",'
    yes '"two one", "", "one",' | head -n 150000 | tr -d '\n'
    printf '"'
    yes 'two' | head -n 1100000 | tr '\n' ' '
    echo '", "\u0020"]}'
    echo '{"text": "one"}'
} >l.jsonl
expect 0 build --input l.jsonl --output-prefix l
check [ "$(lengths l_text_document | md5sum)" = "$({ echo 1; yes '2
1' | head -n 300000; echo 1100001; echo 2; } | tr '\n' ' ' | md5sum)" ]
check [ "$(bounds l_text_document)" = "0 300002 300003 " ]
expect 0 "$PREP" verify l_text_document --tokenizer v.json
