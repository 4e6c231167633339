# SPDX-License-Identifier: Apache-2.0
# One long document without split points: tok encode and prep build keep below 256 MiB with every engine, from plain text with
# one worker and from JSONL with two, and their ids are equal. WEFT_FULL=1 takes 300 MB of nine texts, else 8 MB of letters.

limit=262144 # KiB
if [ -n "${WEFT_FULL:-}" ]; then mb=300 kinds="letters dna ab digits spaces newlines marks han japanese"; else mb=8 kinds=letters; fi
below() { check [ "$(tail -n 1 .peak)" -le $limit ]; }
peak() { TMPDIR=$PWD /usr/bin/time -f %M -o .peak "$@"; }

[ -x /usr/bin/time ] || { t "long documents"; skip "no /usr/bin/time"; return 0; }

# long_document KIND: x.jsonl, and x.txt unless it has newlines
long_document() {
    python3 - "$1" $mb "$DATA/text/wagahaiwa_nekodearu.txt" <<'END'
import json, random, sys

kind, n, r = sys.argv[1], int(sys.argv[2]) * 1000000, random.Random(1)
one = {"letters": "a", "ab": "ab", "spaces": " ", "newlines": "\n", "marks": "\u0301", "han": "\u6f22", "dna": "ACGT", "digits": "0123456789"}
if kind == "japanese":
    words = "".join(c for c in open(sys.argv[3], encoding="utf-8").read() if "\u3040" < c < "\ua000")
elif len(one[kind]) > 2:
    words = "".join(r.choices(one[kind], k=1000003))
else:
    words = one[kind]
text = words * (n // len(words.encode()))
with open("x.jsonl", "w", encoding="utf-8") as f:
    json.dump({"text": text}, f, ensure_ascii=False)
if kind != "newlines":
    with open("x.txt", "w", encoding="utf-8") as f:
        f.write(text + "\n")
END
}

# both TOKENIZER: ids of tok encode and of prep build
both() {
    from=x.txt pattern=
    case $1 in *.tiktoken) pattern="--tiktoken-pattern cl100k" ;; esac # ranks may be few, and of no known encoding
    [ -f x.txt ] || from=x.jsonl
    expect 0 peak "$TOK" encode --quiet --overwrite --tokenizer "$1" $pattern --workers 1 --format docs --output x.docs $from
    below
    expect 0 "$PREP" build --quiet --overwrite --pretokenized x.docs --output-prefix a
    expect 0 peak "$PREP" build --quiet --overwrite --tokenizer "$1" $pattern --workers 2 --input x.jsonl --output-prefix b
    below
    same a_text_document.bin b_text_document.bin
    same a_text_document.idx b_text_document.idx
}

other() {
    python3 - "$1" <<'END'
import json, sys

t = json.load(open(sys.argv[1], encoding="utf-8"))
pattern = r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,4}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
t["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
json.dump(t, open("other.json", "w"))
END
}

all=
for f in gpt2/tokenizer.json cl100k/cl100k_base.tiktoken mistral-7b/tokenizer.model bert-base-cased/tokenizer.json; do
    [ ! -f "$DATA/tokenizers/$f" ] || all="$all $DATA/tokenizers/$f"
done
if [ -f "$DATA/tokenizers/gpt2/tokenizer.json" ]; then
    other "$DATA/tokenizers/gpt2/tokenizer.json"
    echo a | "$TOK" encode --tokenizer other.json >other.ids 2>other.err && all="$all other.json" # else built without PCRE2
fi
if [ -x "$STORIES" ]; then
    "$STORIES" --bytes 300K --output stories.jsonl
    "$TOK" train --quiet --input stories.jsonl --model_prefix unigram --model_type unigram --vocab_size 600
    all="$all unigram.model"
    if [ -n "${WEFT_FULL:-}" ]; then "$TOK" convert --quiet unigram.model hf/tokenizer.json; all="$all hf/tokenizer.json"; fi
fi
for kind in $kinds; do
    rm -f x.txt
    [ $kind != japanese ] || [ -f "$DATA/text/wagahaiwa_nekodearu.txt" ] || { t "$kind"; skip "no WEFT_TEST_DATA"; continue; }
    long_document $kind
    for f in $all; do
        t "$mb MB of $kind, $(basename "$(dirname "$f")")/$(basename "$f")"
        both "$f"
    done
done

t "a text that must be in memory whole is refused beyond a limit: component, line, byte and cure; nothing is left behind"
python3 - <<'END2'
import json

json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
           "post_processor": None, "decoder": None, "model": {"type": "BPE", "dropout": 0.1, "unk_token": None,
           "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
           "vocab": {"a": 0, "b": 1, "aa": 2}, "merges": ["a a"]}}, open("drops.json", "w"))
json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [{"id": 3, "content": "<x>", "single_word": False,
           "lstrip": False, "rstrip": False, "normalized": True, "special": False}], "normalizer": {"type": "Lowercase"},
           "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False},
           "post_processor": None, "decoder": None, "model": {"type": "BPE", "dropout": None, "unk_token": None,
           "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
           "vocab": {"a": 0, "b": 1, "aa": 2}, "merges": ["a a"]}}, open("first.json", "w"))
with open("kept.txt", "w") as f:
    f.write("ab\n" + "a" * 13000000 + "\nab\n")
with open("kept.jsonl", "w") as f:
    f.write('{"text": "ab"}\n{"text": "' + "a" * 13000000 + '"}\n{"text": "ab"}\n')
END2
expect 3 "$TOK" encode --quiet --tokenizer first.json --output kept.docs kept.txt
err_has "has no split point for more than 5 MiB, but pre_tokenizer 1 of 1, Metaspace, needs it in one piece: split the line"
err_has "or raise --long-text-memory"
for workers in 1 2; do
    for f in kept.txt kept.jsonl; do
        format=text
        [ $f = kept.txt ] || format=jsonl
        rm -f kept_text_document.* kept.docs
        expect 3 "$TOK" encode --quiet --tokenizer drops.json --workers $workers --format docs --output kept.docs $f
        err_has "$f, line 2: the text from byte 0 on has no split point for more than 12 MiB, but the dropout of merges needs it"
        err_has "in one piece: split the line"
        no_file kept.docs
        expect 3 "$PREP" build --quiet --tokenizer drops.json --workers $workers --input-format $format --input $f --output-prefix kept
        err_has "the dropout of merges needs it in one piece: split the line"
        err_has "line 2"
        no_file kept_text_document.bin
        no_file kept_text_document.idx
    done
done

t "--long-text-memory raises the limit"
printf 'aaab\n' >short.txt
for f in first drops; do
    expect 0 "$TOK" encode --quiet --tokenizer $f.json --long-text-memory 1024 --format docs --output kept.docs --overwrite kept.txt
    check [ "$("$TOK" decode --tokenizer $f.json kept.docs | tr -d ' \n' | wc -c)" = 13000004 ]
done
expect 3 "$TOK" encode --quiet --tokenizer first.json --long-text-memory 512 --format docs --output kept.docs --overwrite kept.txt
err_has "has no split point for more than 10 MiB"
expect 0 "$PREP" build --quiet --tokenizer first.json --long-text-memory 1024 --input-format text --input kept.txt --output-prefix kept
has_file kept_text_document.bin
expect 2 "$TOK" encode --quiet --tokenizer first.json --long-text-memory 12 short.txt
err_has "must be at least 256"
