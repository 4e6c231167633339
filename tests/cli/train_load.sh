# SPDX-License-Identifier: Apache-2.0
# What --save, --load and --ckpt-step find, and what they refuse.
. "$SRC/tests/cli/train_data.sh"

steps() { sed 's/, "ms": [^,]*, "data_ms": [^,]*, "tflops": [^,]*//; s/, "time": [0-9]*//' "$1/metrics.jsonl"; }
run() { "$TRAIN" run $tiny "$@"; }

t "without --save the run says at its start that the model is not kept"
expect 0 run --train-iters 2
err_has "warning: without --save DIR the model is not kept"
expect 0 run --train-iters 2 --no-save
err_lacks "is not kept"
expect 0 run --train-iters 2 --save w
err_lacks "is not kept"
expect 2 run --train-iters 2 --save w --no-save
err_has "--save and --no-save exclude each other"

t "a run of 30 steps, to load from"
expect 0 run --train-iters 30 --save a --save-interval 10
no_file a/.lock

t "--load of what is not there: exit 4, also with --finetune, and nothing is left behind"
expect 4 run --train-iters 5 --load nosuch --save none
err_has "nosuch: no such folder"
no_file none
expect 4 run --train-iters 5 --load nosuch --finetune
mkdir empty
expect 4 run --train-iters 5 --load empty
err_has "empty holds no checkpoint"
expect 4 "$TRAIN" eval --load nosuch --data-path d_text_document
err_has "no such folder"
expect 4 "$TRAIN" generate --load empty --prompt "1"
err_has "empty holds no checkpoint"

t "--load of a file, of other files, of a Hugging Face model that is none: exit 3"
expect 3 run --train-iters 5 --load d.jsonl
err_has "d.jsonl is a file, not a folder of checkpoints"
mkdir other hf
touch other/one other/two hf/config.json hf/model.safetensors
expect 3 run --train-iters 5 --load other
err_has "other holds no checkpoint (iter_0000100), but other files: "
err_has "one"
expect 3 run --train-iters 5 --load hf --finetune
err_has "hf/config.json: "
expect 3 run --train-iters 5 --load other --save other
err_has "but other files"

t "--load that is --save starts from nothing once, and says so"
expect 4 run --train-iters 10 --load job --save job --exit-on-missing-checkpoint
err_has "job holds no checkpoint"
no_file job
expect 0 run --train-iters 10 --load ./job --save job/
err_has "no checkpoint in ./job yet: the run starts from nothing"
expect 0 run --train-iters 12 --load job --save job --exit-on-missing-checkpoint
err_has "resuming from job/iter_0000010"
out_has "validation loss at iteration 12"

t "--finetune needs --load"
expect 2 run --train-iters 5 --finetune --save none
err_has "--finetune needs --load"
no_file none

t "one checkpoint by its folder or its step, in run, eval and generate"
cp -r a/iter_0000020 best
for way in "--load a --ckpt-step 20" "--load a/iter_0000020" "--load a/iter_0000020/ --ckpt-step 20" \
    "--load a --iteration 20" "--load best"; do
    expect 0 "$TRAIN" eval $way --data-path d_text_document --eval-iters 4 --micro-batch-size 2
    [ -e e20 ] || cp .out e20
    same .out e20
    expect 0 "$TRAIN" generate $way --prompt "3 15 27" --max-new-tokens 9 --temperature 0
    [ -e g20 ] || cp .out g20
    same .out g20
done
expect 0 "$TRAIN" eval --load a --data-path d_text_document --eval-iters 4 --micro-batch-size 2
differ .out e20

t "--ckpt-step reads the weights once, and a damaged one names the newest that is intact"
check python3 -c '
import subprocess, sys
def bytes_read():  # by this process and by those that it has waited for
    with open("/proc/self/io") as f:
        return int(f.readline().split()[1])
def read(*more):
    before = bytes_read()
    subprocess.run([sys.argv[1], "generate", "--load", "a", *more, "--prompt", "3", "--max-new-tokens", "1"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return bytes_read() - before
newest, named = read(), read("--ckpt-step", "30")
assert abs(newest - named) < 4096, (newest, named)' "$TRAIN"
cp -r a hurt
printf '\377' | dd of=hurt/iter_0000020/param-00000.safetensors bs=1 seek=9000 conv=notrunc status=none
expect 7 "$TRAIN" generate --load hurt --ckpt-step 20 --prompt "3"
err_has "hurt/iter_0000020/param-00000.safetensors: its bytes are not those"
err_has "hurt/iter_0000030 is the newest intact one"
rm hurt/iter_0000020/config.toml
expect 7 "$TRAIN" eval --load hurt --ckpt-step 20 --data-path d_text_document
err_has "config.toml: is missing"
err_has "hurt/iter_0000030 is the newest intact one"
rm -rf hurt
expect 2 "$TRAIN" eval --load a/iter_0000020 --ckpt-step 10 --data-path d_text_document
err_has "--load a/iter_0000020 is step 20, and --ckpt-step is 10"
expect 4 "$TRAIN" eval --load a --ckpt-step 15 --data-path d_text_document
err_has "a has no checkpoint of step 15"
err_has "hint: it has 10, 20, 30"

t "another optimizer than the checkpoint's needs --no-load-optim, which the error names"
expect 2 run --train-iters 31 --load a --no-save --optimizer sgd
err_has "holds the state of another optimizer: there is no momentum_buffer of 'embed.weight'"
err_has "--no-load-optim"
expect 0 run --train-iters 31 --load a --no-save --optimizer sgd --no-load-optim

t "an older checkpoint into another --save: the bytes of the run itself"
expect 0 run --train-iters 30 --load a --ckpt-step 10 --save b
err_has "checkpoint a/iter_0000010"
for f in a/iter_0000030/*.safetensors; do same "$f" "b/iter_0000030/${f##*/}"; done

t "an older checkpoint of --save itself: later ones and the metrics are kept, and named"
steps a >all
cp -r a c
expect 0 run --train-iters 40 --save c --ckpt-step 10 --exit-interval 15 --save-interval 10
err_has "the run restarts from step 10: its checkpoints of later steps (30, 20)"
err_has "are kept in c/replaced_after_0000010"
has_file c/iter_0000010
has_file c/iter_0000015
no_file c/iter_0000020
no_file c/iter_0000030
steps c/replaced_after_0000010 >kept
same kept all
check [ "$(cat c/latest_checkpointed_iteration.txt)" = 15 ]
check [ -z "$(find c -name '.replaced*')" ]
expect 0 "$TRAIN" eval --load c/replaced_after_0000010 --ckpt-step 20 --data-path d_text_document \
    --eval-iters 4 --micro-batch-size 2
same .out e20

t "the same command again resumes from the newest, and so does the configuration"
expect 0 run --train-iters 40 --save c --ckpt-step 10 --exit-interval 17 --save-interval 10
err_has "the run was resumed from step 10 before"
err_has "resuming from c/iter_0000015"
expect 0 "$TRAIN" run --config c/config.toml --exit-interval 19
err_has "resuming from c/iter_0000017"
err_lacks "was resumed from step"
cp -r a d
expect 0 run --train-iters 30 --save d --load d/iter_0000020
err_has "resuming from d/iter_0000020"
err_has "d/replaced_after_0000020"
for f in a/iter_0000030/*.safetensors; do same "$f" "d/iter_0000030/${f##*/}"; done
expect 0 "$TRAIN" run --config d/config.toml --train-iters 31
err_has "resuming from d/iter_0000030"

t "a start that was killed while it moved checkpoints is finished by the next"
cp -r a m
mkdir m/.replaced_after_0000010
mv m/iter_0000030 m/.replaced_after_0000010
expect 0 run --train-iters 30 --save m --ckpt-step 10
has_file m/replaced_after_0000010/iter_0000020
has_file m/replaced_after_0000010/iter_0000030
for f in a/iter_0000030/*.safetensors; do same "$f" "m/iter_0000030/${f##*/}"; done

t "two runs on one --save: the second is refused, and nothing of the first is touched"
"$TRAIN" run $tiny --train-iters 100000 --save two >two.out 2>&1 &
pid=$!
await $pid not_empty two/metrics.jsonl
kill -STOP $pid
steps two >before
expect 2 run --train-iters 3 --save two
err_has "two: another process is training there"
expect 2 run --train-iters 3 --save ./two/ --load a --finetune
steps two >after
same before after
kill -CONT $pid
kill -TERM $pid
code=0
wait $pid || code=$?
check [ "$code" = 75 ]
no_file two/.lock
expect 0 run --train-iters 100000 --save two --exit-interval 1
err_has "resuming from two/iter_"

t "data: what --data-path names is looked at first, and what was meant is said"
none=$(echo $bare | sed 's/--data-path [^ ]*//; s/--tokenizer-type [^ ]*//; s/--vocab-size [^ ]*//')
bad() { expect "$1" "$TRAIN" run $none --train-iters 2 --no-save --data-path "$2"; }
bad 4 nosuch
err_has "nosuch.bin and nosuch.idx do not exist"
bad 4 d
err_has "hint: did you mean d_text_document?"
bad 3 d.jsonl
err_has "d.jsonl is a file, not the prefix of token data"
err_has "prep build --input d.jsonl"
mkdir sets && cp d_text_document.bin d_text_document.idx sets
bad 4 sets
err_has "sets is a folder, not the prefix of token data"
err_has "hint: in it: sets/d_text_document"
bad 2 sets/d_text_document
err_has "sets/d_text_document has no manifest that names its tokenizer"
head -c 100 d_text_document.bin >sets/d_text_document.bin
bad 3 sets/d_text_document
err_has "sets/d_text_document.bin"
for file in bin idx manifest.json; do
    expect 0 "$TRAIN" run $bare --train-iters 2 --no-save --data-path "d_text_document.$file"
done

t "models: the error is about what was given"
expect 2 "$TRAIN" run $tiny --train-iters 2 --num-layers 0
err_has "--num-layers: must be from 1"
expect 2 "$TRAIN" run $tiny --train-iters 0
err_has "--train-iters: must be at least 1, got 0"
expect 2 "$TRAIN" run $tiny --train-iters 2 --hidden-size 1000000
err_has "--hidden-size 1000000 over --num-attention-heads 4 gives heads of 250000 channels"

t "many more threads than processors: a warning"
expect 0 "$TRAIN" run $tiny --train-iters 2 --no-save --threads 512
err_has "--threads 512 on "
expect 0 "$TRAIN" run $tiny --train-iters 2 --no-save --threads 2
err_lacks "--threads 2 on "

t "--export-hf: the model at the end of the run, as convert export writes it"
mkdir there
expect 2 run --train-iters 2 --save e --export-hf there
err_has "there: exists"
no_file e/iter_0000002
expect 0 run --train-iters 2 --save e --export-hf out --exit-interval 1
no_file out
expect 0 run --train-iters 2 --save e --export-hf out
err_has "exported step 2 to out"
expect 0 "$CONVERT" export -q e again
expect 0 diff -r again out
expect 0 "$TRAIN" eval --load out --data-path d_text_document --eval-iters 4 --micro-batch-size 2
expect 2 "$TRAIN" run $tiny $llama --normalization LayerNorm --train-iters 2 --save f --export-hf none
no_file f

t "--max-file-size cuts the files of a checkpoint"
expect 0 run --train-iters 2 --save g --max-file-size 10000
check [ "$(ls g/iter_0000002/param-*.safetensors | wc -l)" -gt 3 ]
expect 0 "$CONVERT" verify --same g e

t "--hf-config takes a configuration itself, as presets of Gemma have it; it is in the checkpoint and exported"
gemma='{"model_type": "gemma3_text", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 64, "max_position_embeddings": 32, "vocab_size": 80, "sliding_window": 8}'
gemma_run() { "$TRAIN" run "$@" --mock-data --tokenizer-type NullTokenizer --vocab-size 64 --seq-length 32 --lr 1e-3 --train-iters 3 --eval-iters 0 --log-interval 1 --device cpu; }
expect 0 gemma_run --hf-config "$gemma" --save gemma --export-hf gemma-hf
printf %s "$gemma" >given
same given gemma/iter_0000003/config.json
check grep -q '"sliding_window": 8' gemma-hf/config.json
grep -o "lm loss: [^|]*" .out >first
expect 0 gemma_run --hf-config given --no-save
grep -o "lm loss: [^|]*" .out >second
same first second
check [ "$(wc -l <first)" = 3 ]
expect 2 gemma_run --hf-config "$gemma" --num-layers 3 --no-save
err_has "--num-layers 3 differs from --hf-config, which has 2"
expect 3 gemma_run --hf-config '{"model_type": }' --no-save
err_has "--hf-config: byte 15"
sizes="--num-layers 2 --hidden-size 32 --num-attention-heads 2 --num-query-groups 1 --kv-channels 16 --ffn-hidden-size 64 --max-position-embeddings 32"
expect 0 gemma_run --preset gemma-3-1b $sizes --save small
check grep -q '"hidden_size": 32, "num_hidden_layers": 2, ' small/iter_0000003/config.json
expect 2 gemma_run --preset gemma-3-1b $sizes --norm-epsilon 1e-5 --no-save
err_has "--norm-epsilon 1e-05 differs from the preset, which has 1e-06"
expect 0 "$TRAIN" run --preset gemma-3-1b --print-config
cp .out gemma.toml
out_has "num-layers = 26"
expect 0 "$TRAIN" run --config gemma.toml --print-config
out_has "qk-layernorm = true"

t "--load A --save B, where B holds a run of another model: both are named, and nothing is trained"
cp -r gemma gemma-before
for from in a a/iter_0000030; do
    expect 2 run --train-iters 40 --load $from --save gemma
    err_has "--save gemma holds a run of another model than --load $from: "
    err_has "hint: name another folder after --save"
done
expect 2 gemma_run --load gemma-hf --save a
err_has "--save a holds a run of another model than --load gemma-hf: "
expect 0 diff -r gemma-before gemma
echo "the licence" >gemma-hf/LICENSE
truncate -s 17M gemma-hf/README.pdf
expect 0 gemma_run --load gemma-hf --save begun
err_has "gemma-hf/README.pdf: larger than 16777216 bytes"
for again in "while it is there" "when it is gone"; do
    expect 0 gemma_run --load gemma-hf --save begun
    err_has "resuming from begun/iter_0000003"
    rm -rf gemma-hf
done

t "the licence of the model that a run began with is in its checkpoints and in what is exported of them"
expect 0 "$TRAIN" run --load begun --save on --mock-data --tokenizer-type NullTokenizer --vocab-size 64 --seq-length 32 --lr 1e-3 --train-iters 5 --eval-iters 0 --device cpu --override-opt_param-scheduler --export-hf on-hf
for folder in begun/iter_0000003 on/iter_0000005 on-hf; do
    check [ "$(cat $folder/LICENSE)" = "the licence" ]
    no_file $folder/README.pdf
done
