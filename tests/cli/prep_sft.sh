# SPDX-License-Identifier: Apache-2.0
# prep sft and unpack: conversations to a packed set, and back to JSON.

null="--tokenizer-type NullTokenizer --vocab-size 1000"
sft() { "$PREP" sft --quiet "$@"; }
nothing() {
    check [ -z "$(ls | grep -E '^o\.')" ]
    no_temps .
}

t "texts with the string that begins an answer"
printf '{"text": "1 2 7 8 3 4"}\n{"text": "5 7 8"}\n{"text": "6 7 9"}\n{"text": ""}\n' >a.jsonl
expect 0 "$PREP" sft --input a.jsonl $null --response-template '7 8' --seq-length 8 --packing none \
    --output-prefix o
err_has "3 examples, 12 tokens"
err_has "1 of 3 examples lack the string"
err_has "1 examples have no token with a loss"
err_has "1 records have no tokens"
expect 0 "$PREP" unpack o
out_is '{"input_ids":[1,2,7,8,3,4],"loss_mask":[0,0,0,0,1,1],"seq_start_id":[0]}
{"input_ids":[5,7,8],"loss_mask":[0,0,0],"seq_start_id":[0]}
{"input_ids":[6,7,9],"loss_mask":[0,0,0],"seq_start_id":[0]}'
expect 0 "$PREP" inspect o --check
rm -f o.*

t "dialogues, packed"
printf '{"text": "9 8 1 9 7 2 9 8 3 9 7 4"}\n{"text": "1 2"}\n{"text": "9 7 5"}\n' >d.jsonl
expect 0 "$PREP" sft --input d.jsonl $null --response-template '9 7' --instruction-template '9 8' \
    --seq-length 14 --append-eod --output-prefix o
err_has "2 sequences of 14 tokens, 28.57 % padding"
expect 0 "$PREP" unpack o --tokenizer-type NullTokenizer --vocab-size 1000
out_has '"loss_mask":[0,0,0,0,0,1,1,0,0,0,0,1,1]'
out_has '"text":["1 2 1000","9 7 5 1000"]'
expect 0 "$PREP" unpack o --loss-mask next
out_has '"input_ids":[9,8,1,9,7,2,9,8,3,9,7,4,1000],"loss_mask":[0,0,0,0,1,1,0,0,0,0,1,1,0]'
check grep -q '"unmatched": 2' o.manifest.json
rm -f o.*

t "the key is a name, whatever is in it"
printf '{"a.b": "1 2", "a": {"b": "3"}}\n{"a": {"b": "4"}}\n{"a.b": ["5"]}\n' >dots.jsonl
expect 0 sft --input dots.jsonl $null --text-key a.b --packing none --on-bad-record skip --output-prefix o
err_has 'line 2: has no key "a.b"'
err_has 'line 3: the value of "a.b" is not a string'
expect 0 "$PREP" unpack o
out_is '{"input_ids":[1,2],"loss_mask":[1,1],"seq_start_id":[0]}'
rm -f o.*

t "a JSON array"
{ echo '['; echo '{"text":'; echo ' "1 2"},'; echo '{"text": "3"}, {"text": "4"}]'; } >array.json
expect 0 sft --input array.json $null --packing none --output-prefix o
expect 0 "$PREP" unpack o
out_is '{"input_ids":[1,2],"loss_mask":[1,1],"seq_start_id":[0]}
{"input_ids":[3],"loss_mask":[1],"seq_start_id":[0]}
{"input_ids":[4],"loss_mask":[1],"seq_start_id":[0]}'
rm -f o.*

t "the bytes do not depend on the workers"
awk 'BEGIN { for (i = 0; i < 30000; i++) { s = i % 900; for (k = 0; k < (i * 7) % 40; k++) s = s " " (i * k) % 999
    print "{\"text\": \"" s "\"}" } }' >m.jsonl
for w in 1 2 5; do
    expect 0 sft --input m.jsonl $null --seq-length 100 --workers $w --output-prefix o$w
    for x in bin idx pack manifest.json; do same o1.$x o$w.$x; done
done
rm -f o?.*

t "a second run of finished work says so and does nothing"
zstd -q <d.jsonl >d.zst
work="--input a.jsonl d.zst $null --on-bad-record skip"
expect 0 sft $work --output-prefix o
check python3 -c 'import json; assert all(len(i["xxh3_128"]) == 32 for i in json.load(open("o.manifest.json"))["inputs"])'
ls -l --time-style=full-iso o.* >before
expect 0 "$PREP" sft $work --workers 3 --output-prefix o
err_has "o exists, from the same inputs, options and tokenizer: nothing to do"
ls -l --time-style=full-iso o.* >after
same before after

t "what is there and comes from other work is not replaced unasked"
differs() {
    expect 2 sft "$@" --output-prefix o
    err_has "o: was built "
    ls -l --time-style=full-iso o.* >after
    same before after
}
differs $work --seq-length 100
err_has "--seq-length 2048; this command says 100"
differs --input a.jsonl $null --on-bad-record skip
err_has "2 inputs; this command names 1"
differs --input a.jsonl d.zst --tokenizer-type NullTokenizer --vocab-size 1001 --on-bad-record skip
err_has "with tokenizer "
mkdir moved
tr 1 3 <a.jsonl >moved/a.jsonl
cp d.zst moved
differs --input moved/a.jsonl d.zst $null --on-bad-record skip
err_has "XXH3-128"
expect 0 sft --input a.jsonl moved/d.zst $null --on-bad-record skip --output-prefix o
expect 2 sh -c 'cat a.jsonl | "$@"' sh "$PREP" sft --input - $null --output-prefix o
err_has "o.bin: already exists"
expect 0 sft --input moved/a.jsonl d.zst $null --on-bad-record skip --output-prefix o --overwrite
rm o.pack
expect 2 sft --input moved/a.jsonl d.zst $null --on-bad-record skip --output-prefix o
err_has "o.bin: already exists"
rm -f o.*

t "bad records"
printf '{"text": "1"}\noops\n{"text": 5}\n' >b.jsonl
expect 3 sft --input b.jsonl $null --output-prefix o
err_has "b.jsonl: line 2: "
nothing
expect 0 "$PREP" sft --input b.jsonl $null --output-prefix o --on-bad-record quarantine
err_has "2 bad records were skipped and copied to o.bad.jsonl"
check [ "$(cat o.bad.jsonl)" = "$(printf 'oops\n{"text": 5}')" ]
rm -f o.*
awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 3000000; i++) printf "1 "; print "\"}" }' >long.jsonl
expect 3 sft --input long.jsonl $null --output-prefix o
err_has "line 1: is longer than 4 MiB"
nothing

t "templates: text that spells a special token stays text"
mkdir v w
printf 'the user and the assistant say hi\n%.0s' 1 2 3 4 >x.txt
expect 0 "$TOK" train --quiet --type bpe --vocab_size 270 --model_prefix v/ --input x.txt
expect 0 "$TOK" extend --quiet v/tokenizer.json --add-special '<|im_start|>' '<|im_end|>' --output w/tokenizer.json
cat >c.jsonl <<'END'
{"messages": [{"role": "user", "content": "<|im_end|>"}, {"role": "assistant", "content": "hi"}]}
{"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "say"}]}
{"prompt": "say", "completion": "hi"}
END
expect 0 "$PREP" sft --input c.jsonl --tokenizer w --template chatml --output-prefix o
err_has "1 special token strings in the texts were encoded as plain text"
expect 0 "$PREP" unpack o --tokenizer w
out_has '"text":["<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\nhi<|im_end|>\n",'
rm -f o.*
expect 3 sft --input c.jsonl --tokenizer w --template chatml --specials error --output-prefix o
err_has "c.jsonl: line 1: "
expect 2 sft --input c.jsonl --tokenizer w --template llama3 --output-prefix o
err_has "needs the token <|begin_of_text|>"
nothing

t "a set whose files do not go together"
expect 0 sft --input a.jsonl $null --output-prefix o
expect 0 sft --input d.jsonl $null --output-prefix p
cp p.pack o.pack
expect 3 "$PREP" unpack o
err_has "o.pack: has"
cp p.idx o.idx
cp p.bin o.bin
expect 0 "$PREP" unpack o
printf 'x' | dd of=o.pack bs=1 seek=45 conv=notrunc 2>/dev/null
expect 7 "$PREP" unpack o
err_has "o.pack: was made for another file than o.idx"
rm -f o.* p.*

t "samples of a run's order, as its trainer sees them"
expect 0 sft --input c.jsonl --tokenizer w --template chatml --seq-length 24 --output-prefix o
expect 0 "$PREP" unpack o
cp .out sequences
n=$(wc -l <sequences)
expect 0 "$PREP" inspect o --samples $(seq 0 $((n - 1))) --seq-length 30 --num-samples $n --split 1,0,0 --json
check python3 -c '
import json
want = [json.loads(l) for l in open("sequences")]
seen = []
for k, line in enumerate(open(".out")):
    d = json.loads(line)
    w = want[d["sample_of_data_set"]]
    seen.append(d["sample_of_data_set"])
    n, ids, starts = len(w["input_ids"]), w["input_ids"], w["seq_start_id"]
    assert d["sample"] == k and d["tokens"] == ids + [0] * (30 - n)
    assert d["starts"] == starts + [n]
    learn = [float(w["loss_mask"][i + 1]) if i + 1 < n and i + 1 not in starts else 0 for i in range(30)]
    assert d["loss_mask"] == learn, (d["loss_mask"], learn)
    assert all(d["labels"][i] == ids[i + 1] for i in range(30) if learn[i])
assert sorted(seen) == list(range(len(want)))'
expect 0 "$PREP" inspect o --samples 0 --exhaustive --seq-length 24 --split 1,0,0 --tokenizer w
out_has "sample 0 of $n for train: 24 tokens, number"
out_has "<|im_start|>"
expect 2 "$PREP" inspect o --samples $n --exhaustive --seq-length 24 --split 1,0,0
err_has "there is no sample 3"
expect 2 "$PREP" inspect o --samples 0 --num-samples 1 --seq-length 23 --split 1,0,0
err_has "was packed into sequences of 24 tokens"
expect 2 "$PREP" inspect o --samples 0 --num-samples 1 --seq-length 24 --split 1,0,0 --eod-mask-loss
err_has "says itself what ends where"
expect 0 sft --input c.jsonl --tokenizer w --template chatml --seq-length 24 --output-prefix p
expect 0 "$PREP" inspect --data-path 0.7 o 0.3 p --samples $(seq 0 9) --num-samples 10 --seq-length 24 --split 1,0,0 --json
check python3 -c '
import json
sets = [json.loads(l)["data_set"] for l in open(".out")]
assert sets.count("o") == 7 and sets.count("p") == 3 and sets[:2] == ["o", "p"], sets'
expect 0 "$PREP" build --quiet --input a.jsonl $null --output-prefix plain
expect 2 "$PREP" inspect --data-path o plain_text_document --samples 0 --num-samples 1 --seq-length 24 --split 1,0,0
err_has "o is a packed set (.pack) and plain_text_document is none"
rm -f plain* o.* p.*

t "a kill leaves nothing under a final name, and the next run writes the same bytes"
seq 40000 | awk '{ n = ""; for (i = 0; i < $1 % 40; i++) n = n " " ($1 * i) % 999; print "{\"text\": \"7" n "\"}" }' >k.jsonl
packs="--input k.jsonl $null --seq-length 128 --workers 2"
expect 0 sft $packs --output-prefix whole
killed=0
for s in 0 0.01 0.02 0.03 0.04 0.06 0.08; do
    code=0
    "$PREP" sft --quiet $packs --output-prefix o 2>/dev/null &
    pid=$!
    sleep $s
    kill -KILL $pid 2>/dev/null
    wait $pid || code=$? # timeout would not: it dies of its own signal
    [ $code = 137 ] || break
    killed=$((killed + 1))
    [ ! -e o.idx ] && [ ! -e o.commit ] || break # after its commit
    check [ -z "$(ls | grep -E '^o\.')" ]
done
check [ $killed -gt 0 ]
sft $packs --output-prefix o 2>/dev/null || check [ -e o.idx ]
for x in bin idx pack; do same o.$x whole.$x; done
no_temps .
