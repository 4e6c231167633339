# SPDX-License-Identifier: Apache-2.0
# What a plan says, held against formulas, against runs, and against what fits.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
large="--tokenizer-type NullTokenizer --vocab-size 128255 --seq-length 8192 --tp 8 --sequence-parallel"
planned() { "$TRAIN" plan --json "$@" 2>/dev/null; }

t "traffic, bubble and sizes are those of the formulas"
planned $tiny --global-batch-size 16 >one.json
planned $tiny --global-batch-size 16 --world-size 2 >dp.json
planned $tiny --global-batch-size 16 --world-size 2 --zero-stage 1 >zero.json
planned $tiny --num-layers 4 --global-batch-size 16 --world-size 4 --pp 4 >pp.json
planned $tiny --global-batch-size 16 --world-size 2 --tp 2 >tp.json
check python3 - <<'END'
import json
one, dp, zero, pp, tp = (json.load(open(n + ".json")) for n in ("one", "dp", "zero", "pp", "tp"))
slabs = ("parameters", "gradients", "optimizer", "activations", "workspace", "staging", "snapshot")
for p in one, dp, zero, pp, tp:
    for s in [p["memory"]] + p["stages"]:
        assert sum(s[n] for n in slabs) == s["together"], s
    assert p["memory"]["together"] == max(s["together"] for s in p["stages"]), p
    assert p["fits"] is True and p["step"]["sequences"] == 16, p
    assert p["checkpoint"] == 12 * p["parameters"], p
assert one["traffic"] == {} and one["bubble"] == 0
near = lambda a, b, share: abs(a - b) <= share * b
gradients = dp["memory"]["gradients"]
assert near(dp["traffic"]["data- and context-parallel"], gradients, 0.01), dp["traffic"]  # 2 (n - 1) / n
assert near(zero["traffic"]["optimizer-sharding"], gradients, 0.01), zero["traffic"]  # scattered, gathered
assert pp["bubble"] == 3 / (8 + 3), pp["bubble"]
stream = 2 * 32 * 32 * 4  # a micro-batch's
assert near(pp["traffic"]["pipeline-parallel"], 2 * 8 * stream, 0.01), pp["traffic"]  # both ways, of a stage between
# of each layer 4 sums, of the embedding 1, of the head's gradient 1, and numbers of each row
assert tp["traffic"]["tensor-parallel"] >= (2 * 4 + 2) * 8 * stream, tp["traffic"]
assert near(dp["step"]["flops"], one["step"]["flops"], 0.01)
END
expect 0 "$TRAIN" plan $tiny --num-layers 4 --global-batch-size 16 --world-size 4 --pp 4
out_has "processes       4: tensor 1 x context 1 x data 1 x pipeline 4"
out_has "bubble          27.3 % of a step"
out_has "pipeline-parallel 0.000 GB, sent by a process in a step"
out_has "  stage 3 "

t "what ZeRO 2 and 3 hold whole is said"
for stage in 2 3; do planned $tiny --global-batch-size 16 --world-size 2 --zero-stage $stage >whole$stage.json; done
planned $tiny --global-batch-size 16 --world-size 2 --zero-stage 3 --num-layers 4 --overlap-param-gather >ahead.json
check python3 - <<'END'
import json
one, two, three, ahead = (json.load(open(n + ".json"))["memory"] for n in ("one", "whole2", "whole3", "ahead"))
layer = 4 * (12 * 32 * 32 + 13 * 32)  # weights and biases of a layer of GPT, in fp32
for m, key, slab in (two, "whole_gradients", "gradients"), (three, "whole_gradients", "gradients"), (three, "whole_weights", "parameters"):
    w = m[key]
    assert w["layers"] == 2 and layer <= w["layer"] < layer + 1024, w
    half = m[slab] - 2 * w["layer"] - w["ends"]  # what is kept of it
    assert abs(half - one[slab] / 2) < 4096, (half, one[slab])
assert "whole_weights" not in two and "whole_gradients" not in one
assert ahead["whole_weights"]["layers"] == 3
END
expect 0 "$TRAIN" plan $tiny --global-batch-size 16 --world-size 2 --zero-stage 3
out_has "whole units     of the parameters: 2 layers of up to "
out_has "whole units     of the gradients: 2 layers"

t "experts have room for a stated multiple of an even share"
many="$tiny --swiglu --disable-bias-linear --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 16 --world-size 64 --ep 64 --global-batch-size 128"
for f in 1 2 3 32 4096; do planned $many --expert-buffer-factor $f >room$f.json; done
planned $many >room.json
check python3 - <<'END'
import json
a = {f: json.load(open(f"room{f}.json"))["memory"]["activations"] for f in ("", 1, 2, 3, 32, 4096)}
share = 2 * (2 * 32 * 8) * (32 + 3 * 16) * 4  # layers, pairs of a token and its expert, what is kept of each
assert a[2] - a[1] == a[3] - a[2] == share, (a, share)
assert a[""] == a[2]
assert a[32] == a[4096] == a[1] + 31 * share, (a, share)  # 4 experts of a process, for 64 x 64 tokens: no more can come
END
expect 0 "$TRAIN" plan $many
out_has "experts         room for 1024 routed tokens of a micro-batch on each process, 2.0 times an even share"

t "a checkpoint is as large as planned"
expect 0 "$TRAIN" run $tiny --train-iters 1 --save s
check python3 - <<'END'
import glob, json, os, struct
data = 0
for path in glob.glob("s/iter_*/*.safetensors"):
    with open(path, "rb") as f:
        data += os.path.getsize(path) - 8 - struct.unpack("<Q", f.read(8))[0]
assert data == json.load(open("one.json"))["checkpoint"], data
END

t "what does not fit names a change that would, and with it does"
fits() {
    expect 5 "$TRAIN" plan "$@"
    err_has "are free under the limit of --device-memory"
    change=$(sed -n 's/^hint: it would fit with //p' .err)
    check [ -n "$change" ]
    expect 0 "$TRAIN" plan "$@" $change
}
deep="$tiny --num-layers 8 --hidden-size 256 --device-memory"
fits $deep 140M --micro-batch-size 8 --global-batch-size 8
fits $deep 140M --micro-batch-size 9 --global-batch-size 9
check [ "$change" = "--micro-batch-size 3" ]
fits $deep 90M --world-size 8 --global-batch-size 64
fits $deep 58M --world-size 4 --tp 2 --global-batch-size 64
fits $deep 100M
fits --preset llama-3.1-70b $large --world-size 16 --pp 2 --global-batch-size 16 --device-memory 80G
fits $deep 60M --swiglu --disable-bias-linear --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 64 --world-size 4 --ep 2 --micro-batch-size 8 --global-batch-size 64
# 405B on 16,384 processes: tensors are shared out within a machine, weights by ZeRO
huge="--preset llama-3.1-70b --num-layers 126 --hidden-size 16384 --num-attention-heads 128 --ffn-hidden-size 53248 --tokenizer-type NullTokenizer
    --vocab-size 128255 --seq-length 8192 --bf16 --world-size 16384 --global-batch-size 16384 --device-memory 80G"
fits $huge
check [ "$change" = "--tensor-model-parallel-size 2 --zero-stage 3 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1" ]
# options that exclude each other, or that two of have to fit
large16="--preset llama-3.1-70b --tokenizer-type NullTokenizer --vocab-size 128255 --seq-length 8192 --bf16 --device-memory 80G"
fits $large16 --global-batch-size 16 --recompute-activations
check [ -n "$(echo "$change" | grep -- "--no-recompute-activations --recompute-granularity full")" ]
fits $deep 90M --micro-batch-size 8 --global-batch-size 16 --gradient-accumulation-steps 2
fits $large16 --global-batch-size 64 --nnodes 8 --nproc-per-node 8
# the processes given, and tensors shared out within a machine
fits $large16 --global-batch-size 64 --world-size 64
check [ "$change" = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --sequence-parallel" ]
fits $large16 --global-batch-size 64 --nnodes 16 --nproc-per-node 4
check [ -z "$(echo "$change" | grep -- "--tensor-model-parallel-size \(8\|16\|32\|64\)")" ]
# experts that have room for twice an even share
fits $tiny --num-attention-heads 1 --seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 64 --swiglu \
    --disable-bias-linear --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 64 --world-size 64 --ep 64 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --device-memory 30M
check [ "$change" = "--expert-buffer-factor 1" ]
# options that have their values already are not named again, and experts are cut as their layer is
cut="--preset mixtral-8x7b --tokenizer-type NullTokenizer --vocab-size 31999 --seq-length 4096 --bf16 --global-batch-size 64 --world-size 16
    --tp 2 --pp 2 --expert-tensor-parallel-size 2 --sequence-parallel --device-memory"
fits $cut 80G
check [ "$change" = "--tensor-model-parallel-size 8 --expert-tensor-parallel-size 8" ]
fits $cut 220G
check [ "$change" = "--zero-stage 1" ]
# what no layout can do a shorter sequence does
fits $tiny --num-layers 1 --num-attention-heads 1 --global-batch-size 2 --seq-length 4096 --max-position-embeddings 4096 --device-memory 20M
check [ -n "$(echo "$change" | grep -- "--seq-length")" ]
planned $deep 100M >no.json
check grep -q '"fits":false' no.json

t "a hint is looked for in few plans, whether or not there is one"
looked() {
    expect 5 "$TRAIN" plan --verbose "$@"
    work=$(sed -n 's/^debug: the hint was looked for in \([0-9]*\) plans of a layer.s micro-batch, of at most 4000$/\1/p' .err)
    check [ "${work:-5000}" -le 4000 ]
}
looked $huge
looked $large16 --global-batch-size 1024
check [ "$work" -le 2000 ]
looked --preset qwen3-30b-a3b --tokenizer-type NullTokenizer --vocab-size 128255 --micro-batch-size 8 --global-batch-size 64 --device-memory 10G
err_has "hint: lower --num-layers"

t "70B on 16 processes and 405B on 16,384 are planned in little memory"
stages=7-8-8-8-8-8-8-8-8-8-8-8-8-8-8-7
check python3 - "$TRAIN" $large --device-memory 300G <<'END'
import resource, subprocess, sys
shapes = [["--preset", "llama-3.1-70b", "--world-size", "16", "--pp", "2", "--global-batch-size", "16"],
          ["--preset", "llama-3.1-70b", "--num-layers", "126", "--hidden-size", "16384", "--num-attention-heads", "128",
           "--ffn-hidden-size", "53248", "--world-size", "16384", "--pp", "16", "--use-distributed-optimizer",
           "--global-batch-size", "2048", "--pipeline-partition", "7-" + "8-" * 14 + "7"]]
for s in shapes:
    subprocess.run([sys.argv[1], "plan", *s, *sys.argv[2:]], check=True, stdout=subprocess.DEVNULL)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert most < 50 * 1024, most
END

t "processes are --world-size, or --nnodes x --nproc-per-node"
for ranks in "--world-size 4" "--nproc-per-node 4" "--nnodes 2 --nproc-per-node 2" "--nnodes 4" "--nnodes 2 --nproc-per-node 2 --world-size 4"; do
    # shellcheck disable=SC2086
    expect 0 "$TRAIN" plan $tiny --global-batch-size 8 $ranks
    out_has "processes       4: "
done
expect 2 "$TRAIN" plan $tiny --nnodes 2 --nproc-per-node 2 --world-size 2
err_has "--world-size 2 is not --nnodes 2 x --nproc-per-node 2"
expect 2 "$TRAIN" plan $tiny --nnodes 20000 --nproc-per-node 4000
err_has "at most 1000000 processes"

# without a GPU an H100 is assumed
gpu() { env CUDA_VISIBLE_DEVICES= "$TRAIN" plan --device cuda --tokenizer-type NullTokenizer --vocab-size 1023 --global-batch-size 8 "$@"; }
t "a plan for a GPU names what serves the attention of each kind of layers, and plain loops are a warning"
if gpu $tiny 2>&1 | grep -q "built without"; then
    expect 2 gpu $tiny
else
    expect 0 gpu --preset gemma-3-1b --bf16 --seq-length 4096 --device-memory 79G
    err_has "warning: there is no GPU here: this is planned for an H100"
    out_has "attention       cuDNN (22 layers, window 512), cuDNN (4 layers, full)"
    err_lacks "plain loops"
    expect 0 gpu --preset gpt2-124m --bf16 --seq-length 1024 --attention-dropout 0.1 --hidden-dropout 0
    out_has "attention       own "
    out_has "(12 layers, full, dropout 0.1)"
    err_has "takes no dropout"
    wide="--num-layers 2 --hidden-size 528 --num-attention-heads 2 --max-position-embeddings 256 --seq-length 256 --micro-batch-size 2 --bf16"
    expect 0 gpu $wide --attention-dropout 0
    out_has "attention       own plain loops (2 layers, full)"
    err_has "warning: attention of 2 layers (full) is computed by plain loops, about "
    err_has "cuDNN takes no heads wider than 256; "
    check [ "$(grep -c "plain loops" .err)" = 1 ]
    gpu $wide --attention-dropout 0 --json >loops.json
    check grep -q '"attention":\[{"by":"own plain loops", "form":"full", "layers":2, "loops":true}\]' loops.json
    long="--preset llama-3.2-1b --bf16 --seq-length 32768 --attention-dropout 0 --device-memory 200G"
    expect 0 gpu $long
    out_has "attention       own "
    err_has "cuDNN takes no sequences so long but with --no-deterministic"
    expect 0 gpu $long --no-deterministic
    out_has "attention       cuDNN (16 layers, full)"
fi

if [ -n "${WEFT_FULL:-}" ]; then
    t "GPT-2 124M on 1 and 4 processes is resident within 2 % of the plan"
    check python3 "$SRC/tests/bench/plan_memory.py" "$TRAIN" "$PREP"
fi
