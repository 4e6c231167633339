# SPDX-License-Identifier: Apache-2.0
# train run --keep-best, --early-stopping-patience: by the losses of validation, which a resumed run remembers.
. "$SRC/tests/cli/train_data.sh"

# A rate at which the loss of validation goes up and down.
run="$(echo "$tiny" | sed 's/--lr [^ ]*/--lr 0.2/; s/--eval-interval [0-9]*/--eval-interval 2/; s/--eval-iters [0-9]*/--eval-iters 8/') --lr-decay-style constant"
tensors() { cat "$1"/*.safetensors; }
folders() { (cd "$1" && ls -d iter_*) | tr '\n' ' '; }

# expected DIR KEEP PATIENCE STEPS: the checkpoints that stay and the last step, from the losses of DIR
expected() {
    python3 - "$@" <<'END'
import json, sys
keep, patience, steps = map(int, sys.argv[2:])
losses = [(x["valid_loss"], x["iteration"]) for x in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if "valid_loss" in x]
best, without, end = [], 0, steps
for i, (loss, step) in enumerate(losses):
    without = 0 if not best or loss < min(best)[0] else without + 1
    best.append((loss, step))
    if patience and without >= patience:
        end = step
        break
kept = sorted({step for _, step in sorted(best)[:keep]} | {end})
print(" ".join(f"iter_{k:07d}" for k in kept), end + 0)
END
}

t "the best checkpoints stay beside the newest one"
expect 0 "$TRAIN" run $run --train-iters 30 --save all --save-interval 2
check [ "$(grep -c valid_loss all/metrics.jsonl)" = 15 ]
for keep in 1 3; do
    expect 0 "$TRAIN" run $run --train-iters 30 --save k$keep --keep-best $keep
    set -- $(expected all $keep 0 30)
    check [ "$(folders k$keep)" = "$(echo "$@" | sed 's/ [0-9]*$//') " ]
done
check [ "$(ls -d k3/iter_* | wc -l)" -ge 3 ]

t "a resumed run remembers them"
expect 0 "$TRAIN" run $run --train-iters 30 --save r --keep-best 3 --exit-interval 7
while [ ! -d r/iter_0000030 ]; do expect 0 "$TRAIN" run $run --train-iters 30 --save r --keep-best 3 --exit-interval 7; done
check [ "$(folders r)" = "$(folders k3)" ]
tensors r/iter_0000030 >a.bin
tensors all/iter_0000030 >b.bin
same a.bin b.bin

t "the newest ones stay, too"
expect 0 "$TRAIN" run $run --train-iters 30 --save n --keep-best 1 --keep-checkpoints 2 --save-interval 2
check [ -d n/iter_0000028 ]
check [ -d "n/$(folders k1 | cut -d' ' -f1)" ]
check [ "$(ls -d n/iter_* | wc -l)" -le 3 ]

t "a run ends after so many evaluations without a lower loss, and stays ended"
end=$(expected all 1 1 30 | sed 's/.* //')
check [ "$end" -lt 30 ]
expect 0 "$TRAIN" run $run --train-iters 30 --save p --early-stopping-patience 1 --keep-best 1
err_has "--early-stopping-patience 1: the loss of validation, "
err_has "the run ends after step $end"
check [ "$(tail -n 1 p/metrics.jsonl | sed 's/.*"iteration": \([0-9]*\).*/\1/')" = "$end" ]
check [ "$(folders p)" = "$(expected all 1 1 30 | sed 's/ [0-9]*$//') " ]
expect 0 "$TRAIN" run $run --train-iters 30 --save p --early-stopping-patience 1 --keep-best 1
err_has "the run ends after step $end"
expect 0 "$TRAIN" run $run --train-iters 30 --save q --early-stopping-patience 1 --exit-interval $((end - 1))
expect 0 "$TRAIN" run $run --train-iters 30 --save q --early-stopping-patience 1
err_has "the run ends after step $end"

t "what they need"
expect 2 "$TRAIN" run $run --train-iters 4 --save x --keep-best 1 --eval-iters 0
err_has "--keep-best: --eval-iters 0 leaves no loss of validation"
expect 2 "$TRAIN" run $run --train-iters 4 --save x --early-stopping-patience 1 --split 100,0,0
err_has "no valid share"
expect 0 "$TRAIN" run $run --train-iters 2 --no-save --keep-best 1
err_has "--keep-best has no effect without --save"
