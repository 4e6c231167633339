# SPDX-License-Identifier: Apache-2.0
# `train run --deepspeed --deepspeed_config FILE`, and the names of Megatron-LM v1.1.5.
. "$SRC/tests/cli/train_data.sh"
ds="--deepspeed --deepspeed_config ds.json"
run="$tiny --train-iters 3 --no-save --log-interval 1"
# shellcheck disable=SC2086
two="$TRAIN run $run --nproc-per-node 2 --threads 1"

t "the file's values count, and what has no effect beside them is named"
cat >ds.json <<'DS'
{
  // as people write it
  "train_batch_size": 4,
  "train_micro_batch_size_per_gpu": 2, # each
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": true, "reduce_scatter": true},
  "gradient_clipping": 0.5,
  "optimizer": {"type": "Adam", "params": {"lr": 0.1}},
  "steps_per_print": "auto",
}
DS
expect 0 $two $ds --zero-stage 0 --clip-grad 1.0
err_has "--zero-stage has no effect: ds.json says 2"
err_has "--clip-grad has no effect: ds.json says 0.5"
err_has "ds.json: without effect here: zero_optimization.reduce_bucket_size, zero_optimization.reduce_scatter, optimizer, steps_per_print"
sed 's/.*lm loss/lm loss/; s/samples per second.*//' .out >with
expect 0 $two --compat megatron-deepspeed --zero-stage 2 --overlap-grad-reduce --clip-grad 0.5
sed 's/.*lm loss/lm loss/; s/samples per second.*//' .out >without
same with without
check [ -s with ]
expect 0 "$TRAIN" run --print-config $run $ds
check grep -q "^zero-stage = 2  *# ds.json" .out
expect 0 "$TRAIN" plan $tiny --train-iters 3 --world-size 2 $ds
err_lacks "unknown"

t "a missing stage is 0"
echo '{"train_batch_size": 4}' >ds.json
expect 0 "$TRAIN" run --dry-run $run $ds --zero-stage 1
out_has "used           ds.json: zero_optimization.stage (not there): --zero-stage 0"
out_has "without effect --zero-stage: ds.json says 0"

t "batch sizes must agree"
expect 2 "$TRAIN" run $run $ds --global-batch-size 8
err_has "ds.json: train_batch_size is 4, and --global-batch-size is another number"
echo '{"train_micro_batch_size_per_gpu": 1}' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "ds.json: train_micro_batch_size_per_gpu is 1, and --micro-batch-size is another number"
echo '{"train_batch_size": 4, "gradient_accumulation_steps": 4}' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "--global-batch-size 4 is not --micro-batch-size 2 x --gradient-accumulation-steps 4 x 1 data-parallel processes"
echo '{"train_batch_size": 4, "gradient_accumulation_steps": 2}' >ds.json
expect 0 "$TRAIN" run $run $ds
expect 2 $two $ds
err_has "x 2 data-parallel processes"

t "what changes the mathematics stops the run, unless it is off"
for key in '"amp": {"enabled": true}' '"zero_optimization": {"zero_quantized_weights": true}' \
    '"sparse_attention": {"mode": "fixed"}' '"zero_optimization": {"offload_param": {"device": "nvme"}}'; do
    echo "{$key}" >ds.json
    expect 2 "$TRAIN" run $run $ds
    err_has "ds.json: "
    err_has " is not supported: "
done
echo '{"amp": {"enabled": false}, "sparse_attention": {}, "zero_optimization": {"mics_shard_size": -1, "offload_param": {"device": "cpu"}},
       "fp16": {"enabled": false, "hysteresis": 4}}' >ds.json
expect 0 "$TRAIN" run $run $ds
err_has "ds.json: without effect here: amp, sparse_attention, zero_optimization.mics_shard_size, zero_optimization.offload_param, fp16.enabled, fp16.hysteresis"

t "fp16 with its loss scale and DeepSpeed's rule"
echo '{"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 11, "hysteresis": 3, "consecutive_hysteresis": true}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds
out_has "loss scale: 2048.0 |"
expect 0 "$TRAIN" run --print-config $run $ds
check grep -Eq '^loss-scale-rule *= *"?deepspeed' .out
check grep -Eq '^loss-scale-consecutive-hysteresis *= *true' .out
echo '{"fp16": {"enabled": true}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds
out_has "loss scale: 65536.0 |"

t "options that are given win over what DeepSpeed has where the file says nothing"
expect 0 "$TRAIN" run --device cpu $run $ds --initial-loss-scale 128
out_has "loss scale: 128.0 |"
expect 0 "$TRAIN" run --print-config --device cpu $run $ds --loss-scale-rule megatron
check grep -Eq '^loss-scale-rule *= *"?megatron' .out
echo '{"fp16": {"enabled": true, "loss_scale": 32}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds
out_has "loss scale: 32.0 |"
expect 0 "$TRAIN" run --dry-run --device cpu $run $ds
check [ -z "$(grep initial_scale_power .out)" ]
echo '{"fp16": {"enabled": false}}' >ds.json
expect 0 "$TRAIN" run --print-config --device cpu $run $ds
check grep -Eq '^loss-scale-rule *= *"?megatron' .out

t "auto is what the command line says"
echo '{"fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 10, "hysteresis": 3}, "bf16": {"enabled": "auto"},
       "train_batch_size": "auto", "gradient_clipping": "auto", "zero_optimization": {"stage": 0, "reduce_bucket_size": "auto"},
       "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "amp": {"enabled": "auto", "opt_level": "auto"}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds --fp16
out_has "loss scale: 1024.0 |"
err_lacks "has no effect"
expect 0 "$TRAIN" run --print-config --device cpu $run $ds --fp16 --clip-grad 0.25
check grep -Eq '^loss-scale-rule *= *"?deepspeed' .out
check grep -Eq '^hysteresis *= *3' .out
check grep -Eq '^clip-grad *= *0.25' .out
expect 0 "$TRAIN" run --device cpu $run $ds
out_has "loss scale: 1.0 |"
expect 0 "$TRAIN" run --dry-run $run $ds --bf16
out_has "without effect ds.json: fp16.enabled: taken from the options"
out_has "without effect ds.json: fp16.hysteresis: the block is not enabled"
out_has "without effect ds.json: amp: that is the default"
expect 2 "$TRAIN" run --device cpu $run $ds --bf16 --fp16
err_has "ds.json: fp16 and bf16 are both enabled"
echo '{"fp16": {"enabled": "auto"}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds --fp16
out_has "loss scale: 65536.0 |"

t "wall_clock_breakdown false leaves the timers of the command line"
echo '{"wall_clock_breakdown": false}' >ds.json
expect 0 "$TRAIN" run $run $ds --timing-log-level 1
out_has "forward-backward"
err_lacks "has no effect"
expect 0 "$TRAIN" run --dry-run $run $ds --timing-log-level 1
out_has "without effect ds.json: wall_clock_breakdown: --timing-log-level says what is timed"
echo '{"wall_clock_breakdown": 1}' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "ds.json: wall_clock_breakdown: expected true or false"

t "enabled is true or false"
for v in 1 '"true"' null; do
    echo "{\"fp16\": {\"enabled\": $v, \"loss_scale\": 64}}" >ds.json
    expect 2 "$TRAIN" run --device cpu $run $ds
    err_has "ds.json: fp16.enabled: expected true or false"
done

t "the file counts where it has the default and the option has not"
echo '{"fp16": {"enabled": false}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds --fp16
err_has "--fp16 has no effect: ds.json says false"
out_has "loss scale: 1.0 |"
echo '{"bf16": {"enabled": true}, "bfloat16": {"enabled": false}}' >ds.json
expect 0 "$TRAIN" run --print-config --device cpu $run $ds
check grep -Eq '^bf16 *= *true' .out
echo '{"fp16": {"enabled": true, "loss_scale": 0}}' >ds.json
expect 0 "$TRAIN" run --device cpu $run $ds --loss-scale 64
err_has "--loss-scale has no effect: ds.json says dynamic"
out_has "loss scale: 65536.0 |"
expect 0 "$TRAIN" run --dry-run --device cpu $run $ds --loss-scale 64
out_has "used           ds.json: fp16.loss_scale: --loss-scale dynamic"
out_has "without effect --loss-scale: ds.json says dynamic"
expect 0 "$TRAIN" run --print-config --device cpu $run $ds --loss-scale 64
check grep -q "^# loss-scale is not set  *# ds.json" .out

t "numbers are finite"
for v in NaN 1e400 -1e400; do
    echo "{\"gradient_clipping\": $v}" >ds.json
    expect 2 "$TRAIN" run $run $ds
    err_has "ds.json: gradient_clipping: expected a finite number"
done
echo '{"fp16": {"enabled": true, "initial_scale_power": 61}}' >ds.json
expect 2 "$TRAIN" run --device cpu $run $ds
err_has "expected an integer from 0 to 60"

t "unknown keys are warned of, with the one that was meant"
echo '{"train_batchsize": 4, "zero_optimization": {"reduce_bucketsize": 3}, "qqqqqqqqqq": 1}' >ds.json
expect 0 "$TRAIN" run $run $ds
err_has "ds.json: unknown key train_batchsize (did you mean train_batch_size?)"
err_has "ds.json: unknown key zero_optimization.reduce_bucketsize (did you mean zero_optimization.reduce_bucket_size?)"
err_has "ds.json: unknown key qqqqqqqqqq"
expect 0 "$TRAIN" run --dry-run $run $ds
out_has "unknown        ds.json: train_batchsize: perhaps train_batch_size"
out_has "ds.json: 3 keys: 0 used, 0 without effect, 0 not supported, 3 unknown"

t "a file that cannot be read, or is not one"
expect 4 "$TRAIN" run $run --deepspeed --deepspeed_config none.json
err_has "none.json"
echo '{"a": }' >ds.json
expect 3 "$TRAIN" run $run $ds
err_has "ds.json"
echo '[]' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "ds.json: expected an object"
echo '{"zero_optimization": {"stage": 7}}' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "ds.json: zero_optimization.stage: --zero-stage"
echo '{"fp16": {"enabled": true}, "bf16": {"enabled": true}}' >ds.json
expect 2 "$TRAIN" run $run $ds
err_has "ds.json: fp16 and bf16 are both enabled"

t "either of the two options alone has no effect"
expect 0 "$TRAIN" run $run --deepspeed_config none.json
err_has "--deepspeed_config has no effect without --deepspeed"
expect 0 "$TRAIN" run $run --deepspeed
err_has "--deepspeed has no effect without --deepspeed_config"

t "names of Megatron-LM v1.1.5"
old=$(echo "$run" | sed 's/--micro-batch-size/--batch-size/; s/--global-batch-size [0-9]*//')
expect 0 "$TRAIN" run $old --gas 2 --model-parallel-size 1 --pipe-parallel-size 1 --warmup 0.4 --checkpoint-activations --checkpoint-num-layers 1 --distributed-backend nccl --data-impl mmap
sed 's/.*learning rate/learning rate/' .out >with
expect 0 "$TRAIN" run $run --lr-warmup-fraction 0.4 --compat v1.1.5
sed 's/.*learning rate/learning rate/' .out >without
check [ -s with ]
same with without

t "mock data: a run without files, resumed, evaluated"
mock=$(echo "$run" | sed 's/--data-path [^ ]*/--mock-data/; s/--no-save//; s/--train-iters 3//')
expect 0 "$TRAIN" run $mock --train-iters 4 --save whole
sed 's/.*consumed/consumed/; s/elapsed[^|]*//' .out >one
expect 0 "$TRAIN" run $mock --train-iters 4 --exit-interval 2 --save cut
expect 0 "$TRAIN" run $mock --train-iters 4 --save cut
sed 's/.*consumed/consumed/; s/elapsed[^|]*//' .out >two
check grep -q "lm loss" two
tail -n "$(wc -l <two)" one >last
same last two
expect 0 "$TRAIN" eval --load whole --mock-data --eval-iters 2
out_has "tokens of the mock data"
expect 0 "$TRAIN" run $mock --train-iters 1 --no-save --data-rules v1 --no-index-cache
err_has "--data-rules has no effect: --mock-data has no files"
err_has "--no-index-cache has no effect: --mock-data has no files"
expect 2 "$TRAIN" run $run --mock-data
err_has "--mock-data and a --data-path exclude each other"
expect 2 "$TRAIN" run $mock --train-iters 1 --no-save --split 100,0.0001,0 --full-validation
err_has "--mock-data: --split 100,0.0001,0 leaves the valid share no sample"
