# SPDX-License-Identifier: Apache-2.0
# Optimizers by their name.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
same_weights() { check [ "$(cat "$1"/iter_*/*.safetensors | sha256sum)" = "$(cat "$2"/iter_*/*.safetensors | sha256sum)" ]; }

t "SGD with momentum: resumes as if it had not stopped, and is no AdamW"
sgd="--optimizer sgd --lr 0.1 --keep-checkpoints 1"
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save sgd
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save again --exit-interval 5
expect 0 "$TRAIN" run $tiny $sgd --train-iters 8 --save again
same_weights sgd again
check grep -q '"group": *"momentum_buffer"' again/iter_0000008/manifest.json
expect 0 "$TRAIN" run $tiny $sgd --sgd-momentum 0 --train-iters 2 --save plain
check [ -z "$(grep momentum_buffer plain/iter_0000002/manifest.json)" ]
expect 2 "$TRAIN" run $tiny --lr 0.1 --train-iters 9 --save plain
err_has "exp_avg"
