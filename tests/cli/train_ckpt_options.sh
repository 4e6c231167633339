# SPDX-License-Identifier: Apache-2.0
# What a run takes from a checkpoint, what it saves, and which checkpoints stay.
. "$SRC/tests/cli/train_data.sh"

rates() { sed -n 's/.*learning rate: *\([^ ]*\) .*/\1/p' .out | tr '\n' ' '; }
base=${tiny%%--log-interval*}
base="$base --split 100,0,0 --data-path d_text_document --log-interval 1 --eval-iters 0"

t "--no-save-optim writes weights alone, --no-load-optim takes them and begins the optimizer anew"
expect 0 "$TRAIN" run $base --train-iters 4 --lr-warmup-iters 2 --save w --no-save-optim --exit-interval 2
check [ -z "$(ls w/iter_0000002 | grep exp_avg)" ]
expect 2 "$TRAIN" run $base --train-iters 4 --lr-warmup-iters 2 --save w
err_has "was saved without the optimizer's state"
err_has "--no-load-optim begins it anew"
expect 0 "$TRAIN" run $base --train-iters 4 --lr-warmup-iters 2 --save w --no-load-optim
out_has "iteration        3/       4 | consumed samples:           12 |"
check [ "$(rates)" = "2.500000E-03 5.000000E-03 " ]

t "the schedule of the options, of the checkpoint, or a warning"
expect 0 "$TRAIN" run $base --train-iters 4 --lr 1e-3 --save s --exit-interval 2
cp -r s s1
cp -r s s2
expect 0 "$TRAIN" run $base --train-iters 4 --lr 2e-3 --save s
err_has "options differ from those that"
check [ "$(rates)" = "5.000000E-04 0.000000E+00 " ]
expect 0 "$TRAIN" run $base --train-iters 4 --lr 2e-3 --save s1 --override-opt_param-scheduler
check [ -z "$(grep 'options differ' .err)" ]
check [ "$(rates)" = "5.000000E-04 0.000000E+00 " ]
expect 0 "$TRAIN" run $base --train-iters 8 --lr 2e-3 --lr-decay-style constant --save s2 --use-checkpoint-opt_param-scheduler --exit-interval 4
check [ -z "$(grep 'lr-decay-style' .err)" ]
check [ "$(rates)" = "2.500000E-04 0.000000E+00 " ]
expect 2 "$TRAIN" run $base --train-iters 4 --override-opt_param-scheduler --use-checkpoint-opt_param-scheduler
err_has "exclude each other"

t "--use-checkpoint-args takes the checkpoint's shape"
expect 2 "$TRAIN" run $base --num-layers 3 --train-iters 5 --save s1
err_has "holds another model"
expect 0 "$TRAIN" run $base --num-layers 3 --train-iters 5 --save s1 --use-checkpoint-args

t "a vocabulary is padded for the tensor-parallel processes that train it now"
odd="--micro-batch-size 2 --global-batch-size 4 --seq-length 32 --lr 5e-3 --data-path d_text_document --eval-iters 0 --threads 1
    --make-vocab-size-divisible-by 1 --untie-embeddings-and-output-weights"
expect 0 "$TRAIN" run $base $odd --train-iters 1 --save odd --export-hf odd-hf
expect 0 "$TRAIN" run $odd --train-iters 2 --load odd-hf --no-save --tp 2 --nproc-per-node 2
expect 0 "$TRAIN" run $base $odd --train-iters 2 --load odd --use-checkpoint-args --finetune --no-save --tp 2 --nproc-per-node 2

t "an option that shapes a step and is another one now is named; one that does not, is not"
expect 0 "$TRAIN" run $base --train-iters 4 --save c --exit-interval 2
cp -r c c1
expect 0 "$TRAIN" run $base --train-iters 4 --save c --log-interval 2 --eval-interval 7 --recompute-activations --loss-spike-factor 9
check [ -z "$(grep 'options differ' .err)" ]
expect 0 "$TRAIN" run $base --train-iters 4 --save c1 --calculate-per-token-loss --moe-z-loss-coeff 0.1 --muon-momentum 0.5
err_has " --calculate-per-token-loss true (was false)"
err_has " --moe-z-loss-coeff 0.1 (was 0.0)"
err_has " --muon-momentum 0.5 (was 0.95)"

t "--save-retain-interval"
expect 0 "$TRAIN" run $base --train-iters 7 --save-interval 1 --save r --save-retain-interval 3
check [ "$(echo r/iter_*)" = "r/iter_0000003 r/iter_0000006 r/iter_0000007" ]

t "an intact checkpoint in --save wins, else --load"
rm -f r/iter_*/manifest.json
for i in r/iter_*; do echo broken >$i/manifest.json; done
expect 0 "$TRAIN" run $base --train-iters 5 --save r --load s --lr 1e-3 --override-opt_param-scheduler
err_has "no checkpoint of r is intact: s is taken"
out_has "iteration        5/       5"
