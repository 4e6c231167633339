# SPDX-License-Identifier: Apache-2.0
# What making and reading the golden files share. Paths are relative to their folder.

maps="--prefix data_text_document --seq-length 16 --num-samples 40 --split 80,10,10"
samples="data_text_document --samples 0 7 39 --seq-length 16 --num-samples 40 --split 80,10,10 --json"
run="--num-layers 2 --hidden-size 8 --num-attention-heads 2 --group-query-attention --num-query-groups 1 --swiglu
    --ffn-hidden-size 12 --normalization RMSNorm --position-embedding-type rope --max-position-embeddings 16
    --seq-length 16 --micro-batch-size 2 --global-batch-size 4 --tokenizer-model unigram.model
    --data-path data_text_document --split 80,10,10 --train-iters 8 --eval-iters 1 --eval-interval 100 --lr 1e-2
    --log-interval 1 --save-interval 4"

# losses FOLDER: step and loss of each step of a run
losses() {
    python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    r = json.loads(line)
    if "lm_loss" in r:
        print(r["iteration"], r["lm_loss"])' "$1"
}

# tensors CHECKPOINT: names, groups, shapes and types, without the path
tensors() {
    "$CONVERT" inspect --json --tensors "$1" | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(json.dumps({k: d[k] for k in ("iteration", "consumed_samples", "model", "tokenizer", "state")}, sort_keys=True))
for t in d["tensors"]:
    print(json.dumps({k: t[k] for k in ("group", "name", "dtype", "shape")}, sort_keys=True))'
}
