# SPDX-License-Identifier: Apache-2.0
# Processes that share each sequence, by every way of exchanging keys.
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

t "processes that share sequences learn what one process learns"
"$TRAIN" run $tiny --train-iters 10 --save one >/dev/null 2>&1
for how in p2p all_gather a2a; do
    expect 0 any_ranks 2 "$TRAIN" run $tiny --train-iters 10 --save cp-$how --context-parallel-size 2 --cp-comm-type $how
    out_has " iteration       10/      10 | consumed samples: " # mpirun's stdout is a terminal, that of scripts is not
    agree one cp-$how
done
expect 0 "$CONVERT" verify cp-p2p/iter_0000010
expect 0 any_ranks 4 "$TRAIN" run $tiny --train-iters 10 --save mixed --cp 2 --tp 2 --sequence-parallel --cp-comm-type p2p,a2a
agree one mixed
expect 0 any_ranks 4 "$TRAIN" run $tiny --train-iters 10 --save data --cp 2 --zero-stage 2 --overlap-grad-reduce
agree one data

t "documents across the pieces of a sequence"
documents="$tiny $llama --reset-attention-mask --reset-position-ids --eod-mask-loss --attention-dropout 0.1 --hidden-dropout 0.1"
expect 0 "$TRAIN" run $documents --train-iters 10 --save documents
expect 0 any_ranks 4 "$TRAIN" run $documents --train-iters 10 --save documents-4 --cp 4
agree documents documents-4
expect 0 any_ranks 2 "$TRAIN" run $documents --train-iters 10 --save documents-2 --cp 2 --cp-comm-type a2a
agree documents documents-2

t "a run resumes with another number of processes for a sequence"
expect 0 any_ranks 4 "$TRAIN" run $tiny --train-iters 10 --save resumed --cp 4 --exit-interval 3
expect 0 any_ranks 2 "$TRAIN" run $tiny --train-iters 10 --save resumed --cp 2 --cp-comm-type all_gather --exit-interval 6
expect 0 "$TRAIN" run $tiny --train-iters 10 --save resumed
agree one resumed

t "train plan knows the share of a process"
plan() { expect 0 "$TRAIN" plan $tiny "$@"; }
activations() { sed -n 's/.*activations \([0-9.]*\) MiB.*/\1/p' .out; }
plan --num-layers 6
all=$(activations)
plan --num-layers 6 --world-size 4 --cp 4
out_has "context         4 processes share each sequence (p2p)"
check awk "BEGIN {exit !($(activations) < $all / 2)}"
optimizer() { sed -n 's/.*optimizer \([0-9.]*\) MiB.*/\1/p' .out; }
plan --num-layers 6 --world-size 2 --cp 2
all=$(optimizer)
plan --num-layers 6 --world-size 2 --cp 2 --zero-stage 1
err_lacks "has no effect with one data-parallel process"
check awk "BEGIN {exit !($(optimizer) < $all * 0.7)}"
plan --world-size 2 --cp 2 --json
out_has '"context-parallel"'
plan --world-size 2 --cp 2 --cp-comm-type all_gather a2a
out_has "(all_gather in 1 layer, a2a in 1 layer)"

t "what does not fit is refused by name"
expect 2 "$TRAIN" plan $tiny --world-size 4 --cp 2 --cp-comm-type a2a+p2p
err_has "--cp-comm-type a2a+p2p: two levels of context parallelism are not supported"
expect 2 "$TRAIN" plan $tiny --world-size 2 --cp 2 --cp-comm-type ring
err_has "--cp-comm-type ring: expected p2p, all_gather or a2a"
expect 2 "$TRAIN" plan $tiny --world-size 2 --cp 2 --cp-comm-type p2p a2a p2p
err_has "expected one, or one for each of the 2 layers"
expect 2 "$TRAIN" plan $tiny $llama --world-size 8 --tp 2 --cp 4 --cp-comm-type a2a
err_has "2 with 1 query groups: expected multiples of context-parallel-size 4"
expect 2 "$TRAIN" plan $tiny --world-size 3 --cp 3
err_has "twice that, 6, not 32"
expect 2 "$TRAIN" plan $tiny --world-size 3 --tp 2 --cp 2
err_has "3 processes cannot be shared out to --tensor-model-parallel-size 2 x --context-parallel-size 2"
odd="--hidden-size 31 --kv-channels 8 --seq-length 12 --micro-batch-size 1 --tp 4 --checkpoint-activations --distribute-saved-activations"
expect 2 "$TRAIN" plan $tiny $odd --world-size 8 --cp 2
err_has "1 x 6 x 31 numbers cannot be shared out to --tensor-model-parallel-size 4"
expect 0 "$TRAIN" plan $tiny $odd --world-size 4
expect 0 "$TRAIN" plan $tiny --cp-comm-type a2a
err_has "--cp-comm-type has no effect with --context-parallel-size 1"
