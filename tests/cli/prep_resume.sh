# SPDX-License-Identifier: Apache-2.0
# prep build resumes where it stopped: killed at any system call that changes a file, or by a full disk, the same
# command ends with the bytes of a run that nobody disturbed. WEFT_FULL=1: 200 kill points and 50 sizes of disk.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
kill_at=$BUILD/tests/kill_at
if [ -n "${WEFT_FULL:-}" ]; then kills=200 disks=50; else kills=10 disks=5; fi

# records LINES: of different lengths, every seventh text empty, some bad ones
records() {
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) {
        s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
        printf "{\"id\": %d, \"text\": \"%s\", \"b\": \"%d\"}\n", i, s, i % 1000; if (i % 3000 == 17) print "{bad" } }'
}
records 9000 >c.jsonl
awk 'BEGIN { printf "{\"b\": \"1\", \"text\": \""; for (i = 0; i < 900000; i++) printf "%d ", i % 50000; print "\"}" }' >>c.jsonl
records 2000 | zstd -q >d.zst
{ echo '['; records 2500 | grep -v bad | sed '$!s/$/,/'; echo ']'; } >e.json
work="--input c.jsonl d.zst e.json $null --json-keys text b --append-eod --on-bad-record quarantine --workers 2 --sync-interval 0"
outputs="_text_document.bin _text_document.idx _text_document.manifest.json _b_document.bin _b_document.idx
    _b_document.manifest.json .bad.jsonl"
build() { "$PREP" build --quiet "$@"; }
# whole A B: all files of A are those of B, and there is nothing else
whole() {
    for _s in $outputs; do same "$1$_s" "$2$_s"; done
    no_file "$(dirname "$1")/.$(basename "$1").build"
    no_temps .
}

t "the bytes do not depend on how often the work is made safe"
expect 0 build $work --output-prefix want
expect 0 build $work --sync-interval 100 --output-prefix often
whole often want

"$kill_at" 1000000 true
traced=$?

t "killed, and killed again, at $kills points"
if [ $traced = 3 ]; then
    step=1000000 low=1 # the number of such calls in all
    while [ $((step - low)) -gt 1 ]; do
        middle=$(((step + low) / 2))
        "$kill_at" $middle "$PREP" build --quiet $work --output-prefix n 2>.err
        case $? in 0) low=$middle ;; 3) step=$middle ;; *) _wrong "it did not end well" ; break ;; esac
        rm -rf .n.build n_* n.*
    done
    check [ $low -ge 100 ]
    i=0 again=0 named=0
    while [ $i -lt $kills ] && [ -z "$_bad" ]; do
        "$kill_at" $((1 + i * (low - 1) / (kills - 1))) "$PREP" build --quiet $work --output-prefix k 2>.err
        [ $? = 0 ] || [ $i = $((kills - 1)) ] || _wrong "kill point $i: not killed"
        [ ! -e .k.build/journal.json ] || again=$((again + 1))
        [ ! -e k_text_document.idx ] || named=$((named + 1))
        "$kill_at" $((1 + i * 7 % 90)) "$PREP" build --quiet $work --output-prefix k 2>.err
        expect 0 build $work --output-prefix k
        whole k want
        rm -f k_* k.*
        i=$((i + 1))
    done
    check [ $again -ge $((kills / 2)) ]
    [ $kills -lt 200 ] || check [ $named -ge 1 ]
    struck
else
    skip "processes may not be traced here"
fi

t "a disk that is full at $disks sizes"
cat >full.sh <<'END'
mount -t tmpfs -o size=$1k tmpfs disk || exit 99
shift
"$PREP" build --quiet "$@" --output-prefix disk/f >first.out 2>first.err
code=$?
[ $code = 4 ] || [ $code = 0 ] || exit 98
if [ $code = 4 ]; then
    grep -q "the disk is full" first.err && grep -q "disk/" first.err || exit 97
    [ -z "$(ls disk)" ] || exit 96 # no final name
fi
mount -o remount,size=40m disk || exit 95
"$PREP" build --quiet "$@" --output-prefix disk/f || exit 94
[ -z "$(find disk -name '.*' ! -name disk)" ] || exit 93
mkdir -p got && rm -f got/* && mv disk/f* got
[ $code = 4 ] && echo full >>fulls
[ $code = 4 ] && grep -q "what was done so far is kept" first.err && echo kept >>fulls
exit 0
END
mkdir disk
if unshare -rm sh -c 'mount -t tmpfs tmpfs disk' 2>/dev/null; then
    most=$(($(cat want_* | wc -c) / 1024)) i=0
    : >fulls
    while [ $i -lt $disks ] && [ -z "$_bad" ]; do
        expect 0 unshare -rm sh full.sh $((80 + i * most / disks)) $work
        for s in $outputs; do same got/f$s want$s; done
        i=$((i + 1))
    done
    check [ "$(grep -c full fulls)" -ge $((disks * 3 / 4)) ]
else
    skip "$(why_no_mount)"
fi

t "a full disk keeps what was done, and says so"
sed '$d' c.jsonl >many.jsonl # the last line would wait on the disk before the first ones are written
if unshare -rm sh -c 'mount -t tmpfs tmpfs disk' 2>/dev/null; then
    expect 4 unshare -rm sh -c 'mount -t tmpfs -o size=1m tmpfs disk; "$@"' sh "$PREP" build \
        --input many.jsonl many.jsonl many.jsonl $null --on-bad-record quarantine --sync-interval 0 --output-prefix disk/f
    err_has "error: disk/"
    err_has "the disk is full"
    err_has "run the same command to resume"
else
    skip "$(why_no_mount)"
fi

t "a signal keeps what was done"
many="c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl"
skips="--on-bad-record skip --workers 1 --sync-interval 0"
for _ in $(seq 20); do # once more where it was done before the signal came
    rm -f s_*
    "$PREP" build --input $many $null $skips --output-prefix s 2>err1 &
    pid=$!
    until [ -e .s.build/journal.json ] || has_ended $pid; do sleep 0.01; done
    kill -TERM $pid 2>/dev/null
    wait $pid || break
done
check grep -q "run the same command to resume" err1
no_file s_text_document.idx
expect 0 "$PREP" build --input $many $null $skips --output-prefix s
err_has "resuming an interrupted run after"
expect 0 build --input $many $null $skips --output-prefix t
same s_text_document.bin t_text_document.bin
same s_text_document.idx t_text_document.idx
same s_text_document.manifest.json t_text_document.manifest.json
rm s_* t_*

t "but of standard input, and of a pipe"
mkfifo gate
for from in - gate; do
    { grep -v bad c.jsonl; exec sleep 3600; } >gate &
    feeder=$!
    "$PREP" build --input $from $null --sync-interval 0 --output-prefix s 2>err1 <gate &
    pid=$!
    await $pid not_empty .s.build/s_text_document.new/s_text_document.bin
    kill -TERM $pid
    wait $pid
    kill $feeder 2>/dev/null
    check grep -q "standard input or a pipe cannot be read again" err1
    no_file .s.build
    no_temps .
done
expect 0 sh -c 'grep -v bad c.jsonl | "$@"' sh "$PREP" build --quiet --input - $null --output-prefix s
expect 2 sh -c 'grep -v bad c.jsonl | "$@"' sh "$PREP" build --quiet --input - $null --output-prefix s
err_has "s_text_document.bin: already exists"
rm s_*

t "what an interrupted run of other work left is named, and discarded when that is asked for"
"$kill_at" $((low / 2)) "$PREP" build --quiet $work --output-prefix o 2>.err
if [ $traced = 3 ]; then
    has_file .o.build/journal.json
    expect 2 "$PREP" build --input c.jsonl $null --output-prefix o
    err_has "o (an interrupted run): was built "
    err_has "--overwrite discards"
    expect 2 build $work --specials error --output-prefix o
    err_has "--specials text; this command says error"
    has_file .o.build/journal.json
    "$PREP" build $work --output-prefix o >.out 2>.err
    err_has "resuming an interrupted run after"
    whole o want
    rm -f o_* o.*
    "$kill_at" $((low / 2)) "$PREP" build --quiet $work --output-prefix o 2>.err
    touch c.jsonl
    expect 2 build $work --output-prefix o
    err_has "c.jsonl has been changed since"
    expect 0 build $work --overwrite --output-prefix o
    whole o want
else
    skip "processes may not be traced here"
fi

t "what was left and then changed is not gone on from"
if [ $traced = 3 ]; then
    rm -f o_* o.*
    "$kill_at" $((low / 2)) "$PREP" build --quiet $work --output-prefix o 2>.err
    printf x | dd of=.o.build/o_text_document.new/o_text_document.bin bs=1 seek=5 conv=notrunc 2>/dev/null
    expect 0 build $work --output-prefix o
    err_has "have XXH3-128"
    whole o want
else
    skip "processes may not be traced here"
fi

t "two at a time: the second one is an error"
mkdir -p .two.build
exec 8>.two.build/lock
flock 8
expect 2 build $work --output-prefix two
err_has "two: is being built by another process"
exec 8>&-

t "a second run of finished work says so and does nothing"
ls -l --time-style=full-iso want* >before
expect 0 "$PREP" build $work --output-prefix want
err_has "all other outputs exist, from the same inputs, options and tokenizer: nothing to do"
ls -l --time-style=full-iso want* >after
same before after
mkdir moved
cp c.jsonl d.zst e.json moved
expect 0 build --input moved/c.jsonl moved/d.zst moved/e.json $null --json-keys text b --append-eod --on-bad-record quarantine --output-prefix want
ls -l --time-style=full-iso want* >after
same before after

t "and of other work it names the difference"
differs() {
    expect 2 build "$@" --output-prefix want
    err_has "want_text_document: was built "
    ls -l --time-style=full-iso want* >after
    same before after
}
rest="--json-keys text b --append-eod --on-bad-record quarantine"
differs --input c.jsonl $null $rest
err_has "3 inputs; this command names 1"
differs --input c.jsonl d.zst e.json --tokenizer-type NullTokenizer --vocab-size 50255 $rest
err_has "with tokenizer "
differs --input c.jsonl d.zst e.json $null --json-keys text b --append-eod --on-bad-record skip
err_has "--on-bad-record quarantine; this command says skip"
tr 0 1 <c.jsonl >moved/c.jsonl
differs --input moved/c.jsonl d.zst e.json $null $rest
err_has "XXH3-128"
head -n 100 c.jsonl >moved/c.jsonl
differs --input moved/c.jsonl d.zst e.json $null $rest
err_has "bytes, but moved/c.jsonl has"
expect 0 build --input moved/c.jsonl d.zst e.json $null $rest --overwrite --output-prefix want
differ want_text_document.bin often_text_document.bin

t "nor is it the same work if the tokenizer's file is taken in another way"
cat >t.json <<'END'
{"version": "1.0", "added_tokens": [{"id": 4, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": false,
  "normalized": false, "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<e>", "type_id": 0}},
  {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<e>": {"id": "<e>", "ids": [4], "tokens": ["<e>"]}}},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<e>": 4}, "merges": ["a b"]}}
END
printf '[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nab\nAb\n' >vocab.txt
printf '%s' '{"text": "Ab"}' >ab.jsonl
# another NAME WORDS OPTION...: made without the options, then asked for with them
another() {
    rm -f way*
    expect 0 build --input ab.jsonl $1 --output-prefix way
    _words=$2
    shift 2
    expect 2 build --input ab.jsonl "$@" --output-prefix way
    err_has "way_text_document: was built with $_words"
}
another "--tokenizer t.json" "--add-special-tokens none; this command says false" --tokenizer t.json --no-add-special-tokens
expect 0 build --input ab.jsonl --tokenizer t.json --no-add-special-tokens --overwrite --output-prefix way
expect 0 build --input ab.jsonl --tokenizer t.json --no-add-special-tokens --output-prefix way
another "--tokenizer vocab.txt --tokenizer-type BertWordPieceCase" "a BertWordPieceCase; this command says BertWordPieceLowerCase" \
    --tokenizer vocab.txt --tokenizer-type BertWordPieceLowerCase
python3 -c 'import base64
for k in range(256): print(base64.b64encode(bytes([k])).decode(), k)' >x.tiktoken
another "--tokenizer x.tiktoken --tiktoken-pattern r50k" "--tiktoken-pattern r50k; this command says o200k" --tokenizer x.tiktoken --tiktoken-pattern o200k
