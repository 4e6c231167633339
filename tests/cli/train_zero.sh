# SPDX-License-Identifier: Apache-2.0
# What data-parallel processes share out (ZeRO 1 to 3, instances), what is sent while others are computed.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1 --train-iters 12"
tensors() { cat "$1"/*.safetensors; }
flip() {
    python3 -c "f = open('$1', 'r+b'); f.seek(-100, 2); c = f.read(1); f.seek(-100, 2); f.write(bytes([c[0] ^ 4]))"
}
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
"$TRAIN" run $tiny --save one >/dev/null 2>&1

t "each ZeRO stage learns what one process learns, and resumes any other"
for stage in 2 3; do
    expect 0 "$TRAIN" run $tiny --save z$stage --num_gpus 2 --zero-stage $stage
    agree one z$stage
done
expect 0 "$TRAIN" run $tiny --save mixed --num_gpus 2 --zero-stage 3 --exit-interval 3
expect 0 "$TRAIN" run $tiny --save mixed --num_gpus 2 --zero-stage 1 --exit-interval 6
expect 0 "$TRAIN" run $tiny --save mixed --num_gpus 2 --zero-stage 2 --exit-interval 9
expect 0 "$TRAIN" run $tiny --save mixed
agree one mixed
expect 0 "$TRAIN" run $tiny $llama --save three --num_gpus 2 --zero-stage 3 --exit-interval 5
expect 0 "$TRAIN" run $tiny $llama --save three --num_gpus 2 --zero-stage 3
expect 0 "$TRAIN" run $tiny $llama --save unbroken --num_gpus 2 --zero-stage 3
tensors three/iter_0000012 >a.bin
tensors unbroken/iter_0000012 >b.bin
same a.bin b.bin

t "damage that another process than the first finds is told with its reason"
expect 0 "$TRAIN" run $tiny --save damaged --num_gpus 2 --tp 2 --save-interval 6
flip damaged/iter_0000012/param-00001.safetensors
expect 0 "$TRAIN" run $tiny --save damaged --num_gpus 2 --tp 2
err_has "damaged/iter_0000012 is passed over: damaged/iter_0000012/param-00001.safetensors"

t "where one process has no earlier checkpoint, it says so and all end"
cp -r damaged elsewhere
rm -r elsewhere/iter_0000006
flip elsewhere/iter_0000012/param-00001.safetensors
node() { # RANK FOLDER
    timeout 60 env RANK=$1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ * 89 % 12000)) \
        WEFT_JOB_TOKEN=the-token-of-this-test "$TRAIN" run $tiny --train-iters 18 --tp 2 --save "$2"
}
node 1 elsewhere >node1.out 2>node1.err &
expect 7 node 0 damaged
_code=0
wait $! || _code=$?
check [ "$_code" = 7 ]
check grep -q "no earlier checkpoint of that run is intact" node1.err
check [ ! -e damaged/iter_0000018 ]

t "gradients and weights on their way while others are computed: the same bytes"
for stage in 0 1 3; do
    small="--num_gpus 2 --zero-stage $stage --ddp-bucket-size 5000"
    expect 0 "$TRAIN" run $tiny --save late$stage $small
    expect 0 "$TRAIN" run $tiny --save early$stage $small --overlap-grad-reduce --overlap-param-gather
    tensors late$stage/iter_0000012 >a.bin
    tensors early$stage/iter_0000012 >b.bin
    same a.bin b.bin
done

t "two copies of what is shared out"
expect 0 "$TRAIN" run $tiny --save copies --micro-batch-size 1 --num_gpus 4 --zero-stage 2 --num-distributed-optimizer-instances 2
expect 0 "$TRAIN" run $tiny --save copies3 --micro-batch-size 1 --num_gpus 4 --zero-stage 3 --num-distributed-optimizer-instances 2 \
    --check-weight-hash-across-dp-replicas-interval 1
expect 0 "$CONVERT" verify copies3/iter_0000012

t "what cannot be or has no effect is told by name"
expect 2 "$TRAIN" plan $tiny --world-size 4 --pp 2 --zero-stage 2
err_has "ZeRO stage 2 with pipeline-model-parallel-size 2"
expect 2 "$TRAIN" plan $tiny --world-size 2 --num-distributed-optimizer-instances 2
err_has "--num-distributed-optimizer-instances 2: expected --use-distributed-optimizer"
expect 2 "$TRAIN" plan $tiny --world-size 2 --zero-stage 1 --num-distributed-optimizer-instances 3
err_has "num-distributed-optimizer-instances 3: expected a divisor of the 2"
expect 2 "$TRAIN" plan $tiny --world-size 2 --zero-stage 0 --use-distributed-optimizer
err_has "exclude each other"
expect 0 "$TRAIN" plan $tiny --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 100 --zero-stage 3
err_has "--overlap-grad-reduce has no effect with one data-parallel process"
err_has "--zero-stage has no effect with one data-parallel process"
expect 0 "$TRAIN" plan $tiny --world-size 2 --overlap-param-gather --micro-batch-size 1
err_has "--overlap-param-gather has no effect with --zero-stage 0"
expect 0 "$TRAIN" plan $tiny --world-size 2 --zero-stage 2 --ddp-bucket-size 100
err_has "--ddp-bucket-size has no effect with ZeRO 2 or 3"

t "the plan of each stage is smaller than that of the one before"
for stage in 0 1 2 3; do
    expect 0 "$TRAIN" plan $tiny --num-layers 12 --hidden-size 256 --world-size 4 --zero-stage $stage --micro-batch-size 1
    cp .out plan$stage
done
check python3 - <<'END'
import re
def slabs(stage):
    text = open(f"plan{stage}").read()
    return {n: float(re.search(n + r" ([0-9.]+) MiB", text)[1]) for n in ("parameters", "gradients", "optimizer")}
p = [slabs(s) for s in range(4)]
near = lambda a, b, low, high: low * b <= a <= high * b
assert near(p[1]["optimizer"], p[0]["optimizer"], 0.24, 0.26), p
assert p[1]["gradients"] == p[1]["parameters"], p
assert near(p[2]["gradients"], p[1]["gradients"], 0.25, 0.5) and p[2]["parameters"] >= p[1]["parameters"], p
assert near(p[3]["parameters"], p[0]["parameters"], 0.25, 0.5), p
END
