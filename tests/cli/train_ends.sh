# SPDX-License-Identifier: Apache-2.0
# What goes wrong after the first step: what has been learned is saved before the run ends, and a run that nobody listens
# to goes on.
. "$SRC/tests/cli/train_data.sh"
each=$(echo "$tiny" | sed 's/--log-interval [0-9]*/--log-interval 1/; s/--eval-iters [0-9]*/--eval-iters 0/')

t "standard output that is closed, full or no longer read does not end a run"
for ranks in 1 2; do
    for to in '>/dev/full' '>&-' '| head -n 1'; do
        rm -rf out
        expect 0 bash -c 'set -o pipefail; "$0" "$@" '"$to" "$TRAIN" run $each --train-iters 6 --save out --nproc-per-node $ranks
        has_file out/iter_0000006
        check [ "$(grep -c '"lm_loss"' out/metrics.jsonl)" = 6 ]
        [ "$to" = '| head -n 1' ] || check [ "$(grep -c "warning: standard output: cannot write: .*; the run goes on" .err)" = 1 ]
    done
done

t "... nor does standard error that is no longer read"
rm -rf out
expect 0 bash -c 'set -o pipefail; { "$0" "$@" 2>&1 >/dev/null; } | true' "$TRAIN" run $each --train-iters 6 --save out --nproc-per-node 2
has_file out/iter_0000006

# bad_copy PREFIX NUMBER: the data, whose id at that place is not in the vocabulary
bad_copy() {
    for kind in bin idx manifest.json; do cp d_text_document.$kind "$1.$kind"; done
    python3 -c 'import sys
with open(sys.argv[1] + ".bin", "r+b") as f:
    f.seek(2 * int(sys.argv[2])); f.write(b"\xff\x7f")' "$1" "$2"
}

t "data that cannot be read at a later step: the steps before it are saved"
bad_copy bad 11000
other=$(echo "$each" | sed 's/--data-path [^ ]*//; s/--split [^ ]*//')
failing="$other --data-path bad --split 100,0,0 --train-iters 170"
for layout in "" "--nproc-per-node 2" "--nproc-per-node 2 --zero-stage 3" "--nproc-per-node 4 --pp 2 --overlap-grad-reduce"; do
    rm -rf kept
    expect 3 "$TRAIN" run $failing --save kept $layout
    at=$(sed -n 's/.*error: step \([0-9]*\): .*/\1/p' .err)
    check [ "${at:-0}" -gt 1 ]
    check [ "$(grep -c 'error: ' .err)" = 1 ]
    has_file "kept/iter_$(printf %07d $((${at:-1} - 1)))"
    err_has "saved step $((${at:-1} - 1)) to kept"
done

t "... with the weights of a run that ends there"
for layout in "" "--zero-stage 1"; do
    rm -rf kept whole
    expect 3 "$TRAIN" run $failing --save kept --nproc-per-node 2 $layout
    expect 0 "$TRAIN" run $failing --save whole --nproc-per-node 2 $layout --exit-interval $((${at:-1} - 1))
    check [ "$(cat kept/iter_*/*.safetensors | sha256sum)" = "$(cat whole/iter_*/*.safetensors | sha256sum)" ]
done

t "data of an evaluation, in the run and at its end: the step is saved"
parts=$(echo "$other" | sed 's/--eval-iters 0/--eval-iters 170/; s/--eval-interval [0-9]*//')
for ranks in 1 2; do
    for every in 3 100; do
        rm -rf kept
        expect 3 "$TRAIN" run $parts --train-data-path d_text_document --valid-data-path bad --train-iters 5 --eval-interval $every --save kept \
            --nproc-per-node $ranks
        err_has "bad"
        has_file kept/iter_000000$([ $every = 3 ] && echo 3 || echo 5)
    done
done

t "a full disk under the metrics, the curves, the times: the step is saved, exit 4"
if unshare -m sh -c 'mkdir -p small && mount -t tmpfs none small' 2>/dev/null; then
    for what in "--metrics small/m.jsonl" "--tensorboard-dir small/tb"; do
        for ranks in 1 2; do
            rm -rf kept
            expect 4 unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=64k none small && exec "$0" "$@"' \
                "$TRAIN" run $each --train-iters 400 --save kept --nproc-per-node $ranks $what
            err_has "small/"
            err_has "saved step "
            check [ "$(find kept -name 'iter_*' | wc -l)" = 1 ]
            no_file kept/iter_0000400
        done
    done
else
    skip "$(why_no_mount)"
fi
