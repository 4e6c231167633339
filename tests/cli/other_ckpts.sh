# SPDX-License-Identifier: Apache-2.0
# Checkpoints of other programs are called what they are by train and convert alike, with the way that leads here.
. "$SRC/tests/cli/train_data.sh"

# The names of each program's files; what stands in them that says a version.
python3 - <<'END'
import json, os, pickle

def put(path, value=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"" if value is None else pickle.dumps(value, protocol=2))

def text(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(value)

text("megatron/latest_checkpointed_iteration.txt", "100")
for rank in range(2):
    put(f"megatron/iter_0000100/mp_rank_{rank:02}/model_optim_rng.pt", {"args": None, "checkpoint_version": 3.0, "iteration": 100})
text("dist/latest_checkpointed_iteration.txt", "100")
for name in ("common.pt", ".metadata", "__0_0.distcp", "__0_1.distcp"):
    put("dist/iter_0000100/" + name)
text("dist/iter_0000100/metadata.json", json.dumps({"sharded_backend": "torch_dist", "sharded_backend_version": 1}))
text("deepspeed/latest", "global_step100")
put("deepspeed/global_step100/mp_rank_00_model_states.pt", {"module": {}, "ds_config": {}, "ds_version": "0.14.2"})
put("deepspeed/global_step100/zero_pp_rank_0_mp_rank_00_optim_states.pt")
put("zero3/global_step7/zero_pp_rank_0_mp_rank_00_model_states.pt", {"ds_version": "0.9.\x1b"})
put("layers/global_step7/layer_00-model_00-model_states.pt")
put("layers/global_step7/mp_rank_00_model_states.pt", {"ds_version": "0.14.2"})
for name in (".metadata", "__0_0.distcp", "__1_0.distcp"):
    put("fsdp/pytorch_model_fsdp_0/" + name)
put("neither/weights.bin")
END

# is FOLDER SENTENCE HINT: train, convert and convert import say so
is() {
    for _verb in "$TRAIN run $tiny --train-iters 1 --no-save --load" "$TRAIN run $tiny --train-iters 1 --save" \
        "$TRAIN eval --data-path d_text_document --load" "$TRAIN generate --prompt 1 --load" "$CONVERT inspect" "$CONVERT verify"; do
        expect 3 $_verb "$1"
        err_has "$1 $2"
        err_has "$3"
        check [ "$(grep -c "^error: " .err)" = 1 ]
    done
    expect 3 "$CONVERT" import "$1" out
    err_has "$1 $2"
    no_file out
    no_file "$1/.lock"
}

t "Megatron-LM"
is megatron "holds a checkpoint of Megatron-LM, version 3: iter_0000100/mp_rank_01, which is not read" AutoBridge.export_ckpt
is megatron/iter_0000100 "holds a checkpoint of Megatron-LM, version 3: mp_rank_01, which is not read" --ckpt-convert-format
is dist "holds a checkpoint of Megatron-LM, format torch_dist version 1: iter_0000100, which is not read" AutoBridge.export_ckpt
is dist/iter_0000100 "is a checkpoint of Megatron-LM, format torch_dist version 1, which is not read" AutoBridge.export_ckpt

t "DeepSpeed"
is deepspeed "holds a checkpoint of DeepSpeed, version 0.14.2: global_step100, which is not read" zero_to_fp32.py
is zero3 "holds a checkpoint of DeepSpeed, version 0.9.?: global_step7" zero_to_fp32.py
is layers "holds a checkpoint of DeepSpeed, with a file for each layer" deepspeed_to_transformers.py

t "DCP and FSDP"
is fsdp "holds a checkpoint of torch.distributed.checkpoint (DCP, FSDP): pytorch_model_fsdp_0" dcp_to_torch

t "runs of ours and other folders are not taken for one"
expect 3 "$TRAIN" run $tiny --train-iters 1 --no-save --load neither
err_has "neither holds no checkpoint (iter_0000100), but other files: weights.bin"
expect 0 "$TRAIN" run $tiny --train-iters 1 --save run
mkdir -p run/old
cp -r dist/iter_0000100 run/old
expect 0 "$TRAIN" run $tiny --train-iters 2 --save run
expect 0 "$CONVERT" verify run
expect 0 "$TRAIN" run --dry-run $tiny --train-iters 1 --no-save --ckpt-format torch_dist
out_has "those of Megatron-LM and DeepSpeed are not read"
