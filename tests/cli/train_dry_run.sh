# SPDX-License-Identifier: Apache-2.0
# `train run --dry-run`: what becomes of each option, of ours, of Megatron-LM's and of the scripts of five users' projects.
. "$SRC/tests/cli/train_data.sh"
fates=$BUILD/tests/option_fates
seeds=$SRC/tests/cli/seeds

t "each name of Megatron-LM core_v0.12.3 is in one table"
expect 0 "$fates" <"$seeds/megatron-core-0.12.3.txt"
cp .out fates
check [ "$(wc -l <fates)" = "$(grep -vc '^#' "$seeds/megatron-core-0.12.3.txt")" ]
check [ -z "$(grep -E ' (nowhere|twice)$' fates)" ]
expect 0 "$fates" foreign
check [ -z "$(grep -E ' (nowhere|twice)$' .out)" ]
echo "# $(wc -l <fates) names of Megatron-LM core_v0.12.3: $(grep -c ' used$' fates) used, $(grep -c ' without effect$' fates) without effect, $(grep -c ' rejected$' fates) rejected"

t "... and each of v1.1.5, of Megatron-DeepSpeed, and of launchers"
for list in megatron-1.1.5 megatron-deepspeed megatron-deepspeed-others launchers; do
    expect 0 "$fates" <"$seeds/$list.txt"
    check [ "$(wc -l <.out)" = "$(grep -vc '^#' "$seeds/$list.txt")" ]
    check [ -z "$(grep -E ' (nowhere|twice)$' .out)" ]
    echo "# $(wc -l <.out) names of $list: $(grep -c ' used$' .out) used, $(grep -c ' without effect$' .out) without effect, $(grep -c ' rejected$' .out) rejected"
done
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --moe-loss-coeff 0.1
err_has "--moe-loss-coeff of $(basename "$TRAIN") run is not supported: set by --moe-aux-loss-coeff"

t "a version is known by names that it has, core has not, and that are no options here"
expect 0 "$fates" marks
cp .out marks
check [ "$(wc -l <marks)" -gt 50 ]
names() { grep -v '^#' "$seeds/$1.txt" | cut -d ' ' -f 1 | tr _ - | sort -u; }
names megatron-core-0.12.3 >core.names
for version in v1.1.5:megatron-1.1.5 megatron-deepspeed:megatron-deepspeed; do
    names "${version#*:}" >its.names
    # DeepSpeed's own options are in no version's list
    sed -n "s/^${version%%:*} \([^ ]*\) .*/\1/p" marks | grep -vx -e deepspeed -e deepscale | sort -u >its.marks
    check [ -s its.marks ]
    check [ -z "$(comm -23 its.marks its.names)" ]
    grep -v ' beside$' marks | sed -n "s/^${version%%:*} \([^ ]*\) .*/\1/p" | sort -u >alone
    # core knows the first three as names that are no longer valid
    check [ -z "$(comm -12 alone core.names | grep -vx -e batch-size -e model-parallel-size -e warmup)" ]
done
check [ -z "$(grep -E ' (name|nowhere)$' marks | grep -v ' deepspeed name$')" ]

t "the version that its names choose sets whose rules there are, unless they are given"
# origin FILE NAME: the value and where it comes from
value() { sed -n "s/^$1 = \"\([^\"]*\)\" *# /\1 from /p" .out; }
rules() { echo "$(value lr-rules), $(value data-rules), $(value log-format)"; }
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1
check [ "$(rules)" = "core from default, core from default, megatron-core from default" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --warmup 0.1
check [ "$(rules)" = "v1 from compat v1.1.5, v1 from compat v1.1.5, megatron-v1 from compat v1.1.5" ]
check [ "$(value compat)" = "v1.1.5 from --warmup of Megatron-LM v1.1.5" ]
cp .out kept.toml
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --use-flash-attn-v2 --log-format megatron-v3
check [ "$(rules)" = "core from compat megatron-deepspeed, deepspeed from compat megatron-deepspeed, megatron-v3 from flag" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --use-flash-attn-v2 --model-parallel-size 1
check [ "$(value compat)" = "v1.1.5 from --model-parallel-size of Megatron-LM v1.1.5" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --warmup 0.1 --compat megatron-deepspeed
check [ "$(value data-rules), $(value compat)" = "deepspeed from compat megatron-deepspeed, megatron-deepspeed from flag" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --warmup 0.1 --compat core
check [ "$(value lr-rules)" = "core from compat core" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --deepspeed
check [ "$(value compat)" = "megatron-deepspeed from --deepspeed of Megatron-DeepSpeed" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --deepspeed=false --batch-size 2
check [ "$(value compat)" = "core from default" ]
expect 0 "$TRAIN" run --print-config $tiny --train-iters 1 --batch-size 2 --data-impl mmap
check [ "$(value compat)" = "v1.1.5 from --batch-size of Megatron-LM v1.1.5" ]
# a configuration that was printed has the same values
expect 0 "$TRAIN" run --print-config --config kept.toml
check [ "$(value lr-rules)" = "v1 from file kept.toml:$(grep -n '^lr-rules' kept.toml | cut -d : -f 1)" ]

t "... and says so once"
for how in "" "--nproc-per-node 2 --threads 1"; do
    # shellcheck disable=SC2086
    expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --warmup 0.1 --log-format megatron-core $how
    check [ "$(grep -c -e "^--warmup of Megatron-LM v1.1.5: as there, --lr-rules v1, --data-rules v1 (--compat core: as here)$" .err)" = 1 ]
done
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --warmup 0.1 --compat v1.1.5
err_lacks "as there"
expect 0 "$TRAIN" run --dry-run $tiny --train-iters 1 --no-save --warmup 0.1
err_has "--warmup of Megatron-LM v1.1.5: as there"

t "--optimizer sgd beside Adam's options gets a line that SGD-SaI has a name of its own"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --optimizer sgd --adam-beta1 0.9 --adam-beta2 0.95
err_has "that is --optimizer sgd-sai here"
for other in "--optimizer sgd" "--optimizer sgd --adam-beta1 0.9 --sgd-momentum 0.9" "--optimizer sgd-sai --adam-beta1 0.9" "--adam-beta1 0.9"; do
    # shellcheck disable=SC2086
    expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save $other
    err_lacks "sgd-sai here"
done

t "what is not there says what to do instead"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --hostfile hosts --num_nodes 2
err_has "--hostfile of $(basename "$TRAIN") run is not supported: there is no launcher of other machines yet: run the same command on each with --nnodes, --node-rank and --master-addr"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --skip-train-iteration-range 101-200 301-310
err_has "--skip-train-iteration-range of $(basename "$TRAIN") run is not supported: there it passes over a micro-batch"

t "nothing in the users' scripts is unknown"
for list in "$seeds"/*.args; do
    cp "$seeds/$(basename "${list%%-*}" | cut -c 1-3)-ds_config.json" ds_config.json 2>/dev/null
    # shellcheck disable=SC2046
    "$TRAIN" run --dry-run $(grep -v '^#' "$list") >.out 2>.err
    check grep -q " options: .*, 0 unknown$" .out
    check [ -z "$(grep "^unknown" .out)" ]
    check [ -z "$(grep -E "^(without effect|not supported) *--[^:]*$" .out)" ]
    echo "# $(basename "$list" .args): $(tail -n 1 .out)"
done

t "a line for each option, in their order, and the exit code"
expect 2 "$TRAIN" run --dry-run --num-layers 4 --use-mcore-models --no-such 3 --fp32-residual-connection --fim-spm-rate 0.3 --cp-comm-typ=x --no-finetune
cat >want <<'END'
used           --dry-run
used           --num-layers
without effect --use-mcore-models: one code computes every model
unknown        --no-such
not supported  --fp32-residual-connection: runs are in fp32, bf16 or fp16, with sums in fp32
without effect --fim-spm-rate: without --fim-rate
END
head -n 6 .out >got
same want got
out_has "8 options: 3 used, 2 without effect, 1 not supported, 2 unknown"
err_has "3 of 8 options are not supported or unknown"
expect 0 "$TRAIN" run --dry-run $tiny --train-iters 1 --save never/so/deep --num-workers 4
out_has ", 1 without effect, 0 not supported, 0 unknown"
err_has "--dry-run ends here and leaves no file: the run would go on with step 1"
no_file never
expect 4 "$TRAIN" run --dry-run $bare --train-iters 1 --data-path nosuch --no-save
err_has "nosuch.bin and nosuch.idx do not exist"
for form in --dry_run --dry-run=true --dry_run=true; do
    expect 2 "$TRAIN" run $form --no-such --num-layers 4
    out_has "unknown        --no-such"
done
expect 2 "$TRAIN" run --dry-run --dry-run=false --no-such
err_has "unknown option --no-such"
expect 2 "$TRAIN" run --dry-run --num-layers abc
err_has "--num-layers"

t "without effect is accepted with its values, rejected is refused with its reason"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --num-workers 4 --use-mcore-models --wandb-tag=a --no-rope-fusion
err_has "warning: --num-workers, --use-mcore-models, --wandb-tag, --no-rope-fusion have no effect here (--dry-run says why)"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --openai-gelu
err_has "--openai-gelu of $(basename "$TRAIN") run is not supported: a part of a model that is not there"
expect 0 "$TRAIN" plan $tiny --train-iters 1 --num-workers 4
err_has "warning: --num-workers has no effect here ($(basename "$TRAIN") run --dry-run says why)"
expect 2 "$TRAIN" eval --load x --num-workers 4
err_has "unknown option --num-workers"

t "a list of numbers where one is meant, and a list that is given twice"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --num-experts 64 128
err_has "--num-experts 64 128: expected one number: Megatron-DeepSpeed's list has a number for each of its mixture-of-experts layers"
expect 0 "$TRAIN" run $tiny --data-path d_text_document --train-iters 1 --no-save
err_has "warning: --data-path was given twice, as 'd_text_document' and as 'd_text_document': both count (Megatron-LM takes the last)"

t "a value may decide, and a switch may be denied"
expect 0 "$TRAIN" run --dry-run $tiny --train-iters 1 --dataloader-type single --vocab-extra-ids=0 --no-use-flash-attn --no-openai-gelu --openai-gelu=false
out_has "without effect --dataloader-type: data are mapped and read ahead by one thread"
out_has "without effect --vocab-extra-ids: that is the default"
out_has "without effect --no-use-flash-attn: attention has one implementation"
out_has "without effect --no-openai-gelu: it is always off"
out_has "without effect --openai-gelu: it is always off"
expect 2 "$TRAIN" run --dry-run --dataloader-type cyclic --vocab-extra-ids 100
out_has "not supported  --dataloader-type: samples come in one order, which follows from seed and data"
out_has "not supported  --vocab-extra-ids: ids beyond the tokenizer's file: tok extend adds them there"
expect 2 "$TRAIN" run $tiny --train-iters 1 --no-save --dataloader-type=cyclic
err_has "--dataloader-type of $(basename "$TRAIN") run is not supported: samples come"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --no-use-mcore-models
err_has "warning: --no-use-mcore-models has no effect here"

t "options of a layout that is not there"
expect 0 "$TRAIN" run $tiny --train-iters 1 --no-save --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --distributed-timeout-minutes 20 --check-weight-hash-across-dp-replicas-interval 3
err_has "--account-for-embedding-in-pipeline-split has no effect with one pipeline stage"
err_has "--account-for-loss-in-pipeline-split has no effect with one pipeline stage"
err_has "--distributed-timeout-minutes has no effect with one process"
err_has "--check-weight-hash-across-dp-replicas-interval has no effect with one process"
