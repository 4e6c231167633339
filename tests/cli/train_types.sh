# SPDX-License-Identifier: Apache-2.0
# Types of 16 bits, the loss scale, and the types of what the optimizer keeps.
. "$SRC/tests/cli/train_data.sh"
cpu="--device cpu --eval-interval 100 --eval-iters 0"
steps() { sed 's/, "ms": [^,]*, "data_ms": [^,]*, "tflops": [^,]*//; s/, "time": [0-9]*//' "$1/metrics.jsonl"; }

# FASOP's GPT-2 run: 15 skipped steps from 2^32, and learning rates that they delay. The weights are large
# and the sequences short, so that gradients overflow from 2^19 on as that run's did.
t "the scale, skipped steps and learning rates of seed 002's log"
expect 0 "$TRAIN" run $tiny $cpu --fp16 --micro-batch-size 32 --global-batch-size 64 --seq-length 1 --init-method-std 0.9 \
    --lr 1.5e-4 --lr-decay-style cosine --lr-decay-iters 320000 --lr-warmup-fraction 0.01 --train-iters 50 --log-interval 10 \
    --log-format megatron-v3 --save seed
out_has "learning rate: 0.000E+00 | global batch size:    64 | loss scale: 8388608.0 | grad norm: nan | number of skipped iterations:  10 |"
for i in "30.7.031E-07" "40.1.172E-06" "50.1.641E-06"; do
    grep "iteration  *${i%%.*}/ *50 |" .out >.line
    check grep -q "consumed samples: *$((${i%%.*} * 64)) |" .line
    check grep -q "learning rate: ${i#*.} | global batch size:    64 |" .line
    check grep -q "loss scale: 262144.0 | grad norm: [0-9.]* | number of skipped iterations:   0 |" .line
done
check [ "$(grep -c '"skipped": 1' seed/metrics.jsonl)" = 15 ]

t "what only a GPU does is named on the CPU, and nothing is said of defaults"
expect 0 "$TRAIN" run $tiny $cpu --train-iters 1 --no-save --tf32 --tokens-per-pass 0
err_has "warning: --tf32 has no effect: it is for fp32 on a GPU"
err_has "warning: --tokens-per-pass has no effect: it is for a GPU"
expect 0 "$TRAIN" run $tiny $cpu --train-iters 1 --no-save
err_lacks "has no effect"
expect 0 "$TRAIN" run $tiny $cpu --train-iters 1 --no-save --no-deterministic
err_has "warning: --no-deterministic has no effect: it is for a GPU"
expect 2 "$TRAIN" run $tiny $cpu --train-iters 1 --no-save --no-deterministic --deterministic-mode
err_has "--no-deterministic and --deterministic-mode exclude each other"

# resumes STOP OPTION...: a run of 12 steps that stops after STOP ends with the bytes of one that does not
resumes() {
    stop=$1
    shift
    rm -rf a b
    expect 0 "$TRAIN" run $tiny $cpu "$@" --train-iters 12 --save a
    expect 0 "$TRAIN" run $tiny $cpu "$@" --train-iters 12 --save b --exit-interval "$stop"
    no_file b/iter_0000012
    expect 0 "$TRAIN" run $tiny $cpu "$@" --train-iters 12 --save b
    cat a/iter_0000012/*.safetensors >a.bin
    cat b/iter_0000012/*.safetensors >b.bin
    same a.bin b.bin
    steps a >a.steps
    steps b >b.steps
    same a.steps b.steps
}
scaled="--fp16 --initial-loss-scale 16777216 --loss-scale-window 4"
t "a stopped run resumes as if it had not stopped, in every type"
for types in --bf16 "$scaled" "--loss-scale 1024 --bf16 --grad-reduce-in-bf16" \
    "--bf16 --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --main-params-dtype bf16" \
    "--use-precision-aware-optimizer --exp-avg-dtype bf16"; do
    resumes 7 $types
done

for optimizer in "sgd --lr 0.1" "sgd --sgd-momentum 0 --lr 0.1" "sgd-sai --lr 1e-3" "sgd-sai --sai-normalize max --lr 1e-3" "muon --lr 1e-2"; do
    t "likewise with --optimizer $optimizer in fp32, bf16 and fp16"
    for types in "" --bf16 "$scaled"; do
        resumes 7 --optimizer $optimizer $types
    done
done

bf16="--bf16 --use-precision-aware-optimizer --main-params-dtype bf16"
random="$bf16 --stochastic-rounding"
t "likewise with stochastic rounding, of every optimizer's state"
resumes 7 $random --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16
resumes 7 --use-precision-aware-optimizer --exp-avg-sq-dtype bf16 --stochastic-rounding
for optimizer in "sgd --lr 0.1" "sgd-sai --lr 1e-3" "muon --lr 1e-2"; do
    resumes 7 $random --optimizer $optimizer
done

t "updates below half of the spacing of bf16 are lost, but not with stochastic rounding"
for types in --bf16 "$bf16" "$random"; do
    expect 0 "$TRAIN" run $tiny $cpu $types --init-method-std 0.1 --lr 1e-5 --lr-decay-style constant --train-iters 100 \
        --log-interval 50 --no-save
    grep -o "lm loss: [^ ]*" .out | tail -1 | sed 's/.*: //' >>losses
done
check awk '{ loss[NR] = $1 } END { exit !(NR == 3 && loss[2] > loss[1] + 0.03 && loss[3] < loss[1] + 0.01) }' losses

t "likewise before the first step that is taken, and SGD-SaI measures that one"
resumes 2 --optimizer sgd-sai --lr 1e-3 --fp16 --hysteresis 1 --initial-loss-scale 268435456
check grep -q '"iteration": 3,.*"skipped": 1' a.steps
check grep -q '"iteration": 12,.*"skipped": 0' a.steps

t "the scale is in the checkpoint, and another layout resumes with it"
rm -rf a b
fp16="--fp16 --initial-loss-scale 16777216 --loss-scale-window 4"
expect 0 "$TRAIN" run $tiny $cpu $fp16 --train-iters 12 --save a --exit-interval 7
cp -r a b
check grep -q '"loss_scale": "[0-9]*"' a/iter_0000007/manifest.json
expect 0 "$TRAIN" run $tiny $cpu $fp16 --train-iters 12 --save a
expect 0 "$TRAIN" run $tiny $cpu $fp16 --train-iters 12 --save b --nproc-per-node 4 --tensor-model-parallel-size 2 --zero-stage 1
sed 's/.*\("loss_scale": [^,]*\).*\("skipped": .\).*/\1 \2/' a/metrics.jsonl >a.scales
sed 's/.*\("loss_scale": [^,]*\).*\("skipped": .\).*/\1 \2/' b/metrics.jsonl >b.scales
same a.scales b.scales
check grep -q '"skipped": 1' a.scales

t "an overflow that lowers the scale is no anomaly"
expect 0 "$TRAIN" run $tiny $cpu $fp16 --train-iters 4 --no-save --log-interval 1 --on-anomaly stop
out_has "number of skipped iterations:   1 |"

t "under a scale that moves, a loss that is not finite or too high is one"
expect 6 "$TRAIN" run $tiny $cpu --fp16 --initial-loss-scale 16 --lr 1e6 --train-iters 8 --no-save --on-anomaly stop
err_has ": the loss is nan"
expect 6 "$TRAIN" run $tiny $cpu --fp16 --lr 1e-9 --train-iters 60 --no-save --on-anomaly stop --loss-spike-factor 1
err_has "is above 1 times the mean of the last steps: no update"

t "a fixed scale of a power of two changes no bit of an fp32 run"
rm -rf a b
expect 0 "$TRAIN" run $tiny $cpu --train-iters 6 --save a
expect 0 "$TRAIN" run $tiny $cpu --train-iters 6 --save b --loss-scale 65536
cat a/iter_0000006/*.safetensors >a.bin
cat b/iter_0000006/*.safetensors >b.bin
same a.bin b.bin
out_has "loss scale: 65536.0 |"

t "DeepSpeed's rule ends the run on an overflow at the least scale"
rm -rf a
expect 1 "$TRAIN" run $tiny $cpu --fp16 --loss-scale-rule deepspeed --min-loss-scale 1e9 --train-iters 20 --no-save
err_has "gradients overflow at a loss scale of 1e+09, which is the least (--min-loss-scale)"

t "what does not fit is refused by name, and what has no effect is said"
expect 2 "$TRAIN" run $tiny $cpu --bf16 --fp16 --train-iters 1 --no-save
err_has "--bf16 and --fp16: expected one of them"
expect 2 "$TRAIN" run $tiny $cpu --bf16 --use-precision-aware-optimizer --exp-avg-dtype fp8 --train-iters 1 --no-save
err_has "--exp-avg-dtype fp8: scaled 8- and 16-bit states are not implemented"
expect 2 "$TRAIN" run $tiny $cpu --use-precision-aware-optimizer --main-params-dtype fp16 --train-iters 1 --no-save
err_has "--main-params-dtype fp16"
expect 2 "$TRAIN" run $tiny $cpu --use-precision-aware-optimizer --optimizer sgd --exp-avg-dtype bf16 --train-iters 1 --no-save
err_has "expected --optimizer adam"
expect 0 "$TRAIN" run $tiny $cpu --exp-avg-dtype bf16 --hysteresis 4 --train-iters 1 --no-save
err_has "--exp-avg-dtype"
err_has "--hysteresis"
expect 0 "$TRAIN" run $tiny $cpu --bf16 --use-precision-aware-optimizer --stochastic-rounding --train-iters 1 --no-save
err_has "--stochastic-rounding has no effect without --main-params-dtype bf16"
expect 0 "$TRAIN" run $tiny $cpu --bf16 --stochastic-rounding --train-iters 1 --no-save
err_has "--stochastic-rounding has no effect without --use-precision-aware-optimizer"

for scale in --loss-scale --initial-loss-scale --min-loss-scale; do
    expect 2 "$TRAIN" run $tiny $cpu --fp16 $scale 1e31 --train-iters 1 --no-save
    err_has "$scale 1e+31: expected at most 2^100"
done

t "a scale above 1e30 is resumed"
rm -rf a
expect 0 "$TRAIN" run $tiny $cpu --fp16 --initial-loss-scale 1.2e30 --hysteresis 9 --train-iters 2 --save a --exit-interval 1
expect 0 "$TRAIN" run $tiny $cpu --fp16 --initial-loss-scale 1.2e30 --hysteresis 9 --train-iters 2 --save a --log-interval 1
out_has "loss scale: 1199999999999999"

t "3 steps of the 0.125B recipe in fp16, with the scale of its script's JSON, by two processes"
[ -n "${WEFT_FULL:-}" ] || skip "takes a minute of two processors; WEFT_FULL=1 runs it"
[ -z "${WEFT_FULL:-}" ] || {
    mpi_probe $tiny $cpu
    expect 0 any_ranks 2 "$TRAIN" run --config "$SRC/samples/gpt-0.125b-fp16.toml" --tokenizer-type NullTokenizer --vocab-size 60 \
        --data-path d_text_document --seq-length 256 --global-batch-size 2 --train-samples 6 --lr-decay-samples 6 --lr-warmup-samples 2 \
        --log-interval 1 --save-interval 0 --no-index-cache --split 100,0,0 $cpu
    check [ "$(grep -c "number of skipped iterations:   0 | number of nan iterations:   0 |" .out)" = 3 ]
    check [ "$(grep -c "loss scale: 2048.0 |" .out)" = 3 ]
}
