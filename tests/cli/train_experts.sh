# SPDX-License-Identifier: Apache-2.0
# A mixture of experts: it learns, resumes, goes to transformers' Mixtral and comes back; its experts on other processes change
# nothing.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
mixture="$tiny --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 24
    --moe-aux-loss-coeff 1e-2 --moe-z-loss-coeff 1e-3"

# the numbers of two runs agree to 1e-3 of their size, step by step
agree() {
    check python3 - "$1/metrics.jsonl" "$2/metrics.jsonl" <<'END'
import json, sys
keys = ("iteration", "lm_loss", "load_balancing_loss", "z_loss", "grad_norm", "consumed_samples")
a, b = ([{k: v for k, v in json.loads(l).items() if k in keys} for l in open(p)] for p in sys.argv[1:3])
assert len(a) == len(b) > 0 and "load_balancing_loss" in a[0], (len(a), len(b))
for x, y in zip(a, b):
    assert x.keys() == y.keys() and all(abs(x[k] - y[k]) <= 1e-3 * abs(x[k]) for k in x), (x, y)
END
}

t "a mixture of experts learns, and says how its load is balanced"
expect 0 "$TRAIN" run $mixture --train-iters 8 --save alone --log-format megatron-core
out_has "load_balancing_loss: "
check [ "$(grep -c 'z_loss: ' .out)" -gt 0 ]

t "its experts on other processes change nothing"
expect 0 "$TRAIN" run $mixture --train-iters 8 --save spread --nproc-per-node 2 --expert-model-parallel-size 2
agree alone spread
expect 0 "$TRAIN" run $mixture --train-iters 8 --save whole --nproc-per-node 2 --tp 2 --sequence-parallel --expert-tensor-parallel-size 1 \
    --use-distributed-optimizer
agree alone whole

t "where they have no room for all tokens at once, nothing is dropped, and a line says so"
expect 0 "$TRAIN" run $mixture --train-iters 8 --save rounds --nproc-per-node 2 --expert-model-parallel-size 2 --expert-buffer-factor 1
err_has "warning: step 1: in 100.0 % of the passes of layers with experts one process got more tokens"
agree alone rounds
expect 2 "$TRAIN" plan $mixture --world-size 2 --ep 2 --expert-buffer-factor 0.9
err_has "--expert-buffer-factor"
expect 0 "$TRAIN" plan $mixture --expert-buffer-factor 3
err_has "--expert-buffer-factor has no effect with --expert-model-parallel-size 1"

t "with ZeRO 2 and 3 each experts' copies share out their weights; any layout of experts resumes any other"
expect 0 "$TRAIN" run $mixture --train-iters 8 --save shared --nproc-per-node 4 --tp 2 --sequence-parallel --ep 2 \
    --expert-tensor-parallel-size 1 --zero-stage 3 --exit-interval 3 --check-weight-hash-across-dp-replicas-interval 1
expect 0 "$TRAIN" run $mixture --train-iters 8 --save shared --nproc-per-node 2 --ep 2 --zero-stage 2 --exit-interval 6
expect 0 "$TRAIN" run $mixture --train-iters 8 --save shared
agree alone shared

t "what cannot be is refused by name"
expect 2 "$TRAIN" plan $mixture --world-size 4 --micro-batch-size 1 --ep 2 --zero-stage 1 --num-distributed-optimizer-instances 2
err_has "expected one distributed optimizer instance, not 2"
expect 2 "$TRAIN" run $mixture --train-iters 1 --no-save --nproc-per-node 2 --expert-model-parallel-size 4
err_has "expected a divisor of the 2 ranks of a pipeline stage"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --nproc-per-node 2 --expert-model-parallel-size 2
err_has "the model has no experts"
expect 2 "$TRAIN" run $mixture --moe-router-topk 1 --train-iters 1 --no-save
err_has "moe-router-topk 1"
