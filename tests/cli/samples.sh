# SPDX-License-Identifier: Apache-2.0
. "$SRC/tests/cli/train_data.sh"

# two iterations of each run file on the small corpus; --full takes the sequences that the file names
length=128
[ -z "${WEFT_FULL:-}" ] || length=2048

t "the 0.125B run file: two iterations at a small global batch"
expect 0 "$TRAIN" run --config "$SRC/samples/gpt-0.125b.toml" --tokenizer-type NullTokenizer --vocab-size 60 \
    --data-path d_text_document --seq-length $length --global-batch-size 2 --exit-interval 2 --log-interval 1 \
    --split 100,0,0 --save-interval 0 --no-index-cache --train-samples 40
err_has "parameters"
out_has "iteration        2/      20 | consumed samples:            4 |"

t "the quick start's run file"
expect 0 "$TRAIN" run --config "$SRC/samples/quickstart.toml" --tokenizer-type NullTokenizer --vocab-size 60 \
    --data-path d_text_document --train-iters 2 --lr-warmup-iters 1 --log-interval 1 --split 100,0,0 --no-index-cache
out_has "iteration        2/       2 | consumed samples:           32 |"
