# SPDX-License-Identifier: Apache-2.0
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 3000; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
awk '{ printf "{\"text\": \"%s\", \"body\": \"x\"}\n", $0 }' text.txt >text.jsonl
"$TOK" train -q --preset ucllm --input text.txt --model_prefix u --vocab_size 330
"$TOK" train -q --input text.txt --model_prefix g --vocab_size 60
printf '{"<unk>": 0, "one": 1, "two": 2, "<|endoftext|>": 3}' >vocab.json

t "a line of ids for each line"
expect 0 "$TOK" encode --tokenizer u.model text.txt
check [ "$(wc -l <.out)" = 3000 ]
cp .out ids
expect 0 "$TOK" encode --tokenizer u.model --workers 1 text.txt
same .out ids
expect 0 "$TOK" encode --tokenizer u.model --workers 7 --output ids2 text.txt
out_is ""
same ids ids2
expect 0 "$TOK" encode --tokenizer-type SentencePieceTokenizer --tokenizer-model u.model text.jsonl
same .out ids
expect 0 sh -c 'zstd -qc text.jsonl | "$0" encode --tokenizer u.model' "$TOK"
same .out ids

t "ids become the text again"
expect 0 "$TOK" decode --tokenizer u.model ids
same .out text.txt
expect 0 sh -c '"$0" encode --tokenizer u.model --format docs text.jsonl | "$0" decode --tokenizer u.model -' "$TOK"
same .out text.txt
printf '{"text":"two\\nlines \\u00e9\\u3042\\ud83d\\ude00  "}\n{"text":""}\n' >odd.jsonl
expect 0 sh -c '"$0" encode --tokenizer u.model --format json odd.jsonl | "$0" decode --tokenizer u.model --format json' "$TOK"
check python3 -c "
import json
a, b = ([json.loads(l) for l in open(f)] for f in ('odd.jsonl', '.out'))
assert a == b, (a, b)"

t "formats"
printf 'one two three\n\ntwo\n' >w
expect 0 "$TOK" encode --tokenizer vocab.json w
out_is "$(printf '1 2 0\n\n2')"
expect 0 "$TOK" encode --tokenizer vocab.json --format json w
out_is "$(printf '{"ids":[1,2,0]}\n{"ids":[]}\n{"ids":[2]}')"
expect 0 "$TOK" encode --tokenizer vocab.json --output_format piece w
out_is "$(printf 'one two <unk>\n\ntwo')"
expect 0 "$TOK" encode --tokenizer vocab.json --format json --output_format piece --append-eod w
out_is "$(printf '{"pieces":["one","two","<unk>","<|endoftext|>"]}\n{"pieces":["<|endoftext|>"]}\n{"pieces":["two","<|endoftext|>"]}')"
expect 0 "$TOK" encode --tokenizer vocab.json --format u16 w
check [ "$(od -An -tu2 .out | tr -s ' ')" = " 1 2 0 2" ]
expect 0 "$TOK" encode --tokenizer vocab.json --format u32 --append-eod w
check [ "$(od -An -tu4 .out | tr -s ' \n' ' ')" = " 1 2 0 3 3 2 3 " ]
expect 0 "$TOK" encode --tokenizer vocab.json --format docs w
check [ "$(head -c 8 .out)" = WEFTDOCS ]
check [ "$(wc -c <.out)" = $((64 + 33 + 3 * 4 + 4 * 2 + 20)) ]

t "objects without the key are not text"
expect 3 sh -c 'echo "{\"a\":\"one\"}" | "$0" encode --tokenizer vocab.json -' "$TOK"
err_has 'standard input, line 1: the object has no key "text"'
err_has "--input-format text"
out_is ""
echo '{"a": "one"}' >objects.txt
expect 3 "$TOK" encode --tokenizer vocab.json objects.txt
err_has 'objects.txt, line 1: the object has no key "text"'
expect 0 "$TOK" encode --tokenizer vocab.json --json-keys a objects.txt
out_is 1
expect 0 "$TOK" encode --tokenizer vocab.json --input-format text objects.txt
out_is "0 0"

t "a folder stands for its ranks"
if [ "$(wc -l 2>/dev/null <"$DATA/tokenizers/cl100k/cl100k_base.tiktoken")" != 100256 ]; then
    skip "the published cl100k_base.tiktoken is not in WEFT_TEST_DATA"
else
    echo 'hello world' >hello
    expect 0 "$TOK" encode --tokenizer "$DATA/tokenizers/cl100k" hello
    out_is "15339 1917"
fi
mkdir -p ranks
t "a folder of ranks, one or several"
expect 4 "$TOK" encode --tokenizer ranks w
err_has "ranks: the folder has no tokenizer file, such as tokenizer.json, tokenizer.model, spiece.model,"
expect 4 "$TOK" encode --tokenizer ranks --tokenizer-type BertWordPieceCase w
err_has "such as vocab.txt"
"$TOK" train -q --type bpe --output-type tiktoken --input text.txt --model_prefix r --vocab_size 300
cp r.tiktoken ranks/a.tiktoken
expect 0 "$TOK" encode --tokenizer ranks/a.tiktoken --tiktoken-pattern r50k text.txt
cp .out by_file
expect 0 "$TOK" encode --tokenizer ranks --tiktoken-pattern r50k text.txt
same .out by_file
cp ranks/a.tiktoken ranks/b.tiktoken
expect 2 "$TOK" encode --tokenizer ranks --tiktoken-pattern r50k text.txt
err_has "ranks: the folder has several .tiktoken files: name one"
mv ranks/a.tiktoken ranks/tiktoken.model
expect 0 "$TOK" encode --tokenizer ranks --tiktoken-pattern r50k text.txt
same .out by_file
rm ranks/tiktoken.model
mv ranks/b.tiktoken ranks/given
expect 0 "$TOK" encode --tokenizer ranks --tiktoken-pattern r50k text.txt
same .out by_file

t "a first document without ids"
printf '\none\n' >bare
expect 0 "$TOK" encode --tokenizer vocab.json --workers 1 bare
out_is "$(printf '\n1')"

t "unknown pieces are the text that they stand for, normalized"
printf 'ba QZＱ ko\nmi Q\n' >unknown
expect 0 "$TOK" encode --tokenizer g.model --output_format piece unknown
out_is "$(printf '▁ b a ▁ QZQ ▁ k o\n▁ m i ▁ Q')"
expect 0 "$TOK" encode --tokenizer g.model --output_format nbest_piece --nbest_size 1 --format json unknown
out_has '"▁","QZQ","▁'
expect 0 "$TOK" encode --tokenizer g.model --output_format piece --truncation 4 --truncation-side left unknown
out_is "$(printf 'QZQ ▁ k o\nm i ▁ Q')"
cat >uni.json <<'END'
{"version": "1.0", "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁", -1], ["o", -1]]}}
END
expect 0 "$TOK" encode --tokenizer uni.json --output_format piece --format json unknown
out_has '{"pieces":["▁","ba","▁","qzｑ","▁","k","o"]}'

t "a folder of a SentencePiece model, by the names that such folders have"
"$TOK" encode --tokenizer g.model text.txt >by_file
for name in tokenizer.model spiece.model sentencepiece.bpe.model spm.model other.model source.spm; do
    rm -rf named
    mkdir named
    cp g.model "named/$name"
    echo '{}' >named/config.json
    expect 0 "$TOK" encode --tokenizer named text.txt
    same .out by_file
    echo '{"a": 0}' >named/vocab.json
    expect 2 "$TOK" encode --tokenizer named text.txt
    err_has "named: the folder has both a vocab.json and $name: name one"
    expect 0 "$TOK" encode --tokenizer named --tokenizer-type GPTSentencePieceTokenizer text.txt
    same .out by_file
    echo '{"model": {}}' >named/tokenizer.json
    expect 0 "$TOK" encode --tokenizer named --tokenizer-type GPTSentencePieceTokenizer text.txt
    same .out by_file
done

t "truncation"
cat >cut.json <<'END'
{"version": "1.0", "truncation": {"direction": "Left", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
 "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": {"type": "BertProcessing", "sep": ["e", 9], "cls": ["b", 8]},
 "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "one": 1, "two": 2, "b": 8, "e": 9}}}
END
printf 'one two three one\n\none\n' >words
expect 0 "$TOK" encode --tokenizer cut.json words
out_is "$(printf '8 1 2 0 1 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 4 words
out_is "$(printf '8 1 2 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation file words
out_is "$(printf '8 0 1 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 4 --append-eod --eod-token u words
out_is "$(printf '8 1 9 0\n8 9 0\n8 1 9 0')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 3 --no-add-special-tokens words
out_is "$(printf '1 2 0\n\n1')"
awk 'BEGIN { for (i = 0; i < 700000; i++) printf "one two "; print "" }' >wide
expect 0 "$TOK" encode --tokenizer cut.json --truncation 5 wide
out_is "8 1 2 1 9"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 1000003 wide
check [ "$(wc -w <.out) $(tail -c 8 .out)" = "1000003 1 2 1 9" ]
expect 2 "$TOK" encode --tokenizer cut.json --truncation file wide
err_has "wide, line 1: a text in parts cannot be truncated on the left"
expect 2 "$TOK" encode --tokenizer cut.json --truncation 1 words
err_has "a limit of 1 ids, but the template alone has 2"
expect 2 "$TOK" encode --tokenizer vocab.json --truncation file words
err_has "the tokenizer's file has no"
for n in 0 x 5x; do
    expect 2 "$TOK" encode --tokenizer vocab.json --truncation $n words
    err_has "a number above 0"
done

t "what truncation takes away"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 4 words
err_has "--truncation shortened 1 document by 2 ids"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 4 --truncation-side left words
out_is "$(printf '8 0 1 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 5 --overflow --stride 2 words
out_is "$(printf '8 1 2 0 9\n8 2 0 1 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation file --overflow --format json --offsets char words
out_is "$(printf '{"ids":[8,0,1,9],"offsets":[[0,0],[8,13],[14,17],[0,0]],"part":0}\n{"ids":[8,1,2,9],"offsets":[[0,0],[0,3],[4,7],[0,0]],"part":1}\n{"ids":[8,9],"offsets":[[0,0],[0,0]],"part":0}\n{"ids":[8,1,9],"offsets":[[0,0],[0,3],[0,0]],"part":0}')"
expect 0 sh -c '"$0" encode --tokenizer cut.json --truncation 4 --overflow --format docs words | "$0" decode --tokenizer cut.json -' "$TOK"
out_is "$(printf 'b one two e\nb u one e\nb e\nb one e')"
expect 0 "$TOK" encode --tokenizer cut.json --truncation 1000003 --overflow wide
check [ "$(wc -l <.out) $(wc -w <.out)" = "2 1400004" ]
sed 's/"stride": 0/"stride": 1/' cut.json >stride.json
expect 0 "$TOK" encode --tokenizer stride.json --truncation file --overflow words
out_is "$(printf '8 0 1 9\n8 2 0 9\n8 1 2 9\n8 9\n8 1 9')"
sed 's/LongestFirst/OnlySecond/' cut.json >second.json
expect 2 "$TOK" encode --tokenizer second.json --truncation file words
err_has "the file's strategy is OnlySecond"
expect 2 "$TOK" encode --tokenizer cut.json --truncation 4 --overflow --stride 2 words
err_has "a stride of 2 ids is too large: a window has 2"
expect 2 "$TOK" encode --tokenizer cut.json --truncation 2 --overflow words
err_has "leaves no room besides"
expect 0 "$TOK" encode --tokenizer cut.json --overflow words
err_has "--overflow has no effect without --truncation"

t "padding"
pad() { # STRATEGY SIDE MULTIPLE
    sed "s/{\"version\"/{\"padding\": {\"strategy\": $1, \"direction\": \"$2\", \"pad_to_multiple_of\": $3, \"pad_id\": 7}, \"version\"/" \
        cut.json >pad.json
}
pad '{"Fixed": 0}' Right 8
sed -i 's/"max_length": 4/"max_length": 0/' pad.json
expect 0 "$TOK" encode --tokenizer pad.json --padding file words
out_is "$(printf '8 1 2 0 1 9\n8 9\n8 1 9')"
expect 2 "$TOK" encode --tokenizer pad.json --truncation file words
err_has "the tokenizer's file has no"
pad '{"Fixed": 5}' Right null
expect 0 "$TOK" encode --tokenizer pad.json words
out_is "$(printf '8 1 2 0 1 9\n8 9\n8 1 9')"
expect 0 "$TOK" encode --tokenizer pad.json --padding file words
out_is "$(printf '8 1 2 0 1 9\n8 9 7 7 7\n8 1 9 7 7')"
expect 0 "$TOK" encode --tokenizer pad.json --padding 3 --truncation 4 --append-eod --eod-token u words
out_is "$(printf '8 1 9 0\n8 9 0\n8 1 9 0')"
expect 0 "$TOK" encode --tokenizer pad.json --padding 3000003 wide
check [ "$(wc -w <.out) $(tail -c 8 .out)" = "3000003 7 7 7 7" ]
pad '{"Fixed": 5}' Left 4
expect 0 "$TOK" encode --tokenizer pad.json --padding file words
out_is "$(printf '7 7 8 1 2 0 1 9\n7 7 7 7 7 7 8 9\n7 7 7 7 7 8 1 9')"
expect 3 "$TOK" encode --tokenizer pad.json --padding 3000003 wide
err_has "wide, line 1: a text of more than"
pad '"BatchLongest"' Right 4
expect 0 "$TOK" encode --tokenizer pad.json --padding file words
out_is "$(printf '8 1 2 0 1 9 7 7\n8 9 7 7\n8 1 9 7')"
expect 2 "$TOK" encode --tokenizer cut.json --padding file words
err_has "--padding file: the tokenizer's file has no padding"
expect 2 "$TOK" encode --tokenizer cut.json --padding 5 words
err_has "--padding needs a padding token"
expect 2 "$TOK" encode --tokenizer pad.json --padding 0 words
err_has "--padding takes a number above 0"
expect 2 "$TOK" encode --tokenizer pad.json --padding 5 --offsets byte words
err_has "--offsets does not go with --padding"
pad '"Longest"' Right null
expect 3 "$TOK" encode --tokenizer pad.json words
err_has 'padding.strategy is not "BatchLongest" or {"Fixed": N}'
pad '"BatchLongest"' Up null
expect 3 "$TOK" encode --tokenizer pad.json words
err_has "padding.direction is not Left or Right"

t "dropout"
cat >drop.json <<'END'
{"version": "1.0", "model": {"type": "BPE", "dropout": 0.5, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
END
awk 'BEGIN { for (i = 0; i < 200; i++) { printf "ab"; for (k = 0; k < i % 7; k++) printf "ab"; print "" } }' >abs
expect 0 "$TOK" encode --tokenizer drop.json abs
cp .out first
expect 0 "$TOK" encode --tokenizer drop.json --workers 3 --seed 1 abs
same .out first
expect 0 "$TOK" encode --tokenizer drop.json --seed 2 abs
check sh -c '! cmp -s .out first'
expect 0 "$TOK" decode --tokenizer drop.json first
check sh -c 'tr -d " " <.out | cmp -s - abs'
expect 0 "$TOK" encode --tokenizer drop.json --dropout 0 abs
check sh -c '! grep -q "[01]" .out'
expect 0 "$TOK" encode --tokenizer drop.json --dropout 1 abs
check sh -c '! grep -q 2 .out'
expect 2 "$TOK" encode --tokenizer drop.json --dropout 1.1 abs
err_has "a number from 0 to 1, not '1.1'"
expect 2 "$TOK" encode --tokenizer u.model --dropout 0.1 abs
err_has "dropout needs BPE merges"

t "segmentations at random, and the n best"
awk '{ print; print }' text.txt >twice
sampled() { expect 0 "$TOK" encode --tokenizer u.model --output_format sample_id --nbest_size -1 --alpha 0.2 "$@" twice; }
sampled --workers 1
cp .out first
sampled --workers 3 --seed 1
same .out first
sampled --seed 2
check sh -c '! cmp -s .out first'
check sh -c 'awk "NR % 2 { was = \$0 } NR % 2 == 0 && was != \$0 { n++ } END { exit !n }" first' # a line each
expect 0 "$TOK" encode --tokenizer u.model --output_format sample_id --nbest_size 5 text.txt
expect 0 "$TOK" encode --tokenizer u.model text.txt
cp .out best
head -n 1 best >best1
expect 0 "$TOK" encode --tokenizer u.model --output_format sample_id --nbest_size 1 text.txt
same .out best
head -n 1 text.txt >line
expect 0 "$TOK" encode --tokenizer u.model --output_format nbest_id --nbest_size 4 line
check sh -c 'test "$(wc -l <.out)" -eq 4 && test "$(sort -u .out | wc -l)" -eq 4'
check sh -c 'head -n 1 .out | cmp -s - "$0"' best1
expect 0 "$TOK" encode --tokenizer u.model --output_format nbest_piece --nbest_size 2 --format json line
check sh -c 'grep -qE "^\{\"nbest\":\[\{\"score\":-[0-9.e+]+,\"pieces\":\[" .out'
expect 2 "$TOK" encode --tokenizer u.model --output_format nbest_id --nbest_size 0 line
err_has "from 1 to 512"
expect 2 "$TOK" encode --tokenizer u.model --output_format nbest_id --format u16 line
err_has "--format text and json"
expect 2 "$TOK" encode --tokenizer u.model --output_format nbest_id --append-eod line
err_has "do not go with --output_format nbest_id"
expect 2 "$TOK" encode --tokenizer u.model --output_format nbest_id --specials parse line
err_has "--specials parse would split"
expect 2 "$TOK" encode --tokenizer u.model --output_format sample_id --alpha -1 line
err_has "--alpha is a number from 0 on, not '-1'"
expect 2 "$TOK" encode --tokenizer u.model --engine sentencepiece --output_format sample_id line
err_has "sampling needs our own engine"
expect 0 "$TOK" encode --tokenizer drop.json --output_format sample_id --alpha 1 abs
check sh -c '! grep -q 2 .out'
expect 2 "$TOK" encode --tokenizer vocab.json --output_format sample_id line
err_has "this tokenizer has only one segmentation"
expect 2 "$TOK" encode --tokenizer vocab.json --output_format nbest_id line
err_has "n-best segmentations need a SentencePiece unigram model"
expect 0 "$TOK" encode --tokenizer u.model --alpha 0.5 --nbest_size 3 line
err_has "--nbest_size has no effect without --output_format nbest_id or nbest_piece or sample_id or sample_piece"
err_has "--alpha has no effect without --output_format sample_id or sample_piece"

t "the null tokenizer"
printf '1 2 100\n' >n
expect 0 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 100 --append-eod n
out_is "1 2 100 100"
expect 3 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 99 n
err_has "n, line 1: byte 4 of the text: '100' is not an id from 0 to 99"
printf '1 2 99999999\n' >n8
expect 0 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 100000000 --format json n8
out_is '{"ids":[1,2,99999999]}'

printf '1  22\t333 4444 55555 666666 7777777 88888888 9\r\n0 12\n 5 \n' >n9
expect 0 "$TOK" decode --tokenizer-type NullTokenizer --vocab-size 100000000 n9
out_is "$(printf '1 22 333 4444 55555 666666 7777777 88888888 9\n0 12\n5')"
printf '12 3456x 7 8 9 10 11\n' >n10
expect 3 "$TOK" decode --tokenizer-type NullTokenizer --vocab-size 100000000 n10
err_has "n10, line 1: byte 3: '3456x' is not an id"

t "special strings inside text"
printf 'one <|endoftext|>\n' >s
expect 0 "$TOK" encode --tokenizer vocab.json s
out_is "1 0"
err_has "1 special token in the text was encoded as plain text"
expect 0 "$TOK" encode --tokenizer vocab.json --specials parse s
out_is "1 3"
expect 3 "$TOK" encode --tokenizer vocab.json --specials error s
err_has "s, line 1: byte 4 of the text"
printf 'ba<EOD>ko<BOS>\n' >s
expect 0 "$TOK" encode --tokenizer u.model s
err_has "1 special token in the text was encoded as plain text"
err_has "1 special token in the text became tokens"

t "records that cannot be used; those before them are written"
(head -n 2 text.jsonl; echo '{"text": "cut') >bad.jsonl
expect 3 "$TOK" encode --tokenizer u.model bad.jsonl
check [ "$(wc -l <.out)" = 2 ]
err_has "bad.jsonl, line 3"
expect 3 "$TOK" encode --tokenizer u.model --output kept bad.jsonl
no_file kept
no_temps .
expect 3 "$TOK" encode --tokenizer u.model --json-keys absent --input_format jsonl text.jsonl
err_has 'line 1: the object has no key "absent"'
printf 'a\377\376bc\n' >raw
expect 0 "$TOK" encode --tokenizer u.model raw
err_has "2 invalid UTF-8 bytes were taken as U+FFFD"

t "a pipe is written to, of a link the file is replaced, and a folder stays"
mkfifo pipe
cat pipe >piped &
expect 0 "$TOK" encode --tokenizer u.model --output pipe text.txt
wait
check [ -p pipe ]
same piped ids
echo old >target
ln -s target link
expect 0 "$TOK" encode --tokenizer u.model --overwrite --output link text.txt
check [ -L link ]
same target ids
mkdir folder
expect 2 "$TOK" encode --tokenizer u.model --output folder text.txt
err_has "folder: is a folder, but the output is a file"
expect 4 "$TOK" convert u.model pipe --to huggingface
err_has "a device or a pipe of that name exists"
check [ -p pipe ]
no_temps .

t "options that do not fit"
expect 2 "$TOK" encode text.txt
err_has "no tokenizer was named"
expect 2 "$TOK" encode --tokenizer u.model --format docs --append-eod text.txt
err_has "without their end"
expect 2 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 70000 --format u16 n
err_has "use u32"
expect 2 "$TOK" encode --tokenizer u.model --format u16 --output_format piece text.txt
err_has "--output_format piece"
expect 2 "$TOK" encode --tokenizer u.model --input_format tsv text.txt
err_has "auto, text, jsonl or parquet"
expect 2 "$TOK" encode --tokenizer u.model --tokenizer-type WhitespaceTokenizer text.txt
err_has "is not what WhitespaceTokenizer reads"
expect 2 "$TOK" --bogus
expect 2 "$TOK" -q
err_has "needs a verb"

t "models that cannot be used"
head -c 20000 u.model >cut.model
expect 3 "$TOK" encode --tokenizer cut.model text.txt
err_has "cut.model"
expect 3 "$TOK" encode --tokenizer text.txt text.txt
err_has "text.txt: neither a tokenizer.json"
expect 4 "$TOK" encode --tokenizer none.model text.txt
err_has "none.model"

t "it is a good neighbour in pipelines"
expect 0 sh -c 'yes "ba ko" | "$0" encode --tokenizer u.model | head -n 3' "$TOK"
check [ "$(wc -l <.out)" = 3 ]
check [ ! -s .err ]
expect 141 bash -c 'set -o pipefail; yes "ba ko" | "$0" encode --tokenizer u.model | head -n 3' "$TOK"
check [ ! -s .err ]
expect 4 sh -c '"$0" encode --tokenizer u.model text.txt >/dev/full' "$TOK"
err_has "standard output: the disk is full"
expect 3 bash -c 'set -o pipefail; zstd -qc text.jsonl | head -c 4000 | "$0" encode --tokenizer u.model --format docs - | "$0" decode --tokenizer u.model - >/dev/null' "$TOK"
err_has "standard input"
err_has "ends before its end mark"

t "a stream of another tokenizer"
"$TOK" encode --tokenizer u.model --format docs text.txt >u.docs
expect 2 "$TOK" decode --tokenizer g.model u.docs
err_has "written with the tokenizer of digest"
expect 3 sh -c 'head -c 1000 u.docs | "$0" decode --tokenizer u.model' "$TOK"
err_has "ends before its end mark"

t "ids that cannot be decoded"
echo '1 2 x' >i
expect 3 "$TOK" decode --tokenizer u.model i
err_has "i, line 1: byte 4: 'x' is not an id"
echo '{"ids": [1, 400]}' >i
expect 3 "$TOK" decode --tokenizer u.model i
err_has "i, line 1: id 400 is outside the vocabulary of 333"
echo '{"ids": "x"}' >i
expect 3 "$TOK" decode --tokenizer u.model i
err_has "expected an array of ids"
expect 2 "$TOK" decode --tokenizer u.model --format u16 i
err_has "--format: expected text or json, got 'u16'"

t "places of ids"
printf '{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"<unk>":0,"one":1,"zwö":2},"unk_token":"<unk>"}}' >places.json
printf 'One  ZWÖ é\n\n' >w
expect 0 "$TOK" encode --tokenizer places.json --offsets char w
out_is "$(printf '1:0-3 2:5-8 0:9-10\n\n')"
expect 0 "$TOK" encode --tokenizer places.json --offsets byte --format json w
out_is "$(printf '{"ids":[1,2,0],"offsets":[[0,3],[5,9],[10,12]]}\n{"ids":[],"offsets":[]}')"
expect 0 "$TOK" encode --tokenizer places.json --offsets char --format json --output_format piece w
out_is "$(printf '{"pieces":["one","zwö","<unk>"],"offsets":[[0,3],[5,8],[9,10]]}\n{"pieces":[],"offsets":[]}')"
printf ' one\302\205 two <|endoftext|>\n' >w
expect 0 "$TOK" encode --tokenizer vocab.json --specials parse --append-eod --offsets byte w
out_is '1:1-4 2:7-10 3:11-24 3:0-0'
printf ' 3\t7\n' >w
expect 0 "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 9 --offsets char w
out_is '3:1-2 7:3-4'
expect 0 "$TOK" encode --tokenizer u.model --specials parse --offsets byte --format json --output_format piece text.jsonl
check python3 -c "
import json
for a, b in zip(map(json.loads, open('text.jsonl')), map(json.loads, open('.out'))):
    got = [a['text'][i:k] for i, k in b['offsets']]
    assert b['offsets'][0][0] == 0 and b['offsets'][-1][1] == len(a['text']), (a, b)
    assert got[1:] == [p.replace('\u2581', ' ') for p in b['pieces']][1:], (got, b)"
for f in u16 u32 docs; do
    expect 2 "$TOK" encode --tokenizer places.json --offsets char --format $f w
    err_has "--offsets goes with --format text and json only"
    out_is ""
done

t "pieces with a NUL in them"
cat >nul.json <<'END'
{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"},
 "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "a\u0000b": 2, "\u0000": 3}, "unk_token": "<unk>"}}
END
echo '{"text": "a\u0000b a \u0000"}' >nul.jsonl
for more in "" "--offsets char" "--overflow --truncation 9"; do
    expect 0 "$TOK" encode --tokenizer nul.json --format json --output_format piece $more nul.jsonl
    out_has '{"pieces":["a\u0000b","a","\u0000"]'
done
expect 0 "$TOK" inspect --json nul.json
out_has '"tokens_tested":3,"parts_of_characters":0,"unreachable_tokens":0'

t "a text in the place of a file's name, a preset of another verb"
expect 4 "$TOK" encode --tokenizer vocab.json "one two"
err_has "one two: no such file"
err_has "hint: arguments of the verb are files; for a text itself: echo ... | "
expect 4 "$TOK" decode --tokenizer vocab.json 1 2
err_has "for ids themselves: echo ... | "
expect 0 "$TOK" encode --tokenizer vocab.json --preset ucllm s
err_has "--preset has no effect in $(basename "$TOK") encode"

t "the help of --engine says that the library may be an older one"
expect 0 "$TOK" encode --help
tr -s ' \n' ' ' <.out >flat
check grep -q "or the libsentencepiece that weft was built with, which may be older and then differs" flat

t "on a terminal the meter moves within one long line"
cat >meter.py <<'END'
import os, pty, re, select, subprocess, sys, time
screen, terminal = pty.openpty()
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal)
os.close(terminal)
said, until = b"", time.monotonic() + 60
while not re.search(rb"[1-9][0-9.]* MB", said):
    assert time.monotonic() < until, said
    p.stdin.write(b"abc " * (1 << 18))  # the line has not ended
    p.stdin.flush()
    while select.select([screen], [], [], 0.05)[0]:
        said += os.read(screen, 4096)
p.stdin.close()
assert p.wait() == 0
END
expect 0 python3 meter.py "$TOK" encode --tokenizer vocab.json -
