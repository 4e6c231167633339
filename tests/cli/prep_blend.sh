# SPDX-License-Identifier: Apache-2.0
# prep index and prep blend over several datasets; a run of the trainer over a blend.

. "$SRC/tests/cli/train_data.sh"
head -n 20 d.jsonl >e.jsonl
"$PREP" build --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod \
    --output-prefix e >/dev/null 2>&1
cp d_text_document.bin f.bin
cp d_text_document.idx f.idx

t "blend: what a run takes of each, before there are any maps"
expect 0 "$PREP" blend --data-path 3 d_text_document 1 e_text_document --num-samples 1000 --seq-length 32 --split 1
out_has "train: 1000 samples of 32 tokens"
out_has "0.250000            250"
expect 0 "$PREP" blend --data-path 3 d_text_document 1 e_text_document --num-samples 1000 --seq-length 32 \
    --split 1 --json
cp .out answer.json
python3 - <<'END' || _wrong "the JSON"
import json
a = json.load(open("answer.json"))["train"]
assert a["samples"] == 1000 and [s["samples"] for s in a["sets"]] == [750, 250], a
assert a["sets"][1]["tokens_there"] == 20 * 361 and a["sets"][1]["epochs"] == 250 * 32 / (20 * 361), a
assert a["sets"][1]["samples_made"] >= 252 and a["sets"][1]["epochs_made"] == 2, a
END
[ -z "$(ls | grep npy)" ] || _wrong "blend wrote maps"

t "blend: a weight without its prefix, and samples of parts that are not there"
expect 4 "$PREP" blend --data-path 3 d_text_document e_text_document --num-samples 10 --seq-length 32
err_has "3.idx"
err_has "a number is a weight where each prefix has one before it"
expect 0 "$PREP" blend --data-path d_text_document --num-samples 9 --num-valid-samples 7 --seq-length 32 --split 1
err_has "the split has no valid share: its 7 samples are skipped"
echo '{"train": "d_text_document"}' >parts.json
expect 0 "$PREP" blend --per-split-data-args-path parts.json --num-samples 9 --num-test-samples 8 --seq-length 32
err_has "no data was named for test: its 8 samples are skipped"
echo '{"train": "d_text_document", "validation": "e_text_document"}' >parts.json
expect 3 "$PREP" blend --per-split-data-args-path parts.json --num-samples 9 --seq-length 32
err_has '"validation" is not train, valid or test'

t "index: a cache under core's names, and a blend there"
blend="--data-path d_text_document e_text_document --num-samples 300 --num-valid-samples 4 --seq-length 32
    --split 80,20 --data-cache-path cache"
expect 0 "$PREP" index $blend
out_has "BlendedDataset-train-dataset_index.npy"
[ "$(ls cache | grep -c description.txt)" = 6 ] || _wrong "not two datasets and a blend for each of two parts"
for f in cache/*-description.txt; do
    m=${f#cache/}
    [ "$(md5sum <$f | cut -d' ' -f1)" = "${m%%-*}" ] || _wrong "$f is not named by its digest"
done
expect 0 "$PREP" index $blend
err_has "d_text_document: train: sequences 0 to 48"
err_has "blend of 300 samples, reused"
ls -l --time-style=full-iso cache >before
expect 0 "$PREP" index $blend
ls -l --time-style=full-iso cache >after
same before after

t "index: maps of another .idx are made again"
expect 0 "$PREP" index --prefix f --num-samples 40 --seq-length 32 --split 1
cp e_text_document.bin f.bin
cp e_text_document.idx f.idx
expect 0 "$PREP" index --prefix f --num-samples 40 --seq-length 32 --split 1
err_has "f_train_indexmap_40ns_32sl_1234s_doc_idx.npy: was made from another .idx"
expect 0 "$PREP" index --prefix f --num-samples 40 --seq-length 32 --split 1
err_has "reused"

t "lists in files, lists for each part"
printf '0.5 d_text_document\n0.5 e_text_document\n' >list
expect 0 "$PREP" blend --data-args-path list --num-samples 10 --seq-length 32 --split 1
out_has "from 2 datasets"
printf '{"train": ["d_text_document", "e_text_document"], "valid": "f"}' >parts.json
expect 0 "$PREP" blend --per-split-data-args-path parts.json --num-samples 10 --num-valid-samples 5 --seq-length 32
out_has "valid: 5 samples of 32 tokens"
expect 0 "$PREP" blend --train-data-path d_text_document --test-data-path e_text_document --exhaustive --seq-length 32
out_has "test: 225 samples"

t "impossible requests are rejected"
expect 2 "$PREP" blend --num-samples 3
err_has "--data-path is missing"
expect 2 "$PREP" blend --data-path f --data-args-path list --num-samples 3
err_has "exclude each other"
expect 2 "$PREP" blend --data-path 1 d_text_document x f --num-samples 3
err_has "weight before each prefix"
expect 0 "$PREP" blend --train-data-path f --num-samples 3 --split 1
err_has "--split has no effect with --train-data-path"
expect 4 "$PREP" blend --data-path none --num-samples 3
expect 2 "$PREP" blend --data-path f --num-samples 0
expect 3 "$PREP" blend --per-split-data-args-path list --num-samples 3

t "the rules before core: v2 beside the data, Megatron-DeepSpeed in a cache"
old="--data-path 2 d_text_document 1 e_text_document --num-samples 40 --seq-length 32 --split 9,1"
expect 0 "$PREP" index $old --data-rules v2
[ -f d_text_document_train_indexmap_27ns_32sl_1234s_doc_idx.npy ] || _wrong "no maps of v2"
expect 0 "$PREP" index $old --data-rules deepspeed
[ "$(ls index-cache/*.dsc | wc -l)" = 2 ] || _wrong "not two descriptions beside the data"
expect 0 "$PREP" index $old --data-rules deepspeed --data-cache-path olds
ls olds/*_sample_index.npy > out 2>&1 || _wrong "no blend in the cache"
expect 0 "$PREP" blend $old --data-rules deepspeed
out_has "train: 41 samples"
expect 2 "$PREP" index $old --data-rules v1
err_has "v1 supports one dataset"
expect 2 "$PREP" index $old --data-rules v2 --data-cache-path olds
err_has "next to the data"
expect 2 "$PREP" index --data-path d_text_document e_text_document --num-samples 4 --data-rules v2
err_has "without weights"
expect 2 "$PREP" blend --data-path f --exhaustive --data-rules v2
err_has "every sample once"
expect 0 "$TRAIN" run $bare --data-path 2 d_text_document 1 e_text_document --data-rules v2 --train-iters 4 \
    --save runs/old
expect 0 "$TRAIN" eval --load runs/old --data-path d_text_document --eval-iters 2

t "the trainer reads the blend, and resumes with it"
blend="--data-path 2 d_text_document 1 e_text_document --data-cache-path runs/cache"
expect 0 "$TRAIN" run $bare $blend --train-iters 8 --save runs/a
expect 0 "$TRAIN" run $bare $blend --train-iters 8 --save runs/b --exit-interval 3
expect 0 "$TRAIN" run $bare $blend --train-iters 8 --save runs/b
loss() { grep -o '"lm_loss": *[0-9.]*' $1/metrics.jsonl | tail -n 1; }
[ -n "$(loss runs/a)" ] || _wrong "no loss"
[ "$(loss runs/a)" = "$(loss runs/b)" ] || _wrong "$(loss runs/a) and $(loss runs/b)"
ls runs/cache | grep -q BlendedDataset-train || _wrong "no blend in the cache"
expect 0 "$TRAIN" eval --load runs/a $blend --eval-iters 2 --micro-batch-size 2
out_has "of the blend"

t "ends of documents: masks, positions and attention change what is learnt, and are kept"
expect 0 "$TRAIN" run $tiny --train-iters 4 --save runs/x
for o in --eod-mask-loss --reset-position-ids --reset-attention-mask; do
    expect 0 "$TRAIN" run $tiny --train-iters 4 --save runs/x$o $o
    [ "$(loss runs/x$o)" != "$(loss runs/x)" ] || _wrong "$o has no effect"
done
expect 0 "$TRAIN" eval --load runs/x--reset-attention-mask --data-path d_text_document --eval-iters 2

t "fill in the middle, with pieces that the vocabulary has"
expect 2 "$TRAIN" run $tiny --train-iters 4 --save runs/f --fim-rate 0.5
err_has "the tokenizer has no piece <fim_prefix>"
expect 0 "$TRAIN" run $tiny --train-iters 4 --save runs/f --fim-rate 0.5 --fim-prefix-token 57 \
    --fim-middle-token 58 --fim-suffix-token 59
[ "$(loss runs/f)" != "$(loss runs/x)" ] || _wrong "--fim-rate has no effect"
