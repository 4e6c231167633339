# SPDX-License-Identifier: Apache-2.0
# The rule for outputs, held against every verb that writes: what exists stays as it is without --overwrite, an input
# stays in any case, missing folders are made, pipes and devices are written to.

null="--tokenizer-type NullTokenizer --vocab-size 300"
awk 'BEGIN { for (i = 0; i < 300; i++) print i, (i * 7) % 300, (i * 31) % 300 }' >numbers.txt
awk 'BEGIN { for (i = 0; i < 200; i++) print "the cat number " i " sat on mat " (i * 7) % 91 }' >text.txt
awk '{ printf "{\"text\": \"%s\", \"prompt\": \"1\", \"response\": \"2\"}\n", $0 }' numbers.txt >n.jsonl
"$TOK" train -q --vocab_size 55 --input text.txt --model_prefix t
"$TOK" train -q --type bpe --vocab_size 300 --input text.txt --model_prefix h/
"$PREP" build -q --input n.jsonl $null --output-prefix d
"$PREP" build -q --input n.jsonl $null --append-eod --output-prefix d2
"$TOK" encode $null --format u16 --output ids.u16 numbers.txt
printf 'zebra\n' >words

sums() { find "$@" -type f -exec sha256sum {} + | sort; }

# once FIRST COMMAND...: the second run fails, names the file FIRST and changes nothing; with --overwrite it
# succeeds. A third file in its place is an error, too.
once() {
    _first=$1
    shift
    expect 0 "$@"
    has_file "$_first"
    sums new >was
    expect 2 "$@"
    err_has "$_first: already exists"
    err_has "--overwrite"
    sums new >is
    same was is
    expect 0 "$@" --overwrite
    rm -r new
    mkdir new
    echo mine >"$_first"
    expect 2 "$@"
    err_has "$_first: already exists"
    check [ "$(cat "$_first")" = mine ]
    no_temps .
    rm -r new
}

t "tok train"
once new/p.model "$TOK" train --vocab_size 55 --input text.txt --model_prefix new/p
once new/vocab.json "$TOK" train --type bpe --vocab_size 300 --input text.txt --model_prefix new/
once new/p-vocab.txt "$TOK" train --type wordpiece --vocab_size 300 --input text.txt --model_prefix new/p
once new/p.tiktoken "$TOK" train --type bpe --output-type tiktoken --vocab_size 300 --input text.txt --model_prefix new/p

t "tok encode and decode"
once new/ids "$TOK" encode --tokenizer t.model text.txt --output new/ids
once new/text "$TOK" decode $null numbers.txt --output new/text

t "tok convert"
once new/c.json "$TOK" convert t.model new/c.json
once new/tokenizer.json "$TOK" convert t.model new/ --to huggingface
once new/vocab.json "$TOK" convert h/tokenizer.json new/vocab.json

t "tok extend, prune and merge"
once new/e.json "$TOK" extend h/tokenizer.json --add words --output new/e.json
once new/p.model "$TOK" prune t.model --size 40 --output new/p.model
once new/m.json "$TOK" merge h/tokenizer.json h/tokenizer.json --output new/m.json
expect 0 "$TOK" extend h/tokenizer.json --add words --output new/e.json
rm new/e.json
expect 2 "$TOK" extend h/tokenizer.json --add words --output new/e.json
err_has "new/e.json.rows: already exists"
rm -r new

t "prep"
once new/d_text_document.bin sh -c 'cat n.jsonl | "$@"' sh "$PREP" build --input - $null --output-prefix new/d
once new/m.idx "$PREP" merge d_text_document d_text_document --output-prefix new/m
once new/i.idx "$PREP" import --input-format raw --dtype u16 --boundary none ids.u16 --output-prefix new/i
once new/x.jsonl "$PREP" export --ids d_text_document --output new/x.jsonl
once new/s.bin sh -c 'cat n.jsonl | "$@"' sh "$PREP" sft --input - $null --seq-length 64 --output-prefix new/s

t "the same work again is nothing to do, other work is an error"
expect 0 "$PREP" build --input n.jsonl $null --output-prefix new/d
expect 0 "$PREP" build --input n.jsonl $null --output-prefix new/d
err_has "nothing to do"
expect 2 "$PREP" build --input n.jsonl $null --append-eod --output-prefix new/d
err_has "--overwrite"
expect 0 "$PREP" build --input n.jsonl $null --append-eod --output-prefix new/d --overwrite
expect 0 "$PREP" sft --input n.jsonl $null --seq-length 64 --output-prefix new/s
expect 0 "$PREP" sft --input n.jsonl $null --seq-length 64 --output-prefix new/s
err_has "nothing to do"
rm -r new

# kept SAID COMMAND...: writing to an input is an error, with --overwrite too
kept() {
    _said=$1
    shift
    sums . | grep -v -e '\./\.' -e ' ./was$' -e ' ./is$' >was
    expect 2 "$@" --overwrite
    err_has "$_said"
    sums . | grep -v -e '\./\.' -e ' ./was$' -e ' ./is$' >is
    same was is
}
ln t.model hard.model
ln -s t.model soft.model
both="is both an input and the output"
is_same="is the same file as the input"

t "an input is not written over: tok"
kept "$both" "$TOK" convert t.model t.model
kept "$is_same t.model" "$TOK" convert t.model hard.model
kept "$is_same t.model" "$TOK" convert t.model soft.model
kept "$is_same t.model" "$TOK" convert t.model ./t.model
kept "h/tokenizer.json: $both" "$TOK" convert h h/tokenizer.json
kept "h/tokenizer.json: $both" "$TOK" convert h h
kept "$both" "$TOK" convert t.model text.txt --to bert --proof text.txt
kept "$both" "$TOK" encode --tokenizer t.model text.txt --output text.txt
kept "$both" "$TOK" encode --tokenizer t.model text.txt --output t.model
kept "on standard input" sh -c '"$@" <text.txt' sh "$TOK" encode --tokenizer t.model --output text.txt
kept "$both" "$TOK" decode $null numbers.txt --output numbers.txt
kept "$both" "$TOK" extend t.model --add words --output t.model
kept "$both" "$TOK" prune t.model --size 40 --output t.model
cp h/tokenizer.json h2.json
kept "$both" "$TOK" merge h2.json h --output h/tokenizer.json
cp text.txt own.model
kept "own.model: $both" "$TOK" train --vocab_size 55 --input text.txt own.model --model_prefix own

t "an input is not written over: patterns and folders, tok"
mkdir d f f/sub g
cp text.txt d/x
cp text.txt f/sub/own.model
cp text.txt f/sub/P-vocab.json
cp numbers.txt d/n.txt
kept "d/x: $both" "$TOK" encode --tokenizer t.model 'd/*' --output d/x
kept "$is_same d/x" "$TOK" encode --tokenizer t.model 'd/*' --output ./d/x
kept "d/n.txt: $both" "$TOK" decode $null 'd/n*' --output d/n.txt
kept "f/sub/own.model: $both" "$TOK" train --vocab_size 55 'f/*/own*' --model_prefix f/sub/own
kept "$is_same f/sub/P-vocab.json" "$TOK" train --type bpe --vocab_size 300 f --model_prefix ./f/sub/P
cp text.txt d/q.model
kept "d/q.model: $both" "$TOK" prune t.model --size 40 --keep-used 'd/*' --output d/q.model
kept "d/q.model: $both" "$TOK" convert t.model d/q.model --proof text.txt 'd/q*'
cp h/vocab.json h/merges.txt g
kept "$is_same g/merges.txt" "$TOK" encode --tokenizer g text.txt --output ./g/merges.txt
expect 0 "$TOK" encode --tokenizer t.model 'd/x' --output d/y --overwrite

t "an input is not written over: patterns and folders, prep"
cp n.jsonl d/p_text_document.bin
kept "d/p_text_document.bin: $both" "$PREP" build --input 'd/p*' $null --output-prefix d/p
kept "$is_same d/p_text_document.bin" "$PREP" build --input d/p_text_document.bin $null --output-prefix ./d/p
cp n.jsonl f/sub/p.bad.jsonl
rm f/sub/own.model f/sub/P-vocab.json
kept "$is_same f/sub/p.bad.jsonl" "$PREP" build --input f $null --on-bad-record quarantine --output-prefix ./f/sub/p
cp n.jsonl d/s.pack
kept "d/s.pack: $both" "$PREP" sft --input 'd/s*' $null --seq-length 64 --output-prefix d/s
mkdir m i
for s in bin idx manifest.json; do cp d_text_document.$s m/a.$s && cp d2_text_document.$s m/b.$s; done
kept "$is_same m/b.idx" "$PREP" merge 'm/*' --output-prefix ./m/b
kept "$is_same m/b.idx" "$PREP" merge m --output-prefix ./m/b
ln m/a.manifest.json c.manifest.json
kept "$is_same m/a.manifest.json" "$PREP" merge m --output-prefix c
cp ids.u16 i/u.bin
kept "$is_same i/u.bin" "$PREP" import --input-format raw --dtype u16 --boundary none i --output-prefix ./i/u
kept "i/u.bin: $both" "$PREP" import --input-format raw --dtype u16 --boundary none 'i/*' --output-prefix i/u

t "an input is not written over: prep"
cp n.jsonl p_text_document.bin
kept "$both" "$PREP" build --input p_text_document.bin $null --output-prefix p
cp n.jsonl q.bad.jsonl
kept "$both" "$PREP" build --input q.bad.jsonl $null --on-bad-record quarantine --output-prefix q
kept "$is_same" "$PREP" build --input ./q.bad.jsonl $null --on-bad-record quarantine --output-prefix q
cp n.jsonl r.bin
kept "$both" "$PREP" sft --input r.bin $null --seq-length 64 --output-prefix r
kept "$both" "$PREP" merge d_text_document d2_text_document --output-prefix d_text_document
cp ids.u16 u.bin
kept "$both" "$PREP" import --input-format raw --dtype u16 --boundary none u.bin --output-prefix u
kept "$both" "$PREP" export --ids d_text_document --output d_text_document.bin
kept "$both" "$PREP" export --tokenizer h/tokenizer.json d_text_document --output h/tokenizer.json

t "a prefix that ends in a slash names no files"
for verb in build merge import sft; do
    case $verb in
    build | sft) set -- --input n.jsonl $null ;;
    merge) set -- d_text_document ;;
    import) set -- --input-format raw --dtype u16 ids.u16 ;;
    esac
    expect 2 "$PREP" $verb "$@" --output-prefix out/
    err_has "--output-prefix: 'out/' names a folder"
    err_has "--output-prefix out/NAME"
done
expect 2 "$TOK" train --vocab_size 55 --input text.txt --model_prefix out/
err_has "--model_prefix out/NAME"
expect 2 "$TOK" encode --tokenizer t.model text.txt --output out/
err_has "out/: names a folder"
no_file out

t "pipes and devices are written to"
expect 0 "$TOK" encode --tokenizer t.model text.txt --output /dev/null
expect 0 "$PREP" export --ids d_text_document --output /dev/null
mkfifo fifo
timeout 300 cat fifo >through &
expect 0 "$PREP" export --ids d_text_document --output fifo
wait
expect 0 "$PREP" export --ids d_text_document --output plain
same through plain
check [ -p fifo ]
