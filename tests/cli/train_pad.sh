# SPDX-License-Identifier: Apache-2.0
# --freeze-pad-embedding: the row of pad_token_id gets no gradient from lookups, all others what they got.
. "$SRC/tests/cli/train_data.sh"
sgd="$tiny --threads 1 --device cpu --train-iters 3 --optimizer sgd --sgd-momentum 0 --lr-decay-style constant --lr 0.5 --weight-decay 0
    --clip-grad 0 --hidden-dropout 0 --attention-dropout 0 --eval-iters 0"

# model FOLDER TIED: an untrained model with a token for padding that the data have
model() {
    "$TRAIN" run $tiny --threads 1 --train-iters 1 --lr 1e-9 --save "$1-run" $2 --export-hf "$1" >/dev/null 2>&1
    python3 - "$1/config.json" <<'END'
import json, sys
c = json.load(open(sys.argv[1]))
c["pad_token_id"] = 3
json.dump(c, open(sys.argv[1], "w"))
END
}

# rows BEFORE AFTER...: which rows of the embedding (and head) each run has moved
cat >rows.py <<'END'
import json, struct, sys
def tensors(folder):
    with open(folder + "/model.safetensors", "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    return {k: (v["shape"], data[slice(*v["data_offsets"])]) for k, v in head.items() if k != "__metadata__"}
def row(t, i):
    (n, width), data = t
    return struct.unpack("<%df" % width, data[4 * width * i:4 * width * (i + 1)])
END

t "an untied row stays, the others move as they did"
model plain "$llama --group-query-attention"
expect 0 "$TRAIN" run $sgd --load plain --save free --export-hf free-hf
expect 0 "$TRAIN" run $sgd --load plain --save frozen --export-hf frozen-hf --freeze-pad-embedding
check python3 - <<'END'
exec(open("rows.py").read())
was, free, frozen = (tensors(x)["model.embed_tokens.weight"] for x in ("plain", "free-hf", "frozen-hf"))
assert row(was, 3) != row(free, 3), "the data do not have the token"
assert row(was, 3) == row(frozen, 3)
moved = [i for i in range(40) if row(was, i) != row(frozen, i)]
assert len(moved) > 20 and 3 not in moved, moved
END
expect 0 "$TRAIN" run $sgd --load plain --train-iters 1 --save free1 --export-hf free1-hf
expect 0 "$TRAIN" run $sgd --load plain --train-iters 1 --save frozen1 --export-hf frozen1-hf --freeze-pad-embedding
check python3 - <<'END'
exec(open("rows.py").read())
free, frozen = tensors("free1-hf"), tensors("frozen1-hf")
for k in free:
    if k != "model.embed_tokens.weight":
        assert free[k] == frozen[k], k
assert [i for i in range(60) if row(free["model.embed_tokens.weight"], i) != row(frozen["model.embed_tokens.weight"], i)] == [3]
END

t "a tied row keeps the gradient of the head"
model tied ""
expect 0 "$TRAIN" run $sgd --load tied --train-iters 1 --save free-t --export-hf free-t-hf
expect 0 "$TRAIN" run $sgd --load tied --train-iters 1 --save frozen-t --export-hf frozen-t-hf --freeze-pad-embedding
check python3 - <<'END'
exec(open("rows.py").read())
was, free, frozen = (tensors(x)["transformer.wte.weight"] for x in ("tied", "free-t-hf", "frozen-t-hf"))
assert row(was, 3) != row(frozen, 3) != row(free, 3)
assert [i for i in range(60) if row(free, i) != row(frozen, i)] == [3]
END

t "and so it does on tensor-parallel processes, in stages and under ZeRO 3"
for layout in "--tp 2" "--pp 2" "--zero-stage 3"; do
    rm -rf other other-hf
    expect 0 "$TRAIN" run $sgd --load tied --train-iters 1 --save other --export-hf other-hf --freeze-pad-embedding --nproc-per-node 2 $layout
    check python3 - "$layout" <<'END'
exec(open("rows.py").read())
one, all = (tensors(x)["transformer.wte.weight"] for x in ("frozen-t-hf", "other-hf"))
for i in range(60):
    assert max(abs(a - b) for a, b in zip(row(one, i), row(all, i))) < 1e-5, (sys.argv[1], i)
END
done

t "without such an id it is refused"
expect 2 "$TRAIN" run $sgd --no-save --freeze-pad-embedding
err_has "--freeze-pad-embedding: the model has no config.json of Hugging Face that names a pad_token_id"
sed -i 's/"pad_token_id": 3/"pad_token_id": 99/' tied/config.json
expect 2 "$TRAIN" run $sgd --load tied --no-save --freeze-pad-embedding
err_has "--freeze-pad-embedding: the pad_token_id 99 of config.json is not among the 61 ids of the model"
