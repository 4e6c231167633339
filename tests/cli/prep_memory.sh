# SPDX-License-Identifier: Apache-2.0
# prep build: peak memory is at most 256 MiB whatever the size of the input and of one line.
# WEFT_FULL=1 takes 2 GB and a line of 300 MB, else a tenth of that.

limit=262144 # KiB
if [ -n "${WEFT_FULL:-}" ]; then all=2000000000 line=300000000; else all=200000000 line=30000000; fi
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >v.json
record='{"id": 17, "text": "one two three one\\ntwo \\u3042 one two two one three two one one two one two two one", "x": [1, {"y": null}]}'
# peak COMMAND...: exit code of the command; its peak goes to .peak
peak() { /usr/bin/time -f %M -o .peak "$@"; }
below() { check [ "$(tail -n 1 .peak)" -le $limit ]; }

[ -x /usr/bin/time ] || { t "peak memory"; skip "no /usr/bin/time"; return 0; }

t "many short records"
expect 0 sh -c 'yes "$1" | head -c $2 | head -n -1 | /usr/bin/time -f %M -o .peak "$PREP" build --quiet --input - \
    --tokenizer v.json --append-eod --workers 4 --output-prefix o' sh "$record" $all
below
check [ "$(wc -c <o_text_document.idx)" = $((42 + 20 * (all / (${#record} + 1)))) ]
rm -f o_*

t "many records of a megabyte"
expect 0 sh -c '(printf "{\"text\": \""; yes "one two three" | head -c 1000000 | tr "\n" " "; echo "\"}") >rec
    i=0; while [ $i -lt $(($1 / 1000000)) ]; do cat rec; i=$((i + 1)); done | /usr/bin/time -f %M -o .peak "$PREP" \
    build --quiet --input - --tokenizer v.json --append-eod --workers 4 --output-prefix o' sh $all
below
rm -f o_*

# a tokenizer whose normalizer makes 60 bytes and 30 ids of each byte
python3 - >grow.json <<'END'
import json
print(json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
    "normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "1 2 " * 15}, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "1": 1, "2": 2}}}))
END

t "records that a normalizer makes 60 times as long, long ones and short ones"
for shape in "12 300000" "60 30000" "15000 100"; do
    python3 - $shape <<'END'
import sys
n, k = map(int, sys.argv[1:])
open("g.text", "w").write(("a" * k + "\n") * n)
open("g.jsonl", "w").write(('{"text": "' + "a" * k + '"}\n') * n)
END
    for format in jsonl text; do
        expect 0 peak "$PREP" build --quiet --input g.$format --tokenizer grow.json --workers 4 --output-prefix o$format \
            $([ $format = jsonl ] || echo --input-format text)
        below
    done
    check [ "$(wc -c <ojsonl_text_document.bin)" = $((60 * ${shape% *} * ${shape#* })) ]
    same ojsonl_text_document.bin otext_text_document.bin
    same ojsonl_text_document.idx otext_text_document.idx
    expect 0 sh -c '/usr/bin/time -f %M -o .peak "$0" build --quiet --input - --tokenizer grow.json --workers 4 --output-prefix op <g.jsonl' "$PREP"
    below
    same ojsonl_text_document.bin op_text_document.bin
    rm -f g.* ojsonl_* otext_* op_*
done

# long_line BEFORE WHAT BEHIND ARGUMENTS...: a line with about `line` bytes of WHAT, between short ones
long_line() {
    before=$1 what=$2 behind=$3
    shift 3
    { echo "$record"; printf '%s' "$before"; yes "$what" | head -n $((line / (${#what} + 1))) | tr '\n' ' '; echo "$behind"; echo "$record"; } |
        peak "$PREP" build --quiet --input - --output-prefix o "$@"
}

t "one long line: the text itself, words"
expect 0 long_line '{"text": "' 'one two three' '"}' --tokenizer v.json --append-eod --workers 2
below
check [ "$(wc -c <o_text_document.bin)" = $((2 * (line / 14 * 3 + 1 + 2 * 20))) ]
rm -f o_*

t "one long line: ids as text"
record='{"text": "1 2"}'
expect 0 long_line '{"text": "' '12 345' '"}' --tokenizer-type NullTokenizer --vocab-size 1000 --append-eod --workers 2
below
rm -f o_*

t "one long line: in a field that is not asked for, escapes and all"
expect 0 long_line '{"other": "' 'one \u3042\n\ud83d\ude00 three' '", "text": "5"}' --tokenizer-type NullTokenizer \
    --vocab-size 1000
below
check [ "$(wc -c <o_text_document.bin)" = 10 ]
rm -f o_*

t "one long line: numbers nested in a field that is not asked for"
expect 0 long_line '{"other": [0' ', 12345, {"a": [1e5]}' '], "text": "5"}' --tokenizer-type NullTokenizer \
    --vocab-size 1000
below
rm -f o_*

t "one long line that is bad at its end, kept aside"
expect 0 long_line '{"text": "' 'one two three' '", }' --tokenizer-type NullTokenizer --vocab-size 1000 \
    --on-bad-record quarantine
below
check [ "$(wc -c <o.bad.jsonl)" = $((line / 14 * 14 + 10 + 4 + 1)) ]
rm -f o_* o.bad.jsonl

t "one long array of ids"
record='{"text": [1, 2]}'
expect 0 sh -c '{ printf "{\"text\": [7"; yes ", 12, 345" | head -n $(($1 / 10)) | tr "\n" " "; echo "]}"; } |
    /usr/bin/time -f %M -o .peak "$PREP" build --quiet --pretokenized - --vocab-size 1000 --output-prefix o' sh $line
below
check [ "$(wc -c <o_text_document.bin)" = $((line / 10 * 4 + 2)) ]
rm -f o_*

t "one long document in a framed stream"
{ printf '{"text": "'; yes 'one two three' | head -n $((line / 14)) | tr '\n' ' '; echo '"}'; } >l.jsonl
"$TOK" encode --tokenizer v.json --format docs l.jsonl >l.docs
expect 0 peak "$PREP" build --quiet --pretokenized l.docs --append-eod --output-prefix o
below
check [ "$(wc -c <o_text_document.bin)" = $((2 * (line / 14 * 3 + 1))) ]
rm -f o_* l.*

t "one long line through SentencePiece, unigram and BPE"
if [ -x "$STORIES" ]; then
    "$STORIES" --bytes 300K --output stories.jsonl
    for kind in unigram bpe; do
        expect 0 "$TOK" train --quiet --input stories.jsonl --model_prefix $kind --model_type $kind --vocab_size 600
        record='{"text": "Once upon a time"}'
        expect 0 long_line '{"text": "' 'the old man went home, and the dog went with him' '"}' \
            --tokenizer $kind.model --workers 2
        below
        expect 0 "$PREP" inspect o_text_document --check
        out_has "documents   3"
        rm -f o_*
    done
else
    skip "the generator of stories was not built"
fi
