# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of train: a small corpus of word-like ids with some order in it, tokenized by the null
# tokenizer into ./d_text_document, and the options of a tiny model that learns it.

python3 - >d.jsonl <<'END'
x = 7
for d in range(60):
    ids = []
    for _ in range(90):
        x = (x * 1103515245 + 12345) % 2**31
        a = x // 65536 % 12
        ids += [a, a + 12, a + 24, 40 + a % 5]
    print('{"text": "%s"}' % " ".join(map(str, ids)))
END
"$PREP" build --input d.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod \
    --output-prefix d >/dev/null 2>&1

bare="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 32 --seq-length 32
    --micro-batch-size 2 --global-batch-size 4 --tokenizer-type NullTokenizer --vocab-size 60 --lr 5e-3
    --log-interval 5 --eval-interval 10 --eval-iters 2 --split 90,5,5"
tiny="$bare --data-path d_text_document"
llama="--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2"
