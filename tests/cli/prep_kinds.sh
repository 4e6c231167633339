# SPDX-License-Identifier: Apache-2.0
# prep build and prep sft: inputs of the wrong kind, empty ones, folders, names with odd characters.

null="--tokenizer-type NullTokenizer --vocab-size 1000"
build() { "$PREP" build --overwrite --output-prefix o "$@"; }
ids() { od -An -v -w2 -tu2 "$1" | tr -d ' \n'; }
refuses() { # FILE WORDS HINT
    expect 3 build --input good.jsonl "$1" --on-bad-record skip $null
    err_has "$1: $2"
    err_has "$3"
    no_file o_text_document.idx
    expect 3 build --input "$1" $null
    err_has "$1: $2"
}

echo '{"text": "1 2"}' >good.jsonl

t "a wrong kind of file is named before anything is written, also under skip"
tar -cf a.tar good.jsonl
refuses a.tar "is a tar archive" "tar -xOf"
gzip -c a.tar >a.tar.gz
refuses a.tar.gz "is a tar archive" "tar -xOf"
printf 'ARROW1\0\0.......' >a.arrow
refuses a.arrow "is an Arrow file" "to_parquet"
printf 'PARE.......PARE' >encrypted.parquet
refuses encrypted.parquet "is an encrypted Parquet file" "without encryption"
printf '\377\376{\0"\0' >utf16.jsonl
refuses utf16.jsonl "is text in UTF-16" "iconv -f UTF-16"
printf '{\0"\0t\0e\0x\0t\0"\0:\0"\0"\0}\0' >nomark.jsonl
refuses nomark.jsonl "seems to be text in UTF-16" "iconv -f UTF-16LE"
printf '\n\016\n\005<unk>\025\0\0\0\0\030\002' >t.model
refuses t.model "is a SentencePiece model" "--tokenizer FILE"
printf '\1\0\2\0\3\0' >ids.bin
refuses ids.bin "is a binary file, not text: byte 1 is NUL" "not text"
printf 'BZh91AY&SY..........' >a.bz2
refuses a.bz2 "is a bzip2 file" "bzip2 -dc"
expect 3 sh -c '"$@" <a.arrow' sh "$PREP" build --quiet --input - $null --output-prefix o
err_has "standard input: is an Arrow file"
expect 3 "$PREP" build --quiet --pretokenized a.tar --vocab-size 10 --output-prefix o
err_has "a.tar: is a tar archive"
expect 3 "$PREP" build --quiet --pretokenized utf16.jsonl --vocab-size 10 --output-prefix o
err_has "utf16.jsonl: is text in UTF-16, not ids"

t "--input-format text takes the bytes as they are"
printf '%%PDF-1.4\n7\n' >a.pdf
refuses a.pdf "is a PDF document" "pdftotext"
printf '7 8\n9' >a.txt
expect 0 build --input a.txt --input-format text $null
check [ "$(ids o_text_document.bin)" = 789 ]

t "a NUL inside a record of JSONL is a bad record"
printf '{"text": "1"}\n{"text": "\0"}\n{"text": "2"}\n' >nul.jsonl
expect 0 build --input nul.jsonl --on-bad-record skip $null
check [ "$(ids o_text_document.bin)" = 12 ]

t "lines that end in CR alone: the hint converts them"
printf '{"text": "1 2"}\r{"text": "3"}\r' >cr.jsonl
expect 3 build --input cr.jsonl $null
err_has "cr.jsonl: line 1:"
err_has "lines end in CR alone: convert it, tr"
expect 3 build --quiet --input cr.jsonl $null
err_has "lines end in CR alone: convert it, tr"
expect 3 build --input cr.jsonl --on-bad-record skip $null
err_has "lines end in CR alone: convert it, tr"
err_lacks "--allow-empty"
expect 3 "$PREP" sft --input cr.jsonl $null --seq-length 8 --output-prefix s
err_has "lines end in CR alone: convert it, tr"
yes "$(printf '{"text": "1 2"}\r')" | tr -d '\n' | head -c 6000000 >cr.jsonl # more than a line that is kept in memory
expect 3 build --input cr.jsonl $null
err_has "cr.jsonl: line 1: byte 16: expected the end of the line, found '{' after CR"
err_has "lines end in CR alone: convert it, tr"
printf '{"text": "1 2"}\n{"text": "3"} {"text": "4"}\n' >two.jsonl
expect 3 build --input two.jsonl $null
err_has "expected the end of the line, found '{'"
err_lacks "CR"

t "plain text given as JSONL: the hint is its option"
rm -f o_*
expect 3 build --input a.txt $null
err_has "a.txt: line 1:"
err_has "--input-format text takes each line as a document"
err_lacks "--on-bad-record"
{ cat good.jsonl; echo oops; } >second.jsonl
expect 3 build --input second.jsonl $null
err_has "--on-bad-record skip"

t "the keys of a record are listed when one is missing"
echo '{"content": "1", "meta": {"lang": "en", "body": "2"}, "id": 7}' >keys.jsonl
expect 3 build --input keys.jsonl $null
err_has 'keys.jsonl: line 1: has no key "text"; its keys are content, meta.lang, meta.body, id'
expect 0 build --input keys.jsonl --json-keys meta.body $null --output-prefix k
expect 3 "$PREP" sft --input keys.jsonl $null --seq-length 8 --output-prefix s
err_has 'has no key "text"; its keys are content, meta.lang, meta.body, id'
echo '{}' >none.jsonl
expect 3 build --input none.jsonl $null
err_has 'has no key "text"; it is empty'

t "an empty file gives a warning; no document at all is an error"
: >empty.jsonl
expect 0 build --input empty.jsonl good.jsonl $null
err_has "empty.jsonl: is empty"
check [ "$(ids o_text_document.bin)" = 12 ]
rm -f o_*
for f in empty.jsonl "empty.jsonl empty.jsonl"; do
    expect 3 build --input $f $null
    err_has "--allow-empty"
    check grep -qE "(has )?no documents" .err
    no_file o_text_document.idx
done
expect 3 build --input second.jsonl --on-bad-record skip --json-keys other $null
err_has "no documents in the input: 2 bad records"
expect 3 build --input good.jsonl --min-bytes 100 $null
err_has "1 skipped for their length"
expect 3 sh -c '"$@" </dev/null' sh "$PREP" build --quiet --input - $null --output-prefix o
err_has "standard input: has no documents"
check [ -z "$(ls -A | grep "^[.]o[._]")" ]
expect 0 build --input empty.jsonl --allow-empty $null
has_file o_text_document.idx
check [ ! -s o_text_document.bin ]

t "an empty framed stream"
printf '' | "$TOK" encode --quiet --tokenizer-type NullTokenizer --vocab-size 9 --format docs - >empty.docs
expect 3 build --pretokenized empty.docs
err_has "empty.docs: has no documents"
expect 0 build --pretokenized empty.docs --allow-empty

t "a folder stands for its files, in byte order of their paths"
mkdir -p d/b/.git d/.hid && echo '{"text": "1"}' >d/B && echo '{"text": "2"}' >d/a.jsonl && echo '{"text": "3"}' >d/b/z
echo broken >d/.hidden && echo broken >d/b/.git/x && echo broken >d/.hid/y
expect 0 build --input d $null
check [ "$(ids o_text_document.bin)" = 123 ]
expect 0 build --input good.jsonl d/b good.jsonl $null
check [ "$(ids o_text_document.bin)" = 12312 ]
mkdir nothing
expect 4 build --input nothing $null
err_has "nothing: this folder has no files"
expect 4 "$PREP" sft --input d $null --seq-length 8 --output-prefix s
err_has "d: is a folder, not a file"
err_has "'d/*'"

t "a name that exists is taken literally, despite commas, quotes and brackets"
echo '{"text": "4"}' >'a,b.jsonl' && echo '{"text": "5"}' >'[x].jsonl' && echo '{"text": "6"}' >x.jsonl
echo '{"text": "7"}' >'"q".jsonl' && echo '{"text": "8"}' >'*.jsonl'
expect 0 build --input 'a,b.jsonl' '[x].jsonl' '"q".jsonl' '*.jsonl' x.jsonl,x.jsonl $null
check [ "$(ids o_text_document.bin)" = 457866 ]
rm '[x].jsonl'
expect 0 build --input '[x].jsonl' $null
check [ "$(ids o_text_document.bin)" = 6 ]

t "limits that exclude each other are named"
expect 2 build --input good.jsonl $null --min-tokens 300 --max-tokens 200
err_has "--min-tokens 300 exceeds --max-tokens 200: no document can match"
expect 2 build --input good.jsonl $null --min-bytes 3 --max-bytes 2
err_has "--min-bytes 3 exceeds --max-bytes 2: no record can match"

t "a prefix that is not there: what was perhaps meant; .bin and .idx are taken off"
expect 0 build --input good.jsonl $null --output-prefix big
for verb in "inspect big" "export --ids big" "verify big" "merge big big --output-prefix m" "unpack big" \
    "blend --data-path big --seq-length 2 --num-samples 1" "index --prefix big --seq-length 2 --num-samples 1"; do
    expect 4 "$PREP" $verb
    err_has "big.bin and big.idx do not exist"
    err_has "did you mean big_text_document"
done
expect 3 "$PREP" inspect good.jsonl
err_has "good.jsonl is a file, not the prefix of token data"
expect 4 "$PREP" inspect nothing
err_has "nothing is a folder"
for end in bin idx; do
    expect 0 "$PREP" inspect big_text_document.$end
    expect 0 "$PREP" export --ids big_text_document.$end
    expect 0 "$PREP" verify big_text_document.$end
    expect 0 "$PREP" blend --data-path big_text_document.$end --seq-length 1 --num-samples 1 --split 1,0,0
done

t "limits of open files: need, limit and cure, exit 5"
expect 5 sh -c 'ulimit -n 16; "$@"' sh "$PREP" build --input good.jsonl $null --output-prefix u
err_has "1 datasets need 68 open files, the limit is 16"
err_has "ulimit -n 68"

t "what is not a tokenizer is named"
: >t.json
expect 3 build --input good.jsonl --tokenizer t.json
err_has "t.json: is empty"
expect 3 build --input t.model --tokenizer second.jsonl
err_has "second.jsonl: "
cat good.jsonl good.jsonl >two.jsonl
expect 3 build --input t.model --tokenizer two.jsonl
err_has "two.jsonl: contains JSONL records, not a tokenizer"
err_has "swapped"
expect 3 build --input good.jsonl --tokenizer a.tar.gz
err_has "a.tar.gz: is a gzip file, not a tokenizer"
for name in gpt2 meta-llama/Llama-3.1-8B; do
    expect 4 build --input good.jsonl --tokenizer $name
    err_has "$name: cannot open"
    err_has "if this is a name on the Hugging Face Hub"
done
expect 4 build --input good.jsonl --tokenizer nothing/tokenizer.json
err_lacks "Hub"

t "plain text whose lines end in CR alone is one document, with a warning"
printf '1\r2\r3\r' >mac.txt
expect 0 build --overwrite --input mac.txt --input-format text $null
err_has "mac.txt: has 3 CR and no line feed in its first 6 bytes: if its lines end in CR alone, convert it, tr"
expect 0 build --overwrite --input mac.txt --input-format text --text-separator '\r' $null
err_lacks "line feed"
