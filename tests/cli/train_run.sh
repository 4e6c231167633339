# SPDX-License-Identifier: Apache-2.0
. "$SRC/tests/cli/train_data.sh"

# what a run did: every step's numbers without times
steps() { sed 's/, "ms": [^,]*, "data_ms": [^,]*, "tflops": [^,]*//; s/, "time": [0-9]*//' "$1/metrics.jsonl"; }
# the tensors of a checkpoint
tensors() { cat "$1"/*.safetensors; }

t "a run learns, logs, evaluates and saves"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save a --save-interval 10
out_has "iteration       30/      30 | consumed samples:          120 |"
out_has "validation loss at iteration 10 | lm loss value:"
out_has "validation loss at iteration 30 on validation set"
out_has "validation loss at iteration 30 on test set"
has_file a/iter_0000030/manifest.json
has_file a/config.toml
check [ "$(cat a/latest_checkpointed_iteration.txt)" = 30 ]
cp -r a flipped
printf '3\360' >flipped/latest_checkpointed_iteration.txt
no_temps a
check python3 -c "
import json
l = [json.loads(x) for x in open('a/metrics.jsonl')]
l = [x['lm_loss'] for x in l if 'lm_loss' in x]
assert len(l) == 30 and l[-1] < 0.8 * l[0], l"

t "any number of threads gives the same bytes"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save b --threads 1
tensors a/iter_0000030 >a.bin
tensors b/iter_0000030 >b.bin
same a.bin b.bin
steps a >a.steps
steps b >b.steps
same a.steps b.steps

t "a stopped run resumes as if it had not stopped (GPT, dropout)"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save c --save-interval 10 --exit-interval 15
has_file c/iter_0000015
expect 0 "$TRAIN" run $tiny --train-iters 30 --save c --save-interval 10
err_has "resuming from"
tensors c/iter_0000030 >c.bin
same a.bin c.bin
steps c >c.steps
same a.steps c.steps

t "a stopped run resumes as if it had not stopped (Llama)"
expect 0 "$TRAIN" run $tiny $llama --train-iters 20 --save la
expect 0 "$TRAIN" run $tiny $llama --train-iters 20 --save lb --exit-interval 10
expect 0 "$TRAIN" run $tiny $llama --train-iters 20 --save lb
tensors la/iter_0000020 >la.bin
tensors lb/iter_0000020 >lb.bin
same la.bin lb.bin

t "kill -9 in the middle leaves a run that resumes"
"$TRAIN" run $tiny --train-iters 3000 --save k --save-interval 1 >/dev/null 2>&1 &
pid=$!
await $pid test -e k/iter_0000002
kill -9 $pid
wait $pid 2>/dev/null
expect 0 "$TRAIN" run $tiny --train-iters 3000 --save k --exit-duration-in-mins 0.001
err_has "resuming from"

t "SIGTERM saves and asks to be started again; the second run resumes"
"$TRAIN" run $tiny --train-iters 100000 --save s >s.out 2>s.err &
pid=$!
await $pid not_empty s/metrics.jsonl
kill -TERM $pid
code=0
wait $pid || code=$?
check [ "$code" = 75 ]
check grep -q "^stopping after this step$" s.err
check grep -q "stopped by SIGTERM after step [0-9]*; to resume:" s.err
check [ "$(grep -c "error:" s.err)" = 0 ]
has_file s/latest_checkpointed_iteration.txt

t "a cut checkpoint: the one before it is taken and named"
cp -r a cut
f=$(ls cut/iter_0000030/*.safetensors | head -n 1)
head -c 1000 "$f" >x && mv x "$f"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save cut
err_has "iter_0000030"
err_has "iter_0000020"
tensors cut/iter_0000030 >cut.bin
same a.bin cut.bin

t "a flipped byte of the newest checkpoint is found while it is read: the one before it is taken"
rm -rf cut
cp -r a cut
python3 -c "
f = open('cut/iter_0000030/exp_avg_sq-00000.safetensors', 'r+b')
f.seek(-100, 2); c = f.read(1); f.seek(-100, 2); f.write(bytes([c[0] ^ 4]))"
expect 0 "$TRAIN" run $tiny --train-iters 30 --save cut
err_has "iter_0000030 is passed over"
err_has "; damaged: exp_avg_sq '"
err_has "resuming from cut/iter_0000020"
tensors cut/iter_0000030 >cut.bin
same a.bin cut.bin

t "a flipped byte everywhere: exit 7"
rm -rf flip
cp -r b flip
f=$(ls flip/iter_0000030/*.safetensors | head -n 1)
python3 -c "
import sys
f = open('$f', 'r+b'); f.seek(-100, 2); c = f.read(1); f.seek(-100, 2); f.write(bytes([c[0] ^ 4]))"
expect 7 "$TRAIN" run $tiny --train-iters 40 --save flip
err_has "iter_0000030"

t "another model than the checkpoint's is refused by name"
expect 2 "$TRAIN" run $tiny --num-layers 3 --train-iters 40 --save a
err_has "num-layers"

t "another vocabulary than the checkpoint's: both digests"
expect 0 "$PREP" build --input d.jsonl --tokenizer-type NullTokenizer --vocab-size 61 --append-eod --output-prefix e
expect 2 "$TRAIN" run $bare --vocab-size 61 --data-path e_text_document --train-iters 40 --save a
err_has "tokenizers differ"
err_has "the checkpoint was trained with"

t "another tokenizer than the data's: both files, both digests"
printf '{"<unk>": 0, "<|endoftext|>": 1}' >v.json
expect 2 "$TRAIN" run $tiny --tokenizer-type WhitespaceTokenizer --vocab-size 0 --vocab-file v.json --train-iters 5 --save none
err_has "tokenizers differ: d_text_document.manifest.json has "
err_has "the command line has v.json (SHA-256 $(sha256sum <v.json | cut -c 1-12))"
err_has "hint: name the tokenizer that the data were made with"

t "--finetune takes weights alone, and starts at 0"
expect 0 "$TRAIN" run $tiny --train-iters 5 --load a --finetune --save ft
err_has "weights of a/iter_0000030"
out_has "iteration        5/       5 | consumed samples:           20 |"

t "an empty share fails a run that would evaluate on it, and no other"
expect 2 "$TRAIN" run $tiny --split 999,1,0 --train-iters 5
err_has "the valid share is empty: --split 999,1,0 leaves it none of 60 documents"
err_has "hint: --split 99,1,0 works here"
expect 0 "$TRAIN" run $tiny --split 999,1,0 --train-iters 5 --eval-iters 0

t "data that are not the checkpoint's: exit 2, both digests"
"$PREP" build --input d.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --output-prefix other >/dev/null 2>&1
expect 2 "$TRAIN" run $bare --data-path other_text_document --train-iters 40 --save a
err_has "the data are not those of the run"
err_has "$(sha256sum d_text_document.manifest.json | cut -d' ' -f1)"
err_has "$(sha256sum other_text_document.manifest.json | cut -d' ' -f1)"
sed 's/"vocab_size": 61/"vocab_size": 62/' d_text_document.manifest.json >other_text_document.manifest.json
expect 2 "$TRAIN" run $bare --data-path other_text_document --train-iters 40 --load a
err_has "vocabularies differ"

t "a run that resumes with other options says so"
expect 0 "$TRAIN" run $tiny --train-iters 31 --lr 1e-3 --save a
err_has "--train-iters 31 (was 30)"
err_has "--lr 0.001 (was 0.005)"
expect 0 "$TRAIN" run $tiny --train-iters 6 --lr 1e-3 --save a
err_has "nothing to train: the checkpoint is at step 31 of 6"

t "learning rates that cannot be: exit 2"
expect 2 "$TRAIN" run $tiny --train-iters 5 --lr-warmup-samples 4
err_has "with --train-iters the learning rate is in iterations"
expect 2 "$TRAIN" run $tiny --train-samples 20 --lr-warmup-iters 4
err_has "with --train-samples the learning rate is in samples"
expect 2 "$TRAIN" run $tiny --train-iters 5 --lr-warmup-iters 2 --lr-warmup-fraction 0.1
err_has "exclude each other"
expect 2 "$TRAIN" run $tiny --train-iters 5 --lr-warmup-iters 5
err_has "--lr-warmup-iters 5 must be below --train-iters 5"
expect 2 "$TRAIN" run $tiny --train-samples 20 --lr-warmup-samples 12 --lr-decay-samples 10
err_has "--lr-warmup-samples 12 must be below --lr-decay-samples 10"
expect 2 "$TRAIN" run $tiny --train-iters 5 --lr-warmup-fraction 1
err_has "--lr-warmup-fraction 1 leaves the learning rate nothing to decay over"
expect 2 "$TRAIN" run $tiny --train-iters 5 --min-lr 1
err_has "--min-lr 1 is above --lr"
expect 2 "$TRAIN" run $tiny --train-samples 3
err_has "less than one batch"
expect 2 "$TRAIN" run $tiny --train-iters 5 --lr 0
err_has "--lr 0 learns nothing"

t "a warm-up by fraction is not rounded to samples"
expect 0 "$TRAIN" run $tiny --train-iters 3 --lr-warmup-fraction 0.9 --lr 1e-3 --log-interval 1
out_has "learning rate: 3.703704E-04"

t "SIGTERM without --save: nothing was saved, and nobody is asked to start again"
"$TRAIN" run $tiny --train-iters 100000 --metrics term.jsonl >s.out 2>s.err &
pid=$!
await $pid not_empty term.jsonl
kill -TERM $pid
code=0
wait $pid || code=$?
check [ "$code" = 143 ]
check grep -q "nothing was saved" s.err

t "the metrics go where they are told; the log formats"
expect 0 "$TRAIN" run $tiny --train-iters 5 --metrics m.jsonl --log-format megatron-v3
out_has " iteration        5/       5 | consumed samples:           20 | elapsed"
check [ "$(wc -l <m.jsonl)" -ge 5 ]
expect 0 "$TRAIN" run $tiny --train-iters 5 --log-format megatron-deepspeed
out_has "actual seqlen:    32 |"
expect 0 "$TRAIN" run $tiny --train-iters 5 --log-throughput
out_has "throughput per GPU (TFLOP/s/GPU):"

t "--print-config shows every value with its origin, and gives the same run again"
expect 0 "$TRAIN" run $tiny --train-iters 5 --print-config
cp .out cfg.toml
out_has "adam-beta2 = 0.999"
expect 0 "$TRAIN" run --config cfg.toml --save p
expect 0 "$TRAIN" run $tiny --train-iters 5 --save q
tensors p/iter_0000005 >p.bin
tensors q/iter_0000005 >q.bin
same p.bin q.bin

t "eval and generate take the checkpoint alone"
expect 0 "$TRAIN" eval --load a --data-path d_text_document --split 90,5,5 --eval-iters 4 --micro-batch-size 2
out_has "valid loss"
cp .out e1
expect 0 "$TRAIN" eval --load a --data-path d_text_document --eval-iters 4 --micro-batch-size 2
same .out e1
expect 0 "$TRAIN" generate --load a --prompt "3 15 27" --max-new-tokens 9 --temperature 0
out_has "3 15 27 4"
cp .out g1
expect 0 "$TRAIN" generate --load a --prompt "3 15 27" --max-new-tokens 9 --temperature 0 --threads 1
same .out g1

t "a prompt may have commas, and may be empty"
expect 3 "$TRAIN" generate --load a --prompt "3, 15" --max-new-tokens 2 --temperature 0
err_has "'3,' is not an id"
expect 0 "$TRAIN" generate --load a --prompt "" --max-new-tokens 3 --temperature 0
check [ "$(wc -w <.out)" -ge 1 ]

t "options that are wrong: exit 2 and a hint"
expect 2 "$TRAIN" run $tiny --train-iterz 5
err_has "train-iters"
expect 2 "$TRAIN" run $tiny
err_has "--train-iters is missing"
expect 2 "$TRAIN" run $tiny --train-iters 5 --global-batch-size 3
err_has "not a multiple of --micro-batch-size"
expect 2 "$TRAIN" run $tiny --train-iters 5 --seq-length 64
err_has "positions"

t "all of the validation share at each evaluation: what eval says of as many batches"
expect 0 "$TRAIN" run $tiny --train-iters 12 --eval-iters 0 --full-validation --save full
out_has "validation loss at iteration 10 | lm loss value:"
[ "$(grep -c 'validation loss' .out)" = 2 ] || _wrong "not two evaluations"
last=$(sed -n 's/.*at iteration 12 on validation set | lm loss value: \([^ ]*\) .*/\1/p' .out)
# 3 of 60 documents, 1083 tokens, 33 samples
expect 0 "$TRAIN" eval --load full --data-path d_text_document --micro-batch-size 1 --global-batch-size 1 --eval-iters 33
python3 -c "
import re, sys
a, b = float('$last'), float(re.search(r'loss ([0-9.]+)', open('.out').read())[1])
sys.exit(abs(a - b) > 2e-6 * b)" || _wrong "$last, and eval: $(cat .out)"
expect 2 "$TRAIN" run $tiny --train-iters 5 --full-validation --split 100,0,0
err_has "no valid share"
expect 2 "$TRAIN" run $bare --train-iters 5 --full-validation --data-path 1 d_text_document
err_has "weights need a number of valid samples"
still="$tiny --train-iters 1 --lr 1e-12 --eval-iters 0 --full-validation --no-save"
for layout in "" "--micro-batch-size 1 --global-batch-size 1" "--micro-batch-size 34 --global-batch-size 34" "--micro-batch-size 4 --nproc-per-node 2 --threads 1 --global-batch-size 8"; do
    expect 0 "$TRAIN" run $still $layout
    sed -n 's/.*at iteration 1 on validation set | lm loss value: \([^ ]*\) .*/\1/p' .out
done >losses
python3 -c "
a = [float(x) for x in open('losses')]
assert len(a) == 4 and max(a) - min(a) < 2e-6 * max(a), a" || _wrong "losses differ: $(cat losses)"
grep -q '"data_ms": [0-9]' full/metrics.jsonl || _wrong "no time waited for data"

t "data that is cut: exit 3"
cp d_text_document.idx g_text_document.idx
head -c 100 d_text_document.bin >g_text_document.bin
expect 3 "$TRAIN" run $bare --data-path g_text_document --train-iters 5
err_has "g_text_document"

t "plan takes the command line of run: what has no effect there is named in one warning"
expect 0 "$TRAIN" plan $tiny --train-iters 5 --save p --load nosuch --lr-warmup-iters 2
out_has "parameters      28448"
err_has "--save, --load, "
err_has "have no effect in $(basename "$TRAIN") plan"
no_file p/.lock
expect 0 "$TRAIN" plan --num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 32 \
    --data-path d_text_document
out_has "parameters      28448"
expect 4 "$TRAIN" plan --preset gpt-1m --data-path nosuch
err_has "nosuch.bin and nosuch.idx do not exist"

t "a flipped latest_checkpointed_iteration.txt is said to be wrong"
expect 0 "$TRAIN" run $tiny --train-iters 31 --save flipped
err_has "flipped/latest_checkpointed_iteration.txt does not name the newest checkpoint, flipped/iter_0000030"
check [ "$(cat flipped/latest_checkpointed_iteration.txt)" = 31 ]
