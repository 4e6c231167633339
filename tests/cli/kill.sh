# SPDX-License-Identifier: Apache-2.0
# kill -9 at each system call that changes a file: the old output or the new one is there, and the next run cleans up
# what was left. WEFT_FULL=1 tries every such call, else some of them.

. "$SRC/tests/cli/train_data.sh"
kill_at=$BUILD/tests/kill_at
one=3
[ -z "${WEFT_FULL:-}" ] || one=1

"$kill_at" 1000000 true
[ $? = 3 ] || { t "kill -9"; skip "processes may not be traced here"; return 0; }

# die STEP COMMAND...: 0 if it was killed there; 1 if it ended before; anything else is wrong
die() {
    "$kill_at" "$@" >.out 2>.err
    case $? in
    0) return 0 ;;
    3) return 1 ;;
    *) _wrong "$* did not end well"; return 1 ;;
    esac
}

t "prep build --overwrite: one dataset or the other"
null="--tokenizer-type NullTokenizer --vocab-size 60"
head -n 7 d.jsonl >7.jsonl
head -n 9 d.jsonl >9.jsonl
expect 0 "$PREP" build --input 7.jsonl $null --json-keys text --output-prefix p
stands=7 old=0 new=0 step=1
while
    next=$((16 - stands))
    rm -rf .p.build # prep_resume.sh resumes
    die $step "$PREP" build --input $next.jsonl $null --overwrite --workers 2 --output-prefix p
do
    expect 0 "$PREP" inspect p_text_document --check
    if grep -q "documents   $next" .out; then stands=$next new=$((new + 1)); else old=$((old + 1)); fi
    out_has "documents   $stands"
    no_file p_text_document.commit
    step=$((step + 1))
done
check [ $old -ge 10 ]
check [ $new -ge 5 ]
expect 0 "$PREP" inspect p_text_document --check
out_has "documents   $next"
no_temps .
expect 0 "$PREP" build --input d.jsonl $null --output-prefix q
check [ "$(ls -A | grep -c p_text_document)" = 3 ]
struck

t "prep build where nothing stood: none, or a whole one"
step=1 seen=0
while die $step "$PREP" build --input 7.jsonl $null --output-prefix f; do
    if [ -e f_text_document.commit ] || [ -e f_text_document.idx ]; then
        expect 0 "$PREP" inspect f_text_document --check
        rm -f f_text_document.*
        seen=$((seen + 1))
    fi
    rm -rf .f.build
    no_file f_text_document.bin
    step=$((step + one))
done
check [ $((seen * one)) -ge 5 ]
no_temps .
struck

t "prep index: maps that are whole, or made again"
step=1
index="--prefix q_text_document --seq-length 32 --num-samples 50 --split 100,0,0"
while die $step "$PREP" index $index --overwrite; do
    expect 0 "$PREP" index $index
    step=$((step + one))
done
no_temps .
struck

t "tok train: one model or the other"
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 300; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
expect 0 "$TOK" train --overwrite --input text.txt --model_prefix m --vocab_size 40
pieces=40 step=1 old=0 new=0
while
    next=$((90 - pieces))
    die $step "$TOK" train --overwrite --input text.txt --model_prefix m --vocab_size $next --num_threads 1
do
    expect 0 "$TOK" inspect m.model
    if grep -q "[^0-9]$next" .out; then pieces=$next new=$((new + 1)); else old=$((old + 1)); fi
    out_has "$pieces"
    step=$((step + 1))
done
check [ $old -ge 5 ]
check [ $new -ge 1 ]
no_temps .
struck

t "tok encode to a file: all of it or nothing"
step=1
while die $step "$TOK" encode --overwrite --tokenizer m.model --output ids text.txt; do
    [ ! -e ids ] || check [ "$(wc -l <ids)" = 300 ]
    rm -f ids
    step=$((step + 1))
done
check [ $step -gt 3 ]
no_temps .
struck

t "train: the checkpoint before or the one that was being written"
expect 0 "$TRAIN" run $tiny --train-iters 1 --eval-iters 0 --save c
step=1 old=0 new=0
while
    rm -rf k
    cp -r c k
    die $step "$TRAIN" run $tiny --train-iters 2 --eval-iters 0 --save k --threads 1
do
    if [ -e k/iter_0000002 ]; then last=2 new=$((new + 1)); else last=1 old=$((old + 1)); fi
    expect 0 "$CONVERT" verify k/iter_000000$last
    expect 0 "$CONVERT" verify k/iter_0000001
    step=$((step + 4 * one - 3))
done
check [ $old -ge 5 ]
check [ $new -ge 1 ]
check [ -e k/iter_0000002 ]
no_temps k
struck
