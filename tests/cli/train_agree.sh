# SPDX-License-Identifier: Apache-2.0
# Two nodes with the same command but one setting: both end at once with exit code 2, and the first says which.
. "$SRC/tests/cli/train_data.sh"
WEFT_JOB_TOKEN=the-token-of-this-test
export WEFT_JOB_TOKEN
common="$bare --threads 1 --device cpu --train-iters 4 --no-save"
own="--data-path d_text_document" other=$own # of the first node, of the second
second=$TRAIN                                # the program of the second
longest=0                                    # ms of a pair that ended for a difference

# node RANK PROGRAM ARGS...: at most 5 minutes, of the 10 that processes wait for each other
node() {
    _rank=$1 _program=$2
    shift 2
    timeout 300 env RANK=$_rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$_program" run $common $more "$@" </dev/null
}

# pair CODE ARGS...: both nodes with $more, the second one with ARGS besides. One that is to end for a difference and
# takes more than 5 s, as on a busy machine, is done again: what waits for something does so three times.
pair() {
    for _try in 1 2 3; do
        one_pair "$@"
        [ -z "$_bad" ] && [ "$1" = 2 ] && [ "$_took" -gt 5000 ] || break
    done
    [ "$1" != 2 ] || [ -n "$_bad" ] || [ "$_took" -le "$longest" ] || longest=$_took
}
one_pair() {
    [ -z "$_bad" ] || return 0
    _want_both=$1
    shift
    port=$(free_port)
    _begun=$(date +%s%3N)
    node 1 "$second" $other "$@" >node1.out 2>node1.err &
    expect "$_want_both" node 0 "$TRAIN" $own
    _code=0
    wait $! || _code=$?
    check [ "$_code" = "$_want_both" ]
    _took=$(($(date +%s%3N) - _begun))
}

# differs NAME VALUE0 VALUE1 ARGS...
differs() {
    _says="$1 is $2 on rank 0 and $3 on rank 1"
    shift 3
    pair 2 "$@"
    err_has "$_says"
    check [ "$(grep -c "^error: " .err)" = 1 ]
}

more=
t "each option that shapes a run is named with both values"
differs --seed 1234 7 --seed 7
differs --lr 0.005 0.004 --lr 4e-3
differs --optimizer '"adam"' '"sgd"' --optimizer sgd
differs --split '"90,5,5"' '"80,10,10"' --split 80,10,10
differs --global-batch-size 4 8 --global-batch-size 8
differs --micro-batch-size 2 1 --micro-batch-size 1
differs --hidden-dropout 0.1 0.0 --hidden-dropout 0
differs --attention-dropout 0.1 0.0 --attention-dropout 0
differs --clip-grad 1.0 0.5 --clip-grad 0.5
differs --weight-decay 0.01 0.1 --weight-decay 0.1
differs --bf16 false true --bf16
differs --eod-mask-loss false true --eod-mask-loss
differs --init-method-std 0.02 0.03 --init-method-std 0.03

t "and each whose difference made the job hang"
differs --train-iters 4 5 --train-iters 5
differs --tensor-model-parallel-size 1 2 --tp 2
differs --pipeline-model-parallel-size 1 2 --pp 2
differs --context-parallel-size 1 2 --cp 2
differs --zero-stage unset 2 --zero-stage 2
differs --num-layers 2 1 --num-layers 1
differs --eval-interval 10 2 --eval-interval 2
differs --save-interval unset 2 --save-interval 2
differs --save unset given --save own
no_file own
differs --device '"cpu"' '"auto"' --device auto
more="--timing-log-level 1"
differs --log-interval 5 1 --log-interval 1
more=

t "several that differ are counted, whatever gives them their values"
printf 'seed = 7\nlr = 4e-3\n[model]\nhidden-size = 64\n' >other.toml
pair 2 --config other.toml --tp 2
err_has "--tensor-model-parallel-size is 1 on rank 0 and 2 on rank 1; 1 other setting differs, too"
check [ "$(grep -c "^error: " node1.err)" = 0 ]

t "what belongs to one machine or to what is printed there is free"
mkdir moved
cp d_text_document.* moved
more="--verbose" other="--data-path moved/d_text_document"
echo the-token-of-this-test >token
chmod 600 token
pair 0 --job-token-file token --threads 2 --log-interval 1 --log-format megatron-v3 --metrics m.jsonl --quiet --distributed-timeout-minutes 5
err_has "2 processes on 1 machine ($(hostname | cut -c 1-63): 0-1): 2 data-parallel"
err_has "rank  machine"
err_lacks "no effect"

# patched TEXT NEW FILE: the program with a text of the same length in another's place
patched() {
    check python3 - "$TRAIN" "$@" <<'END'
import os, sys
program, old, new, to = sys.argv[1:]
bytes = open(program, "rb").read()
assert len(old) == len(new) and old.encode() in bytes, old
open(to, "wb").write(bytes.replace(old.encode(), new.encode()))
os.chmod(to, 0o755)
END
}

t "another build of the version is told, another version refused"
patched "anybody who reaches the port may join" "Anybody who reaches the port may join" build2
version=$("$TRAIN" --version | sed -n '1s/^[^0-9]*\([0-9.]*\).*/\1/p')
patched "$version" "9${version#?}" version2
more= other=$own second=./build2
pair 0
err_has "warning: the build of weft $version is "
check grep -qE "is [0-9a-f]{16} on rank 0 and [0-9a-f]{16} on rank 1: their results may differ" .err
second=$TRAIN
pair 0
err_lacks "the build of weft"
second=./version2
pair 2
err_has "the version of weft is $version on rank 0 and 9${version#?} on rank 1"
second=$TRAIN

# two_digests OF: the last error has both, and they differ
two_digests() {
    check grep -qE "$1 is [0-9a-f]{16} on rank 0 and [0-9a-f]{16} on rank 1" .err
    check [ "$(grep -c "^error: " .err)" = 1 ]
}

t "data, tokenizer and checkpoint are compared by what they are"
python3 -c "
t = open('d.jsonl').read().splitlines()
open('e.jsonl', 'w').write('\n'.join(t[:-1]) + '\n')"
"$PREP" build --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --output-prefix f >/dev/null 2>&1
more= other="--data-path f_text_document"
pair 2
two_digests "the digest of the manifest of data set 1"
rm f_text_document.manifest.json moved/d_text_document.manifest.json
own="--data-path moved/d_text_document"
pair 2
err_has "the length of data set 1 (.bin) is "
own="--data-path d_text_document" other=$own
pair 2 --tokenizer-type NullTokenizer --vocab-size 61
err_has "--vocab-size is 60 on rank 0 and 61 on rank 1"
"$TRAIN" run $tiny --threads 1 --train-iters 4 --save-interval 2 --save a >/dev/null 2>&1
"$TRAIN" run $tiny --threads 1 --train-iters 4 --save b --seed 2 >/dev/null 2>&1
more="--train-iters 8 --load a"
differs "the step of the checkpoint" 4 2 --load a/iter_0000002
pair 2 --load b
two_digests "the digest of the checkpoint"
"$CONVERT" export a hf-a >/dev/null 2>&1
"$CONVERT" export b hf-b >/dev/null 2>&1
more="--load hf-a"
pair 2 --load hf-b
two_digests "the digest of the model"
more=
pair 2 --load a
err_has "the start is without a checkpoint on rank 0 and --load on rank 1"

t "tokenizers are compared by what they do, whether or not --tokenizer-differs goes on with those of data"
for id in 1 2; do
    tail -n $((id * 20)) d.jsonl >part$id.jsonl
    "$TOK" train -q --type bpe --input part$id.jsonl --model_prefix bpe$id --vocab_size 280 --special_tokens '<|endoftext|>'
done
"$PREP" build -q --input e.jsonl --tokenizer bpe1-tokenizer.json --append-eod --output-prefix g
python3 -c "
import json
json.dump(json.load(open('bpe1-tokenizer.json')), open('same.json', 'w'), indent=3)"
common=$(echo "$common" | sed 's/--tokenizer-type NullTokenizer --vocab-size 60//')
own="--data-path g_text_document --tokenizer bpe1-tokenizer.json"
other="--data-path g_text_document --tokenizer same.json"
pair 0
other="--data-path g_text_document --tokenizer bpe2-tokenizer.json"
pair 2
check grep -q "error: .*tokenizers differ: .*what differs: merges" node1.err
more="--tokenizer-differs"
pair 2
err_has "the tokenizer is "
check grep -qE "[0-9a-f]{16}.* on rank 0 and .*[0-9a-f]{16}.* on rank 1" .err

t "which took 5 s at most"
echo "# the longest of them took $longest ms"
check [ "$longest" -gt 0 ]
check [ "$longest" -le 5000 ]

t "what fails on one node ends the other with its code: a rehearsal"
common="$(echo "$bare" | sed 's/--log-interval 5 --eval-interval 10 --eval-iters 2/--log-interval 1 --eval-iters 0/') --threads 1 --device cpu"
own="--data-path d_text_document" other=$own
more="--train-iters 4 --dry-run --no-save"
pair 4 --metrics missing/m.jsonl

t "... and a run, whose step is saved"
if unshare -m sh -c 'mkdir -p small && mount -t tmpfs none small' 2>/dev/null; then
    cat >in_small <<'END'
#!/bin/sh
exec unshare -m sh -c 'mount -t tmpfs -o size=8k none small && exec "$0" "$@"' "$TRAIN" "$@"
END
    chmod +x in_small
    more="--train-iters 200 --save failed" second=./in_small
    pair 4 --metrics small/m.jsonl
    check [ "$(find failed -name 'iter_*' | wc -l)" = 1 ]
    no_file failed/iter_0000200
else
    skip "$(why_no_mount)"
fi
