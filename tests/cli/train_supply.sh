# SPDX-License-Identifier: Apache-2.0
# What the data serve, said before the first step: samples wanted and there, and from which step on they come again. No
# evaluation and no step ends a run for want of samples.
. "$SRC/tests/cli/train_data.sh"
base=$(echo "$bare" | sed 's/--split [^ ]*//; s/--eval-[a-z]* [0-9]*//g')
for x in a b; do for kind in bin idx manifest.json; do cp d_text_document.$kind $x.$kind; done; done

# supply SHARE: its line
supply() { sed -n "s/^$1  *//p" .err | tr -s ' '; }

t "one data set begins again where it is used up: the steps are named"
expect 0 "$TRAIN" run $base --data-path a --split 90,5,5 --train-iters 160 --eval-interval 40 --eval-iters 3 --no-save
err_has "data    samples wanted  without repeats   epochs  repeats from"
check [ "$(supply train)" = "640 609 1.05 step 153" ]
check [ "$(supply valid)" = "60 33 1.82 step 120" ]
check [ "$(supply test)" = "12 33 0.36 -" ]

t "a blend by size, which is one pass over its data, begins again as well: at its first evaluation, too"
run="$base --train-iters 400 --eval-interval 200 --eval-iters 40 --no-save"
expect 0 "$TRAIN" run $run --data-path a b --split 90,5,5
check [ "$(supply train)" = "1600 1218 1.31 step 305" ]
check [ "$(supply valid)" = "480 66 7.27 step 200" ]
check [ "$(grep -c "^ validation loss at iteration" .out)" = 3 ]
expect 0 "$TRAIN" run $run --train-data-path a b --valid-data-path a b
check [ "$(supply train)" = "1600 1352 1.18 step 339" ]
check [ "$(supply valid)" = "480 1352 0.36 -" ]

t "the second pass has the samples of the first, in their order"
expect 0 "$TRAIN" run $base --train-data-path a b --train-iters 676 --lr 1e-12 --hidden-dropout 0 --attention-dropout 0 --eval-iters 0 --no-save --log-interval 1 --metrics m.jsonl
check python3 - <<'EOF'
import json
loss = [json.loads(x)["lm_loss"] for x in open("m.jsonl")]
assert len(loss) == 676
assert all(abs(x - y) < 1e-4 for x, y in zip(loss[:338], loss[338:]))
assert len({"%.4f" % x for x in loss[:338]}) > 100
EOF

t "a test share without documents, and one of a blend that is too short: a warning, and no test loss"
expect 0 "$TRAIN" run $base --data-path a --split 979,20,1 --train-iters 2 --eval-iters 1 --no-save
err_has "warning: a: the test share is empty: --split 979,20,1 leaves it none of 60 documents (--split 96,2,2 works here); the run ends without an evaluation on it"
out_has "on validation set"
check [ "$(grep -c "on test set" .out)" = 0 ]
check [ "$(supply test)" = "none" ]
echo '{"text": "1 2 3"}' >s.jsonl
"$PREP" build --quiet --input s.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --output-prefix s
expect 0 "$TRAIN" run $base --train-data-path a --valid-data-path a --test-data-path a s_text_document --train-iters 2 --eval-iters 1 --no-save
err_has "s_text_document: its test share has 4 tokens, too few for one sample of 32; the run ends without an evaluation on it"
expect 2 "$TRAIN" run $base --train-data-path a --valid-data-path a s_text_document --train-iters 2 --eval-iters 1 --no-save
err_has "s_text_document: its valid share has 4 tokens, too few"

t "the whole validation share; a growing batch"
expect 0 "$TRAIN" run $base --data-path a --split 90,5,5 --train-iters 3 --full-validation --eval-interval 2 --eval-iters 0 --no-save
check [ "$(supply valid)" = "33 33 1.00 -" ]
expect 0 "$TRAIN" run $base --data-path a --split 100,0,0 --train-samples 800 --rampup-batch-size 2 2 400 --no-save --eval-iters 0
check [ "$(supply train)" = "800 676 1.18 step 270" ]
