# SPDX-License-Identifier: Apache-2.0
# prep build: what bad input gets. One sentence, its exit code, nothing under a final name.

null="--tokenizer-type NullTokenizer --vocab-size 1000"
build() { "$PREP" build --quiet "$@"; }
nothing() {
    check [ -z "$(ls | grep -E '^o_|^o\.bad')" ]
    no_temps .
}
# bad LINE REASON: the middle one of three lines
bad() {
    { echo '{"text": "1"}'; printf '%b\n' "$1"; echo '{"text": "2"}'; } >b.jsonl
    expect 3 build --input b.jsonl $null --output-prefix o
    err_has "error: b.jsonl: line 2: "
    err_has "$2"
    nothing
}

t "a line that is not JSON"
bad 'hello' "byte 0"
bad '{"text": "1"' "byte 12"
bad '{"text": "1"} x' "byte 14"
bad "{'text': 1}" "byte 1"
bad '[1]' "object"
bad '{"text": "1", "n": 01}' "byte"

t "bad bytes without end are not read to their end"
expect 3 sh -c 'cat /dev/zero | timeout 300 "$@"' sh "$PREP" build --quiet --input - $null --output-prefix o
err_has "standard input: line 1: byte 0"
expect 2 build --input /dev/full $null --output-prefix o
err_has "/dev/full: is a device without end, not a file"
expect 2 sh -c '"$@" </dev/zero' sh "$PREP" build --quiet --input - --input-format text $null --output-prefix o
err_has "standard input: is a device without end, not a file"
nothing

t "a blank line between records"
bad '' "byte 0"
bad ' \t' "byte"

t "a record without the key, or with something else under it"
bad '{"Text": "1"}' 'has no key "text"'
bad '{"text": null}' 'the value of "text" is not a string'
bad '{"text": ["1", 2]}' 'the value of "text" is not a string'
bad '{"text": [1, 2]}' 'the value of "text" is not a string'
bad '{"text": "1", "text": 2}' 'the value of "text" is not a string'

t "invalid UTF-8 and lone surrogates"
bad '{"text": "\0377"}' "UTF-8"
bad '{"other": "\0377", "text": "1"}' "UTF-8"
bad '{"text": "\\ud800"}' "surrogate"
bad '{"text": "\\udc00\\ud800"}' "surrogate"

t "a word that the tokenizer cannot read"
bad '{"text": "12 x"}' "'x'"
bad '{"text": "1001"}' "'1001'"

t "the place of a bad record far into the second file"
awk 'BEGIN { for (i = 0; i < 50000; i++) print "{\"text\": \"1 2 3 4 5 6 7 8\"}" }' >good.jsonl
{ cat good.jsonl; echo '{"text": 3}'; cat good.jsonl; echo '{'; } >second.jsonl
for w in 1 3; do
    expect 3 build --input good.jsonl second.jsonl $null --workers $w --output-prefix o
    err_has "second.jsonl: line 50001: "
    nothing
done

t "skip leaves bad records out, counts and names them"
{ echo '{"text": "1"}'; echo oops; echo '{"text": 2}'; echo '{"text": "3"}'; } >m.jsonl
printf '{"text": "1"}\n{"text": "3"}\n' >m.good
expect 0 build --input m.good $null --append-eod --output-prefix want
expect 0 "$PREP" build --input m.jsonl $null --append-eod --on-bad-record skip --output-prefix o
err_has "m.jsonl: line 2: "
err_has 'm.jsonl: line 3: the value of "text" is not a string'
err_has "2 bad records were skipped"
same o_text_document.bin want_text_document.bin
same o_text_document.idx want_text_document.idx
check grep -q '"bad_records": 2' o_text_document.manifest.json
no_file o.bad.jsonl

t "quarantine keeps their bytes"
printf 'oops\n{"text": 2}\n' >bad.want
expect 0 build --input m.jsonl $null --append-eod --on-bad-record quarantine --overwrite --output-prefix o
same o.bad.jsonl bad.want
same o_text_document.bin want_text_document.bin
rm o_text_document.*
expect 2 build --input m.jsonl $null --on-bad-record quarantine --output-prefix o
err_has "o.bad.jsonl: already exists"
expect 0 build --input m.good $null --on-bad-record quarantine --overwrite --output-prefix o
no_file o.bad.jsonl
rm -f o_* o.*

t "a bad record that has two keys leaves neither"
printf '{"a": "1", "b": "2"}\n{"a": "3", "b": "x"}\n{"a": "5", "b": "6"}\n' >two.jsonl
expect 0 "$PREP" build --input two.jsonl --json-keys a,b $null --on-bad-record skip --output-prefix o
err_has 'line 2: "b": '
check [ "$(od -An -tu2 o_a_document.bin | tr -s ' ')" = " 1 5" ]
check [ "$(od -An -tu2 o_b_document.bin | tr -s ' ')" = " 2 6" ]
rm -f o_*

t "a long bad line: place, skip and quarantine as for short ones"
{
    echo '{"text": "1"}'
    awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 1500000; i++) printf "%d ", i % 1000; print "\", \"y\": nil}" }'
    echo '{"text": "3"}'
} >l.jsonl
sed -n 2p l.jsonl >l.want
expect 3 build --input l.jsonl $null --append-eod --output-prefix o
err_has "l.jsonl: line 2: byte 5835"
nothing
expect 0 build --input l.jsonl $null --append-eod --on-bad-record quarantine --output-prefix o
same o.bad.jsonl l.want
same o_text_document.bin want_text_document.bin
same o_text_document.idx want_text_document.idx
rm -f o_* o.*
sed '2s/nil/0/; 2s/ 999 / 9999 /' l.jsonl >l2.jsonl
expect 3 build --input l2.jsonl $null --output-prefix o
err_has "l2.jsonl: line 2: "
err_has "'9999'"
nothing

t "a zstd file made with a dictionary"
for i in 1 2 3 4 5 6 7 8; do seq $i 17 2000 | tr '\n' ' ' >d.$i; done
zstd -q --train d.? -o dict --maxdict=2000 2>/dev/null
echo '{"text": "1"}' | zstd -qc -D dict >d.zst
expect 3 build --input d.zst $null --output-prefix o
err_has "d.zst: the zstd frame at byte 0 was compressed with a dictionary"
nothing

t "a zstd or gzip file that is cut short"
zstd -qc good.jsonl >good.zst
gzip -c good.jsonl >good.gz
for f in good.zst good.gz; do
    head -c $(($(wc -c <$f) - 20)) $f >cut
    expect 3 build --input cut $null --on-bad-record skip --output-prefix o
    err_has "error: cut: "
    err_has "cut short"
    nothing
done

t "an input that is not there, or a folder"
expect 4 build --input nowhere.jsonl $null --output-prefix o
err_has "nowhere.jsonl"
expect 4 build --input 'nowhere*' $null --output-prefix o
err_has "nowhere*"
mkdir hollow
expect 4 build --input hollow $null --output-prefix o
nothing

t "an output folder that cannot be made"
expect 4 build --input m.good $null --output-prefix m.good/o
err_has "m.good: "

t "what is asked does not fit together"
expect 2 build --inputt m.good $null --output-prefix o
err_has "--inputt"
err_has "--input"
expect 2 build $null --output-prefix o
err_has "no input"
expect 2 build --input m.good --pretokenized m.good $null --output-prefix o
expect 2 build --input m.good $null
err_has "--output-prefix"
expect 2 build --input m.good --output-prefix o
err_has "no tokenizer"
expect 2 build --input m.good $null --json-keys text text --output-prefix o
err_has "named twice"
expect 2 build --input m.good $null --json-keys a/b --output-prefix o
err_has "file name"
expect 2 build --input m.good $null --on-bad-record ignore --output-prefix o
expect 2 build --input m.good $null --workers -1 --output-prefix o
expect 2 "$PREP" -q
expect 2 "$PREP" bild
nothing

t "no end of document to append"
printf '{"<unk>": 0, "a": 1}' >v.json
expect 2 "$PREP" build --input m.good --tokenizer v.json --append-eod --output-prefix o
err_has "--append-eod: v.json has no end of document"
err_has "--eod-token"
expect 2 build --input m.good --tokenizer v.json --append-eod --eod-token b --output-prefix o
err_has "'b'"
nothing

t "a tokenizer that is none"
expect 3 build --input m.good --tokenizer m.jsonl --output-prefix o
expect 3 build --input m.good --tokenizer bad.want --output-prefix o
err_has "bad.want"
nothing

t "kill -9 and Ctrl-C leave nothing under a final name, and what was there untouched"
expect 0 build --input m.good $null --output-prefix o
cp o_text_document.bin keep.bin
cp o_text_document.idx keep.idx
for s in KILL INT TERM; do
    mkfifo pipe
    "$PREP" build --input pipe $null --overwrite --output-prefix o 2>killed.err &
    pid=$!
    exec 9>pipe
    cat good.jsonl >&9
    until [ -n "$(ls -A | grep '^\.o\.build')" ] || has_ended $pid; do sleep 0.05; done # it has begun to write
    kill -$s $pid
    code=0
    wait $pid || code=$?
    exec 9>&-
    rm pipe
    case $s in KILL) check [ $code = 137 ] ;; INT) check [ $code = 130 ] ;; TERM) check [ $code = 143 ] ;; esac
    [ $s = KILL ] || no_temps . # nor what the killed one left
    same o_text_document.bin keep.bin
    same o_text_document.idx keep.idx
done
rm -f o_*

t "a full disk is named with file and bytes, and nothing has a final name"
mkdir disk
cat >full.sh <<'END'
mount -t tmpfs -o size=1m tmpfs disk || exit 99
"$PREP" build --quiet --input good.jsonl --tokenizer-type NullTokenizer --vocab-size 1000 $1 --output-prefix disk/o
code=$?
[ -z "$(ls disk)" ] || echo "left: $(ls disk)" >&2
exit $code
END
if unshare -rm sh -c 'mount -t tmpfs tmpfs disk' 2>/dev/null; then
    expect 4 unshare -rm sh full.sh --append-eod
    err_has "disk/o_text_document.bin: the disk is full"
    err_has "bytes"
    err_lacks "left:"
    yes '{"text": "1"}' | head -n 60000 >good.jsonl # here it is the .idx that does not fit
    expect 4 unshare -rm sh full.sh
    err_has "disk/o_text_document.idx: the disk is full"
    err_lacks "left:"
    { printf '{"text": "'; yes '1 2 3' | head -n 800000 | tr '\n' ' '; echo '"}'; } >good.jsonl
    expect 4 unshare -rm sh full.sh
    err_has "the disk is full"
    err_lacks "left:"
else
    skip "$(why_no_mount)"
fi
