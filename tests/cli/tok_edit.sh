# SPDX-License-Identifier: Apache-2.0
# extend, merge and prune
awk 'BEGIN { srand(1); n = split("ba ko mi tsu ran del o vi sta en", p, " ")
    for (i = 0; i < 500; i++) { s = ""
        for (k = 0; k < 14; k++) s = s p[int(rand() * n) + 1] (k % 3 == 2 ? " " : ""); print s } }' >text.txt
head -n 20 text.txt >some.txt
mkdir h
"$TOK" train -q --type bpe --input text.txt --model_prefix h/ --vocab_size 400 --special_tokens '<|endoftext|>'
"$TOK" train -q --input text.txt --model_prefix g --vocab_size 60 --model_type bpe
"$TOK" train -q --input text.txt --model_prefix e --vocab_size 60 --user_defined_symbols '<EOD>' --control_symbols '<s2>'
printf 'tsuran!\n<|user|>\n' >new.txt
printf '["a\\nb", "tsuran"]' >new.json
cat >words.json <<'END'
{"version": "1.0", "truncation": null, "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null,
  "pad_id": 5, "pad_type_id": 0, "pad_token": "[PAD]"},
 "added_tokens": [{"id": 4, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
  "special": true}],
 "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
  {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [4], "tokens": ["[CLS]"]}}},
 "decoder": null,
 "model": {"type": "WordLevel", "vocab": {"ba": 0, "[UNK]": 1, "ko": 2, "mi": 3, "[CLS]": 4, "[PAD]": 5}, "unk_token": "[UNK]"}}
END

t "extend: ids stay, new ones follow, rows say how to begin"
expect 0 "$TOK" extend h/tokenizer.json --add new.txt --add-special '<|tool|>' --output x.json
err_has "403 ids, 3 of them new"
check [ "$(head -n 2 x.json.rows | tr '\n' ' ')" = "weft-rows 1 400 403 0 0 " ]
check [ "$(grep -c ' -1 ' x.json.rows)" = 3 ]
check grep -q '^400 -1 [0-9]' x.json.rows
echo 'a<|tool|> tsuran! <|user|>' >in.txt
expect 0 "$TOK" encode --tokenizer x.json in.txt
out_has " 401 "
out_has " 402"
check [ "$(tr ' ' '\n' <.out | grep -c '^400$')" = 0 ]
expect 0 "$TOK" encode --tokenizer x.json --specials parse in.txt
out_has " 400 "

t "extend: a SentencePiece model, and Megatron's pieces behind one"
expect 0 "$TOK" extend g.model --add new.json --output y.model
expect 0 "$TOK" inspect --json y.model
out_has '"61":{"piece":"tsuran","kind":"user-defined"}'
expect 0 "$TOK" inspect --json e.model
check python3 -c "
import json
f = json.load(open('.out'))
json.dump([f['vocab_size'], f['eod'], f['symbols']], open('before', 'w'))"
expect 0 "$TOK" extend e.model --add new.txt --output z.model
expect 0 "$TOK" inspect --json z.model
check python3 -c "
import json
f, (size, eod, symbols) = json.load(open('.out')), json.load(open('before'))
assert f['vocab_size'] == size + 2 and f['eod'] == eod, f
assert all(f['symbols'][k]['piece'] == v['piece'] for k, v in symbols.items()), f"

t "extend: what is there is said"
expect 0 "$TOK" extend g.model --add-special '<s>' --output w.model
err_has "<s> already exists"
expect 0 "$TOK" diff w.model g.model text.txt

t "prune: what is used"
expect 0 "$TOK" prune h/tokenizer.json --keep-used some.txt --output p.json
expect 0 "$TOK" encode --tokenizer p.json --output_format piece some.txt
cp .out pieces
expect 0 "$TOK" encode --tokenizer h/tokenizer.json --output_format piece some.txt
same .out pieces
check [ "$(wc -l <p.json.rows)" -lt 380 ]
check grep -q '^0 0$' p.json.rows
expect 0 "$TOK" prune g.model --keep-used some.txt --output p.model
expect 0 "$TOK" encode --tokenizer p.model --output_format piece some.txt
cp .out pieces
expect 0 "$TOK" encode --tokenizer g.model --output_format piece some.txt
same .out pieces

t "prune: to a size"
expect 0 "$TOK" prune h/tokenizer.json --size 300 --output q.json
err_has "q.json: 300 ids"
expect 0 "$TOK" prune h/tokenizer.json --size 300 --keep-used some.txt --overwrite --output q.json
expect 0 "$TOK" prune q.json --size 300 --output q3.json
err_has "nothing was removed: all 300 ids are used, or fit --size"
same q.json q3.json
expect 2 "$TOK" prune h/tokenizer.json --size 200 --output q2.json
err_has "200 pieces are too few: 257 special tokens"
no_file q2.json
expect 3 "$TOK" prune g.model --size 3 --output none.model
err_has "the converted tokenizer cannot be read back: none.model: not a usable SentencePiece model: it has no piece of text"
no_file none.model
check "$TOK" train -q --model_type word --input some.txt --model_prefix word --vocab_size 20 --hard_vocab_limit=false
expect 0 "$TOK" prune word.model --size 8 --output word8.model
err_has "word8.model: 8 ids"

t "prune: ids of templates and padding"
echo mi >mi.txt
expect 0 "$TOK" prune words.json --keep-used mi.txt --output v.json
check python3 -c "
import json
f = json.load(open('v.json'))
assert f['model']['vocab'] == {'[UNK]': 0, 'mi': 1, '[CLS]': 2, '[PAD]': 3}, f
assert f['post_processor']['special_tokens']['[CLS]']['ids'] == [2] and f['padding']['pad_id'] == 3, f
assert f['added_tokens'][0]['id'] == 2 and f['post_processor']['pair'] == [], f"
expect 0 "$TOK" encode --tokenizer v.json mi.txt
out_is "2 1"

t "prune: a special token that is a word, outside a vocabulary with holes"
cat >holes.json <<'END'
{"version": "1.0", "added_tokens": [{"id": 4, "content": "ko", "single_word": false, "lstrip": false, "rstrip": false,
  "normalized": false, "special": true}],
 "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
 "model": {"type": "WordLevel", "vocab": {"ba": 0, "mi": 2, "tsu": 5, "[UNK]": 6}, "unk_token": "[UNK]"}}
END
echo 'ba ko tsu' >holes.txt
expect 0 "$TOK" prune holes.json --keep-used holes.txt --output full.json
check [ "$(tail -n 4 full.json.rows | tr '\n' ,)" = "0 0,1 5,2 6,3 4," ]
expect 0 "$TOK" encode --tokenizer full.json holes.txt
out_is "0 2 1"
expect 0 "$TOK" encode --tokenizer full.json --specials parse holes.txt
out_is "0 3 1"

t "a special token that has to become a piece, which text may become then"
expect 0 "$TOK" merge holes.json words.json --output joined.json
err_has "the special token ko is a piece now"
expect 0 "$TOK" encode --tokenizer joined.json holes.txt
out_is "0 4 5"

t "lists: vocab.json and merges.txt"
expect 0 "$TOK" prune h/vocab.json --keep-used some.txt --output small/
err_has "small/vocab.json: "
has_file small/merges.txt
expect 0 "$TOK" encode --tokenizer small/vocab.json --output_format piece some.txt
cp .out pieces
expect 0 "$TOK" encode --tokenizer h/vocab.json --output_format piece some.txt
same .out pieces
expect 0 "$TOK" merge small/vocab.json h/vocab.json --output joined/
err_has "joined/vocab.json: 400 ids"
expect 1 "$TOK" diff small/vocab.json joined/vocab.json
out_has "other_id                  0"
out_has "only_in_a                 0"
expect 0 "$TOK" extend h/vocab.json --add-special '<|a|>' --output more/
err_has "<|a|> becomes a piece, but the file does not say that it is special"
expect 2 "$TOK" extend h/vocab.json --add new.txt --output v-vocab.json
err_has "cannot express a token that its own text does not become: tsuran!"
no_file v-vocab.json
expect 2 "$TOK" extend h/vocab.json --add new.txt --output more/x.json
err_has "the name is that of a tokenizer.json"

t "lists: ranks"
"$TOK" convert -q h/tokenizer.json r.tiktoken
expect 2 "$TOK" prune r.tiktoken --size 300 --output s.tiktoken
err_has "give --tiktoken-pattern"
expect 0 "$TOK" prune r.tiktoken --tiktoken-pattern gpt2 --keep-used some.txt --output s.tiktoken
err_has "give --tiktoken-pattern r50k"
expect 1 "$TOK" diff --tiktoken-pattern r50k s.tiktoken r.tiktoken
out_has "only_in_a                 0"
expect 0 "$TOK" merge s.tiktoken r.tiktoken --tiktoken-pattern r50k --output t.tiktoken
err_has "t.tiktoken: 399 ids"
printf 'weft\n' >weft.txt
expect 0 "$TOK" extend r.tiktoken --tiktoken-pattern r50k --add weft.txt --output u.tiktoken
err_has "new tokens are pieces of the model here"
expect 0 "$TOK" encode --tokenizer u.tiktoken --tiktoken-pattern r50k weft.txt
out_is 400
printf 'two words\n' >two.txt
expect 2 "$TOK" extend r.tiktoken --tiktoken-pattern r50k --add two.txt --output v.tiktoken
err_has "tiktoken's ranks cannot express a token that its own text does not become: two words"
no_file v.tiktoken
expect 2 "$TOK" extend r.tiktoken --tiktoken-pattern r50k --add-special '<a>' --output v.tiktoken
err_has "cannot express a special token: <a>"

t "lists: vocab.txt"
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nba\n##ko\nmi\n' >b.txt
printf 'ba mi\n' >bami.txt
expect 0 "$TOK" prune b.txt --keep-used bami.txt --output c.txt
check [ "$(tr '\n' ' ' <c.txt)" = "[PAD] [UNK] [CLS] [SEP] [MASK] ba mi " ]
check [ "$(tail -n 4 c.txt.rows | tr '\n' ,)" = "5 5,6 7,7 8,8 9," ]
expect 0 "$TOK" extend b.txt --add weft.txt --add-special '<a>' --output d.txt
check [ "$(tail -n 4 d.txt | tr '\n' ' ')" = "[BOS] [EOS] <a> weft " ]
expect 0 "$TOK" merge c.txt b.txt --output e.txt
check [ "$(tail -n 3 e.txt | tr '\n' ' ')" = "[BOS] [EOS] ##ko " ]
printf 'Ba\n' >upper.txt
expect 2 "$TOK" extend b.txt --add upper.txt --output f.txt
err_has "does not become: Ba"
no_temps .

t "merge: an absent member is its default, and the order of members does not matter"
python3 -c "
import json
f = json.load(open('h/tokenizer.json'))
p = f['pre_tokenizer']
assert p['type'] == 'ByteLevel', p
p.pop('use_regex', None)
f['pre_tokenizer'] = dict(reversed(list(p.items())))
json.dump(f, open('absent.json', 'w'))
f['pre_tokenizer'] = {**p, 'use_regex': True}
json.dump(f, open('present.json', 'w'))
f['pre_tokenizer'] = {**p, 'use_regex': False}
json.dump(f, open('other.json', 'w'))"
expect 0 "$TOK" merge absent.json present.json --output alike.json
expect 2 "$TOK" merge absent.json other.json --output unlike.json
err_has "different pre_tokenizers"

t "merge: a union"
expect 0 "$TOK" merge p.json h/tokenizer.json --output m.json
err_has "m.json: 400 ids"
expect 0 "$TOK" diff p.json m.json some.txt
out_has "only_in_a                 0"
expect 0 "$TOK" merge p.model g.model --output m.model
expect 2 "$TOK" merge p.json words.json --output n.json
err_has "p.json and words.json cannot be merged: they have different model types"
expect 2 "$TOK" merge p.json g.model --output n.json
err_has "different formats"

t "merge: pieces with a NUL in them"
python3 - <<'END'
import json
f = json.load(open("p.json"))
for name, more, merges in (("nul", {}, []), ("nul2", {"a\0": 6, "\0": 5}, [["a", "\0"]])):
    f.update(added_tokens=[], normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None)
    f["model"].update(vocab={"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4, **more}, merges=[["a", "b"], *merges])
    json.dump(f, open(f"{name}.json", "w"))
END
expect 0 "$TOK" merge nul.json nul2.json --output nul3.json
check python3 -c "
import json
f = json.load(open('nul3.json'))['model']
assert f['vocab'] == {'a': 0, 'b': 1, 'ab': 2, 'c': 3, 'd': 4, '\\0': 5, 'a\\0': 6} and f['merges'] == [['a', 'b'], ['a', '\\0']], f"

t "what cannot be done"
expect 2 "$TOK" extend g.model --output o.model
err_has "needs --add or --add-special"
expect 2 "$TOK" prune g.model --output o.model
err_has "needs --keep-used or --size"
expect 2 "$TOK" merge g.model --output o.model
err_has "takes two tokenizers"
expect 2 "$TOK" extend g.model --add new.txt
err_has "tok extend needs --output"
expect 2 "$TOK" extend g.model --add new.txt --output o.json
err_has "o.json: the name is that of a tokenizer.json, but the output is a SentencePiece model"
printf 'a\377\n' >bad.txt
expect 3 "$TOK" extend g.model --add bad.txt --output o.model
err_has "bad.txt: line 1 is not UTF-8"
printf '{}' >bad.json
expect 3 "$TOK" extend g.model --add bad.json --output o.model
err_has "bad.json: not an array of tokens"
expect 3 "$TOK" prune text.txt --size 10 --output o.model
no_file o.model
no_temps .
