# SPDX-License-Identifier: Apache-2.0
# train run --recipe: what other programs for fine-tuning set, and what is given beside it.
. "$SRC/tests/cli/train_data.sh"

model=$(echo "$bare" | sed 's/--split [^ ]*//; s/--eval-[a-z]* [0-9]*//g; s/--[a-z]*-batch-size [0-9]*//g; s/--log-interval 5//; s/--lr 5e-3//')
run="$model --data-path d_text_document"

# sets NAME LINES: the values of the recipe, and no others
sets() {
    expect 0 "$TRAIN" run $run --recipe $1 --print-config
    sed -n "s/^\([a-z0-9-]* = [^ ]*\)  *# recipe $1\$/\1/p" .out | sort >got
    echo "$2" | tr ',' '\n' | sed 's/^ *//' | sort >want
    same got want
}
trainer='optimizer = "adam", adam-beta1 = 0.9, adam-beta2 = 0.999, adam-eps = 1e-08, weight-decay = 0.0, clip-grad = 1.0, lr-rules = "hf",
    min-lr = 0.0, seed = 42, bf16 = true, gradient-accumulation-steps = 1, save-interval = 500, calculate-per-token-loss = true'

t "each value is that of the other program, with its origin"
sets trl "$(echo $trainer), lr = 2e-05, lr-decay-style = \"linear\", num-train-epochs = 3.0, micro-batch-size = 8, log-interval = 10"
sets llm-jp-sft "$(echo $trainer), lr = 1e-05, lr-decay-style = \"cosine\", lr-warmup-fraction = 0.1, num-train-epochs = 1.0, micro-batch-size = 1, log-interval = 500"

t "what is given beside it counts"
expect 0 "$TRAIN" run $run --recipe llm-jp-sft --train-iters 3 --lr-warmup-iters 2 --fp16 --global-batch-size 4 --lr 1e-3 --print-config
for line in "# num-train-epochs is not set" "# lr-warmup-fraction is not set" "bf16 = false" "# gradient-accumulation-steps is not set" "lr = 0.001" "lr-rules = \"hf\""; do
    check grep -q "^$line" .out
done
expect 0 "$TRAIN" run $run --recipe llm-jp-sft --train-iters 3 --lr-warmup-iters 2 --global-batch-size 4 --lr 1e-3 --save a --log-interval 1
check [ "$(sed -n 's/.*learning rate: *\([^ ]*\) .*/\1/p' .out | tr '\n' ' ')" = "5.000000E-04 1.000000E-03 0.000000E+00 " ]
expect 0 "$TRAIN" run $run --recipe trl --num-train-epochs 0.02 --no-save --log-interval 1
out_has "iteration        2/       2 |"
expect 0 "$TRAIN" run --config a/config.toml --save b
tensors() { cat "$1"/*.safetensors; }
tensors a/iter_0000003 >a.bin
tensors b/iter_0000003 >b.bin
same a.bin b.bin

t "a model to train further without a length or a rate: both lines are told"
mkdir hf
echo '{"model_type": "llama"}' >hf/config.json
: >hf/model.safetensors
for more in "" "--lr 1e-3" "--train-iters 5"; do
    expect 2 "$TRAIN" run --load hf --data-path d_text_document $more
    err_has "to train the model of hf further takes a length and a learning rate"
    err_has "--recipe trl or --recipe llm-jp-sft has both, or give --num-train-epochs X --lr X"
done
expect 2 "$TRAIN" run $run --recipe axolotl
err_has "--recipe: expected none, llm-jp-sft or trl, got 'axolotl'"
