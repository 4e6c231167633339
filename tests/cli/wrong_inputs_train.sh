# SPDX-License-Identifier: Apache-2.0
# Wrong inputs of train and convert that a newcomer meets: exit code and the words that lead on. Others: wrong_inputs_prep.sh.

"$STORIES" --documents 40 --output s.jsonl
python3 -c '
import json
open("t.txt", "w").writelines(json.loads(x)["text"] + "\n" for x in open("s.jsonl"))'
"$TOK" train -q --preset ucllm --input t.txt --model_prefix m --vocab_size 400
"$PREP" build --quiet --input s.jsonl --tokenizer m.model --output-prefix d --append-eod
run="$TRAIN run --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16
    --micro-batch-size 1 --train-iters 2 --lr 1e-3 --split 100,0,0 --eval-iters 0 --data-path d_text_document"

t "train run: heads that do not divide"
expect 2 $run --num-attention-heads 3
err_has "num-attention-heads"

t "train run: more than the memory holds"
expect 5 $run --micro-batch-size 1000000 --hidden-size 4096
err_has "not enough memory"
err_has "lower --micro-batch-size from 1000000"

t "an address in place of a checkpoint, a model or data"
expect 4 $run --load s3://bucket/run
err_has "s3://bucket/run: is an address, not a file or folder of this machine; nothing is fetched"
err_has "hint: fetch it first: aws s3 cp --recursive 's3://bucket/run' FOLDER; then name what is there"
expect 4 $run --data-path gs://bucket/d_text_document
err_has "gcloud storage cp --recursive 'gs://bucket/d_text_document' FOLDER"
expect 4 "$CONVERT" import https://huggingface.co/org/model-1.5 a
err_has "huggingface-cli download org/model-1.5 --local-dir FOLDER"
expect 4 "$CONVERT" inspect s3://bucket/run
err_has "aws s3 cp --recursive 's3://bucket/run' FOLDER"

t "train run: splits and rates that are none"
for split in abc 0,0,0; do
    expect 2 $run --split $split
    err_has "split"
done
for rate in -1 nan 1e-3x; do
    expect 2 $run --lr $rate
    err_has "--lr"
done

t "train run: --save of a file"
echo a >file
expect 4 $run --save file
err_has "file"

t "train run: without --save, which --no-save says aloud"
expect 0 $run
err_has "without --save DIR the model is not kept (--no-save silences this warning)"
expect 0 $run --no-save
err_lacks "is not kept"

t "train run: --load of what is not there, or holds no checkpoint"
expect 4 $run --no-save --load nosuch
err_has "nosuch: no such folder"
mkdir -p dir
cp s.jsonl dir/a.jsonl
expect 3 $run --no-save --load dir
err_has "dir holds no checkpoint (iter_0000100), but other files: a.jsonl"

t "train run: --finetune without --load"
expect 2 $run --no-save --finetune
err_has "--finetune needs --load"

t "train run: an older checkpoint by its folder"
expect 0 $run --save r --save-interval 1
expect 0 $run --no-save --load r/iter_0000001

t "train run: index maps that cannot be kept"
echo a >file
expect 4 $run --no-save --data-cache-path file
err_has "hint: index maps are kept next to the data: --data-cache-path FOLDER"
err_has "--no-index-cache"

t "train run: --data-path of what is not token data"
bare=${run% --data-path *}
expect 4 $bare --no-save --data-path nosuch
err_has "nosuch.bin and nosuch.idx do not exist"
expect 3 $bare --no-save --data-path s.jsonl
err_has "s.jsonl is a file, not the prefix of token data"
expect 4 $bare --no-save --data-path dir
err_has "dir is a folder, not the prefix of token data"
expect 0 $bare --no-save --data-path d_text_document.bin
mkdir -p cut
cp d_text_document.idx d_text_document.manifest.json cut
head -c 100 d_text_document.bin >cut/d_text_document.bin
expect 3 $bare --no-save --data-path cut/d_text_document
err_has "cut/d_text_document.bin"

t "train run: sizes of 0"
expect 2 $run --no-save --num-layers 0
err_has "--num-layers: must be from 1"
expect 2 $run --no-save --train-iters 0
err_has "--train-iters: must be at least 1, got 0"

t "train run: --device cuda without a GPU, and auto"
want=5
env CUDA_VISIBLE_DEVICES= $run --no-save --device cuda 2>&1 | grep -q "built without" && want=2
expect $want env CUDA_VISIBLE_DEVICES= $run --no-save --device cuda
[ $want = 2 ] || err_has "GPU 0 cannot be used: "
expect 0 env CUDA_VISIBLE_DEVICES= $run --no-save --device auto
