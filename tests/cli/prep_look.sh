# SPDX-License-Identifier: Apache-2.0
# prep inspect and prep index; help.

printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf '{"text": "one two"}\n{"text": ""}\n{"text": "two two one"}\n{"text": "one"}\n' >c.jsonl
"$PREP" build --quiet --input c.jsonl --tokenizer v.json --append-eod --output-prefix c
d=c_text_document

t "inspect counts"
expect 0 "$PREP" inspect $d
out_has "documents   4"
out_has "sequences   3"
out_has "tokens      9 of type u16"
out_has "length      2 to 4, mean 3.0"
out_has "WhitespaceTokenizer, 4 ids"
out_has "eod         3 <|endoftext|>, appended"

t "inspect checks"
expect 0 "$PREP" inspect $d.idx --check
out_has "1 empty documents, highest id 3 of 4, 3 ends of document"

t "inspect shows documents"
expect 0 "$PREP" inspect $d --documents 0,2 --tokenizer v.json
out_has "document 0: 3 tokens"
out_has "  1 2 3"
out_has "two two one <|endoftext|>"
expect 2 "$PREP" inspect $d --documents 4
err_has "there is no document 4: c_text_document has 4 documents"
expect 0 "$PREP" inspect --documents 2-3 0 "$d"
check [ "$(grep -o '^document [0-9]*' .out | tr '\n' ' ')" = "document 2 document 3 document 0 " ]
expect 0 "$PREP" inspect $d --documents -1,3-
check [ "$(grep -o '^document [0-9]*' .out | tr '\n' ' ')" = "document 0 document 1 document 3 " ]
expect 0 "$PREP" inspect $d --documents 1-2 --json
check python3 -c 'import json; assert [d["document"] for d in json.load(open(".out"))["shown"]] == [1, 2]'
expect 2 "$PREP" inspect $d --documents 2-4
err_has "there is no document 4"
expect 2 "$PREP" inspect $d --documents 3-2
err_has "--documents: the range 3-2 ends before it begins"
expect 2 "$PREP" inspect $d --documents x

t "inspect, export and merge take any file of a dataset for its prefix"
for file in $d $d.bin $d.idx $d.manifest.json; do
    expect 0 "$PREP" inspect $file
    out_has "documents   4"
    expect 0 "$PREP" export --ids $file
    check [ "$(wc -l <.out)" = 4 ]
    expect 0 "$PREP" merge $file --overwrite --output-prefix merged
    expect 4 "$PREP" export --ids no$file
done
expect 4 "$PREP" merge c --output-prefix merged
err_has "did you mean c_text_document?"

t "inspect answers as JSON"
expect 0 "$PREP" inspect $d --json --check --documents 1 2 --tokenizer v.json
check python3 -c '
import json
d = json.load(open(".out"))
assert d["documents"] == 4 and d["sequences"] == 3 and d["tokens"] == 9 and d["dtype"] == "u16"
assert d["empty_documents"] == 1 and d["highest_id"] == 3 and d["ends_of_document"] == 3
assert sum(b["sequences"] for b in d["histogram"]) == 3
assert d["manifest"]["vocab_size"] == 4 and d["manifest"]["eod"] == 3
assert d["shown"] == [{"document": 1, "ids": [], "text": ""},
                      {"document": 2, "ids": [2, 2, 1, 3], "text": "two two one <|endoftext|>"}]'

t "samples of the training order"
expect 0 "$PREP" inspect $d --samples 0 1 --seq-length 4 --num-samples 2 --split 1,0,0 --tokenizer v.json --eod-mask-loss
out_has "sample 1 of 2 for train: 4 tokens"
out_has "without loss"
expect 0 "$PREP" inspect $d --samples 0 --seq-length 4 --num-samples 2 --split 1,0,0 --json
cp .out one
expect 0 "$PREP" inspect --data-path $d --samples 0 --seq-length 4 --num-samples 2 --split 1,0,0 --json
same .out one
check python3 -c '
import json
d = json.load(open(".out"))
assert len(d["tokens"]) == len(d["labels"]) == 4 and d["tokens"][1:] == d["labels"][:3]
assert d["part"] == "train" and d["sample"] == 0 and d["loss_mask"] == [1] * 4'
expect 2 "$PREP" inspect $d --samples 2 --seq-length 4 --num-samples 2 --split 1,0,0
err_has "there is no sample 2: the order for train has 2 samples"
expect 0 "$PREP" inspect $d --samples 0- --seq-length 4 --num-samples 2 --split 1,0,0
check [ "$(grep -c '^sample' .out)" = 2 ]
expect 2 "$PREP" inspect $d --samples 0 --seq-length 4
err_has "--num-samples"
expect 2 "$PREP" inspect $d --samples 0 --part valid --num-samples 2
err_has "--num-valid-samples"
expect 2 "$PREP" inspect $d --data-path $d --samples 0 --num-samples 2
expect 2 "$PREP" inspect --samples 0 --num-samples 2
expect 2 "$PREP" inspect $d --samples x --num-samples 2
expect 2 "$PREP" inspect $d --samples 0 --num-samples 2 --check
no_file ${d}_train_indexmap_2ns_4sl_1234s_doc_idx.npy

t "inspect of files that do not hold together"
expect 4 "$PREP" inspect nothing
expect 2 "$PREP" inspect
expect 2 "$PREP" inspect a b
cp $d.bin x.bin
head -c 60 $d.idx >x.idx
expect 3 "$PREP" inspect x
err_has "x.idx"
cp $d.idx x.idx
printf 'z' >>x.bin
expect 3 "$PREP" inspect x
err_has "x.bin"
cp $d.bin x.bin
expect 0 "$PREP" inspect x --check
out_has "there is no manifest"
expect 3 "$PREP" inspect x --check --vocab-size 3
err_has "x.bin"

t "a flipped byte fails the manifest's digest"
cp $d.manifest.json x.manifest.json
printf '\001' | dd of=x.bin bs=1 seek=2 conv=notrunc 2>/dev/null
expect 7 "$PREP" inspect x --check
err_has "x.bin"
expect 0 "$PREP" inspect x

t "another tokenizer than the data's"
printf '{"<unk>": 0, "two": 1, "one": 2, "<|endoftext|>": 3}' >w.json
expect 2 "$PREP" inspect $d --tokenizer w.json
err_has "v.json (SHA-256 $(sha256sum <v.json | cut -c 1-12))"
err_has "the command line has w.json (SHA-256 $(sha256sum <w.json | cut -c 1-12))"

t "the maps that Megatron itself wrote"
if [ -d "$DATA/index-map" ]; then
    m=my-gpt2_text_document
    cp "$DATA/index-map/$m.idx" .
    expect 0 "$PREP" index --prefix $m --seq-length 1024 --num-samples 1600 --seed 1234 --split 100,0,0
    for f in doc_idx sample_idx shuffle_idx; do
        f=${m}_train_indexmap_1600ns_1024sl_1234s_$f.npy
        same "$DATA/index-map/$f" $f
        out_has $f
    done
    expect 0 "$PREP" index --prefix $m --seq-length 1024 --num-samples 1600 --seed 1234 --split 100,0,0
    err_has "reused"
else
    skip "Megatron-LM's index-map is not in WEFT_TEST_DATA"
fi

t "index: what it needs, and a share that is empty"
expect 2 "$PREP" index --num-samples 5
err_has "--data-path is missing"
expect 2 "$PREP" index --prefix $d
err_has "--num-samples"
expect 4 "$PREP" index --prefix none --num-samples 5
expect 2 "$PREP" index --prefix $d --num-samples 5 --split 1,x
expect 0 "$PREP" index --prefix $d --num-samples 5 --num-test-samples 5 --seq-length 2 --split 98,1,1
err_has "the test share of the split is empty"
expect 0 "$PREP" blend --prefix $d --num-samples 5 --num-test-samples 5 --seq-length 2 --split 98,1,1
out_has "train: 5 samples of 2 tokens"
err_has "the test share of the split is empty"
for verb in index blend; do
    expect 2 "$PREP" $verb --prefix $d --num-samples 0 --num-test-samples 5 --seq-length 2 --split 98,1,1
    err_has "the test share is empty"
    expect 2 "$PREP" $verb --prefix $d --num-samples 5 --seq-length 2 --split 0,99,1
    err_has "the split has no train share"
done

t "help, version, manual page, completion"
expect 0 "$PREP" -h
out_has "prep build --input"
expect 0 "$PREP" build -h
out_has "--output-prefix"
expect 0 "$PREP" build --help
out_has "quarantine"
expect 0 "$PREP" --version
expect 0 "$PREP" --man
expect 0 "$PREP" --completion bash
out_has "--json-keys"
