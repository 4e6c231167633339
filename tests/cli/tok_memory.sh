# SPDX-License-Identifier: Apache-2.0
# tok encode: peak memory is at most 256 MiB whatever the size of one line. WEFT_FULL=1 takes a line of 300 MB, else
# a tenth of that.

limit=262144 # KiB
if [ -n "${WEFT_FULL:-}" ]; then line=300000000; else line=30000000; fi
words=$((line / 14 * 3))
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
below() { check [ "$(tail -n 1 .peak)" -le $limit ]; }

[ -x /usr/bin/time ] || { t "peak memory"; skip "no /usr/bin/time"; return 0; }

# long_line BEFORE WHAT BEHIND ARGUMENTS...: a line with about `line` bytes of WHAT, between short ones
long_line() {
    before=$1 what=$2 behind=$3
    shift 3
    { echo "${before}one$behind"; printf '%s' "$before"; yes "$what" | head -n $((line / (${#what} + 1))) | tr '\n' ' '
        echo "$behind"; echo "${before}two$behind"; } |
        TMPDIR=$PWD /usr/bin/time -f %M -o .peak "$TOK" encode --quiet --workers 2 "$@"
}

t "a long line of plain text"
expect 0 long_line '' 'one two three' '' --tokenizer v.json --format u16
below
check [ "$(wc -c <.out)" = $((2 * (words + 2))) ]
check [ "$(tail -c 8 .out | od -An -v -tu2 | tr -s ' ')" = " 1 2 0 2" ]

t "a long line of JSONL, in every format"
expect 0 long_line '{"text": "' 'one two three' '"}' --tokenizer v.json --append-eod
below
check [ "$(sed -n 2p .out | wc -w)" = $((words + 1)) ]
check [ "$(sed -n '1p;3p' .out | tr '\n' '|')" = "1 3|2 3|" ]
expect 0 long_line '{"text": "' 'one two three' '"}' --tokenizer v.json --format json --output o --overwrite
below
check [ "$(wc -l <o)" = 3 ]
check [ "$(sed -n 2p o | tr ',' '\n' | wc -l)" = $words ]
check [ "$(sed -n 2p o | tail -c 9)" = ',1,2,0]}' ]
expect 0 long_line '{"text": "' 'one two three' '"}' --tokenizer v.json --format docs --output o --overwrite
below
expect 0 "$PREP" build --quiet --pretokenized o --append-eod --output-prefix o
expect 0 "$PREP" inspect o_text_document --check
out_has "documents   3"
check [ "$(wc -c <o_text_document.bin)" = $((2 * (words + 5))) ]
rm -f o o_*

# a tokenizer whose normalizer makes 60 bytes and 30 ids of each byte
python3 - >grow.json <<'END'
import json
print(json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
    "normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "1 2 " * 15}, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "1": 1, "2": 2}}}))
END

# grows COUNT SIZE: documents of a letter, and the peak with as many workers as there may be
grows() {
    python3 -c 'import sys; print(("a" * int(sys.argv[2]) + "\n") * int(sys.argv[1]), end="")' "$@" >g.txt
    expect 0 sh -c 'TMPDIR=$PWD exec /usr/bin/time -f %M -o .peak "$0" encode --quiet --tokenizer grow.json --workers 4 g.txt >ids' "$TOK"
    below
    check [ "$(head -n 1 ids | wc -w)" = $((30 * $2)) ]
    check [ "$(wc -l <ids)" = "$1" ]
}

t "documents that a normalizer makes 60 times as long, long ones and short ones, by several workers"
grows 5 300000
grows 40 40000
grows 15000 100
rm -f g.txt ids

t "a long line that is bad at its end: nothing of it is written"
expect 3 sh -c '{ echo "{\"text\": \"one\"}"; printf "{\"text\": \""; yes "one two three" | head -n $1; } | tr "\n" " " |
    sed "s/ {/\n{/" | "$2" encode --tokenizer v.json' sh $((line / 14)) "$TOK"
out_is 1
err_has "standard input, line 2: byte"
expect 3 sh -c '{ printf "{\"text\": \""; yes "one two three" | head -n $1; } | tr "\n" " " |
    "$2" encode --tokenizer v.json --format docs --output o' sh $((line / 14)) "$TOK"
err_has "the line ends too early"
no_file o
no_temps .

t "a long line with a word that the tokenizer refuses at its end"
expect 3 sh -c '{ echo 7; yes "1 2 3" | head -n $1 | tr "\n" " "; echo "x"; } | "$2" encode --tokenizer-type NullTokenizer \
    --vocab-size 10' sh $((line / 6)) "$TOK"
out_is "7"
err_has "standard input, line 2"

t "a long line through SentencePiece, unigram and BPE"
line=$((line / 5)) # it is slow
if [ -x "$STORIES" ]; then
    "$STORIES" --bytes 300K --output stories.jsonl
    for kind in unigram bpe; do
        expect 0 "$TOK" train --overwrite --quiet --input stories.jsonl --model_prefix $kind --model_type $kind --vocab_size 600
        expect 0 long_line '{"text": "' 'the old man went home, and the dog went with him' '"}' --tokenizer $kind.model \
            --format docs --output o --overwrite
        below
        expect 0 "$PREP" build --quiet --pretokenized o --output-prefix o
        { echo '{"text": "one"}'; printf '{"text": "'; yes 'the old man went home, and the dog went with him' |
            head -n $((line / 49)) | tr '\n' ' '; echo '"}'; echo '{"text": "two"}'; } >l.jsonl
        expect 0 "$PREP" build --quiet --input l.jsonl --tokenizer $kind.model --output-prefix p
        same o_text_document.bin p_text_document.bin
        same o_text_document.idx p_text_document.idx
        rm -f o o_* p_* l.jsonl
    done
else
    skip "the generator of stories was not built"
fi

# letters TEXT ARGUMENTS...: a text of one letter, `line` bytes long, after TEXT
letters() {
    text=$1
    shift
    { printf '%s' "$text"; head -c $line /dev/zero | tr '\0' a; echo; } >l.txt
    expect 0 sh -c 'TMPDIR=$PWD exec /usr/bin/time -f %M -o .peak "$@"' sh "$TOK" encode --quiet --overwrite --output o "$@" l.txt
    below
}

t "a long run of one letter of which a unigram model has several pieces"
line=$((line * 5)) # 8 bytes of ids and steps for each
echo 'a ab b aa b abba' >few.txt
expect 0 "$TOK" train --quiet --input few.txt --model_prefix letters --vocab_size 12 --user_defined_symbols aa,aaa \
    --hard_vocab_limit=false
letters '' --tokenizer letters.model --workers 1 --format u16
mv o one
letters '' --tokenizer letters.model --workers 2 --format u16
same o one
{ printf '{"text": "'; head -c $line /dev/zero | tr '\0' a; echo '"}'; } >l.jsonl
expect 0 /usr/bin/time -f %M -o .peak "$PREP" build --quiet --input l.jsonl --tokenizer letters.model --output-prefix p
below
same p_text_document.bin one
rm -f l.jsonl p_*
letters "$(yes 'ab b a' | head -n 600000 | tr '\n' ' ')" --tokenizer letters.model --workers 2 --format u16
mv o one
letters "$(yes 'ab b a' | head -n 600000 | tr '\n' ' ')" --tokenizer letters.model --workers 1 --format u16
same o one

t "the temporary file of such a run does not fit"
expect 4 sh -c 'ulimit -f 2048; TMPDIR=$PWD "$@"' sh "$TOK" encode --quiet --tokenizer letters.model --format u16 l.txt
err_has "cannot write its temporary file"
check [ ! -s .out ]
no_temps .
rm -f l.txt o one
