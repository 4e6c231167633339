# SPDX-License-Identifier: Apache-2.0
# What a run tells and is told: TensorBoard's event files, the memory line, throughput, the control file, SIGUSR2.
. "$SRC/tests/cli/train_data.sh"
run="$tiny --log-interval 1 --eval-interval 4"

# points DIR: "tag step" of all event files, in the order of their names; fails on a wrong checksum
cat >points.py <<'END2'
import glob, struct, sys

def crc(b):
    c = 0xffffffff
    for x in b:
        c ^= x
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    c ^= 0xffffffff
    return (c >> 15 | c << 17) + 0xa282ead8 & 0xffffffff

def fields(b):
    at = 0
    def varint():
        nonlocal at
        v = shift = 0
        while True:
            x = b[at]
            at += 1
            v |= (x & 127) << shift
            shift += 7
            if x < 128:
                return v
    while at < len(b):
        key = varint()
        if key & 7 == 0:
            v = varint()
        else:
            n = {1: 8, 5: 4, 2: None}[key & 7]
            n = varint() if n is None else n
            v, at = b[at:at + n], at + n
        yield key >> 3, v

for path in sorted(glob.glob(sys.argv[1] + "/*tfevents*")):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        n, = struct.unpack_from("<Q", data, at)
        payload = data[at + 12:at + 12 + n]
        assert crc(data[at:at + 8]) == struct.unpack_from("<I", data, at + 8)[0]
        assert crc(payload) == struct.unpack_from("<I", data, at + 12 + n)[0]
        at += 16 + n
        event = dict(fields(payload))
        if 5 in event:
            value = dict(fields(dict(fields(event[5]))[1]))
            number = "%.6g" % struct.unpack("<f", value[2])[0] if 2 in value else "text"
            print(value[1].decode(), event.get(2, 0), number, sep="|")
END2

t "event files hold Megatron-LM's curves"
expect 0 "$TRAIN" run $run --train-iters 8 --save run --save-interval 4 --tensorboard-dir tb --log-timers-to-tensorboard --log-validation-ppl-to-tensorboard --log-batch-size-to-tensorboard --log-memory-to-tensorboard --log-world-size-to-tensorboard --log-throughput
check python3 points.py tb >points
check grep -q "^train_iters/text_summary|0|text$" points
for tag in learning-rate "learning-rate vs samples" batch-size "lm loss" "lm loss vs samples" loss-scale world-size grad-norm iteration-time throughput mem-allocated-bytes; do
    check [ "$(grep -c "^$tag|" points)" = 8 ]
done
check [ "$(grep -c '^lm loss validation|' points)" = 2 ]
check [ "$(grep -c '^lm loss validation ppl|' points)" = 2 ]
check [ "$(grep -c '^lm loss test|' points)" = 1 ]
check grep -q '^batch-size vs samples|32|4$' points
check [ "$(python3 -c 'import json; print(*("lm loss|%d|%.6g" % (r["iteration"], r["lm_loss"]) for r in map(json.loads, open("run/metrics.jsonl")) if "lm_loss" in r), sep="\n")' | cut -c 1-14)" = "$(grep '^lm loss|' points | cut -c 1-14)" ]

t "what a run that died wrote beyond its checkpoint goes: each step once"
mv run/iter_0000008 .
expect 0 "$TRAIN" run $run --train-iters 10 --save run --tensorboard-dir tb
python3 points.py tb >points
check [ "$(grep '^lm loss|' points | cut -d '|' -f 2 | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 " ]
check [ "$(grep '^lm loss vs samples|' points | cut -d '|' -f 2 | tr '\n' ' ')" = "4 8 12 16 20 24 28 32 36 40 " ]
check [ "$(find tb -type f | wc -l)" = 2 ]

t "files of other runs in that folder stay"
cp -r tb tb2
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --tensorboard-dir tb2
for file in tb/*; do
    same "$file" "tb2/$(basename "$file")"
done
check [ "$(find tb2 -type f | wc -l)" = 3 ]

t "Megatron-DeepSpeed's curves, every second step, and none of the loss scale"
expect 0 "$TRAIN" run $run --train-iters 4 --no-save --tensorboard-dir tb8 --log-format megatron-v1 --log-timers-to-tensorboard
out_has " iteration        4/       4 | elapsed time per iteration (ms): "
check python3 points.py tb8 >points
check [ "$(grep -v text_summary points | cut -d '|' -f 1 | sort -u | tr '\n' ',')" = "grad_norm,iteration_time,learning_rate,lm loss,lm loss ppl,lm loss value,loss_scale," ]
expect 0 "$TRAIN" run $run --train-iters 4 --no-save --tensorboard-dir tb3 --compat megatron-deepspeed --tensorboard-log-interval 2 --no-log-loss-scale-to-tensorboard
python3 points.py tb3 >points
check [ "$(grep '^lm-loss-training/lm loss|' points | cut -d '|' -f 2 | tr '\n' ' ')" = "2 4 " ]
check [ "$(grep '^learning-rate/learning-rate vs tokens|' points | cut -d '|' -f 2 | tr '\n' ' ')" = "256 512 " ]
check [ "$(grep -c '^steps-vs-samples/y=samples,x=steps|' points)" = 2 ]
check [ "$(grep '^steps-vs-tokens/y=steps,x=tokens|' points | cut -d '|' -f 2,3 | tr '\n' ' ')" = "256|2 512|4 " ]
for tag in "lm loss validation" "lm loss validation vs samples" "lm loss validation vs tokens"; do
    check grep -q "^lm-loss-validation/$tag|" points
done
check [ "$(grep -v text_summary points | cut -d '|' -f 1 | sed 's/ vs .*//' | sort -u | tr '\n' ';')" = "grad-norm/grad-norm;learning-rate/learning-rate;lm-loss-training/lm loss;lm-loss-validation/lm loss test;lm-loss-validation/lm loss validation;seqlen/actual_seq_length;steps-vs-samples/y=samples,x=steps;steps-vs-samples/y=steps,x=samples;steps-vs-tokens/y=steps,x=tokens;steps-vs-tokens/y=tokens,x=steps;" ]
check [ "$(grep -c 'loss-scale' points)" = 0 ]

t "without a folder, and in one that cannot be made"
expect 0 "$TRAIN" run $run --train-iters 1 --no-save --log-timers-to-tensorboard
err_has "--log-timers-to-tensorboard has no effect without --tensorboard-dir"
expect 4 "$TRAIN" run $run --train-iters 1 --no-save --tensorboard-dir /dev/null/x
err_has "/dev/null"

t "memory after the first step, throughput of a small model"
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --log-throughput
check grep -q "\[Rank 0\] (after 1 iterations) memory (MB) | allocated: [0-9.]* | max allocated: [0-9.]* | reserved: [0-9.]* | max reserved: [0-9.]*" .err
check [ "$(grep -c "memory (MB)" .err)" = 1 ]
check grep -q "throughput per GPU (TFLOP/s/GPU): 0\.0*[1-9][0-9]* |" .out

t "the control file: save, stop, and words that mean nothing"
mkdir -p steered
echo save >steered/control
expect 0 "$TRAIN" run $run --train-iters 3 --save steered
has_file steered/iter_0000001
has_file steered/iter_0000003
no_file steered/control
echo "nonsense stop" >words
expect 75 "$TRAIN" run $run --train-iters 9 --save steered --control-file words
err_has "stopped by the control file after step 4; to resume:"
err_has "words: unknown word 'nonsense': expected save or stop"
has_file steered/iter_0000004
no_file steered/iter_0000005
no_file words
echo save >words
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --control-file words
err_has "nothing is saved: without --save DIR"
echo stop >words
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --control-file words
err_has "stopped by the control file after step 1; nothing was saved (--save DIR keeps the model)"

t "SIGUSR2 saves, and the run trains on"
"$TRAIN" run $run --train-iters 1000000 --save long >.out 2>.err &
pid=$!
await $pid lines_with . .out 3
kill -USR2 $pid
await $pid lines_with "saved step" .err 1
lines=$(grep -c . .out)
await $pid lines_with . .out $((lines + 3))
check kill -0 $pid
kill -TERM $pid
code=0
wait $pid || code=$?
check [ $code = 75 ]
check [ "$(find long -name "iter_*" | wc -l)" = 2 ]

t "times of phases: of all processes in one line, and each call in a file"
expect 0 "$TRAIN" run $run --train-iters 2 --save timed --nproc-per-node 2 --threads 1 --pipeline-model-parallel-size 2 --timing-log-level 2
check [ "$(grep -c '^(min, max) time across ranks (ms):$' .out)" = 2 ]
for name in forward-backward all-grads-sync optimizer batch-generator forward-compute backward-compute forward-recv backward-recv; do
    check [ "$(grep -cE "^    $name \.+: \([0-9.]+, [0-9.]+\)$" .out)" = 2 ]
done
no_file timed/timers
expect 0 "$TRAIN" run $run --train-iters 4 --save timed --nproc-per-node 2 --threads 1 --pipeline-model-parallel-size 2 --timing-log-level 1 --timing-log-option all --tensorboard-dir tb4 --log-timers-to-tensorboard
check [ "$(grep -c '^     rank  1: ' .out)" = 6 ]
check [ "$(grep -c 'forward-compute' .out)" = 0 ]
check python3 - <<'END2'
import json
for rank in (0, 1):
    lines = [json.loads(x) for x in open("timed/timers/rank_%04d.jsonl" % rank)]
    assert [x["iteration"] for x in lines] == [3, 4] and all(x["rank"] == rank for x in lines)
    for x in lines:
        assert [s[0] for s in x["spans"]] == ["forward-backward", "all-grads-sync", "optimizer"], x
        ends = [t for s in x["spans"] for t in s[1:]]
        assert ends == sorted(ends) and ends[0] > 1.6e9
END2
python3 points.py tb4 >points
check [ "$(grep -c '^forward-backward-time|' points)" = 2 ]
expect 0 "$TRAIN" run $run --train-iters 2 --eval-iters 0 --no-save --timing-log-level 1 --tensorboard-dir tb7 --log-timers-to-tensorboard
python3 points.py tb7 >points
check [ "$(grep -c '^forward-backward-time|' points)" = 2 ]
expect 0 "$TRAIN" run $run --train-iters 1 --no-save --timing-log-option max
err_has "--timing-log-option has no effect without --timing-log-level"

t "a loss that is too high: its update is not made, the run ends, or it goes back"
noise="$(echo "$tiny" | sed 's/--lr [^ ]*/--lr 1e-9/; s/--eval-iters 2/--eval-iters 0/; s/--log-interval 5/--log-interval 1/') --train-iters 40 --save-interval 5"
expect 0 "$TRAIN" run $noise --save plain
# a factor by which only one step of a run that learns nothing is too high
check python3 - <<'END2'
import json
loss = [r["lm_loss"] for r in map(json.loads, open("plain/metrics.jsonl"))]
ratio = sorted((loss[i] / (sum(loss[:i]) / i), i + 1) for i in range(16, 40))
open("factor", "w").write("%.9g %d" % ((ratio[-1][0] + ratio[-2][0]) / 2, ratio[-1][1]))
END2
read -r factor at <factor
expect 0 "$TRAIN" run $noise --save skip --loss-spike-factor "$factor"
err_has "step $at: the loss of "
err_has "times the mean of the last steps: no update"
check [ "$(grep -c '"skipped": 1' skip/metrics.jsonl)" -ge 1 ]
check grep -q "\"iteration\": $at,.*\"skipped\": 1" skip/metrics.jsonl
expect 0 "$TRAIN" run $noise --save resumed --loss-spike-factor "$factor" --exit-interval $(((at - 1) / 5 * 5))
expect 0 "$TRAIN" run $noise --save resumed --loss-spike-factor "$factor"
err_has "step $at: the loss of "
check [ "$(grep -o '"lm_loss": [^,]*' resumed/metrics.jsonl)" = "$(grep -o '"lm_loss": [^,]*' skip/metrics.jsonl)" ]
expect 6 "$TRAIN" run $noise --save stopped --loss-spike-factor "$factor" --on-anomaly stop
err_has "step $at: the loss is "
has_file stopped/iter_$(printf %07d $(((at - 1) / 5 * 5)))
no_file stopped/iter_$(printf %07d $(((at + 4) / 5 * 5)))
expect 0 "$TRAIN" run $noise --save back --loss-spike-factor "$factor" --on-anomaly rewind --tensorboard-dir tb5
err_has "anomaly at step $at: back to the checkpoint of step $(((at - 1) / 5 * 5)); the data since then are skipped"
check [ "$(python3 -c 'import json; print(*(r["iteration"] for r in map(json.loads, open("back/metrics.jsonl"))))')" = "$(seq -s ' ' 40)" ]
python3 points.py tb5 >points
check [ "$(grep '^lm loss|' points | cut -d '|' -f 2 | tr '\n' ' ')" = "$(seq -s ' ' 40) " ]
check [ "$(grep -c '^lm loss vs samples|' points)" = 40 ]
check grep -q "\"iteration\": 40, \"consumed_samples\": $((160 + 4 * (at - (at - 1) / 5 * 5)))," back/metrics.jsonl
expect 0 "$TRAIN" run $noise --save two --loss-spike-factor "$factor" --on-anomaly rewind --nproc-per-node 2 --threads 1
err_has "anomaly at step $at: back to the checkpoint of step"
expect 2 "$TRAIN" run $noise --no-save --save-interval 0 --loss-spike-factor "$factor" --on-anomaly rewind
err_has "--on-anomaly rewind: expected --save"

t "a rewind needs checkpoints, which the run need not have yet"
mock="--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 --mock-data --tokenizer-type NullTokenizer --vocab-size 64 --micro-batch-size 2 --device cpu --threads 1 --log-interval 1 --eval-iters 0 --seed 1"
spiky="$mock --global-batch-size 4 --lr 1e-5 --lr-decay-style constant --loss-spike-factor 1.002"
expect 2 "$TRAIN" run $spiky --train-iters 9 --save w --no-save-optim --on-anomaly rewind
err_has "--on-anomaly rewind: expected a run without --no-save-optim"
expect 0 "$TRAIN" run $spiky --train-iters 40 --save early --on-anomaly rewind
err_has "there is no checkpoint yet to go back to; the step is skipped"
has_file early/iter_0000040
expect 2 "$TRAIN" run $spiky --train-iters 9 --no-save --loss-spike-factor 0.5

t "a run that went back takes all its steps, from data that begin again, resumed as well, and is exported"
went="$spiky --train-iters 60 --save-interval 30 --on-anomaly rewind"
expect 0 "$TRAIN" run $went --save short --exit-interval 41 --tensorboard-dir tb6
err_has "back to the checkpoint of step 30"
cp -r short short1
expect 0 "$TRAIN" run $went --save short --export-hf exported
has_file short/iter_0000060
check [ "$(find short -name "iter_*" | wc -l)" -ge 3 ]
has_file exported/config.json

t "a run that was killed before its first checkpoint starts again with --load RUN --save RUN"
mkdir -p killed/timers killed/tensorboard
echo save >killed/control
expect 0 "$TRAIN" run $mock --lr 1e-3 --global-batch-size 2 --train-iters 2 --load killed --save killed
err_has "no checkpoint in killed yet"
has_file killed/iter_0000001

t "a run whose loss is too high for long says so, at the same step if it was resumed meanwhile"
high="$mock --log-interval 10 --global-batch-size 2 --lr 1 --lr-decay-style constant --train-iters 300 --loss-spike-factor 1"
expect 6 "$TRAIN" run $high --save high
err_has "the loss was too high (--loss-spike-factor) for 50 steps in a row"
grep "in a row" .err >ends
grep -o "iteration .*/\|number of skipped iterations: *[0-9]*" .out >counts
last=$(($(sed 's/.*up to step //' ends) / 10 * 10))
expect 0 "$TRAIN" run $high --save high1 --exit-interval $((last - 25))
cp .out out1
expect 0 "$TRAIN" run $high --save high1 --exit-interval $((last - 15)) --nproc-per-node 2 --threads 1 --pipeline-model-parallel-size 2
cp .out out2
check grep -q '"skipped_in_a_row": "[1-9][0-9]*", "spikes_in_a_row": "[1-9][0-9]*", "skipped_since_log": "5"' high1/iter_*$((last - 15))/manifest.json
expect 6 "$TRAIN" run $high --save high1
grep "in a row" .err >ends1
same ends ends1
cat out1 out2 .out | grep -o "iteration .*/\|number of skipped iterations: *[0-9]*" >counts1
same counts counts1

t "ten rewinds are the limit of a run that was resumed, too"
often="$mock --global-batch-size 4 --lr 1e-9 --lr-decay-style constant --loss-spike-factor 1.0001 --train-iters 600 --save-interval 17 --on-anomaly rewind"
expect 6 "$TRAIN" run $often --save often
err_has "rewound 10 times, the limit"
grep "the limit" .err >ends
expect 0 "$TRAIN" run $often --save often1 --exit-interval 85
check grep -q '"rewinds": "[1-9]"' often1/iter_0000085/manifest.json
expect 6 "$TRAIN" run $often --save often1
grep "the limit" .err >ends1
same ends ends1

t "--no-load-optim is for one start"
expect 0 "$TRAIN" run $mock --lr 1e-3 --global-batch-size 4 --train-iters 8 --save whole --save-interval 4
expect 0 "$TRAIN" run $mock --lr 1e-3 --global-batch-size 4 --train-iters 8 --save once --exit-interval 2
expect 0 "$TRAIN" run $mock --lr 1e-3 --global-batch-size 4 --train-iters 8 --save once --no-load-optim --exit-interval 4
err_has "optimizer state of once/iter_0000002 is not loaded"
cp -r once once1
expect 0 "$TRAIN" run --config once/config.toml --exit-interval 6
err_has "no-load-optim in the configuration is ignored"
expect 0 "$TRAIN" run $mock --lr 1e-3 --global-batch-size 4 --train-iters 8 --save once1 --exit-interval 6
check [ "$(tail -n 2 once/metrics.jsonl | grep -o '"lm_loss": [^,]*')" = "$(tail -n 2 once1/metrics.jsonl | grep -o '"lm_loss": [^,]*')" ]

t "W&B: the command that imports the run"
mkdir -p fake
cat >fake/wandb.py <<'END2'
import os
class Run:
    def log(self, record, step):
        print(os.environ["WANDB_PROJECT"], os.environ["WANDB_NAME"], step, "lm_loss" in record)
    def finish(self):
        print("done")
def init():
    return Run()
END2
expect 0 "$TRAIN" run $run --train-iters 2 --eval-iters 0 --save imported --wandb-project "a 'b" --wandb-name c
grep -A 1 "to import the run into Weights & Biases:" .err | tail -n 1 >command
PYTHONPATH=fake sh command >.out 2>.err
out_is "a 'b c 1 True
a 'b c 2 True
done"
expect 0 "$TRAIN" run $run --train-iters 2 --eval-iters 0 --save imported2 --wandb-project "a 'b" --wandb-name c --nproc-per-node 2 --threads 1
grep -A 1 "to import the run into Weights & Biases:" .err | tail -n 1 >command2
check [ "$(sed 's/imported2/imported/g' command2)" = "$(cat command)" ]
expect 0 "$TRAIN" run $run --train-iters 1 --no-save --wandb-project a
err_has "nothing to import into Weights & Biases without --save or --metrics"

t "a sample every second step, as train generate writes it"
expect 0 "$TRAIN" run $run --train-iters 4 --save samples --sample-interval 2 --sample-prompt "3 15" --sample-tokens 5
check [ "$(grep -c "a sample: 3 15 " .err)" = 2 ]
sed -n 's/^step 2, a sample: //p' .err >written
expect 0 "$TRAIN" generate --load samples/iter_0000002 --prompt "3 15" --max-new-tokens 5 --device cpu
same written .out
check [ "$(wc -w <written)" = 7 ]
expect 0 "$TRAIN" run $run --train-iters 2 --save samples2 --sample-interval 2 --sample-tokens 3 --nproc-per-node 2 --threads 1 --tensor-model-parallel-size 2
check grep -q "step 2, a sample: [0-9]" .err
expect 0 "$TRAIN" run $run --train-iters 1 --save samples3 --sample-interval 1 --sample-tokens 3 --nproc-per-node 2 --threads 0
check grep -q "step 1, a sample: [0-9]" .err
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --sample-interval 1
err_has "--sample-interval has no effect without --save"
