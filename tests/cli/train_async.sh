# SPDX-License-Identifier: Apache-2.0
# Checkpoints that are written while steps run: those of a synchronous save, byte for byte.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1 --train-iters 12"
in_small_disk() { unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && '"$1"; }
tensors() { cat "$1"/*.safetensors; }
same_tensors() {
    tensors "$1" >a.bin
    tensors "$2" >b.bin
    same a.bin b.bin
}

t "every checkpoint is that of a synchronous save"
expect 0 "$TRAIN" run $tiny --save now --save-interval 1
expect 0 "$TRAIN" run $tiny --save later --save-interval 1 --async-save
err_has "saved step 12 to later"
check [ "$(ls now)" = "$(ls later)" ]
for n in 01 05 11 12; do
    expect 0 "$CONVERT" verify later/iter_00000$n
    same_tensors now/iter_00000$n later/iter_00000$n
done
expect 0 "$TRAIN" run $tiny --save two --save-interval 5 --async-save --num_gpus 2 --zero-stage 3 --keep-checkpoints 1
expect 0 "$TRAIN" run $tiny --save two-now --save-interval 5 --num_gpus 2 --zero-stage 3 --keep-checkpoints 1
check [ ! -e two/iter_0000005 ]
same_tensors two/iter_0000012 two-now/iter_0000012

t "kill -9 at any time: it resumes to the same bytes"
often="--train-iters 200 --eval-iters 0 --save killed --save-interval 1 --keep-checkpoints 2 --async-save"
saved() { ls killed 2>/dev/null | tail -n 2; }
for ms in 02 07 13 21; do
    before=$(saved)
    "$TRAIN" run $tiny $often >/dev/null 2>&1 &
    pid=$!
    until [ "$(saved)" != "$before" ] || has_ended $pid; do :; done
    sleep 0.$ms
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
expect 0 "$TRAIN" run $tiny $often
expect 0 "$TRAIN" run $tiny --train-iters 200 --eval-iters 0 --save whole
same_tensors killed/iter_0000200 whole/iter_0000200
no_temps killed

t "a full disk ends the run as a synchronous save would"
if in_small_disk true 2>/dev/null; then
    expect 4 unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && "$0" "$@"; code=$?
        ls small/run >left; "$0" eval --load small/run --data-path d_text_document --split 90,5,5 --micro-batch-size 2 >ok; exit $code' \
        "$TRAIN" run $tiny --train-iters 40 --save small/run --save-interval 5 --async-save
    err_has "disk is full"
    check grep -q iter_0000005 left
    check grep -q "valid loss" ok
    check [ -z "$(grep tmp left)" ]
else
    skip "$(why_no_mount)"
fi

t "the plan has the copy in memory"
expect 0 "$TRAIN" plan $tiny --save x
check [ -z "$(grep snapshot .out)" ]
expect 0 "$TRAIN" plan $tiny --save x --async-save
out_has "snapshot"
