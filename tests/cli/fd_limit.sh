# SPDX-License-Identifier: Apache-2.0
# Every verb under each small limit of open files (ulimit -n): it does its work, or ends in exit 5 with a sentence that
# names the limit and how to raise it; nothing half-written is left. Standard streams that are closed or full.
. "$SRC/tests/cli/train_data.sh"
null="--tokenizer-type NullTokenizer --vocab-size 60"

fives=0
# swept NAME COMMAND...: @ in the arguments is an output, another each time
swept() {
    t "ulimit -n: $1"
    shift
    _five=0 _well=0
    for _limit in 4 5 6 7 8 10 12 16 80; do
        [ -z "$_bad" ] || return 0
        rm -rf out && mkdir out
        _code=0
        (ulimit -n $_limit && exec timeout 600 "$@") >.out 2>.err </dev/null || _code=$?
        echo "ulimit -n $_limit: $*" >.cmd
        case $_code in
        0) _well=$((_well + 1)) ;;
        5)
            _five=$((_five + 1))
            err_has "ulimit -n"
            no_temps out
            ;;
        127) grep -q "error while loading shared" .err || _wrong "exit code 127" ;;
        *) _wrong "exit code $_code under ulimit -n $_limit" ;;
        esac
    done
    echo "# $_name: $_five limits too low, $_well high enough"
    fives=$((fives + _five))
    check [ $_well -gt 0 ]
}

awk 'BEGIN { for (i = 0; i < 400; i++) print "the cat number " i % 60 " sat on mat " (i * 7) % 31 }' >text.txt
awk 'BEGIN { for (i = 0; i < 200; i++) printf "{\"text\": \"%d %d\", \"prompt\": \"1\", \"response\": \"2\"}\n", i % 60, i * 7 % 60 }' >n.jsonl
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 60, i * 7 % 60 }' >numbers.txt
printf 'zebra\n' >words
"$TOK" train -q --vocab_size 55 --input text.txt --model_prefix t
"$TOK" train -q --type bpe --vocab_size 300 --input text.txt --model_prefix h/
"$PREP" sft -q --input n.jsonl $null --seq-length 64 --output-prefix s
"$TRAIN" run --quiet $tiny --train-iters 2 --save good >log

swept "tok train, SentencePiece" "$TOK" train --vocab_size 55 --input text.txt --model_prefix out/p
swept "tok train, a folder" "$TOK" train --type bpe --vocab_size 300 --input h --input_format text --model_prefix out/p
swept "tok encode" "$TOK" encode --tokenizer t.model text.txt --output out/ids
swept "tok encode, a pattern and a folder's tokenizer" "$TOK" encode --tokenizer h './tex*' --output out/ids
swept "tok decode" "$TOK" decode $null numbers.txt --output out/text
swept "tok inspect" "$TOK" inspect t.model --corpus text.txt
swept "tok diff" "$TOK" diff t.model t.model text.txt
swept "tok convert" "$TOK" convert t.model out/c.json --proof text.txt
swept "tok extend" "$TOK" extend h/tokenizer.json --add words --output out/e.json
swept "tok merge" "$TOK" merge h/tokenizer.json h/tokenizer.json --output out/m.json
swept "tok prune" "$TOK" prune t.model --keep-used text.txt --output out/p.model
swept "prep build" "$PREP" build --input n.jsonl $null --output-prefix out/d
swept "prep build, a pattern" "$PREP" build --input './n.json*' $null --output-prefix out/d
swept "prep sft" "$PREP" sft --input n.jsonl $null --seq-length 64 --output-prefix out/s
swept "prep unpack" "$PREP" unpack s
swept "prep merge" "$PREP" merge d_text_document 'd_text*' --output-prefix out/m
swept "prep import" "$PREP" import --input-format raw --dtype u16 --boundary none d_text_document.bin --output-prefix out/i
swept "prep export" "$PREP" export --ids d_text_document --output out/x.jsonl
swept "prep inspect" "$PREP" inspect d_text_document
swept "prep verify" "$PREP" verify d_text_document
swept "prep index" "$PREP" index --data-path d_text_document --split 90,5,5 --seq-length 32 --num-samples 8 --data-cache-path out
swept "train run" "$TRAIN" run $tiny --train-iters 1 --save out/run --data-cache-path out
swept "train run, resumed" "$TRAIN" run $tiny --train-iters 3 --load good --save out/run
swept "train eval" "$TRAIN" eval --load good --data-path d_text_document --split 90,5,5 --micro-batch-size 2
swept "train generate" "$TRAIN" generate --load good --prompt "1 2 3" --max-new-tokens 2
swept "convert inspect" "$CONVERT" inspect good
swept "convert verify" "$CONVERT" verify good/iter_0000002

t "ulimit -n: limits were too low"
check [ $fives -ge 30 ]

# closed NAME COMMAND...: what it prints is lost, which is an error, and no file gets it in its place
closed() {
    t "standard output closed, full: $1"
    shift
    expect 4 sh -c '"$@" >&-' sh "$@"
    err_has "standard output: cannot write"
    expect 4 sh -c '"$@" >/dev/full' sh "$@"
    check grep -qE "standard output: (the disk is full|cannot write.*No space left)" .err
}
closed "tok encode" "$TOK" encode --tokenizer t.model text.txt
closed "tok decode" "$TOK" decode $null numbers.txt
closed "tok inspect" "$TOK" inspect t.model
closed "tok -h" "$TOK" -h
closed "tok --man" "$TOK" --man
closed "prep export" "$PREP" export --ids d_text_document
closed "prep inspect" "$PREP" inspect d_text_document
closed "prep verify" "$PREP" verify d_text_document
closed "prep unpack" "$PREP" unpack s
closed "prep -h" "$PREP" -h
closed "train generate" "$TRAIN" generate --load good --prompt "1 2 3" --max-new-tokens 2
closed "train plan" "$TRAIN" plan $bare
closed "train --print-config" "$TRAIN" run $tiny --print-config
closed "convert inspect" "$CONVERT" inspect good
closed "convert verify" "$CONVERT" verify good/iter_0000002

t "files are as they are without a standard stream"
expect 0 "$TOK" encode --tokenizer t.model text.txt --output a.ids
expect 0 sh -c '"$@" >&- 2>&- <&-' sh "$TOK" encode --tokenizer t.model text.txt --output b.ids
same a.ids b.ids
expect 0 sh -c '"$@" >&- 2>&- <&-' sh "$PREP" build --input d.jsonl $null --append-eod --output-prefix e
same d_text_document.bin e_text_document.bin
expect 0 sh -c '"$@" >&- 2>&- <&-' sh "$TRAIN" run $tiny --train-iters 2 --save b
expect 0 "$CONVERT" verify b/iter_0000002
expect 0 sh -c '"$@" >&- 2>&- <&-' sh "$TRAIN" run $tiny --train-iters 2 --eval-iters 0 --log-interval 100 --save c
expect 0 "$CONVERT" verify c/iter_0000002
