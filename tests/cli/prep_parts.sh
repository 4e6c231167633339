# SPDX-License-Identifier: Apache-2.0
# prep build --partitions: Megatron's names, the records of each, and the whole; also after a kill.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
build() { "$PREP" build --quiet "$@"; }
both() { same "$1.bin" "$2.bin"; same "$1.idx" "$2.idx"; }
awk 'BEGIN { for (i = 0; i < 10007; i++) {
    s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
    printf "{\"text\": \"%s\", \"b\": \"%d\"}\n", s, i % 1000 } }' >c.jsonl
head -n 3000 c.jsonl >c1.jsonl
tail -n +3001 c.jsonl | zstd -q >c2.zst
keys="--json-keys text b --append-eod"

t "record i is in partition i mod P, and the whole is their concatenation"
for p in 2 3 8; do
    expect 0 build --input c1.jsonl c2.zst $null $keys --partitions $p --workers 2 --output-prefix o
    all=
    for i in $(seq 0 $((p - 1))); do
        awk -v p=$p -v i=$i '(NR - 1) % p == i' c.jsonl >part.jsonl
        cat part.jsonl >>parts.jsonl
        expect 0 build --input part.jsonl $null $keys --overwrite --output-prefix w
        both o_${i}_text_document w_text_document
        both o_${i}_b_document w_b_document
        all="$all o_${i}_text_document"
    done
    expect 0 build --input parts.jsonl $null $keys --overwrite --output-prefix w
    both o_text_document w_text_document
    both o_b_document w_b_document
    expect 0 "$PREP" merge $all --output-prefix m
    both o_text_document m
    expect 0 "$PREP" inspect o_1_b_document --check
    check [ "$(ls -A | grep -c '^o_')" = $((6 * p + 6)) ]
    no_file .o.build
    rm -f o_* m.* parts.jsonl
done

t "with --keep-sequential-samples runs of equal number, and the whole as without partitions"
expect 0 build --input c.jsonl $null $keys --output-prefix whole
for p in 2 3 16; do
    expect 0 build --input c1.jsonl c2.zst $null $keys --partitions $p --keep-sequential-samples --output-prefix o
    both o_text_document whole_text_document
    both o_b_document whole_b_document
    run=$(((10007 + p - 1) / p))
    for i in 0 1 $((p - 1)); do
        tail -n +$((i * run + 1)) c.jsonl | head -n $run >part.jsonl
        expect 0 build --input part.jsonl $null $keys --overwrite --output-prefix w
        both o_${i}_text_document w_text_document
        both o_${i}_b_document w_b_document
    done
    rm -f o_*
done

t "fewer records than partitions"
head -n 3 c.jsonl >three.jsonl
for s in "" --keep-sequential-samples; do
    expect 0 build --input three.jsonl $null --partitions 5 $s --output-prefix o
    for i in 0 1 2 3 4; do expect 0 "$PREP" inspect o_${i}_text_document --check; done
    out_has "documents   0"
    rm o_*
done

t "a bad record counts as one, and so do those after it"
{ head -n 5 c.jsonl; echo bad; sed -n 6,20p c.jsonl; echo bad; sed -n 21,30p c.jsonl; } >bad.jsonl
expect 0 build --input bad.jsonl $null --partitions 3 --on-bad-record skip --output-prefix o
for i in 0 1 2; do
    awk -v i=$i '(NR - 1) % 3 == i && $0 != "bad"' bad.jsonl >part.jsonl
    expect 0 build --input part.jsonl $null --overwrite --output-prefix w
    both o_${i}_text_document w_text_document
done
rm -f o_*

t "many partitions of many keys in little memory"
# memory that malloc fills is memory that is used, whether the program touches it or not
expect 0 env -u MALLOC_PERTURB_ /usr/bin/time -f %M -o .peak "$PREP" build --quiet --input c.jsonl c.jsonl c.jsonl c.jsonl \
    $null $keys --partitions 200 --workers 2 --output-prefix o
check [ "$(tail -n 1 .peak)" -le 262144 ]
expect 0 "$PREP" inspect o_199_b_document --check
rm -f o_*

t "killed at any point, the same command ends with the same bytes"
kill_at=$BUILD/tests/kill_at
"$kill_at" 1000000 true
if [ $? = 3 ]; then
    head -n 1000 c.jsonl >small.jsonl
    for s in "" --keep-sequential-samples; do
        work="--input small.jsonl c1.jsonl $null --partitions 3 $s --sync-interval 0"
        expect 0 build $work --output-prefix want
        for step in 5 20 35 50 65 80 95 110 125 140; do
            "$kill_at" $step "$PREP" build --quiet $work --output-prefix o 2>.err
            "$kill_at" $((step / 2)) "$PREP" build --quiet $work --output-prefix o 2>.err
            expect 0 build $work --output-prefix o
            for i in _0 _1 _2 ""; do both o${i}_text_document want${i}_text_document; done
            no_file .o.build
            rm -f o_*
        done
        rm want_*
    done
    struck
else
    skip "processes may not be traced here"
fi

t "a second run does nothing, and other partitions are a difference"
expect 0 build --input c1.jsonl $null --partitions 2 --output-prefix o
expect 0 "$PREP" build --input c1.jsonl $null --partitions 2 --output-prefix o
err_has "nothing to do"
expect 2 build --input c1.jsonl $null --partitions 2 --keep-sequential-samples --output-prefix o
err_has "--keep-sequential-samples none; this command says true"
expect 2 build --input c1.jsonl $null --output-prefix o
err_has "--partitions 2; this command says none"
rm o_*
expect 0 build --input c1.jsonl $null --keep-sequential-samples --output-prefix o
err_has "--keep-sequential-samples has no effect with --partitions 1"
rm o_*

t "ids as wide as is asked for"
printf '{"text": "1 2"}\n' >g.jsonl
expect 0 build --input g.jsonl $null --dtype int32 --output-prefix o
check [ "$(od -An -v -tx1 o_text_document.bin | tr -d ' \n')" = 0100000002000000 ]
expect 0 build --input g.jsonl --tokenizer-type NullTokenizer --vocab-size 65535 --dtype uint16 --overwrite --output-prefix o
check [ "$(od -An -v -tx1 o_text_document.bin | tr -d ' \n')" = 01000200 ]
expect 2 build --input g.jsonl --tokenizer-type NullTokenizer --vocab-size 65536 --dtype uint16 --overwrite --output-prefix o
err_has "do not fit into 16 bits"
expect 2 build --input g.jsonl $null --output-prefix o
err_has "was built with tokenizer"
