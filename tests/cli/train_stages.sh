# SPDX-License-Identifier: Apache-2.0
# Pipeline stages of any number of layers, interleaved ones; optimizers by their name.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
mpi_probe $tiny
# the numbers of two runs agree to 1e-4 of their size, step by step
agree() {
    check python3 - "$1/metrics.jsonl" "$2/metrics.jsonl" <<'END'
import json, sys
keys = ("iteration", "lm_loss", "grad_norm", "valid_loss", "test_loss", "consumed_samples", "learning_rate")
a, b = ([{k: v for k, v in json.loads(l).items() if k in keys} for l in open(p)] for p in sys.argv[1:3])
assert len(a) == len(b) > 0, (len(a), len(b))
for x, y in zip(a, b):
    assert x.keys() == y.keys(), (x, y)
    assert all(abs(x[k] - y[k]) <= 1e-4 * abs(x[k]) for k in x), (x, y)
END
}
same_weights() { check [ "$(cat "$1"/iter_*/*.safetensors | sha256sum)" = "$(cat "$2"/iter_*/*.safetensors | sha256sum)" ]; }

t "SGD with momentum: resumes as if it had not stopped, and is no AdamW"
sgd="--optimizer sgd --lr 0.1 --keep-checkpoints 1"
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save sgd
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save again --exit-interval 5
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save again
same_weights sgd again
check grep -q '"group": *"momentum_buffer"' again/iter_0000008/manifest.json
expect 0 "$TRAIN" run $tiny $sgd --sgd-momentum 0 --train-iters 2 --save plain
check [ -z "$(grep momentum_buffer plain/iter_0000002/manifest.json)" ]
expect 0 "$TRAIN" run $tiny $sgd --sgd-momentum 0 --train-iters 4 --save plain
err_has "resuming from plain/iter_0000002"
expect 2 "$TRAIN" run $tiny --lr 0.1 --train-iters 9 --save plain
err_has "plain/iter_0000004 was saved without the optimizer's state"

t "uneven and interleaved stages learn what one process learns"
four="$tiny --num-layers 4 --global-batch-size 8"
"$TRAIN" run $four --train-iters 10 --save one >/dev/null 2>&1
expect 0 any_ranks 4 "$TRAIN" run $four --train-iters 10 --save uneven --pp 4 --balance 0-3-1-0
agree one uneven
expect 0 "$CONVERT" verify uneven/iter_0000010
expect 0 any_ranks 2 "$TRAIN" run $four --train-iters 10 --save chunks --pp 2 --num-layers-per-virtual-pipeline-stage 1
agree one chunks
expect 0 any_ranks 2 "$TRAIN" run $four --train-iters 10 --save string --pp 2 --pipeline-model-parallel-layout 'E|t*3|t|L' --exit-interval 5
expect 0 "$TRAIN" run $four --train-iters 10 --save string
agree one string

t "every way to say which layers a stage has"
plan() { expect 0 "$TRAIN" plan $four --num-layers 12 --world-size 4 --pp 4 "$@"; }
plan --balance 0-6-6-0
out_has "stages          0-6-6-0 layers on 4 processes"
plan --pipeline-partition 1-2-3-6
out_has "1-2-3-6 layers"
plan --decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 4
out_has "2-3-3-4 layers"
plan --num-layers 14 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
out_has "3-4-4-3 layers"
plan --num-layers 14 --pp-partition-method 'type:transformer|embedding'
out_has "3-4-4-3 layers"
plan --num-virtual-stages-per-pipeline-rank 3
out_has "1-1-1-1-1-1-1-1-1-1-1-1 layers"
plan --pipeline-model-parallel-layout 'E|(tt|)*6L'
out_has "0-2-2-2-2-2-2-0 layers"
expect 2 "$TRAIN" plan $four --world-size 4 --pp 4 --balance 0-3-1
err_has "--balance 0-3-1 has 3 stages: expected pipeline-model-parallel-size 4"
expect 2 "$TRAIN" plan $four --world-size 4 --pp 4 --balance 0-3-1-1
err_has "--balance 0-3-1-1 has 5 layers: expected num-layers 4"
expect 2 "$TRAIN" plan $four --world-size 2 --pp 2 --num-virtual-stages-per-pipeline-rank 2 --micro-batch-size 8
err_has "expected a multiple of it, not 1"

t "the run file of eight uneven stages"
file="--config $SRC/samples/gpt-uneven.toml --tokenizer-type NullTokenizer --vocab-size 60 --data-path d_text_document
    --train-iters 2 --log-interval 1 --split 100,0,0 --threads 1"
expect 0 "$TRAIN" run $file --save eight-1 --pp 1 --balance 48
expect 0 any_ranks 8 "$TRAIN" run $file --save eight
out_has "iteration        2/       2 |"
agree eight-1 eight

t "recomputation takes less memory and gives the same bytes"
deep="$tiny --num-layers 6"
activations() { sed -n 's/.*activations \([0-9.]*\) MiB.*/\1/p' .out; }
less() { check awk "BEGIN {exit !($1 < $2)}"; }
expect 0 "$TRAIN" plan $deep --micro-batch-size 8 --global-batch-size 8
all=$(activations)
expect 0 "$TRAIN" plan $deep --micro-batch-size 8 --global-batch-size 8 --recompute-activations
less "$(activations)" "$all"
expect 0 "$TRAIN" plan $deep --micro-batch-size 8 --global-batch-size 8 --checkpoint-activations
less "$(activations)" "$all"
expect 0 "$TRAIN" run $deep --train-iters 3 --save plain-6
for how in "--recompute-granularity selective" "--checkpoint-activations --checkpoint-num-layers 2" \
    "--recompute-granularity full --recompute-method block --recompute-num-layers 4"; do
    rm -rf again-6
    expect 0 "$TRAIN" run $deep --train-iters 3 --save again-6 $how
    same_weights plain-6 again-6
done
expect 0 any_ranks 2 "$TRAIN" run $deep --train-iters 3 --save tp-6 --tp 2
expect 0 any_ranks 2 "$TRAIN" run $deep --train-iters 3 --save tp-6-parts --tp 2 --checkpoint-activations --distribute-saved-activations
same_weights tp-6 tp-6-parts
expect 2 "$TRAIN" plan $deep --recompute-granularity full
err_has "expected --recompute-method uniform or block"
expect 2 "$TRAIN" plan $deep --recompute-granularity full --recompute-method block
err_has "expected --recompute-num-layers from 1 to 6"
expect 2 "$TRAIN" plan $deep --checkpoint-activations --distribute-saved-activations
err_has "expected a --tensor-model-parallel-size above 1"

t "the mean over tokens: another objective, which the size of a micro-batch does not change"
masked="$tiny --eod-mask-loss --hidden-dropout 0.1 --attention-dropout 0.1"
expect 0 "$TRAIN" run $masked --train-iters 6 --save per-token --calculate-per-token-loss
expect 0 "$TRAIN" run $masked --train-iters 6 --save per-token-1 --calculate-per-token-loss --micro-batch-size 1
agree per-token per-token-1
expect 0 any_ranks 2 "$TRAIN" run $masked --train-iters 6 --save per-token-2 --calculate-per-token-loss
agree per-token per-token-2

t "--use-tp-pp-dp-mapping: stages are numbered before data-parallel ranks, with the same results"
for mapping in "" --use-tp-pp-dp-mapping; do
    # shellcheck disable=SC2086
    expect 0 "$TRAIN" run $tiny --train-iters 3 --save "map$mapping" --pp 2 --nproc-per-node 4 $mapping
done
same_weights map map--use-tp-pp-dp-mapping
# the ranks that wrote weights: 0 and 2 of the first pipeline, or 0 and 1
check [ "$(cd map/iter_0000003 && echo param-*)" = "param-00000.safetensors param-00002.safetensors" ]
check [ "$(cd map--use-tp-pp-dp-mapping/iter_0000003 && echo param-*)" = "param-00000.safetensors param-00001.safetensors" ]
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --pp 2 --nproc-per-node 2 --use-tp-pp-dp-mapping
err_has "--use-tp-pp-dp-mapping has no effect with one data-parallel process"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --use-tp-pp-dp-mapping
err_has "--use-tp-pp-dp-mapping has no effect with one data-parallel process"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --nproc-per-node 2 --use-tp-pp-dp-mapping
err_has "--use-tp-pp-dp-mapping has no effect with one pipeline stage"
