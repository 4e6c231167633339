# SPDX-License-Identifier: Apache-2.0
# prep import: token files of other tools.

python3 - <<'END'
import struct
def llmc(name, magic, version, code, ids):
    with open(name, "wb") as f:
        f.write(struct.pack("<3i", magic, version, len(ids)) + bytes(1012) + struct.pack(f"<{len(ids)}{code}", *ids))
llmc("a.bin", 20240520, 1, "H", [50256, 1, 2, 50256, 3])
llmc("b.bin", 20240801, 7, "I", [128000, 70000, 128000, 5])
llmc("eval.bin", 20240522, 1, "H", [65535, 10])
open("bare.bin", "wb").write(struct.pack("<5H", 1, 2, 9, 3, 9))
import os
os.mkdir("ds")
for name, ids, ends in (("1.ds", [5, 6, 7], [1, 1, 3]), ("0.ds", [8, 9], [2])):
    open("ds/" + name, "wb").write(struct.pack(f"<{len(ids)}H", *ids))
    open("ds/" + name + ".index", "wb").write(struct.pack(f"<{len(ends)}Q", *ends))
    open("ds/" + name + ".metadata", "w").write(f"tok|2\n{len(ids)}\n{len(ids)} T")
q = lambda *v: struct.pack(f"<{len(v)}Q", *v)
open("old.idx", "wb").write(b"TNTIDX\0\0" + q(1, 4, 4, 2, 2, 4) + q(0, 1, 2) + q(0, 2, 5) + q(2, 3) + q(0, 1, 1, 2))
open("old.bin", "wb").write(struct.pack("<5i", 1, 2, 3, 4, 5))
END
ids() { "$PREP" export --quiet --ids --keep-eod "$1" | tr -d '\n'; }

t "llm.c: its token begins the documents"
expect 0 "$PREP" import a.bin --output-prefix a1
err_has "1 files: 2 documents, 2 sequences, 5 tokens of type u16"
check [ "$(ids a1)" = '{"text": [50256, 1, 2]}{"text": [50256, 3]}' ]
expect 0 "$PREP" import a.bin --boundary-at end --output-prefix a2
check [ "$(ids a2)" = '{"text": [50256]}{"text": [1, 2, 50256]}{"text": [3]}' ]
expect 0 "$PREP" import a.bin b.bin --output-prefix ab
err_has "type i32"
check [ "$(ids ab)" = '{"text": [50256, 1, 2]}{"text": [50256, 3]}{"text": [128000, 70000]}{"text": [128000, 5]}' ]
expect 0 "$PREP" verify ab
expect 3 "$PREP" import eval.bin --output-prefix e
err_has "questions"

t "datatrove, nanotron: a folder"
expect 0 "$PREP" import ds --output-prefix d
check [ "$(ids d)" = '{"text": [8, 9]}{"text": [5]}{"text": []}{"text": [6, 7]}' ]
expect 0 "$PREP" import ds/1.ds --boundary none --output-prefix d1
check [ "$(ids d1)" = '{"text": [5, 6, 7]}' ]
printf '\1\0\1' >ds/1.ds.loss
expect 2 "$PREP" import ds --output-prefix d2
err_has "--ignore-loss"
expect 0 "$PREP" import ds --ignore-loss --output-prefix d2
same d2.bin d.bin

t "TNTIDX"
expect 3 "$PREP" inspect old
err_has "prep import"
expect 0 "$PREP" import old --output-prefix new
check [ "$(ids new)" = '{"text": [1, 2]}{"text": []}{"text": [3, 4, 5]}' ]
same new.bin old.bin
expect 0 "$PREP" import old.idx --vocab-size 6 --output-prefix new6
err_has "type u16"
expect 3 "$PREP" import old.idx --vocab-size 5 --output-prefix new5
err_has "old.bin: token id 5 at byte 16"
no_file new5.idx
no_temps .

t "raw tokens, and a new .idx from a .bin"
expect 3 "$PREP" import bare.bin --output-prefix r
err_has "--input-format raw"
expect 2 "$PREP" import bare.bin --input-format raw --output-prefix r
expect 2 "$PREP" import bare.bin --input-format raw --dtype u16 --output-prefix r
err_has "--boundary"
expect 0 "$PREP" import bare.bin --input-format raw --dtype u16 --boundary 9 --output-prefix r
check [ "$(ids r)" = '{"text": [1, 2, 9]}{"text": [3, 9]}' ]
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
printf '{"text": "one two"}\n{"text": "two two one"}\n' >c.jsonl
"$PREP" build --quiet --input c.jsonl --tokenizer v.json --append-eod --output-prefix c
expect 0 "$PREP" import c_text_document.bin --input-format raw --dtype u16 --tokenizer v.json --output-prefix again
same again.idx c_text_document.idx
same again.bin c_text_document.bin
expect 0 "$PREP" verify again --tokenizer v.json
expect 2 "$PREP" import c_text_document.bin --output-prefix again2
err_has "already a dataset"

t "what it needs"
expect 2 "$PREP" import --output-prefix x
expect 2 "$PREP" import a.bin
err_has "--output-prefix"
expect 2 "$PREP" import a.bin --output-prefix a1
err_has "--overwrite"
expect 0 "$PREP" import b.bin --output-prefix a1 --overwrite
check [ "$(ids a1)" = '{"text": [128000, 70000]}{"text": [128000, 5]}' ]
expect 2 "$PREP" import a.bin --boundary x --output-prefix y
err_has "--boundary"
expect 4 "$PREP" import nothing --output-prefix x
expect 0 "$PREP" import -h
out_has "prep import tokenized/"
