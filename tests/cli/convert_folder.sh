# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Folders of models as they are found: what lies beside the weights.
make=$build/tests/ckpt_make
"$make" save run 10
"$CONVERT" export -q run model >.out
cp "$SRC/tests/golden/1/bytes-tokenizer.json" model/tokenizer.json

t "a file beside the weights that is a pipe, a device or a folder is refused, and nobody waits for it"
for name in config.json generation_config.json tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json; do
    rm -rf bad out
    cp -r model bad
    rm -f bad/$name
    mkfifo bad/$name
    expect 3 timeout 300 "$CONVERT" import -q bad out
    err_has "bad/$name: is a pipe, expected a regular file"
    rm bad/$name
    ln -s /dev/zero bad/$name
    expect 3 timeout 300 "$CONVERT" import -q bad out
    err_has "bad/$name: is a device, expected a regular file"
    rm bad/$name
    mkdir bad/$name
    expect 3 timeout 300 "$CONVERT" import -q bad out
    err_has "bad/$name: is a folder, expected a regular file"
    check [ ! -e out ]
    expect 3 timeout 300 "$CONVERT" import -q bad out/deep/er
    check [ ! -e out ]
done

t "one that is larger than 1 GiB is refused"
rm -rf bad out
cp -r model bad
truncate -s 1073741825 bad/merges.txt
expect 3 timeout 300 "$CONVERT" import -q bad out
err_has "bad/merges.txt: larger than 1073741824 bytes"

t "train and tok name them, too"
rm -rf bad out
cp -r model bad
rm bad/tokenizer.json
mkfifo bad/tokenizer.json
expect 3 timeout 300 "$TOK" encode --tokenizer bad x
err_has "bad/tokenizer.json: is a pipe"
expect 3 timeout 300 "$TRAIN" generate --load bad --prompt x
err_has "bad/tokenizer.json: is a pipe"

t "a checkpoint's manifest that is a pipe is damaged"
mkdir p
cp -r run/iter_0000010 p/
rm p/iter_0000010/manifest.json
mkfifo p/iter_0000010/manifest.json
expect 3 timeout 300 "$CONVERT" verify p/iter_0000010
err_has "manifest.json: is a pipe"

t "licence, terms of use, notices and readme go along to the checkpoint and back; a line names the rest"
rm -rf own out back like
cp -r model own
for name in LICENSE LICENSE-MODEL.md License.txt USE_POLICY.md NOTICE Notice.txt README.md readme.txt; do echo "the text of $name" >own/$name; done
echo text | tee own/training_args.bin own/licensed.py own/READMEs.csv >own/LICENSE.py
mkdir own/original own/LICENSE.d own/License.md
expect 0 "$CONVERT" import own out
out_has "not copied  LICENSE.d, LICENSE.py, READMEs.csv, licensed.py, original, training_args.bin"
expect 0 "$CONVERT" verify out
expect 0 "$CONVERT" export out back
expect 0 "$CONVERT" export --like own out like
for name in LICENSE LICENSE-MODEL.md License.txt USE_POLICY.md NOTICE Notice.txt README.md readme.txt; do
    check cmp own/$name out/iter_0000000/$name
    check cmp own/$name back/$name
    check cmp own/$name like/$name
done
sed -i 's/"rms_norm_eps": [^,]*/"rms_norm_eps": 0.25/' like/config.json
expect 3 "$CONVERT" export --like like out other
err_has "out/iter_0000000 and like must be of the same model, and differ: \""
err_has "--like takes a folder of the model that the checkpoint holds"
rm own/NOTICE
mkfifo own/NOTICE
expect 3 timeout 300 "$CONVERT" import -q --overwrite own out
err_has "own/NOTICE: is a pipe"

t "a manifest that no weft has written is malformed (3), one that is cut or changed damaged (7), alone and in its folder"
rm -rf m
mkdir m
cp -r run/iter_0000010 m/
for text in '{}' 'hello' '{"format": "other", "xxh3_128": 1}' '[1, 2'; do
    echo "$text" >m/iter_0000010/manifest.json
    for path in m m/iter_0000010; do
        expect 3 "$CONVERT" inspect $path
        err_has "manifest.json: not a manifest of weft"
        expect 3 "$CONVERT" verify $path
        err_has "manifest.json: not a manifest of weft"
    done
    expect 3 "$CONVERT" export m none
    expect 3 "$TRAIN" generate --load m --prompt x
    check [ ! -e none ]
done
sed '/"files"/,$d' run/iter_0000010/manifest.json >m/iter_0000010/manifest.json
expect 7 "$CONVERT" inspect m
err_has "cut short or changed"
sed 's/"version": 2/"version": 3/' run/iter_0000010/manifest.json >m/iter_0000010/manifest.json
expect 7 "$CONVERT" verify m
"$make" seal m/iter_0000010/manifest.json
expect 3 "$CONVERT" inspect m
expect 3 "$CONVERT" verify m

t "the hint for an unknown key of config.json is an option of every verb that opens the folder"
rm -rf odd out
cp -r model odd
sed -i 's/"vocab_size"/"residual_multiplier": 2, "vocab_size"/' odd/config.json
expect 3 "$CONVERT" import odd out
err_has "hint: if it does not change the model: --ignore-config-key residual_multiplier"
expect 0 "$CONVERT" import -q --ignore-config-key residual_multiplier -- odd out
for verb in "generate --prompt a" "eval --data-path none --seq-length 8"; do
    expect 3 "$TRAIN" $verb --load odd
    err_has "hint: if it does not change the model: --ignore-config-key residual_multiplier"
    "$TRAIN" $verb --load odd --ignore-config-key residual_multiplier >.out 2>.err
    err_lacks "residual_multiplier"
done
