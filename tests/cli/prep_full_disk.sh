# SPDX-License-Identifier: Apache-2.0
# prep merge, export, import and sft on a disk that is full at several sizes: exit code 4 with the file's name and the
# cause, what was there is as it was, nothing new is left; with room the same command does its work.
# WEFT_FULL=1 tries more sizes.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
if [ -n "${WEFT_FULL:-}" ]; then sizes=25; else sizes=4; fi
awk 'BEGIN { for (i = 0; i < 6000; i++) {
    s = ""; for (j = 0; j < i * 37 % 101; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
    printf "{\"text\": \"%s\", \"prompt\": \"%d %d\", \"response\": \"%s\"}\n", s, i % 9, i % 7, s } }' >c.jsonl
mkdir src
"$PREP" build --quiet --input c.jsonl $null --append-eod --output-prefix src/a
head -n 2000 c.jsonl >few.jsonl
"$PREP" build --quiet --input few.jsonl $null --append-eod --output-prefix src/b

cat >full.sh <<'END'
# full.sh SIZE COMMAND...: in a disk of SIZE KiB that holds an old output, then in one with room
mount -t tmpfs -o size=$1k tmpfs disk || exit 99
shift
cp old/* disk || exit 98
"$@" >first.out 2>first.err
code=$?
[ $code = 4 ] || [ $code = 0 ] || exit 97
if [ $code = 4 ]; then
    echo full >>fulls
    grep -q "disk/" first.err && grep -q "the disk is full" first.err || exit 96
    for f in old/*; do cmp -s "$f" "disk/${f#old/}" || exit 95; done
    [ "$(ls -A disk)" = "$(ls -A old)" ] || exit 94
fi
mount -o remount,size=60m disk || exit 93
"$@" 2>second.err || exit 92
mkdir -p got && rm -rf got/* && mv disk/* got
[ -z "$(ls -A disk)" ] || exit 91
exit 0
END
mkdir disk old

# full WANT COMMAND...: the disk has from next to nothing to nearly all that WANT* need, besides what is there
full() {
    want=$1
    shift
    most=$(($(cat "$want"* | wc -c) / 1024)) had=$(($(cat old/* | wc -c) / 1024 + 4 * $(ls old | wc -l)))
    : >fulls
    i=0
    while [ $i -lt $sizes ] && [ -z "$_bad" ]; do
        expect 0 unshare -rm sh full.sh $((had + 8 + i * most / sizes)) "$@"
        for f in "$want"*; do same "$f" "got/x${f#"$want"}"; done
        i=$((i + 1))
    done
    check [ "$(grep -c full fulls)" -ge $((sizes - 1)) ]
}

if unshare -rm sh -c 'mount -t tmpfs tmpfs disk' 2>/dev/null; then
    t "merge, of which an older output is there"
    expect 0 "$PREP" merge src/a_text_document src/b_text_document --output-prefix merged
    rm -f old/* && for s in bin idx manifest.json; do cp src/b_text_document.$s old/x.$s; done
    full merged "$PREP" merge --overwrite src/a_text_document src/b_text_document --output-prefix disk/x

    t "merge into an empty folder"
    rm -f old/* && echo other >old/other
    full merged "$PREP" merge src/a_text_document src/b_text_document --output-prefix disk/x

    t "import"
    expect 0 "$PREP" import --input-format raw --dtype u16 --boundary 50256 src/a_text_document.bin --output-prefix imported
    full imported "$PREP" import --input-format raw --dtype u16 --boundary 50256 src/a_text_document.bin --overwrite --output-prefix disk/x

    t "export, plain and compressed, of which an older one is there"
    for s in jsonl jsonl.zst jsonl.gz; do
        expect 0 "$PREP" export src/a_text_document $null --output exported.$s
        rm -f old/* && echo '{}' >old/x.$s
        full exported "$PREP" export src/a_text_document $null --overwrite --output disk/x.$s
        rm -rf exported.*
    done

    t "sft"
    rm -f old/* && echo other >old/other
    expect 0 "$PREP" sft --quiet --input c.jsonl $null --seq-length 256 --output-prefix packed
    full packed "$PREP" sft --quiet --input c.jsonl $null --seq-length 256 --overwrite --output-prefix disk/x
else
    t "a full disk"
    skip "$(why_no_mount)"
fi
