# SPDX-License-Identifier: Apache-2.0
# prep build --shard I/N: all shares merged are one run, whatever is cut where.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
build() { "$PREP" build --quiet "$@"; }
both() { same "$1.bin" "$2.bin"; same "$1.idx" "$2.idx"; }
awk 'BEGIN { for (i = 0; i < 3007; i++) {
    s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
    printf "{\"text\": \"%s\"}\n", s } }' >c.jsonl
# shares N WANT ARGUMENTS...: all shares, each once more, merged and compared
shares() {
    n=$1 want=$2 all=
    shift 2
    for i in $(seq 0 $((n - 1))); do
        expect 0 build "$@" --shard $i/$n --output-prefix s
        all="$all $(printf 's_%05d_text_document' "$i")"
    done
    expect 0 "$PREP" merge $all --output-prefix m
    both m "$want"
    check [ "$(ls -A | grep -c '^\.s')" = 0 ]
    rm -f s_* m.*
}

t "one file of lines, cut anywhere"
expect 0 build --input c.jsonl $null --append-eod --output-prefix w
for n in 1 2 3 7; do shares $n w_text_document --input c.jsonl $null --append-eod; done

t "at each byte of a small one"
printf '\357\273\277{"text": "1"}\n{"text": "2 3"}\r\n{"text": ""}\n{"text": "4"}' >tiny.jsonl
expect 0 build --input tiny.jsonl $null --output-prefix t
size=$(wc -c <tiny.jsonl)
shares "$size" t_text_document --input tiny.jsonl $null
shares 5 t_text_document --input tiny.jsonl $null
shares 100 t_text_document --input tiny.jsonl $null

t "long lines, much longer than a share"
{ echo '{"text": "1"}'; awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 1200000; i++) printf "%d ", i % 50000; print "\"}" }'
    echo '{"text": "2"}'; } >long.jsonl
expect 0 build --input long.jsonl $null --output-prefix l
shares 4 l_text_document --input long.jsonl $null

t "several files, compressed ones and arrays as a whole, empty ones too"
head -n 900 c.jsonl | zstd -q >a.zst
sed -n 901,1500p c.jsonl >b.jsonl
: >c0.jsonl
{ echo '['; sed -n 1501,2000p c.jsonl | sed '$!s/$/,/'; echo ']'; } >d.json
tail -n +2001 c.jsonl >e.jsonl
for n in 2 3 5 16; do
    shares $n w_text_document --input a.zst b.jsonl c0.jsonl d.json e.jsonl $null --append-eod
done

t "plain text by lines"
seq 1 5000 >t.txt
expect 0 build --input t.txt --input-format text $null --output-prefix x
for n in 3 8; do shares $n x_text_document --input t.txt --input-format text $null; done

t "the manifest names the share; a bad record names file and share"
expect 0 build --input c.jsonl $null --shard 1/3 --output-prefix s
check grep -q '"shard": "1/3"' s_00001_text_document.manifest.json
expect 0 "$PREP" build --input c.jsonl $null --shard 1/3 --output-prefix s
err_has "nothing to do"
{ head -n 2000 c.jsonl; echo bad; tail -n +2001 c.jsonl; } >bad.jsonl
expect 0 build --input bad.jsonl $null --shard 0/3 --output-prefix b
expect 3 build --input bad.jsonl $null --shard 1/3 --output-prefix b
err_has "bad.jsonl: line of this share "
yes bad | head -n 9 >bads.jsonl
expect 3 build --input bads.jsonl $null --shard 0/2 --on-bad-record skip --output-prefix b2
err_has "no documents in the input: "
no_file b2_00000_text_document.bin
no_temps .

t "killed, a share resumes where it stopped"
kill_at=$BUILD/tests/kill_at
"$kill_at" 1000000 true
if [ $? = 3 ]; then
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat c.jsonl; done >large.jsonl
    work="--input large.jsonl $null --sync-interval 0 --shard 1/3"
    expect 0 build $work --output-prefix want
    for step in 10 20 30 40 50 60 data:1 data:2; do
        "$kill_at" $step "$PREP" build --quiet $work --output-prefix k 2>.err
        expect 0 build $work --output-prefix k
        both k_00001_text_document want_00001_text_document
        no_file .k_00001.build
        rm -f k_*
    done
    struck
else
    skip "processes may not be traced here"
fi

t "inputs that cannot be divided are rejected"
expect 2 build --input - $null --shard 0/2 --output-prefix r
err_has "standard input cannot be divided"
for s in 2/2 -1/2 1 a/b 1/2/3 "" 1/0; do
    expect 2 build --input c.jsonl $null --shard "$s" --output-prefix r
    err_has "is not I/N"
done
expect 2 build --input c.jsonl $null --shard 0/2 --partitions 2 --output-prefix r
err_has "exclude each other"
