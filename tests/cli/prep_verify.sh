# SPDX-License-Identifier: Apache-2.0
# prep verify, with and without --repair.

printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf '{"text": "one two"}\n{"text": ""}\n{"text": "two two one"}\n{"text": "one"}\n' >c.jsonl
"$PREP" build --quiet --input c.jsonl --tokenizer v.json --append-eod --output-prefix c
d=c_text_document
copy() { for s in bin idx; do cp $d.$s $1.$s; done; }
# number AT VALUE WIDTH FILE: overwrites a number
number() {
    python3 -c 'import sys; f = open(sys.argv[4], "r+b"); f.seek(int(sys.argv[1]))
f.write(int(sys.argv[2]).to_bytes(int(sys.argv[3]), "little", signed=True))' "$@"
}

t "a sound dataset"
expect 0 "$PREP" verify $d
out_has "ok: 4 documents, 1 of them empty, 3 sequences, 9 tokens, highest id 3 of 4, 3 documents end in 3"
out_has "as the manifest says"
cp $d.manifest.json was
expect 0 "$PREP" verify $d.idx --tokenizer v.json --repair
same $d.manifest.json was

t "ids beyond the vocabulary"
copy x
expect 0 "$PREP" verify x
out_has "without a manifest"
expect 3 "$PREP" verify x --vocab-size 3
err_has "x.bin: token id 3 at byte 4"
expect 3 "$PREP" verify x --vocab-size 3 --repair
same x.bin $d.bin

t "a digest that is not the manifest's"
cp $d.manifest.json x.manifest.json
number 2 1 2 x.bin
expect 7 "$PREP" verify x
err_has "x.bin"
rm x.manifest.json

t "ends of document that are not counted, as Megatron-DeepSpeed's"
copy e
number 34 2 4 e.idx
number 38 3 4 e.idx
number 42 1 4 e.idx
number 54 4 8 e.idx
number 62 10 8 e.idx
cp e.idx e.was
expect 3 "$PREP" inspect e
err_has "Megatron-DeepSpeed"
err_has "verify --repair"
for verb in "index --prefix e --num-samples 1" "blend --data-path 1 e --num-samples 1"; do
    expect 3 "$PREP" $verb --seq-length 2 --split 1,0,0
    err_has "Megatron-DeepSpeed"
    check [ -z "$(ls | grep e_train)" ]
done
expect 3 "$PREP" verify e
err_has "ends of document not counted"
same e.idx e.was
expect 0 "$PREP" verify e --repair
err_has "each document ends in id 3"
out_has "9 tokens"
same e.idx $d.idx
same e.bin $d.bin
no_temps .

t "offsets that drifted"
copy o
number 54 -2147483648 8 o.idx
expect 3 "$PREP" verify o
err_has "--repair repairs it (offsets)"
expect 0 "$PREP" verify o --repair
same o.idx $d.idx

t "a cut .idx, a cut .bin"
copy i
printf '{"text": "one two"}\n{"text": "two two one"}\n{"text": "one"}\n' >full.jsonl
"$PREP" build --quiet --input full.jsonl --tokenizer v.json --append-eod --output-prefix f
head -c 80 f_text_document.idx >i.idx
expect 3 "$PREP" verify i
err_has "i.idx"
expect 0 "$PREP" verify i --repair
err_has "each sequence is a document now"
same i.idx f_text_document.idx
copy b
head -c 15 $d.bin >b.bin
expect 3 "$PREP" verify b
err_has "b.bin"
expect 0 "$PREP" verify b --repair
err_has "1 documents are lost"
out_has "3 documents"
check [ "$(wc -c <b.bin)" = 14 ]
head -c 40 $d.idx >b.idx
expect 3 "$PREP" verify b --repair
err_has "cannot be repaired"

t "a folder of them"
mkdir dir
for n in p q r; do cp $d.bin dir/$n.bin; cp $d.idx dir/$n.idx; done
number 54 -8 8 dir/q.idx
expect 3 "$PREP" verify dir
err_has "1 of 3 datasets"
out_has "dir/r: ok"
expect 0 "$PREP" verify dir --repair
expect 0 "$PREP" verify 'dir/*'

t "what it needs"
expect 2 "$PREP" verify
expect 4 "$PREP" verify nothing
expect 4 "$PREP" verify nothing --repair
expect 0 "$PREP" verify -h
out_has "--repair"
