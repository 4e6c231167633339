# SPDX-License-Identifier: Apache-2.0
# prep build --split-sentences: sentences as sequences, names, long records, partitions, kills, second runs, errors.

kill_at=$BUILD/tests/kill_at
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
build() { "$PREP" build --quiet --tokenizer v.json "$@"; }
# lengths PREFIX: tokens of each sequence, from the .idx; bounds PREFIX: the documents
lengths() { od -An -v -w4 -td4 -j34 -N$((4 * $(count 18 "$1"))) "$1.idx" | tr -d ' ' | tr '\n' ' '; }
bounds() { od -An -v -w8 -td8 -j$((34 + 12 * $(count 18 "$1"))) "$1.idx" | tr -d ' ' | tr '\n' ' '; }
count() { od -An -td8 -j"$1" -N8 "$2.idx" | tr -d ' '; }
both() { same "$1.bin" "$2.bin"; same "$1.idx" "$2.idx"; }

t "each sentence is a sequence, the end of document belongs to the last"
cat >a.jsonl <<'X'
{"text": "one two. one two one!  two\none", "b": "one"}
{"text": "", "b": "one. two"}
{"text": " \n ", "b": "Mr. two one. two"}
{"text": "one two. One", "b": "。one"}
X
expect 0 build --input a.jsonl --split-sentences --append-eod --json-keys text b --output-prefix o
check [ "$(lengths o_text_sentence)" = "2 3 3 2 2 " ]
check [ "$(bounds o_text_sentence)" = "0 3 3 3 5 " ]
check [ "$(lengths o_b_sentence)" = "2 1 2 3 2 1 2 " ]
expect 0 "$PREP" inspect o_text_sentence --check
out_has "sequences   5"
no_file o_text_document.bin
expect 0 build --input a.jsonl --append-eod --output-prefix whole
same o_text_sentence.bin whole_text_document.bin

t "a second run does nothing, one of other options names them"
expect 0 "$PREP" build --tokenizer v.json --input a.jsonl --split-sentences --lang english --append-eod --json-keys text b --output-prefix o
err_has "nothing to do"
expect 2 build --input a.jsonl --split-sentences --lang de --append-eod --json-keys text b --output-prefix o
err_has "--split-sentences english; this command says german"
expect 2 build --input a.jsonl --split-sentences --keep-newlines --append-eod --json-keys text b --output-prefix o
err_has "--keep-newlines"

t "with --keep-newlines the newline is in the sentence"
printf '%s\n' '{"text": "1 2\n"}' '{"text": "1!\n2\n"}' >n.jsonl
bytes="--tokenizer bytes"
printf 'a text\n' >words.txt
mkdir bytes
expect 0 "$TOK" train --quiet --type bpe --vocab_size 256 --input words.txt --model_prefix bytes/
expect 0 "$PREP" build --quiet --tokenizer bytes --input n.jsonl --split-sentences --output-prefix n
check [ "$(lengths n_text_sentence)" = "3 2 1 " ]
expect 0 "$PREP" build --quiet --tokenizer bytes --input n.jsonl --split-sentences --keep-newlines --overwrite --output-prefix n
check [ "$(lengths n_text_sentence)" = "3 3 1 " ]

t "plain text, and bos"
printf 'one two. One!\n\none\n' >p.txt
expect 0 build --input p.txt --input-format text --split-sentences --output-prefix p
check [ "$(bounds p_text_sentence)" = "0 2 2 3 " ]

t "a record of more than 4 MiB, cut by pieces of a million characters"
{ printf '{"text": "'; yes 'one two threes. ' | head -n 400000 | tr -d '\n'; echo '"}'; echo '{"text": "one. two"}'; } >l.jsonl
expect 0 build --input l.jsonl --split-sentences --append-eod --output-prefix l
check [ "$(lengths l_text_sentence | md5sum)" = "$({ yes 3 | head -n 399999 | tr '\n' ' '; printf '4 1 2 '; } | md5sum)" ]
check [ "$(bounds l_text_sentence)" = "0 400000 400002 " ]
expect 0 build --input l.jsonl --append-eod --output-prefix l
same l_text_sentence.bin l_text_document.bin

awk 'BEGIN { for (i = 0; i < 5000; i++) {
    s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s ((i + j) % 3 ? "one " : "two. ")
    printf "{\"text\": \"%s\", \"b\": \"one. One? %s\"}\n", s, i % 2 ? "\\n" : "two"; if (i % 900 == 17) print "{bad" } }' >r.jsonl
cat l.jsonl a.jsonl >>r.jsonl
sed -i '$d' r.jsonl
grep -v threes r.jsonl >s.jsonl
work="--input r.jsonl --split-sentences --append-eod --on-bad-record skip"

t "the bytes do not depend on workers, and partitions have them all"
expect 0 build $work --workers 1 --output-prefix want
expect 0 build $work --workers 4 --output-prefix w
both w_text_sentence want_text_sentence
expect 0 build $work --partitions 3 --keep-sequential-samples --output-prefix q
both q_text_sentence want_text_sentence
expect 0 build $work --partitions 3 --output-prefix m
expect 0 "$PREP" merge m_0_text_sentence m_1_text_sentence m_2_text_sentence --output-prefix again
both again m_text_sentence
check [ "$(count 18 want_text_sentence)" = "$(count 18 m_text_sentence)" ]
for i in 0 1 2; do expect 0 build $work --shard $i/3 --output-prefix h; done
expect 0 "$PREP" merge h_00000_text_sentence h_00001_text_sentence h_00002_text_sentence --output-prefix merged
both merged want_text_sentence

t "killed, the same command resumes"
"$kill_at" 1000000 true
if [ $? = 3 ]; then
    "$kill_at" 1000000 "$PREP" build --quiet --tokenizer v.json $work --sync-interval 0 --output-prefix all 2>.err
    for n in 30 60 90 120 150 data:1 data:2; do
        "$kill_at" $n "$PREP" build --quiet --tokenizer v.json $work --sync-interval 0 --workers 2 --output-prefix k 2>.err
        expect 0 build $work --sync-interval 0 --output-prefix k
        both k_text_sentence want_text_sentence
        no_file .k.build
        rm -f k_*
    done
    struck
else
    skip "processes may not be traced here"
fi

t "a model of NLTK's"
mkdir -p tab/klingon
printf 'one\n' >tab/klingon/abbrev_types.txt
printf '' >tab/klingon/sent_starters.txt
printf 'two\tone' >tab/klingon/collocations.tab
printf 'two\t34\n' >tab/klingon/ortho_context.tab
echo '{"text": "one. one two. one two. two one. Two"}' >t.jsonl
expect 0 build --input t.jsonl --split-sentences --lang klingon --punkt-model tab --output-prefix t
check [ "$(lengths t_text_sentence)" = "5 2 1 " ]
expect 0 build --input t.jsonl --split-sentences --lang klingon --punkt-model tab --output-prefix t
printf 'two\n' >tab/klingon/abbrev_types.txt
expect 2 build --input t.jsonl --split-sentences --lang klingon --punkt-model tab --output-prefix t
err_has "--punkt-model"
printf 'two\tfour\n' >tab/klingon/ortho_context.tab
expect 3 build --input t.jsonl --split-sentences --lang klingon --punkt-model tab --overwrite --output-prefix t
err_has "tab/klingon/ortho_context.tab: line 1: is not a word, a tab and an even number below 128"
expect 4 build --input t.jsonl --split-sentences --punkt-model none --overwrite --output-prefix t
err_has "none/abbrev_types.txt"

t "contradictory options are rejected"
expect 2 build --input a.jsonl --split-sentences --lang klingon --output-prefix x
err_has "--lang: no rules for 'klingon'"
err_has "english (en), german (de)"
expect 2 build --pretokenized a.jsonl --split-sentences --output-prefix x
err_has "--split-sentences splits texts, and --pretokenized has ids"
check [ -z "$(ls x* 2>/dev/null)" ]
expect 0 build --input a.jsonl --lang en --punkt-model en --keep-newlines --output-prefix plain
err_has "--lang and --punkt-model have no effect without --split-sentences"
err_has "--keep-newlines has no effect without --input-format text or --split-sentences"
