# SPDX-License-Identifier: Apache-2.0
# train run --num-train-epochs: as transformers' Trainer counts steps, with a short last one to each epoch.
. "$SRC/tests/cli/train_data.sh"

# Ten examples of unequal lengths, of which a part is learnt; of them the first three.
awk 'BEGIN { for (d = 0; d < 10; d++) { s = "50 51"; n = 3 + (d * 7) % 15
    for (i = 0; i < n; i++) s = s " " ((d + i * i) % 12) " " ((d + i * i) % 12 + 12)
    print "{\"text\": \"" s "\"}" } }' >e.jsonl
head -n 3 e.jsonl >f.jsonl
for x in e f; do
    "$PREP" sft --quiet --input $x.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --packing none \
        --response-template '50 51' --seq-length 64 --output-prefix $x
done
model=$(echo "$bare" | sed 's/--split [^ ]*//; s/--eval-[a-z]* [0-9]*//g; s/--[a-z]*-batch-size [0-9]*//g; s/--log-interval 5/--log-interval 1/; s/ 32/ 64/g')
run="$model --data-path e --micro-batch-size 2 --global-batch-size 4 --eval-iters 0"
tensors() { cat "$1"/*.safetensors; }
supply() { sed -n "s/^$1  *//p" .err | tr -s ' '; }

# alike A B TOLERANCE: two runs have the same samples, losses and gradients
alike() {
    check python3 - "$@" <<'END'
import json, sys
a, b = ([json.loads(x) for x in open(f"{d}/metrics.jsonl")] for d in sys.argv[1:3])
assert len(a) == len(b) > 1, (len(a), len(b))
for x, y in zip(a, b):
    assert x["consumed_samples"] == y["consumed_samples"], (x, y)
    for key in "lm_loss", "grad_norm":
        assert abs(x[key] - y[key]) <= float(sys.argv[3]) * abs(x[key]), (key, x, y)
END
}

t "all sequences of the set are trained, the last step of an epoch is short, and the run is rounded up to a step"
expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save a
check [ "$(sed -n 's/.*consumed samples: *\([0-9]*\) .*/\1/p' .out | tr '\n' ' ')" = "4 8 10 14 18 20 24 28 " ]
out_has "iteration        8/       8 |"
check [ "$(supply train)" = "28 10 2.80 step 4" ]
check [ "$(supply valid)" = "none" ]
expect 0 "$TRAIN" run $run --num-train-epochs 2 --split 80,20,0 --save b --dry-run
check [ "$(supply train)" = "16 8 2.00 step 3" ]
expect 0 "$TRAIN" run $run --num-train-epochs 2 --print-config
check grep -q '^split = "100,0,0"  *# --num-train-epochs$' .out
check grep -q '^calculate-per-token-loss = true  *# --num-train-epochs$' .out
expect 0 "$TRAIN" run $run --train-iters 2 --lr-rules hf --no-calculate-per-token-loss --print-config
check grep -q '^calculate-per-token-loss = false  *# flag$' .out
expect 0 "$TRAIN" run $run --train-iters 2 --lr-rules hf --print-config
check grep -q '^calculate-per-token-loss = true  *# --lr-rules hf$' .out

t "stopped in the middle of an epoch, it resumes as if it had not stopped"
for at in 4 6; do
    expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save b$at --exit-interval $at
    expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save b$at
    tensors a/iter_0000008 >a.bin
    tensors b$at/iter_0000008 >b.bin
    same a.bin b.bin
done

t "on other processes, and resumed on other processes"
two="--nproc-per-node 2 --threads 1 --micro-batch-size 1 --global-batch-size 4"
for layout in "" "--pipeline-model-parallel-size 2"; do
    rm -rf c
    expect 0 "$TRAIN" run $run $two $layout --num-train-epochs 2.5 --save c
    alike a c 1e-4
done
rm -rf c
expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save c --exit-interval 5
expect 0 "$TRAIN" run $run $two --num-train-epochs 2.5 --save c
alike a c 1e-4

t "a short step is that of the sequences that are there"
few="$model --data-path f --eval-iters 0 --num-train-epochs 3"
for loss in "--no-calculate-per-token-loss --micro-batch-size 1" "--micro-batch-size 1"; do
    rm -rf d1 d2 d3
    expect 0 "$TRAIN" run $few $loss --global-batch-size 3 --save d1
    expect 0 "$TRAIN" run $few $loss --global-batch-size 8 --save d2
    alike d1 d2 1e-5
    expect 0 "$TRAIN" run $few $loss --global-batch-size 8 --save d3 --nproc-per-node 2 --threads 1
    alike d1 d3 1e-4
done
rm -rf d2
expect 0 "$TRAIN" run $few --micro-batch-size 2 --global-batch-size 4 --save d2
alike d1 d2 1e-5

t "texts: an epoch has each sample of its share once, in another order"
head -n 3 d.jsonl >g.jsonl
expect 0 "$PREP" build --input g.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --output-prefix g
still="$model --micro-batch-size 1 --lr 1e-12 --hidden-dropout 0 --attention-dropout 0 --eval-iters 0 --no-save --log-interval 1"
for data in "--data-path g_text_document" "--train-data-path g_text_document g_text_document" "--data-path e"; do
    expect 0 "$TRAIN" run $still $data --num-train-epochs 3 --metrics m.jsonl
    check python3 - <<'END'
import json
loss = [round(json.loads(x)["lm_loss"], 4) for x in open("m.jsonl")]
n = len(loss) // 3
parts = [loss[i * n:i * n + n] for i in range(3)]
assert len(loss) == 3 * n and n in (10, 16, 32), len(loss)
assert sorted(parts[0]) == sorted(parts[1]) == sorted(parts[2])
assert parts[0] != parts[1] != parts[2] != parts[0]
END
    rm m.jsonl
done

t "data of validation beside those of training"
expect 0 "$TRAIN" run $run --valid-data-path f --num-train-epochs 1 --no-save --dry-run --eval-iters 1
check [ "$(supply train)" = "10 10 1.00 -" ]
expect 2 "$TRAIN" run $run --train-data-path f --num-train-epochs 1 --no-save
err_has "--data-path and --train-data-path and the like exclude each other"

t "each epoch ends with an evaluation on all data of validation"
whole="$model --data-path e --micro-batch-size 2 --global-batch-size 4"
valid() { sed -n 's/.*validation loss at iteration *\([0-9]*\).*/\1/p' .out | tr '\n' ' '; }
expect 0 "$TRAIN" run $whole --valid-data-path f --num-train-epochs 3 --save v
check [ "$(valid)" = "3 6 9 " ]
check [ "$(supply valid)" = "3 3 1.00 -" ]
last=$(sed -n 's/.*at iteration 9 on validation set | lm loss value: \([^ ]*\) .*/\1/p' .out)
expect 0 "$TRAIN" eval --load v
out_has ", as the run evaluated them"
check python3 -c "assert abs($last - $(sed -E 's/.*loss ([0-9.]+),.*/\1/' .out)) < 2e-6 * $last"
expect 0 "$TRAIN" run $whole --split 50,50,0 --num-train-epochs 2 --no-save
check [ "$(valid)" = "2 4 " ]
expect 0 "$TRAIN" run $whole --split 50,50,0 --num-train-epochs 2 --no-save --eval-interval 3
check [ "$(valid)" = "3 4 " ]
expect 0 "$TRAIN" run $whole --split 50,50,0 --num-train-epochs 2 --no-save --eval-iters 1
check [ "$(supply valid)" = "12 5 2.40 step 4" ]
expect 0 "$TRAIN" run $whole --num-train-epochs 2 --no-save
check [ "$(valid)" = "" ]

t "a run is resumed by the configuration that it has written"
expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save e1
expect 0 "$TRAIN" run $run --num-train-epochs 2.5 --save e2 --exit-interval 5
expect 0 "$TRAIN" run --config e2/config.toml --exit-interval 0
tensors e1/iter_0000008 >a.bin
tensors e2/iter_0000008 >b.bin
same a.bin b.bin

t "what epochs do not go together with"
expect 2 "$TRAIN" run $run --num-train-epochs 1 --train-iters 5 --no-save
err_has "--num-train-epochs and --train-iters exclude each other"
expect 2 "$TRAIN" run $run --num-train-epochs 1 --rampup-batch-size 2 2 8 --no-save
err_has "--num-train-epochs and --rampup-batch-size exclude each other"
expect 2 "$TRAIN" run $model --micro-batch-size 1 --train-data-path 0.5 g_text_document 0.5 d_text_document --num-train-epochs 1 --no-save
err_has "data that are blended by weights have no epochs"
expect 2 "$TRAIN" run $run $llama --num-experts 4 --moe-aux-loss-coeff 0.01 --num-train-epochs 1 --no-save
err_has "the last step of an epoch has 2 of 4 sequences"
expect 0 "$TRAIN" run $run $llama --num-experts 4 --moe-aux-loss-coeff 0.01 --num-train-epochs 1 --no-save --global-batch-size 2
expect 2 "$TRAIN" run $run --epochs 1 --no-save
err_has "did you mean --num-train-epochs?"
