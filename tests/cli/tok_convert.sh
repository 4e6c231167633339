# SPDX-License-Identifier: Apache-2.0
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 500; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
mkdir h
"$TOK" train -q --type bpe --input text.txt --model_prefix h/ --vocab_size 400 --special_tokens '<|endoftext|>'
"$TOK" train -q --input text.txt --model_prefix b --vocab_size 60 --model_type bpe --normalization_rule_name identity
"$TOK" train -q --input text.txt --model_prefix u --vocab_size 60 --normalization_rule_name identity \
    --user_defined_symbols '<sep>'
"$TOK" train -q --input text.txt --model_prefix c --vocab_size 30 --model_type char
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nba\n##ko\nmi\n' >vocab.txt

t "bytes: tokenizer.json, its two files, ranks"
expect 0 "$TOK" convert h/tokenizer.json out/ --to gpt2 --proof text.txt
out_has "documents_other_ids       0"
same out/merges.txt h/merges.txt
same out/vocab.json h/vocab.json
expect 0 "$TOK" convert out/vocab.json back.json --proof text.txt
same back.json h/tokenizer.json
expect 0 "$TOK" convert h/tokenizer.json new/folder/vocab.json
same new/folder/merges.txt h/merges.txt
expect 0 "$TOK" convert -q h/tokenizer.json h/tokenizer2.json
same h/tokenizer2.json h/tokenizer.json

t "ranks"
expect 0 "$TOK" convert h/tokenizer.json x.tiktoken --proof text.txt
err_has "the special token <|endoftext|>, id 0, cannot be stored in the file"
err_has "--tiktoken-pattern"
expect 0 "$TOK" convert x.tiktoken x.json --tiktoken-pattern gpt2 --proof text.txt
expect 0 "$TOK" diff x.json h/tokenizer.json text.txt
expect 2 "$TOK" convert x.tiktoken y.json
err_has "so its pattern is not known"

t "ranks need their order and all bytes"
python3 -c "
import json
f = json.load(open('h/tokenizer.json'))
m = f['model']['merges']
m[0], m[1] = m[1], m[0]
json.dump(f, open('swapped.json', 'w'))"
expect 2 "$TOK" convert swapped.json y.tiktoken
err_has "merges that are not in the order of their ids: merge 1 makes"
python3 -c "
import json
f = json.load(open('h/tokenizer.json'))
del f['model']['vocab']['!']
json.dump(f, open('holes.json', 'w'))"
expect 2 "$TOK" convert holes.json y.tiktoken
err_has "a vocabulary without the byte 0x21"
no_file y.tiktoken

t "a SentencePiece model as a tokenizer.json"
expect 0 "$TOK" convert b.model b.json --proof text.txt
expect 0 "$TOK" diff b.model b.json text.txt
expect 0 "$TOK" encode --tokenizer b.json text.txt
cp .out ids
expect 0 "$TOK" encode --tokenizer b.model text.txt
same .out ids

t "and back"
expect 0 "$TOK" convert b.json back.model --proof text.txt
expect 0 "$TOK" diff b.model back.model text.txt
out_has "same_id                   60"
expect 0 "$TOK" inspect back.model
out_has "bos                         1"
expect 2 "$TOK" convert h/tokenizer.json x.model
err_has "a SentencePiece model cannot express the pre_tokenizer ByteLevel"

t "what its proof finds is listed, and nothing is written"
printf 'ba ko\n<sep>ba\n<sep>\n' >bad.txt
expect 7 "$TOK" convert u.model u.json --proof bad.txt
err_has "different ids for 1 of 3 documents: nothing was written"
out_has '  2  0  '
no_file u.json
no_temps .
expect 0 "$TOK" convert u.model u.json
err_has "a text that is nothing but a user-defined piece gets no"
err_has "written unchecked"

t "segmentations whose sums of scores rounding decides are named before a proof begins"
ties() {
    python3 - "$1" >"$2" <<'END'
import json, sys
vocab = [["<unk>", 0], ["▁", -3], ["r", -4.5], ["i", -4], ["n", -4.25], ["ri", -6], ["in", float(sys.argv[1])]]
print(json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [
    {"id": 0, "content": "<unk>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
    "normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "post_processor": None, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False}}))
END
}
ties -5.75 ties.json # ri n and r in: -10.25
ties -5.75001 near.json
ties -5.7 apart.json
for f in ties near; do
    expect 0 "$TOK" convert $f.json $f.model
    err_has "$f.json: 1 text has two segmentations with nearly the same sum of scores, as \"rin\" of \"ri\" and \"n\" or of \"r\" and \"in\":"
    expect 4 "$TOK" convert $f.model $f-2.json --proof missing.txt
    err_has "$f.model: 1 text has two segmentations"
done
expect 0 "$TOK" convert apart.json apart.model
err_lacks "segmentations"
expect 0 "$TOK" convert apart.model apart2.json
err_lacks "segmentations"
expect 0 "$TRAIN" run -q --num-layers 1 --hidden-size 16 --num-attention-heads 2 --max-position-embeddings 16 --seq-length 16 --micro-batch-size 1 \
    --train-iters 1 --lr 1e-3 --eval-iters 0 --mock-data --tokenizer near.model --save near-run --export-hf near-hf
err_has "near.model: 1 text has two segmentations"
expect 0 "$CONVERT" export -q near-run near-hf2
err_has "1 text has two segmentations"

t "texts that begin with user-defined pieces, a line feed among them, and lines that end in CR LF"
"$TOK" train -q --preset ucllm --input text.txt --model_prefix n --vocab_size 330
printf '%s\n' '{"text":"\nba ko\n\n"}' '{"text":"<s>ba"}' '{"text":"ba\r\nko  mi<EOD>"}' '{"text":" \n"}' \
    '{"text":"\r\nba"}' '{"text":""}' '{"text":"<s></s><pad>"}' '{"text":"ba"}' >begin.jsonl
expect 0 "$TOK" convert n.model n.json --proof begin.jsonl
out_has "documents_other_ids       0"
expect 0 "$TOK" convert n.json n2.model --proof begin.jsonl
out_has "documents_other_ids       0"

t "a vocab.txt"
expect 0 "$TOK" convert vocab.txt w.json
err_has "[BOS], id 8, which Megatron-LM adds"
expect 0 "$TOK" convert w.json w.txt
err_has "--tokenizer-type BertWordPieceLowerCase"
same w.txt vocab.txt

t "what a target cannot express is named"
expect 2 "$TOK" convert c.model c.json
err_has "a tokenizer.json cannot express a SentencePiece model of type char"
expect 2 "$TOK" convert b.json x/ --to gpt2
err_has "vocab.json with merges.txt cannot express the normalizer"
expect 2 "$TOK" convert w.json z.tiktoken
err_has "tiktoken's ranks cannot express a model of type WordPiece"
expect 2 "$TOK" convert b.model z.tiktoken
err_has "tiktoken's ranks cannot express a SentencePiece model of type bpe"
no_temps .

t "what only a tokenizer.json has: kept there, named elsewhere"
python3 -c "
import json
f = json.load(open('h/tokenizer.json'))
f['model']['dropout'] = 0.1
f['truncation'] = {'direction': 'Right', 'max_length': 7, 'strategy': 'LongestFirst', 'stride': 0}
f['padding'] = {'strategy': 'BatchLongest', 'direction': 'Right', 'pad_to_multiple_of': None, 'pad_id': 0, 'pad_type_id': 0,
                'pad_token': '<|endoftext|>'}
json.dump(f, open('extras.json', 'w'))"
expect 0 "$TOK" convert extras.json extras2.json --proof text.txt
out_has "documents_other_ids       0"
out_has "compared_without          the dropout of merges (0.1), the truncation (to 7 ids), the padding"
check python3 -c "
import json
a, b = (json.load(open(f'extras{x}.json')) for x in ('', '2'))
assert b['model']['dropout'] == 0.1 and all(a[k] == b[k] for k in ('truncation', 'padding')), b"
expect 0 "$TOK" extend extras.json --add-special x --output extras3.json
check grep -q '"dropout": 0.1' extras3.json
expect 0 "$TOK" convert extras.json x/ --to gpt2 --proof text.txt
out_has "compared_without"
err_has "the dropout of merges (0.1) is left out"
err_has "the truncation (to 7 ids) is left out"
err_has "the padding is left out"
expect 0 "$TOK" prune extras.json --keep-used text.txt --output extras4.json
check grep -q '"dropout": 0.1' extras4.json

t "what cannot be done"
expect 2 "$TOK" convert b.model
err_has "takes two names"
expect 2 "$TOK" convert b.model b.xyz
err_has "cannot tell the format from the file name"
expect 2 "$TOK" convert h/tokenizer.json y.json --to gpt2
err_has "a file that ends in vocab.json"
expect 3 "$TOK" convert text.txt y.json
err_has "text.txt: neither"
expect 4 "$TOK" convert b.model text.txt/b.json
err_has "text.txt: "
expect 4 "$TOK" convert b.model z.json --proof missing.txt
no_file z.json
no_temps .
