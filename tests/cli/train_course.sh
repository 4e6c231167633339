# SPDX-License-Identifier: Apache-2.0
# Length of a run in tokens, a growing batch, schedules of learning rate and weight decay.
. "$SRC/tests/cli/train_data.sh"

tensors() { cat "$1"/*.safetensors; }
base=${tiny%%--log-interval*}
base="${base% --global-batch-size 4*}${base#*--global-batch-size 4} --split 100,0,0 --data-path d_text_document --log-interval 1"

t "the batch grows, the run ends at its tokens, and resumes with the same batches"
ramp="--rampup-batch-size 2 2 12 --global-batch-size 8 --train-tokens 1290 --eval-iters 0"
expect 0 "$TRAIN" run $base $ramp --save a
check [ "$(sed -n 's/.*global batch size: *\([0-9]*\) .*/\1/p' .out | tr '\n' ' ')" = "2 2 4 6 8 8 8 8 " ]
out_has "iteration        8/       8 | consumed samples:           46 |"
expect 0 "$TRAIN" run $base $ramp --save b --exit-interval 3
out_has "iteration        3/       8 | consumed samples:            8 |"
expect 0 "$TRAIN" run $base $ramp --save b
tensors a/iter_0000008 >a.bin
tensors b/iter_0000008 >b.bin
same a.bin b.bin

t "the same over the stages of a pipeline"
expect 0 "$TRAIN" run $base $ramp --save p --nproc-per-node 2 --pipeline-model-parallel-size 2 --threads 1
check python3 -c "
import json
a, p = ([json.loads(x) for x in open(f'{d}/metrics.jsonl')] for d in 'ap')
assert len(a) == len(p) == 8
for x, y in zip(a, p):
    assert x['consumed_samples'] == y['consumed_samples']
    assert abs(x['lm_loss'] - y['lm_loss']) < 1e-4, (x, y)"

t "WSD stays and decays, and tokens are samples of the sequence length"
expect 0 "$TRAIN" run $base --train-iters 6 --global-batch-size 4 --lr 1e-3 --lr-decay-style WSD --lr-wsd-decay-iters 4 \
    --lr-wsd-decay-style linear --no-save --eval-iters 0
check [ "$(sed -n 's/.*learning rate: *\([^ ]*\) .*/\1/p' .out | tr '\n' ' ')" = \
    "1.000000E-03 1.000000E-03 7.500000E-04 5.000000E-04 2.500000E-04 0.000000E+00 " ]
expect 0 "$TRAIN" run $base --train-samples 16 --global-batch-size 4 --lr 1e-3 --lr-decay-tokens 1024 --lr-warmup-tokens 256 --no-save --eval-iters 0
check [ "$(sed -n 's/.*learning rate: *\([^ ]*\) .*/\1/p' .out | tr '\n' ' ')" = \
    "5.000000E-04 1.000000E-03 8.333333E-04 6.666667E-04 " ]

t "weight decay that grows changes the weights, and is checked"
expect 0 "$TRAIN" run $base --train-iters 3 --global-batch-size 4 --save w1 --eval-iters 0 --weight-decay 0.5
expect 0 "$TRAIN" run $base --train-iters 3 --global-batch-size 4 --save w2 --eval-iters 0 --start-weight-decay 0.5 --end-weight-decay 0.5 --weight-decay-incr-style linear
expect 0 "$TRAIN" run $base --train-iters 3 --global-batch-size 4 --save w3 --eval-iters 0 --start-weight-decay 0.5 --end-weight-decay 3 --weight-decay-incr-style linear
tensors w1/iter_0000003 >w1.bin
tensors w2/iter_0000003 >w2.bin
tensors w3/iter_0000003 >w3.bin
same w1.bin w2.bin
check sh -c '! cmp -s w2.bin w3.bin'
expect 2 "$TRAIN" run $base --train-iters 3 --end-weight-decay 0.1
err_has "expected --weight-decay-incr-style linear or cosine"
expect 2 "$TRAIN" run $base --train-iters 3 --global-batch-size 4 --rampup-batch-size 2 2 8
err_has "expected --train-samples or --train-tokens"
expect 2 "$TRAIN" run $base --train-samples 30 --num-layers 4 --global-batch-size 8 --rampup-batch-size 2 2 8 --nproc-per-node 2 \
    --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2
err_has "--rampup-batch-size: virtual pipeline stages take micro-batches in groups of 2"

t "--pad-vocab-in-loss counts the padded rows, in the loss and in checkpoints"
pad="--train-iters 2 --global-batch-size 4 --eval-iters 0 --pad-vocab-in-loss"
expect 0 "$TRAIN" run $base $pad --save pv
loss=$(sed -n 's/.*lm loss: *\([^ ]*\) .*/\1/p' .out | head -n 1)
check python3 -c "assert abs($loss - 4.852) < 0.1, $loss" # log 128, not log 60
expect 0 "$TRAIN" run $base $pad --save pw --exit-interval 1
expect 0 "$TRAIN" run $base $pad --save pw
tensors pv/iter_0000002 >pv.bin
tensors pw/iter_0000002 >pw.bin
same pv.bin pw.bin
expect 2 "$TRAIN" run $base --train-iters 3 --global-batch-size 4 --eval-iters 0 --save pw
err_has "vocab"

t "SGD-SaI and Muon train, and resume with the same bytes"
for o in sgd-sai muon; do
    run="--train-iters 4 --global-batch-size 4 --eval-iters 0 --optimizer $o --lr 1e-3"
    expect 0 "$TRAIN" run $base $run --save $o
    expect 0 "$TRAIN" run $base $run --save $o-2 --exit-interval 2
    expect 0 "$TRAIN" run $base $run --save $o-2
    tensors $o/iter_0000004 >a.bin
    tensors $o-2/iter_0000004 >b.bin
    same a.bin b.bin
done
has_file sgd-sai/iter_0000004/gsnr-00000.safetensors
expect 2 "$TRAIN" run $base --train-iters 4 --global-batch-size 4 --optimizer sgd-sai --sai-statistics shard --nproc-per-node 2 --zero-stage 1
err_has "expected --zero-stage 0"

t "the statistics of shards are saved where a rank holds padding of the vocabulary alone, and resume"
pad=$(echo "$base" | sed 's/--vocab-size [0-9]*/--vocab-size 64/; s/--data-path [^ ]*/--mock-data/')
shard="$pad --train-iters 4 --eval-iters 0 --optimizer sgd-sai --sai-statistics shard --nproc-per-node 2 --tensor-model-parallel-size 2"
for model in "" --untie-embeddings-and-output-weights; do
    rm -rf s1 s2
    expect 0 "$TRAIN" run $shard $model --save s1
    err_lacks "gradient of zero"
    expect 0 "$TRAIN" run $shard $model --save s2 --exit-interval 2
    expect 0 "$TRAIN" run $shard $model --save s2
    tensors s1/iter_0000004 >a.bin
    tensors s2/iter_0000004 >b.bin
    same a.bin b.bin
done
