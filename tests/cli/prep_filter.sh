# SPDX-License-Identifier: Apache-2.0
# prep build --min-bytes, --max-bytes, --min-tokens, --max-tokens: what is left is what a run of the rest gives.

null="--tokenizer-type NullTokenizer --vocab-size 50256"
kill_at=$BUILD/tests/kill_at
build() { "$PREP" build --quiet "$@"; }
both() { same "$1.bin" "$2.bin"; same "$1.idx" "$2.idx"; }
# records N LEAST MOST: of i mod 97 tokens, those with LEAST to MOST; the bytes of a text are 4 t - 1, of b 3
records() {
    awk -v n="$1" -v least="$2" -v most="$3" 'BEGIN { for (i = 0; i < n; i++) {
        t = i % 97; if (t < least || t > most) continue
        s = ""; for (j = 0; j < t; j++) s = s (j ? " " : "") 100 + (i + j) % 900
        printf "{\"text\": \"%s\", \"b\": \"%d\"}\n", s, 100 + i % 900 } }'
}
records 30000 0 96 >all.jsonl
records 30000 20 60 >some.jsonl

t "limits of tokens, and of bytes"
expect 0 build --input some.jsonl $null --append-eod --json-keys text b --output-prefix want
expect 0 "$PREP" build --input all.jsonl $null --append-eod --json-keys text b --min-tokens 1 --max-tokens 60 --min-bytes 3 --workers 3 --log-interval 10000 --output-prefix x
err_has "skipped for their length"
expect 0 build --input all.jsonl $null --append-eod --min-tokens 20 --max-tokens 60 --output-prefix o
both o_text_document want_text_document
check grep -q "\"filtered_records\": $((30000 - $(wc -l <some.jsonl)))," o_text_document.manifest.json
check grep -q '"min-tokens": "20"' o_text_document.manifest.json
expect 0 "$PREP" inspect o_text_document
out_has "others for their length $((30000 - $(wc -l <some.jsonl)))"
expect 0 build --input all.jsonl $null --append-eod --min-bytes 79 --max-bytes 239 --output-prefix o2
both o2_text_document want_text_document

t "one text outside of the limits leaves out all of its record"
expect 0 build --input all.jsonl $null --json-keys text b --append-eod --max-bytes 239 --max-tokens 60 --output-prefix m
expect 0 build --input all.jsonl $null --json-keys b text --append-eod --max-bytes 239 --output-prefix n
both m_text_document n_text_document
both m_b_document n_b_document
expect 0 "$PREP" inspect m_b_document
out_has "documents   $(records 30000 0 60 | wc -l)"

t "a second run does nothing; one with other limits names them"
expect 0 "$PREP" build --input all.jsonl $null --append-eod --min-tokens 20 --max-tokens 60 --output-prefix o
err_has "nothing to do"
expect 2 build --input all.jsonl $null --append-eod --min-tokens 21 --max-tokens 60 --output-prefix o
err_has "--min-tokens 20; this command says 21"
expect 2 build --input all.jsonl $null --append-eod --min-tokens 20 --output-prefix o
err_has "--max-tokens"

t "with partitions a record keeps its place, also one left out and one that is bad"
{ head -n 5000 all.jsonl; echo '{bad'; tail -n +5001 all.jsonl; } >bad.jsonl
expect 0 build --input bad.jsonl $null --min-tokens 20 --max-tokens 60 --on-bad-record skip --partitions 3 --output-prefix p
for i in 0 1 2; do
    awk -v i=$i '(NR - 1) % 3 == i' bad.jsonl >part.jsonl
    expect 0 build --input part.jsonl $null --min-tokens 20 --max-tokens 60 --on-bad-record skip --overwrite --output-prefix w
    both p_${i}_text_document w_text_document
done

t "ids, as JSONL and as the framed stream"
"$PREP" export o_text_document --ids --output ids.jsonl 2>/dev/null
expect 0 sh -c '"$PREP" build --quiet --pretokenized ids.jsonl --vocab-size 50257 --json-keys text --min-tokens 41 --max-tokens 50 --output-prefix j'
records 30000 41 50 >fewer.jsonl
expect 0 build --input fewer.jsonl $null --output-prefix f
both j_text_document f_text_document
expect 0 sh -c '"$TOK" encode --tokenizer-type NullTokenizer --vocab-size 50256 --format docs all.jsonl >all.docs'
for p in 1 3; do
    expect 0 build --pretokenized all.docs --min-tokens 41 --max-tokens 50 --partitions $p --overwrite --output-prefix s
    expect 0 build --input all.jsonl $null --min-tokens 41 --max-tokens 50 --partitions $p --overwrite --output-prefix s2
    both s_text_document s2_text_document
done

t "a record of more than 4 MiB"
{ head -n 50 all.jsonl; printf '{"text": "'; yes 12345 | head -n 800000 | tr '\n' ' '; echo '", "b": "1"}'; sed -n 50,99p all.jsonl; } >long.jsonl
expect 0 build --input long.jsonl $null --append-eod --min-tokens 800000 --output-prefix l
expect 0 "$PREP" inspect l_text_document
out_has "documents   1"
out_has "tokens      800001"
for limit in "--max-tokens 799999" "--max-bytes 4799999"; do
    expect 0 build --input long.jsonl $null $limit --overwrite --output-prefix l
    expect 0 "$PREP" inspect l_text_document
    out_has "documents   100"
done
expect 0 build --input long.jsonl $null --max-bytes 4800000 --overwrite --output-prefix l
expect 0 "$PREP" inspect l_text_document
out_has "documents   101"

t "killed, the same command resumes and counts right"
"$kill_at" 1000000 true
if [ $? = 3 ]; then
    for n in 20 35 50 data:1 data:2; do
        "$kill_at" $n "$PREP" build --quiet --input all.jsonl $null --append-eod --min-tokens 20 --max-tokens 60 --sync-interval 0 --output-prefix k 2>.err
        expect 0 build --input all.jsonl $null --append-eod --min-tokens 20 --max-tokens 60 --sync-interval 0 --output-prefix k
        both k_text_document o_text_document
        same k_text_document.manifest.json o_text_document.manifest.json
        rm -f k_*
    done
    struck
else
    skip "processes may not be traced here"
fi

t "contradictory limits are rejected"
expect 2 build --pretokenized ids.jsonl --vocab-size 50257 --min-bytes 3 --output-prefix z
err_has "--min-bytes is for texts, and --pretokenized has ids"
expect 2 build --input all.jsonl $null --min-tokens 5 --max-tokens 4 --output-prefix z
err_has "--min-tokens 5 exceeds --max-tokens 4: no document can match"
expect 2 build --input all.jsonl $null --min-tokens -1 --output-prefix z
check [ -z "$(ls z* 2>/dev/null)" ]
