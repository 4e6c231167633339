# SPDX-License-Identifier: Apache-2.0
# Two real books, English and Japanese, through the whole path: a vocabulary, token shards, a GPT and a Llama of about
# a million parameters, stopped half-way and resumed. WEFT_FULL=1 takes 200 steps, else 12.
if [ -z "$DATA" ]; then
    t "real books through the whole path"
    skip "WEFT_TEST_DATA is not set"
    finish
    exit 0
fi
steps=12
[ -z "${WEFT_FULL:-}" ] || steps=200
half=$((steps / 2))

numbers() { sed 's/, "ms": [^,]*, "data_ms": [^,]*, "tflops": [^,]*//; s/, "time": [0-9]*//' "$1/metrics.jsonl"; }
tensors() { cat "$1"/*.safetensors; }
learns() {
    check python3 -c "
import json
l = [json.loads(x) for x in open('$1/metrics.jsonl')]
l = [x['lm_loss'] for x in l if 'lm_loss' in x]
assert len(l) == $steps and all(x == x for x in l) and l[-1] < l[0] - 0.3, l"
}

t "a book teaches a vocabulary of 2000 pieces"
expect 0 "$TOK" train --preset ucllm --input "$DATA/text/botchan.txt" --model_prefix book --vocab_size 2000
has_file book.model
has_file book.vocab

t "both books become one dataset"
expect 0 "$PREP" build --input "$DATA/text/botchan.jsonl,$DATA/text/wagahaiwa_nekodearu.jsonl" --tokenizer book.model \
    --append-eod --workers 2 --output-prefix books
expect 0 "$PREP" inspect --check books_text_document

shape="--num-layers 4 --hidden-size 128 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128"
run="$shape --data-path books_text_document --tokenizer-model book.model --micro-batch-size 4 --train-iters $steps"
run="$run --lr 1e-3 --eval-iters 0 --split 100,0,0 --log-interval 1"
llama="--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
    --group-query-attention --num-query-groups 2 --untie-embeddings-and-output-weights"

for family in gpt llama; do
    options=
    [ $family = gpt ] || options=$llama
    t "$family: learns from the books"
    expect 0 "$TRAIN" run $run $options --save $family
    learns $family
    t "$family: stopped at step $half and resumed, it is the unbroken run"
    expect 0 "$TRAIN" run $run $options --save $family.two --exit-interval $half
    expect 0 "$TRAIN" run $run $options --save $family.two
    err_has "resuming from"
    last=$(printf 'iter_%07d' $steps)
    tensors $family/$last >one.bin
    tensors $family.two/$last >two.bin
    same one.bin two.bin
    numbers $family >one.steps
    numbers $family.two >two.steps
    same one.steps two.steps
done
