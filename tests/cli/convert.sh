# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
make=$build/tests/ckpt_make

# flip FILE OFFSET: another byte there
flip() { printf '\377' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
save() { rm -rf run; for i in "$@"; do "$make" save run "$i"; done; }

t "inspect shows a checkpoint"
save 10
expect 0 "$CONVERT" inspect run/iter_0000010
out_has "iteration   10, 10,240 samples consumed; written by weft"
out_has "model       2 layers of 16, 4 heads in 2 groups of 4, MLP 24, 5,520 parameters"
out_has "RMSNorm, SwiGLU, rotary positions up to 32, no biases, head tied to the embedding"
out_has "tokenizer   NullTokenizer, 100 ids, documents end by 99"
out_has "kernels     matmul: plain"
out_has "state       optimizer_steps: 12"
out_has "param       20 tensors, 5,520 elements"
out_has "exp_avg_sq  20 tensors, 5,520 elements"
out_has "config.toml"
check [ ! -s .err ]

t "inspect --tensors lists each"
expect 0 "$CONVERT" inspect --tensors run/iter_0000010
out_has "param      F32  embed.weight [100, 16]"
out_has "exp_avg    F32  layers.1.attn_norm.weight [16]"
check [ "$(grep -c ' F32 ' .out)" = 60 ]

t "inspect --json is JSON"
expect 0 "$CONVERT" inspect --json --tensors run/iter_0000010
cp .out a.json
expect 0 python3 -c '
import json
d = json.load(open("a.json"))
assert d["iteration"] == 10 and d["consumed_samples"] == 10240 and d["parameters"] == 5520
assert d["model"]["num-layers"] == 2 and d["model"]["normalization"] == "RMSNorm"
assert d["tokenizer"] == {"type": "NullTokenizer", "digest": None, "vocab_size": 100, "eod": 99}
assert d["data_digest"] is None and d["kernels"] == {"matmul": "plain"}
assert d["state"] == {"optimizer_steps": "12"} and len(d["files"]) == 4
assert sum(len(t["shape"]) for t in d["tensors"]) > 60 and len(d["tensors"]) == 60
'

t "a folder of checkpoints: inspect takes the newest, verify all"
save 10 30 20
expect 0 "$CONVERT" inspect run
out_has "iteration   30,"
expect 0 "$CONVERT" verify run
out_has "run/iter_0000010: intact, 4 files,"
out_has "run/iter_0000020: intact, 4 files,"
out_has "60 tensors"
check [ "$(wc -l <.out)" = 3 ]

t "a tensor too many is named; groups of other optimizers are carried"
rm -rf run
"$make" save run 10 gsnr
expect 0 "$CONVERT" verify run
expect 0 "$CONVERT" inspect run
out_has "gsnr        1 tensors, 4 elements"
check [ "$(grep -c 'does not have' .out)" = 0 ]
rm -rf run
"$make" save run 10 param exp_avg
expect 7 "$CONVERT" verify run
err_has "run/iter_0000010: its model does not have param 'stray', exp_avg 'stray'"
expect 0 "$CONVERT" inspect run
out_has "extra       param 'stray', exp_avg 'stray', which the model does not have"
save 10 30 20

t "verify names a flipped byte and tries the others"
flip run/iter_0000020/exp_avg-00000.safetensors 5000
expect 7 "$CONVERT" verify run
err_has "error: run/iter_0000020/exp_avg-00000.safetensors: its bytes are not those that were written"
out_has "run/iter_0000010: intact"
out_has "run/iter_0000030: intact"
check [ "$(wc -l <.out)" = 2 ]

t "inspect hashes nothing"
expect 0 "$CONVERT" inspect run/iter_0000020

t "verify names what was cut"
save 10
truncate -s 1000 run/iter_0000010/param-00000.safetensors
expect 7 "$CONVERT" verify run/iter_0000010
err_has "run/iter_0000010/param-00000.safetensors: has 1000 bytes"
err_has "cut short"
expect 7 "$CONVERT" inspect run/iter_0000010

t "verify names what is missing"
save 10
rm run/iter_0000010/config.toml
expect 7 "$CONVERT" verify run/iter_0000010
err_has "run/iter_0000010/config.toml: is missing"
rm run/iter_0000010/manifest.json
expect 7 "$CONVERT" verify run
err_has "run/iter_0000010/manifest.json: is missing"

t "a flipped byte of the manifest"
save 10
flip run/iter_0000010/manifest.json 100
expect 7 "$CONVERT" verify run
err_has "run/iter_0000010/manifest.json: its bytes are not those that were written"

t "a file that is not in the manifest is mentioned"
save 10
echo x >run/iter_0000010/notes.txt
expect 0 "$CONVERT" verify run
err_has "run/iter_0000010: not in the manifest: notes.txt"

t "verify --json: an object for each, the damaged ones too"
save 10 20
flip run/iter_0000010/param-00000.safetensors 20000
expect 7 "$CONVERT" verify --json run
cp .out a.json
expect 0 python3 -c '
import json
a, b = [json.loads(l) for l in open("a.json")]
assert a == {"path": "run/iter_0000020", "intact": True, "version": 2, "files": 4, "bytes": a["bytes"],
             "tensors": 60, "error": None}, a
assert not b["intact"] and "param-00000.safetensors" in b["error"] and "damaged: param" in b["error"], b
'

t "reshard: other files, the same tensors, and back the same bytes"
save 10
expect 0 "$CONVERT" reshard --ranks 3 --max-file-size 3000 run cut
check [ "$(ls cut/iter_0000010/*.safetensors | wc -l)" = 33 ]
check [ "$(wc -c <cut/iter_0000010/param-00002.safetensors)" -lt 5000 ]
expect 0 "$CONVERT" verify --same run cut cut/iter_0000010
out_has "cut/iter_0000010: intact, 34 files,"
out_has "run/iter_0000010 and cut/iter_0000010: the same 60 tensors"
expect 2 "$CONVERT" reshard run cut
err_has "cut/iter_0000010 exists"
err_has "--overwrite replaces it"
expect 0 "$CONVERT" reshard --overwrite --ranks 2 run cut
expect 0 "$CONVERT" reshard cut whole
expect 0 diff -r run whole

t "reshard --rows: a vocabulary that changes"
printf '%s\n' '{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,' \
    '"decoder": null, "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2}, "unk_token": "a"}}' >t.json
printf 'weft-rows 1 100 3\n0 99\n1 -1 1 2\n2 -1\n' >t.json.rows
expect 0 "$CONVERT" reshard --ranks 2 --rows t.json.rows run small
expect 0 "$CONVERT" verify small
expect 0 "$CONVERT" inspect --tensors small
out_has "param      F32  embed.weight [3, 16]"
out_has "exp_avg_sq F32  embed.weight [3, 16]"
out_has "tokenizer   HuggingFaceTokenizer, 3 ids"
expect 2 "$CONVERT" reshard --rows t.json.rows small none
err_has "small/iter_0000010 has its vocabulary already"
expect 2 "$CONVERT" reshard --rows t.json run none
err_has "not a name that ends in .rows"
echo 'weft-rows 1 101 1' >t.json.rows
expect 3 "$CONVERT" reshard --rows t.json.rows run none
err_has "t.json.rows"
check [ ! -e none/iter_0000010 ]

t "import --dry-run of Llama-3.1-70B, in files without blocks: tensors, parameters, bytes a rank, what is not copied"
check python3 -c '
import json, os, struct
h, f, v, kv = 8192, 28672, 128256, 1024
t = {"model.embed_tokens.weight": (v, h), "lm_head.weight": (v, h), "model.norm.weight": (h,)}
for i in range(80):
    t |= {f"model.layers.{i}.{k}.weight": s for k, s in (("self_attn.q_proj", (h, h)), ("self_attn.k_proj", (kv, h)),
          ("self_attn.v_proj", (kv, h)), ("self_attn.o_proj", (h, h)), ("mlp.gate_proj", (f, h)), ("mlp.up_proj", (f, h)),
          ("mlp.down_proj", (h, f)), ("input_layernorm", (h,)), ("post_attention_layernorm", (h,)))}
at, header = 0, {}
for k in sorted(t):
    n = 2 * t[k][0] * (t[k][1] if len(t[k]) > 1 else 1)
    header[k] = {"dtype": "BF16", "shape": t[k], "data_offsets": [at, at + n]}
    at += n
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
os.mkdir("70b")
with open("70b/model.safetensors", "wb") as o:
    o.write(struct.pack("<Q", len(text)) + text)
    o.truncate(8 + len(text) + at)
rope = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
json.dump(dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=h, intermediate_size=f, num_hidden_layers=80,
               num_attention_heads=64, num_key_value_heads=8, max_position_embeddings=131072, vocab_size=v, rms_norm_eps=1e-5,
               hidden_act="silu", rope_theta=5e5, rope_scaling=rope, tie_word_embeddings=False, torch_dtype="bfloat16"),
          open("70b/config.json", "w"))'
echo text >70b/README.md
echo text >70b/training_args.bin
mkdir 70b/original
expect 0 "$CONVERT" import --dry-run --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 70b none
out_has "LlamaForCausalLM, 723 tensors in 1 file, as 723 tensors of none/iter_0000000"
out_has "parameters  70,553,706,496"
out_has "to write    141,107,412,992 bytes"
out_has "tensor-parallel 8, pipeline 2; the vocabulary is padded to 129,024"
out_has "stage 0     8,821,932,032 bytes of weights a rank"
out_has "stage 1     8,821,948,416 bytes of weights a rank"
out_has "not copied  original, training_args.bin"
check [ ! -e none/iter_0000000 ]
expect 2 "$CONVERT" import --dry-run --tensor-model-parallel-size 7 70b none
expect 2 "$CONVERT" import --tensor-model-parallel-size 8 70b none
err_has "only tells --dry-run"
rm -r 70b

t "reshard reads what it copies: a damaged source gives nothing"
flip cut/iter_0000010/exp_avg-00001.safetensors 7000
expect 7 "$CONVERT" reshard cut none
err_has "cut/iter_0000010/exp_avg-00001.safetensors"
err_has "; damaged: exp_avg '"
check [ ! -e none ]

t "verify --same names the tensors that differ"
rm -rf other
"$make" save other 11
expect 1 "$CONVERT" verify --same run other
err_has "run/iter_0000010 and other/iter_0000011 hold different tensors: param 'embed.weight' has other values, param"
err_has "more"
rm -rf other
"$make" save other 10 gsnr
expect 1 "$CONVERT" verify --same run other
err_has "gsnr 'stray' is in the second one alone"
expect 1 "$CONVERT" verify --same other run
err_has "gsnr 'stray' is in the first one alone"

t "verify --same: version 1 and version 2 of the format"
expect 0 "$CONVERT" verify --same "$SRC/tests/golden/1/run" "$SRC/tests/golden/2/run"
out_has "the same 102 tensors"

t "export ignores a key of the manifest's model that readers need not know"
save 10
sed -i 's/"model": {/"model": {"later": 1, /' run/iter_0000010/manifest.json
"$make" seal run/iter_0000010/manifest.json
expect 0 "$CONVERT" verify run
expect 0 "$CONVERT" export run out
out_has "not copied  config.toml"
expect 0 "$CONVERT" export --dry-run run out3
out_has "not copied  config.toml"
expect 0 "$CONVERT" export --dry-run --like out run out3
out_has "not copied  config.toml"
expect 2 "$CONVERT" export --rank 4 run out3
err_has "--rank is for --to peft"
sed -i 's/"must_know": \[/"must_know": ["model.later", /' run/iter_0000010/manifest.json
"$make" seal run/iter_0000010/manifest.json
expect 3 "$CONVERT" export --overwrite run out
err_has 'this weft does not know "later" of the model'

t "export judges the files that it copies beside the weights"
rm -rf out
"$make" save run 10
printf '{"model_max_length": 32}\n' >tokenizer_config.json
python3 - <<'END'
import json
path = "run/iter_0000010/manifest.json"
m = open(path).read()
open("run/iter_0000010/tokenizer_config.json", "wb").write(open("run/iter_0000010/config.toml", "rb").read())
entry = m[m.index('{"name": "config.toml"'):]
entry = entry[:entry.index("}") + 1]
open(path, "w").write(m.replace(entry, entry + ",\n    " + entry.replace("config.toml", "tokenizer_config.json")))
END
"$make" seal run/iter_0000010/manifest.json
expect 0 "$CONVERT" export run out
same out/tokenizer_config.json run/iter_0000010/tokenizer_config.json
flip run/iter_0000010/tokenizer_config.json 3
expect 7 "$CONVERT" export --overwrite run out
err_has "run/iter_0000010/tokenizer_config.json: its bytes are not those that were written"
expect 7 "$CONVERT" export run out3
no_file out3

t "one rule for what a path means, in all verbs"
mkdir -p runs model
rm -rf runs/a cut
save 10 20
cp -r run runs/a
printf '{}' >model/config.json
touch model/model.safetensors data.bin data.idx
for verb in verify "export out2" "reshard cut"; do
    to=${verb#* }
    [ "$to" != "$verb" ] || to=
    verb=${verb% *}
    expect 3 "$CONVERT" $verb model $to
    err_has "model: is a Hugging Face model"
    err_has "convert import model DST makes a checkpoint of it"
    expect 3 "$CONVERT" $verb model/model.safetensors $to
    err_has "is a file of a Hugging Face model"
    expect 3 "$CONVERT" $verb runs $to
    err_has "runs: is a folder of runs"
    err_has "name a run in it, or a checkpoint: runs/a/iter_0000020"
    expect 3 "$CONVERT" $verb run/iter_0000010/manifest.json $to
    err_has "name the checkpoint: run/iter_0000010"
    expect 3 "$CONVERT" $verb data $to
    err_has "data: is the prefix of token data"
    expect 3 "$CONVERT" $verb data.bin $to
    err_has "data.bin: is a file, not a checkpoint"
    expect 4 "$CONVERT" $verb run/iter_000001 $to
    err_has "did you mean run/iter_0000010?"
    expect 4 "$CONVERT" $verb nothing $to
    err_has "nothing: no such checkpoint"
done
expect 3 "$CONVERT" inspect runs
err_has "runs: is a folder of runs"
expect 4 "$CONVERT" inspect run/iter_000001
err_has "did you mean run/iter_0000010?"
flip run/iter_0000020/manifest.json 100
for verb in export reshard; do
    expect 7 "$CONVERT" $verb run cut
    err_has "an earlier one that opens: run/iter_0000010"
done
no_file cut
no_file out2

t "average: fp32 sums, rounded once, weights alone"
rm -rf run r2 mean
"$make" save run 10
"$make" save r2 11
"$make" save r2 12
expect 0 "$CONVERT" average run r2/iter_0000011 r2 mean
err_has "mean/iter_0000000: the average of 3 checkpoints, 20 tensors"
expect 0 "$CONVERT" verify mean
out_has "20 tensors"
cat >mean.py <<'END'
import json, struct, sys
def read(folder):
    blob = open(folder + "/param-00000.safetensors", "rb").read()
    n = struct.unpack("<Q", blob[:8])[0]
    h = json.loads(blob[8:8 + n])
    h.pop("__metadata__")
    return {k: struct.unpack("<%df" % ((v["data_offsets"][1] - v["data_offsets"][0]) // 4),
                             blob[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
f = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
*parts, mean = [read(x) for x in sys.argv[1:]]
assert set(mean) == set(parts[0]) and any(parts[0]["embed.weight"])
for k, values in mean.items():
    for i, v in enumerate(values):
        s = parts[0][k][i]
        for p in parts[1:]:
            s = f(s + p[k][i])
        assert v == f(s / len(parts)), (k, i, v)
END
expect 0 python3 mean.py run/iter_0000010 r2/iter_0000011 r2/iter_0000012 mean/iter_0000000
expect 2 "$CONVERT" average run r2 mean
err_has "mean/iter_0000000 exists"
expect 0 "$CONVERT" average --overwrite run run mean
expect 0 python3 mean.py run/iter_0000010 mean/iter_0000000
flip r2/iter_0000012/param-00000.safetensors 9000
expect 7 "$CONVERT" average run r2 broken
err_has "; damaged: param '"
check [ -z "$(ls -A broken)" ]
expect 2 "$CONVERT" average run "$SRC/tests/golden/2/run" broken
err_has "run/iter_0000010 and "
err_has " must hold the same model, and differ: \""
err_has "average takes checkpoints of one model"
expect 2 "$CONVERT" export --to peft --base "$SRC/tests/golden/2/run" run broken
err_has " must hold the same model, and differ: \""
err_has "--base is the checkpoint that the model was trained from"
expect 2 "$CONVERT" average run broken
err_has "average needs two checkpoints or more"

t "inspect: Hugging Face models and files of weights"
rm -rf run model
save 10
expect 0 "$CONVERT" export -q run model
expect 0 "$CONVERT" inspect model
out_has "format      Hugging Face, LlamaForCausalLM"
out_has "model       2 layers of 16, 4 heads in 2 groups of 4, MLP 24, 5,520 parameters"
out_has "F32         20 tensors, 5,520 elements"
out_has "model.safetensors"
expect 0 "$CONVERT" inspect --json --tensors model
cp .out a.json
expect 0 python3 -c '
import json
d = json.load(open("a.json"))
assert d["format"] == "huggingface" and d["architecture"] == "LlamaForCausalLM" and d["parameters"] == 5520, d
assert d["model"]["num-layers"] == 2 and len(d["files"]) == 1 and len(d["tensors"]) == 20, d
assert {"name": "model.norm.weight", "dtype": "F32", "file": "model.safetensors", "shape": [16]} in d["tensors"], d
'
for file in model/model.safetensors run/iter_0000010/param-00000.safetensors; do
    expect 0 "$CONVERT" inspect --tensors $file
    out_has "format      safetensors"
    out_has "metadata    format: pt"
    out_has "20 tensors, 5,520 elements"
    check [ "$(grep -c '^F32  .*\[' .out)" = 20 ]
    expect 0 "$CONVERT" inspect --json --tensors $file
    cp .out a.json
    expect 0 python3 -c '
import json
d = json.load(open("a.json"))
assert d["format"] == "safetensors" and d["metadata"] == {"format": "pt"} and d["count"] == len(d["tensors"]) == 20, d
'
done
expect 3 "$CONVERT" verify model/model.safetensors
head -c 100 model/model.safetensors >short.safetensors
expect 3 "$CONVERT" inspect short.safetensors
err_has "short.safetensors: "

t "what is not there"
rm -rf run nothing
save 10
expect 4 "$CONVERT" verify nothing
err_has "nothing: no such checkpoint"
mkdir -p empty
expect 7 "$CONVERT" inspect empty
err_has "empty/manifest.json: is missing"
expect 4 "$CONVERT" verify nothing run
out_has "run/iter_0000010: intact"

t "wrong use"
expect 2 "$CONVERT" -q
err_has "convert needs a verb"
expect 2 "$CONVERT" verify
err_has "verify needs a checkpoint"
expect 2 "$CONVERT" inspect --tensor run
err_has "tensors"
expect 2 "$CONVERT" verify --same run
err_has "--same needs at least two checkpoints"
expect 2 "$CONVERT" reshard run
err_has "reshard needs a checkpoint and the folder for the new one"
expect 2 "$CONVERT" push run

t "names of other tools are hints, for options and verbs"
expect 2 "$CONVERT" inspect --load-dir run --names
err_has "2 unknown options of $(basename "$CONVERT") inspect: --load-dir and --names"
err_has "--load-dir: not an option: write the checkpoint's folder after the verb; --names: --tensors"
expect 2 "$CONVERT" export --outtype f16 run out
err_has "--outtype is for --to gguf; --dtype is the type otherwise"
expect 2 "$CONVERT" to-gguf run out
err_has "hint: export --to gguf"
expect 2 "$CONVERT" export --save out run
err_has "not an option: write the target's folder after the source's"
expect 2 "$CONVERT" to-hf run out
err_has "did you mean $(basename "$CONVERT") export?"
expect 2 "$CONVERT" inspect --iteration 10 run
err_has "run/iter_0000100"
expect 2 "$CONVERT" info run
err_has "unknown verb 'info'"
err_has "did you mean $(basename "$CONVERT") inspect?"

t "an option without effect is a warning"
save 10
expect 0 "$CONVERT" verify -v run
err_has "--verbose has no effect in $(basename "$CONVERT") verify"
expect 0 "$CONVERT" verify run
check [ ! -s .err ]

t "help"
expect 0 "$CONVERT" -h
out_has "inspect"
expect 0 "$CONVERT" verify --help
expect 0 "$CONVERT" --man
expect 0 "$CONVERT" --completion bash
