# SPDX-License-Identifier: Apache-2.0
# prep build --shard-size: pieces cut between documents, merged they are one run; resumed, looked at again, verified.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
kill_at=$BUILD/tests/kill_at
build() { "$PREP" build --quiet "$@"; }
# merge PIECES M: all pieces of a dataset, in order
merge() { expect 0 "$PREP" merge $(ls "$1"*.idx | sed 's/\.idx$//') --overwrite --output-prefix "$2"; }
both() { same "$1.bin" "$2.bin"; same "$1.idx" "$2.idx"; }
awk 'BEGIN { for (i = 0; i < 3007; i++) {
    s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
    printf "{\"text\": \"%s\", \"b\": \"%d\"}\n", s, i } }' >c.jsonl
work="--input c.jsonl $null --append-eod --json-keys text b --shard-size 20K"
expect 0 build --input c.jsonl $null --append-eod --json-keys text b --output-prefix w

t "pieces are at most so large, end with documents, and are the whole together"
expect 0 build $work --output-prefix s
no_file s_text_document.bin
no_file .s.build
has_file s_text_document_00012.idx
has_file s_b_document_00000.idx
no_file s_b_document_00001.idx
for f in s_*.bin; do check [ "$(wc -c <"$f")" -le 20480 ]; done
n=$(ls s_text_document_*.bin | wc -l)
check [ "$(wc -c <w_text_document.bin)" -gt $(((n - 1) * 20000)) ]
merge s_text_document m
both m w_text_document
both s_b_document_00000 w_b_document
check grep -q "\"piece\": 3, \"pieces\": $n" s_text_document_00003.manifest.json

t "a document larger than that is alone; none at all make one piece"
head -n 30 c.jsonl >few.jsonl
expect 0 build --input few.jsonl $null --shard-size 1 --output-prefix one
merge one_text_document m1
expect 0 build --input few.jsonl $null --output-prefix w1
both m1 w1_text_document
: >none.jsonl
expect 0 build --input none.jsonl --allow-empty $null --shard-size 1M --output-prefix none
has_file none_text_document_00000.idx
no_file none_text_document_00001.idx
expect 0 "$PREP" verify none_text_document_00000

t "a second run says so and does nothing; of other work it names the difference"
ls -l --time-style=full-iso s_* >before
expect 0 "$PREP" build $work --output-prefix s
err_has "nothing to do"
expect 2 build $work --specials error --output-prefix s
err_has "s_text_document_00000: was built with --specials text"
expect 2 build --input c.jsonl $null --append-eod --json-keys text b --shard-size 30K --output-prefix s
err_has "was built with --shard-size 20480; this command says 30720"
ls -l --time-style=full-iso s_* >after
same before after

t "what is missing or renamed is seen"
expect 0 "$PREP" verify s_text_document_00000 s_text_document_00007
mkdir away
mv s_text_document_00005.* away
expect 3 "$PREP" verify s_text_document_00000
err_has "s_text_document_00000: is piece 0 of $n, and s_text_document_00005.idx is missing"
expect 2 build $work --output-prefix s
err_has "already exists"
cp away/s_text_document_00005.bin s_text_document_00005.bin
for x in bin idx manifest.json; do cp s_text_document_00006.$x s_text_document_00005.$x; done
expect 2 build $work --output-prefix s
err_has "s_text_document_00005: is piece 6, and has the name of another"

t "--overwrite rebuilds, and old pieces after the last one are removed"
expect 0 build --input c.jsonl $null --append-eod --json-keys text b --shard-size 200K --overwrite --output-prefix s
check [ "$(ls s_text_document_*.bin | wc -l)" -lt "$n" ]
check [ "$(ls s_text_document_*.bin | wc -l)" = "$(ls s_text_document_*.manifest.json | wc -l)" ]
merge s_text_document m
both m w_text_document

t "shares are split, too; partitions and invalid sizes are rejected"
for i in 0 1; do expect 0 build --input c.jsonl $null --append-eod --shard $i/2 --shard-size 50K --output-prefix h; done
has_file h_00001_text_document_00001.idx
merge h_0000 m
both m w_text_document
expect 2 build --input c.jsonl $null --shard-size 1M --partitions 2 --output-prefix x
err_has "--shard-size and --partitions exclude each other"
for s in 0 -1 K 1KB 1.5G 99999999T ""; do
    expect 2 build --input c.jsonl $null --shard-size "$s" --output-prefix x
    err_has "--shard-size: '$s' is not a size"
done

t "killed anywhere, it resumes to the same pieces"
work="--input c.jsonl $null --append-eod --json-keys text b --shard-size 100K"
expect 0 build $work --workers 2 --sync-interval 0 --output-prefix want
"$kill_at" 1000000 true
if [ $? = 3 ]; then
    step=3000 low=1
    while [ $((step - low)) -gt 1 ]; do
        middle=$(((step + low) / 2))
        "$kill_at" $middle "$PREP" build --quiet $work --workers 2 --sync-interval 0 --output-prefix k 2>.err
        case $? in 0) low=$middle ;; 3) step=$middle ;; *) _wrong "it did not end well"; break ;; esac
        rm -rf .k.build k_*
    done
    i=0 kills=6
    [ -z "${WEFT_FULL:-}" ] || kills=60
    while [ $i -lt $kills ] && [ -z "$_bad" ]; do
        step=$((low - i * i * low / kills / kills))
        [ $((i % 3)) != 2 ] || step=data:$i
        "$kill_at" $step "$PREP" build --quiet $work --workers 2 --sync-interval 0 --output-prefix k 2>.err
        expect 0 build $work --workers 2 --sync-interval 0 --output-prefix k
        check [ "$(ls k_* | wc -l)" = "$(ls want_* | wc -l)" ]
        for f in want_*; do same "$f" "k${f#want}"; done
        no_file .k.build
        rm -f k_*
        i=$((i + 1))
    done
    struck
else
    skip "processes may not be traced here"
fi
