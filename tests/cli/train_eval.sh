# SPDX-License-Identifier: Apache-2.0
# train eval of a checkpoint repeats the numbers that its run printed.
. "$SRC/tests/cli/train_data.sh"

# printed STEP SUFFIX: the loss in the log of a run, with six decimals
printed() { sed -n "s/^ validation loss at iteration $1$2 | lm loss value: \([^ ]*\) .*/\1/p" log | awk '{ printf "%.6f", $1 }'; }
repeats() {
    out_has "$1 loss $2, perplexity "
    out_has ", as the run evaluated them"
    [ -n "$2" ] || _wrong "the run printed no such number"
}

t "validation and test losses of each checkpoint, named by --load alone"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save a --save-interval 10 --seed 77
cp .out log
for step in 10 20; do
    expect 0 "$TRAIN" eval --load a --ckpt-step $step
    repeats valid "$(printed $step "")"
done
expect 0 "$TRAIN" eval --load a
repeats valid "$(printed 30 " on validation set")"
expect 0 "$TRAIN" eval --load a --data-part test --threads 1
repeats test "$(printed 30 " on test set")"
check [ "$(printed 10 "")" != "$(printed 20 "")" ]

t "the same data under another name, and as a copy"
expect 0 "$TRAIN" eval --load a --data-path "$PWD/d_text_document"
repeats valid "$(printed 30 " on validation set")"
mkdir else && cp d_text_document.* else/
expect 0 "$TRAIN" eval --load a --data-path else/d_text_document
repeats valid "$(printed 30 " on validation set")"

t "with other batches, data or shares the number is another, and does not pretend"
for other in "--eval-iters 3" "--micro-batch-size 4" "--split 80,15,5" "--seq-length 16" "--data-part train"; do
    expect 0 "$TRAIN" eval --load a $other
    check [ "$(grep -c "as the run" .out)" = 0 ]
done

t "after a resume with --train-samples, with the whole share, with lists of each part"
expect 0 "$TRAIN" run $tiny --train-samples 80 --save s --exit-interval 7
expect 0 "$TRAIN" run $tiny --train-samples 80 --save s
cp .out log
expect 0 "$TRAIN" eval --load s
repeats valid "$(printed 20 " on validation set")"
expect 0 "$TRAIN" run $tiny --train-iters 12 --eval-iters 0 --full-validation --save f
cp .out log
expect 0 "$TRAIN" eval --load f
repeats valid "$(printed 12 " on validation set")"
own=$(echo $tiny | sed 's/--data-path [^ ]*//; s/--split [^ ]*//')
expect 0 "$TRAIN" run $own --train-data-path d_text_document --valid-data-path 0.3 d_text_document 0.7 else/d_text_document \
    --train-iters 10 --save l
cp .out log
expect 0 "$TRAIN" eval --load l
repeats valid "$(printed 10 " on validation set")"

t "generate: a text ends in a newline before anything else is said"
expect 0 sh -c "'$TRAIN' generate --load a --prompt '3 15 27' --max-new-tokens 500 --ignore-eod >both 2>&1"
tail -n 1 both >last
check grep -q "^stopped: the model has 32 positions$" last
check [ "$(wc -l <both)" -ge 3 ]
echo "3 15" | "$TRAIN" generate --load a --max-new-tokens 2 >.out 2>.err
check [ "$(tail -c 1 .out | od -An -c | tr -d ' ')" = '\n' ]
err_lacks "Ctrl-D"
