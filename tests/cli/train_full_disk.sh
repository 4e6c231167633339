# SPDX-License-Identifier: Apache-2.0
. "$SRC/tests/cli/train_data.sh"

# a 1 MiB file system of its own, where root may mount one
in_small_disk() { unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && '"$1"; }

t "a full disk: exit 4 names file and bytes, nothing stands under a final name"
if in_small_disk true 2>/dev/null; then
    expect 4 unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && "$0" "$@"; code=$?
        ls -A small/run >left; exit $code' "$TRAIN" run $tiny --hidden-size 128 --train-iters 5 --save small/run
    err_has "disk is full"
    err_has "small/run"
    check [ -z "$(grep iter left)" ]
else
    skip "$(why_no_mount)"
fi

t "the last good checkpoint survives a full disk"
if in_small_disk true 2>/dev/null; then
    expect 4 unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && "$0" "$@"; code=$?
        ls small/run >left; "$0" eval --load small/run --data-path d_text_document --split 90,5,5 --micro-batch-size 2 >ok; exit $code' \
        "$TRAIN" run $tiny --train-iters 40 --save small/run --save-interval 5
    check grep -q iter_0000005 left
    check grep -q "valid loss" ok
else
    skip "$(why_no_mount)"
fi
