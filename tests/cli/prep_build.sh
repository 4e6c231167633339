# SPDX-License-Identifier: Apache-2.0
# prep build: what it takes, what it writes, that neither depends on the number of workers or the packing.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
hex() { od -An -v -tx1 "$1" | tr -d ' \n'; }
build() { "$PREP" build --quiet "$@"; }
# corpus LINES: records of different lengths, every seventh text empty
corpus() {
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) {
        s = ""; for (j = 0; j < i * 37 % 101 && i % 7; j++) s = s (j ? " " : "") (i * 7919 + j * 104729) % 50256
        printf "{\"id\": %d, \"text\": \"%s\", \"more\": [1.5e3, null, {\"text\": true}]}\n", i, s } }'
}

t "the bytes that Megatron's own builder writes for these documents"
printf '{"text": "1 2 3"}\n{"text": ""}\n{"text": "5"}\n' >g.jsonl
expect 0 build --input g.jsonl $null --append-eod --output-prefix g
check [ "$(hex g_text_document.bin)" = 01000200030050c4050050c4 ]
check [ "$(hex g_text_document.idx)" = "4d4d49444944580000010000000000000008020000000000000004000000000000000400000002\
0000000000000000000000080000000000000000000000000000000100000000000000010000000000000002000000\
00000000" ]
has_file g_text_document.manifest.json
no_temps .

t "options of preprocess_data.py: those that change nothing are taken, the older formats refused"
for impl in mmap infer; do
    expect 0 build --input g.jsonl $null --append-eod --overwrite --output-prefix impl --dataset-impl $impl
    same impl_text_document.bin g_text_document.bin
    err_has "warning: --dataset-impl has no effect here: .bin and .idx are written, as of mmap"
done
for impl in lazy cached; do
    expect 2 build --input g.jsonl $null --output-prefix impl-$impl --dataset-impl=$impl
    err_has "--dataset-impl of $(basename "$PREP") build is not supported: lazy and cached are Megatron-LM's older files"
    no_file impl-${impl}_text_document.bin
done
expect 0 build --input g.jsonl $null --append-eod --overwrite --output-prefix impl --chunk-size 25 --trust-remote-code --vocab-extra-ids 0
err_has "--chunk-size has no effect here: workers take blocks of bytes"
err_has "--trust-remote-code has no effect here: no code of a model is run"
expect 2 build --dry-run --input g.jsonl $null --output-prefix none
err_has "unknown option --dry-run"

t "a list that is given twice adds up, and a line says so"
printf '{"text": "7"}\n' >h.jsonl
expect 0 build --input g.jsonl --input h.jsonl $null --output-prefix twice
err_has "warning: --input was given twice, as 'g.jsonl' and as 'h.jsonl': both count (Megatron-LM takes the last)"
expect 0 build --input g.jsonl h.jsonl $null --output-prefix once
err_lacks "given twice"
same twice_text_document.bin once_text_document.bin

t "without --append-eod the texts alone"
expect 0 build --input g.jsonl $null --output-prefix n
check [ "$(hex n_text_document.bin)" = 0100020003000500 ]

t "the end of document is named"
expect 0 "$PREP" build --input g.jsonl $null --append-eod --overwrite --output-prefix g
err_has "end of document: 50256 (id 50256)"
err_has "3 documents, 6 tokens"
err_has "g_text_document.bin"
out_is ""

t "ends of document inside the texts are counted"
printf '{"text": "1 50256 3 50256"}\n{"text": "50256 x"}\n{"text": "50256"}\n' >ends.jsonl
for w in 1 4; do
    expect 0 build --input ends.jsonl $null --append-eod --on-bad-record skip --workers $w --overwrite --output-prefix ends
    err_has "warning: the end-of-document token occurs 3 times inside documents"
done
expect 0 build --input g.jsonl $null --append-eod --overwrite --output-prefix g
err_lacks "end-of-document"

t "any number of workers gives the same bytes"
corpus 30000 >c.jsonl
expect 0 build --input c.jsonl $null --append-eod --workers 1 --output-prefix w1
for w in 2 7; do
    expect 0 build --input c.jsonl $null --append-eod --workers $w --output-prefix w$w
    same w1_text_document.bin w${w}_text_document.bin
    same w1_text_document.idx w${w}_text_document.idx
done

t "zstd in several frames, gzip in several members, xz in several streams, by content"
head -n 9000 c.jsonl >c.1
tail -n +9001 c.jsonl >c.2
{ zstd -qc c.1; zstd -qc c.2; } >c.gz
{ gzip -c c.1; gzip -c c.2; } >c.zst
{ xz -0c c.1; xz -0c c.2; } >c.txt
for f in c.gz c.zst c.txt; do
    expect 0 build --input $f $null --append-eod --overwrite --output-prefix z
    same w1_text_document.bin z_text_document.bin
    same w1_text_document.idx z_text_document.idx
done

t "standard input"
expect 0 sh -c 'zstd -qdc c.gz | "$@"' sh "$PREP" build --quiet --input - $null --append-eod --output-prefix i
same w1_text_document.bin i_text_document.bin
same w1_text_document.idx i_text_document.idx

t "several files and patterns, in byte order of their names"
mkdir p
cp c.1 p/B.jsonl
cp c.2 p/a.jsonl
expect 0 build --input 'p/*.jsonl' $null --append-eod --output-prefix q
same w1_text_document.bin q_text_document.bin
expect 0 build --input p/B.jsonl p/a.jsonl $null --append-eod --overwrite --output-prefix q
same w1_text_document.bin q_text_document.bin
expect 0 build --input p/a.jsonl,p/B.jsonl $null --append-eod --overwrite --output-prefix q
differ w1_text_document.bin q_text_document.bin

t "byte order mark, CRLF, no last newline, white space at the end"
{ printf '\357\273\277'; sed 's/$/\r/' g.jsonl; } >crlf.jsonl
printf '{"text": "1 2 3"}\n{"text": ""}\n{"text": "5"}' >cut.jsonl
{ cat g.jsonl; printf '\n \r\n\n'; } >blank.jsonl
for f in crlf cut blank; do
    expect 0 build --input $f.jsonl $null --append-eod --overwrite --output-prefix v
    same g_text_document.bin v_text_document.bin
    same g_text_document.idx v_text_document.idx
done

t "an empty input gives an empty dataset"
: >empty.jsonl
expect 0 build --input empty.jsonl --allow-empty $null --output-prefix e
check [ "$(hex e_text_document.idx)" = "4d4d4944494458000001000000000000000800000000000000000100000000000000\
0000000000000000" ]
check [ ! -s e_text_document.bin ]

t "several keys give a dataset each, all finished"
printf '{"a": "1", "b": "2 3"}\n{"b": "4", "x": 0, "a": ""}\n' >k.jsonl
expect 0 build --input k.jsonl --json-keys a b $null --append-eod --output-prefix k
check [ "$(hex k_a_document.bin)" = 010050c4 ]
check [ "$(hex k_b_document.bin)" = 0200030050c4040050c4 ]
has_file k_a_document.idx
has_file k_b_document.idx
has_file k_a_document.manifest.json

t "keys may be paths, in short records and long ones"
{
    echo '{"m": {"a": "1", "b.c": "2"}, "a": "x"}'
    awk 'BEGIN { printf "{\"m\": {\"a\": \""; for (i = 0; i < 1500000; i++) printf "%d ", i % 10; print "\", \"b.c\": \"7\"}}" }'
} >paths.jsonl
expect 0 build --input paths.jsonl --json-keys m.a 'm.b\.c' $null --output-prefix paths
check [ "$(hex paths_m.b\\.c_document.bin)" = 02000700 ]
check [ "$(wc -c <paths_m.a_document.bin)" = 3000002 ]
expect 3 build --input paths.jsonl --json-keys m.d $null --output-prefix paths
err_has 'line 1: has no key "m.d"'

t "of duplicate keys the last one counts, and numbers elsewhere are let pass"
printf '{"text": 1, "text": "7", "n": 123456789012345678901234567890, "m": [1e999, NaN, -Infinity]}\n' >d.jsonl
expect 0 build --input d.jsonl $null --output-prefix d
check [ "$(hex d_text_document.bin)" = 0700 ]

t "tokens of four bytes from a vocabulary of 65500 on"
expect 0 build --input g.jsonl --tokenizer-type NullTokenizer --vocab-size 65499 --append-eod --output-prefix four
check [ "$(hex four_text_document.bin)" = 010000000200000003000000dbff000005000000dbff0000 ]
expect 0 build --input g.jsonl --tokenizer-type NullTokenizer --vocab-size 65498 --append-eod --output-prefix two
check [ "$(hex two_text_document.bin)" = 010002000300daff0500daff ]

t "Megatron's spelling of options"
expect 0 build --input=g.jsonl --tokenizer_type=NullTokenizer --vocab_size=50256 --append_eod=true --json_keys=text --output_prefix=m
same g_text_document.bin m_text_document.bin

t "existing outputs are an error and left alone"
cp g_text_document.bin before.bin
expect 2 "$PREP" build --input c.jsonl $null --output-prefix g
err_has "g_text_document: was built with --append-eod true; this command says false"
err_has "--overwrite"
same g_text_document.bin before.bin
rm g_text_document.bin g_text_document.manifest.json
expect 2 build --input c.jsonl $null --output-prefix g
err_has "g_text_document.idx: already exists"

t "words of a vocab.json; its end of document"
printf '{"<unk>": 0, "the": 1, "cat": 2, "<|endoftext|>": 3, "bird": 4}' >vocab.json
printf '{"text": "the cat  the\\u3000dog"}\n' >words.jsonl
expect 0 "$PREP" build --input words.jsonl --tokenizer vocab.json --append-eod --output-prefix words
err_has "end of document: <|endoftext|> (id 3)"
check [ "$(hex words_text_document.bin)" = 01000200010000000300 ]
expect 0 "$PREP" build --input words.jsonl --vocab-file vocab.json --eod-token bird --append-eod --overwrite --output-prefix words
err_has "end of document: bird (id 4)"
check [ "$(hex words_text_document.bin)" = 01000200010000000400 ]

t "strings of special tokens: counted as text, parsed, rejected"
printf '{"text": "the <|endoftext|> cat"}\n' >s.jsonl
expect 0 "$PREP" build --input s.jsonl --tokenizer vocab.json --output-prefix s
err_has "1 special token strings"
check [ "$(hex s_text_document.bin)" = 010000000200 ]
expect 0 build --input s.jsonl --tokenizer vocab.json --specials parse --overwrite --output-prefix s
check [ "$(hex s_text_document.bin)" = 010003000200 ]
expect 3 build --input s.jsonl --tokenizer vocab.json --specials error --overwrite --output-prefix s
err_has "s.jsonl: line 1"
err_has "<|endoftext|>"
check [ "$(hex s_text_document.bin)" = 010003000200 ]

t "a line of many megabytes, before and after short ones"
{
    echo '{"text": "1 2"}'
    awk 'BEGIN { printf "{\"x\": [1, {}], \"text\": \""; for (i = 0; i < 1500000; i++) printf "%d\\u0020", i % 50000
                 print "\", \"y\": null}" }'
    echo '{"text": "3"}'
} >long.jsonl
awk 'BEGIN { print 1; print 2; print 50256; for (i = 0; i < 1500000; i++) print i % 50000; print 50256; print 3; print 50256 }' >long.ids
expect 0 build --input long.jsonl $null --append-eod --workers 3 --output-prefix long
check [ "$(od -An -v -w2 -tu2 long_text_document.bin | tr -d ' ' | md5sum)" = "$(md5sum <long.ids)" ]
expect 0 "$PREP" inspect long_text_document --check
out_has "documents   3"
out_has "2 to 1500001"

t "the beginning of text before each document with text, and not twice"
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 300; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
expect 0 "$TOK" train --quiet --input text.txt --model_prefix bos --vocab_size 40
{ printf '{"text": "bako mi"}\n{"text": ""}\n{"text": "en"}\n'; } >bos.jsonl
expect 0 build --input bos.jsonl --tokenizer bos.model --append-eod --output-prefix without
expect 0 build --input bos.jsonl --tokenizer bos.model --append-eod --prepend-bos --output-prefix with
expect 0 "$PREP" inspect with_text_document --check
out_has "documents   3"
ids() { od -An -v -w2 -tu2 "$1_text_document.bin" | tr -d ' ' | tr '\n' ' '; }
check [ "$(ids with)" = "1 $(ids without | sed 's/ 2 / 2 1 /')" ]
printf '{"text": [1, 7]}\n{"text": [7]}\n{"text": []}\n' >ids.jsonl
expect 0 build --pretokenized ids.jsonl --tokenizer bos.model --prepend-bos --output-prefix pre
check [ "$(ids pre)" = "1 7 1 7 " ]
{ printf '{"text": "'; yes 'bako mi' | head -n 700000 | tr '\n' ' '; echo '"}'; } >long.jsonl
expect 0 build --input long.jsonl --tokenizer bos.model --output-prefix without --overwrite
expect 0 build --input long.jsonl --tokenizer bos.model --prepend-bos --output-prefix with --overwrite
check [ "$( { printf '\001\000'; cat without_text_document.bin; } | cksum)" = "$(cksum <with_text_document.bin)" ]
expect 2 build --input g.jsonl $null --prepend-bos --output-prefix nobos
err_has "has no beginning of text"

t "a line after every N documents"
expect 0 "$PREP" build --input c.jsonl $null --log-interval 10000 --overwrite --output-prefix log
check [ "$(grep -c '^Processed [0-9]* documents (.* docs/s, .* MB/s), [0-9]* tokens, 0 bad records' .err)" -ge 2 ]
