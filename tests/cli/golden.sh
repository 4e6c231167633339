# SPDX-License-Identifier: Apache-2.0
# Files that earlier weft wrote (tests/golden): each is loaded, verified and resumed by today's programs.

. "$SRC/tests/golden/options.sh"

# close FILE FILE: steps are the same, losses nearly so (another processor may add up in another order)
close() {
    python3 -c '
import sys
a, b = ([l.split() for l in open(f)] for f in sys.argv[1:])
assert a and len(a) == len(b), (a, b)
for (i, x), (j, y) in zip(a, b):
    assert i == j and abs(float(x) - float(y)) <= 1e-4 * float(x), (i, x, j, y)' "$1" "$2"
}

home=$PWD
for golden in "$SRC"/tests/golden/[0-9]*; do
    version=${golden##*/}
    cd "$home"
    cp -r "$golden" "$version"
    cd "$version"

    t "golden $version: tokenizers give the same ids and give the text back"
    for ids in *.ids; do
        expect 0 "$TOK" encode --tokenizer "${ids%.ids}" text.txt
        same .out "$ids"
    done
    expect 0 "$TOK" decode --tokenizer unigram.model unigram.model.ids
    same .out text.txt
    expect 0 "$TOK" decode --tokenizer bytes-tokenizer.json bytes-tokenizer.json.ids
    same .out text.txt

    t "golden $version: a shard is sound, and is written so today"
    expect 0 "$PREP" verify data_text_document
    out_has "ok: 100 documents"
    out_has "as the manifest says"
    expect 0 "$PREP" build --input docs.jsonl --tokenizer unigram.model --append-eod --output-prefix today
    same today_text_document.bin data_text_document.bin
    same today_text_document.idx data_text_document.idx

    t "golden $version: old index maps are reused, and new ones are equal"
    expect 0 "$PREP" index $maps
    err_has "reused"
    for f in *_idx.npy; do same "$f" "$golden/$f"; done
    expect 0 "$PREP" inspect $samples
    same .out samples.json
    expect 0 "$PREP" index $maps --overwrite
    err_lacks "reused"
    for f in *_idx.npy; do same "$f" "$golden/$f"; done

    t "golden $version: a packed set"
    expect 0 "$PREP" verify packed
    out_has "as the manifest says"
    expect 0 "$PREP" unpack packed
    same .out unpacked.jsonl

    t "golden $version: a checkpoint is intact and holds what it held"
    expect 0 "$CONVERT" verify run
    out_has "iter_0000004: intact"
    tensors run/iter_0000004 >.tensors
    same .tensors tensors.json

    t "golden $version: a run is resumed where it was"
    expect 0 "$TRAIN" run $run --save run
    out_has "iteration        8/       8"
    err_lacks "was unset" # options that came later
    losses run >.losses
    check close losses.txt .losses
    expect 0 "$CONVERT" verify run
    out_has "iter_0000008: intact"
    expect 0 "$TRAIN" generate --load "$golden/run" --prompt "ba ko" --max-new-tokens 8
done
cd "$home"
