# SPDX-License-Identifier: Apache-2.0
# train run --neftune-alpha: noise on embeddings in training alone, the same for each layout and after a resume.
. "$SRC/tests/cli/train_data.sh"

run="$tiny --train-iters 6 --log-interval 1 --eval-interval 3 --hidden-dropout 0 --attention-dropout 0"
tensors() { cat "$1"/*.safetensors; }
losses() { sed -n 's/.*"lm_loss": \([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tr '\n' ' '; }
valid() { sed -n 's/.*"valid_loss": \([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tr '\n' ' '; }

# near A B: the same losses but for rounding
near() { check python3 -c "
a, b = ([float(x) for x in l.split()] for l in ('$(losses "$1")', '$(losses "$2")'))
assert len(a) == len(b) == 6 and max(abs(x - y) for x, y in zip(a, b)) < 1e-4, (a, b)"; }

t "training has it, evaluation has not"
still="$run --lr 1e-12"
expect 0 "$TRAIN" run $still --save a
expect 0 "$TRAIN" run $still --save b --neftune-alpha 50
check [ "$(losses a)" != "$(losses b)" ]
check [ -n "$(valid a)" ]
check python3 -c "
a, b = ([float(x) for x in l.split()] for l in ('$(valid a)', '$(valid b)'))
assert len(a) == len(b) == 2 and max(abs(x - y) for x, y in zip(a, b)) < 1e-6, (a, b)"

t "it is the same after a resume and in other layouts"
noisy="$run --neftune-alpha 50"
expect 0 "$TRAIN" run $noisy --save c
expect 0 "$TRAIN" run $noisy --save d --exit-interval 4
expect 0 "$TRAIN" run $noisy --save d
tensors c/iter_0000006 >c.bin
tensors d/iter_0000006 >d.bin
same c.bin d.bin
i=0
for layout in "--micro-batch-size 4" "--nproc-per-node 2 --threads 1" "--nproc-per-node 2 --threads 1 --tensor-model-parallel-size 2" \
    "--nproc-per-node 2 --threads 1 --tensor-model-parallel-size 2 --sequence-parallel" "--nproc-per-node 2 --threads 1 --context-parallel-size 2"; do
    i=$((i + 1))
    expect 0 "$TRAIN" run $noisy $layout --save e$i
    near c e$i
done
awk 'BEGIN { for (d = 0; d < 20; d++) { s = "50 51"; for (i = 0; i < 2 + d % 7; i++) s = s " " (d + i) % 12 " " (d + i) % 12 + 12
    print "{\"text\": \"" s "\"}" } }' >e.jsonl
expect 0 "$PREP" sft --quiet --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --response-template '50 51' \
    --seq-length 32 --packing none --output-prefix e
packed="$(echo "$noisy" | sed 's/--data-path [^ ]*/--data-path e/') --calculate-per-token-loss --eval-iters 0"
expect 0 "$TRAIN" run $packed --save p1 --micro-batch-size 4
expect 0 "$TRAIN" run $packed --save p2 --micro-batch-size 1
near p1 p2
expect 0 "$TRAIN" run $packed --save p3 --micro-batch-size 1 --nproc-per-node 2 --threads 1
near p1 p3
expect 0 "$TRAIN" run $noisy --seed 5 --save f
check [ "$(losses c)" != "$(losses f)" ]
