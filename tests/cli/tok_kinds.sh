# SPDX-License-Identifier: Apache-2.0
# tok: inputs that are not text, Parquet, empty inputs, folders and patterns.

corpus="$SRC/tests/fuzz/corpus/parquet"
encode() { "$TOK" encode --tokenizer w/tokenizer.json "$@"; }

printf 'aa bb\ncc dd\n' >a.txt
"$TOK" train --quiet --type wordpiece --vocab_size 30 --min_frequency 1 --model_prefix w/ --input a.txt
t "what is not text is refused before anything is written"
printf 'ARROW1\0\0.......' >x.arrow
printf '\377\376a\0a\0\n\0' >x16.txt
printf '\0\0\376\377\0\0\0a' >x32.txt
printf 'a\0b\n' >x.bin
printf 'BZh91AY&SY..........' >x.bz2
gzip -c x.arrow >x.gz
for f in x.arrow:Arrow x16.txt:UTF-16 x32.txt:UTF-32 "x.bin:binary file" x.bz2:bzip2 x.gz:Arrow w.model:SentencePiece; do
    name=${f%%:*}
    [ $name != w.model ] || printf '\n\016\n\005<unk>\025\0\0\0\0\030\002' >w.model
    for format in text docs; do
        expect 3 encode --format $format a.txt $name
        err_has "$name: "
        err_has "${f#*:}"
        out_is ""
    done
    expect 3 encode --output ids.txt $name
    err_has "${f#*:}"
    no_file ids.txt
    expect 3 "$TOK" train --type bpe --vocab_size 300 --model_prefix n/ --input a.txt $name
    err_has "${f#*:}"
    no_file n/tokenizer.json
    expect 3 "$TOK" inspect w/tokenizer.json --corpus $name
    err_has "${f#*:}"
    expect 3 "$TOK" diff w/tokenizer.json w/tokenizer.json $name
    err_has "${f#*:}"
done
expect 3 sh -c 'cat x.arrow | "$@"' sh "$TOK" encode --tokenizer w/tokenizer.json --format docs -
err_has "standard input: is an Arrow file"
out_is ""
expect 3 encode x16.txt
err_has "iconv -f UTF-16"
err_lacks "--input-format"
expect 3 encode x.bin
err_has "--input-format text takes the bytes as they are"
expect 3 "$TOK" inspect w/tokenizer.json --corpus x16.txt --by language
err_has "UTF-16"

t "--input-format text takes the bytes as they are; a NUL behind 64 KiB is an ordinary byte"
expect 0 encode --input-format text x.bin
check [ "$(wc -l <.out)" = 1 ]
expect 0 encode --input-format text x.bz2
head -c 65536 /dev/zero | tr '\0' a >late.txt
printf '\nb\0b\n' >>late.txt
expect 0 encode late.txt
check [ "$(wc -l <.out)" = 2 ]
{ head -c 65535 /dev/zero | tr '\0' a; printf '\0\n'; } >early.txt
expect 3 encode early.txt
err_has "byte 65535 is NUL"

t "text in another encoding is refused under each format: its bytes as they are would be U+FFFD"
python3 -c "open('sjis.txt', 'wb').write('吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n'.encode('shift_jis') * 20)"
for form in "" "--input-format text"; do
    expect 3 encode $form sjis.txt
    err_has "sjis.txt: is not in UTF-8"
    err_has "iconv -f "
    err_lacks "--input-format"
    out_is ""
    expect 3 "$TOK" train --type bpe --vocab_size 300 --model_prefix n/ --input sjis.txt $form
    err_has "sjis.txt: is not in UTF-8"
    no_file n/tokenizer.json
done
expect 0 sh -c 'iconv -f SHIFT_JIS -t UTF-8 sjis.txt | "$@" -' sh "$TOK" encode --tokenizer w/tokenizer.json

t "an address in place of a tokenizer names the command that fetches it"
expect 4 "$TOK" encode --tokenizer s3://bucket/tokenizer.json a.txt
err_has "s3://bucket/tokenizer.json: is an address, not a file or folder of this machine; nothing is fetched"
err_has "hint: fetch it first: aws s3 cp 's3://bucket/tokenizer.json' .; then"
expect 4 "$PREP" build --input a.txt --tokenizer https://host/t/tokenizer.json --output-prefix o
err_has "curl -fLO 'https://host/t/tokenizer.json'"

t "Parquet is read as prep build reads it"

for f in zstd-delta-bytes gzip-plain-v2 snappy-dictionary none-delta-length; do
    cp "$corpus/$f" p.parquet
    "$PREP" build --quiet --overwrite --input p.parquet --tokenizer w/tokenizer.json --on-bad-record skip --output-prefix p 2>.err
    check [ -s p_text_document.bin ]
    if "$PREP" build --quiet --overwrite --input p.parquet --tokenizer w/tokenizer.json --output-prefix q >/dev/null 2>&1; then
        expect 0 sh -c '"$TOK" encode --quiet --tokenizer w/tokenizer.json --format docs p.parquet | "$PREP" build --quiet --overwrite --pretokenized - --output-prefix r'
        same p_text_document.bin r_text_document.bin
        same p_text_document.idx r_text_document.idx
    else
        expect 3 encode p.parquet
        err_has "p.parquet, row"
        err_has 'the value under "text" is not a string'
    fi
done
expect 3 encode --json-keys txet p.parquet
err_has 'p.parquet: has no column "txet"'
expect 2 sh -c '"$@" <p.parquet' sh "$TOK" encode --tokenizer w/tokenizer.json -
err_has "name the file instead of piping it in"
expect 3 encode --input-format jsonl p.parquet
err_has "--input-format parquet reads it"
expect 3 encode --input-format parquet a.txt
err_has "a.txt:"

t "an empty file is said; no document is an error of train; an empty stream stays empty"
: >empty.txt
expect 0 encode empty.txt a.txt
err_has "empty.txt: is empty"
check [ "$(wc -l <.out)" = 2 ]
expect 0 sh -c '"$@" </dev/null' sh "$TOK" encode --tokenizer w/tokenizer.json -
out_is ""
check [ ! -s .err ]
for type in bpe wordpiece sentencepiece; do
    expect 3 "$TOK" train --type $type --vocab_size 300 --model_prefix n/m --input empty.txt
    err_has "there is no document in the input"
    err_has "--allow-empty"
    check [ -z "$(ls n/m* 2>/dev/null)" ]
done
expect 0 "$TOK" train --type bpe --vocab_size 300 --model_prefix n/ --input empty.txt --allow-empty
has_file n/tokenizer.json

t "folders of train and --corpus, patterns everywhere, names as they stand"
mkdir -p d/b/.git && printf 'ee\n' >d/z.txt && printf 'ff\n' >d/b/a.txt && printf '\0' >d/.hidden && printf '\0' >d/b/.git/x
cat d/b/a.txt d/z.txt >both.txt
expect 0 "$TOK" train --quiet --type wordpiece --vocab_size 30 --min_frequency 1 --model_prefix d1/ --input d
expect 0 "$TOK" train --quiet --type wordpiece --vocab_size 30 --min_frequency 1 --model_prefix d2/ --input both.txt
same d1/tokenizer.json d2/tokenizer.json
expect 0 "$TOK" inspect w/tokenizer.json --corpus d
out_has "d/z.txt"
out_has "d/b/a.txt"
expect 4 encode d
err_has "d: is a folder, not a file"
err_has "'d/*'"
expect 0 encode both.txt
cp .out want
expect 0 encode 'd/*/*.txt' 'd/?.txt'
same .out want
printf 'ee\n' >'[q].txt' && printf 'ff\n' >'a,b.txt'
expect 0 encode 'a,b.txt' '[q].txt'
same .out want
expect 0 "$TOK" train --quiet --type wordpiece --vocab_size 30 --min_frequency 1 --model_prefix d3/ --input 'a,b.txt' '[q].txt'
same d1/tokenizer.json d3/tokenizer.json
expect 0 "$TOK" decode --tokenizer w/tokenizer.json 'wan?'
check [ "$(wc -l <.out)" = 2 ]

t "the keys of a record are listed when the one asked for is missing"
echo '{"content": "a", "meta": {"body": "b"}}' >keys.jsonl
expect 3 encode keys.jsonl
err_has 'keys.jsonl, line 1: the object has no key "text"; its keys are content, meta.body'

t "lines that end in CR alone: the hint converts them"
printf '{"text": "a"}\r{"text": "b"}\r' >cr.jsonl
expect 3 encode cr.jsonl
err_has "lines end in CR alone: convert it, tr"
tr '\r' '\n' <cr.jsonl >lf.jsonl
yes "$(printf '{"text": "a"}\r')" | tr -d '\n' | head -c 6000000 >long.jsonl
expect 3 encode long.jsonl
err_has "lines end in CR alone: convert it, tr"
expect 0 encode lf.jsonl
check [ "$(wc -l <.out)" = 2 ]

t "plain text whose lines end in CR alone is one line, with a warning"
tr '\n' '\r' <both.txt >mac.txt
for format in auto text; do
    expect 0 encode --input-format $format mac.txt
    check [ "$(wc -l <.out)" = 1 ]
    err_has "mac.txt: has 2 CR and no line feed in its first 6 bytes: if its lines end in CR alone, convert it, tr"
    check [ "$(grep -c "mac.txt: has" .err)" = 1 ]
done
expect 0 encode mac.txt both.txt mac.txt
err_has "OTHER; and so for 1 other files"
expect 0 encode both.txt
check [ ! -s .err ]
