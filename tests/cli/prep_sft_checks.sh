# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# prep sft: what is wrong with data is said, with counts; --show prints tokens with their masks; --overlong.
sft() { "$PREP" sft "$@" --overwrite --output-prefix o; }
null="--tokenizer-type NullTokenizer --vocab-size 1000"
mkdir v w
printf 'the user and the assistant say hi\n%.0s' 1 2 3 4 >x.txt
expect 0 "$TOK" train --quiet --type bpe --vocab_size 270 --model_prefix v/ --input x.txt
expect 0 "$TOK" extend --quiet v/tokenizer.json --add-special '<|im_start|>' '<|im_end|>' '<s>' '</s>' --output w/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": "</s>"}' >w/tokenizer_config.json
says() { printf '{"messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "%s"}]}\n' "$1" "$2"; }

# warns COUNT: so many warnings in all
warns() { check [ "$(grep -c 'warning: ' .err)" = "$1" ]; }

t "clean data has no warning"
{ says hi 'say hi'; says say hi; } >clean.jsonl
expect 0 sft --input clean.jsonl --tokenizer w --template chatml
warns 0

t "examples with nothing to learn"
{ says hi 'say hi'; echo '{"messages": [{"role": "user", "content": "hi"}]}'; } >barren.jsonl
expect 0 sft --input barren.jsonl --tokenizer w --template chatml
err_has "warning: 1 examples have no token with a loss"
warns 1

t "end tokens never learnt, and learnt with --append-eod"
printf '{"text": "hi"}\n{"text": "say hi"}\n' >ends.jsonl
expect 0 sft --input ends.jsonl --tokenizer w
err_has "warning: 2 of 2 examples learn no end token: a model that learns no end does not stop"
warns 1
expect 0 sft --input ends.jsonl --tokenizer w --append-eod --eod-token '</s>'
warns 0
printf '{"text": "hi</s>"}\n{"text": "say hi"}\n' >half.jsonl
expect 0 sft --input half.jsonl --tokenizer w --specials parse
err_has "warning: 1 of 2 examples learn no end token"

t "nothing to learn in any example is an error, and nothing is written"
rm -f o.*
expect 3 sft --input half.jsonl --tokenizer w --specials parse --response-template 'hi</s>'
err_has "half.jsonl: line 1 on: none of 2 examples has anything to learn"
err_has "'hi</s>', is not in them or ends them"
no_file o.bin
echo '{"messages": [{"role": "user", "content": "hi"}]}' >mute.jsonl
expect 3 sft --input mute.jsonl mute.jsonl --tokenizer w --template chatml
err_has "mute.jsonl and the other inputs: line 1 on: none of 2 examples"
err_has "a conversation needs a message of the assistant"
no_file o.bin

t "a role that no template knows: file and line"
{ says hi hi; echo '{"messages": [{"role": "user", "content": "hi"}, {"role": "narrator", "content": "hi"}]}'; } >roles.jsonl
expect 3 sft --input roles.jsonl --tokenizer w --template chatml
err_has "roles.jsonl: line 2: message 2 has the role 'narrator'"
no_file o.bin

t "a conversation whose template puts no end is ended by --append-eod, and that is learnt with its answer"
expect 0 sft --input clean.jsonl --tokenizer w --template guanaco
err_has "2 of 2 examples learn no end token"
expect 0 sft --input clean.jsonl --tokenizer w --template guanaco --append-eod --eod-token '</s>' --packing none
warns 0
expect 0 "$PREP" unpack o
check [ "$(grep -c '273],"loss_mask":.*,1],' .out)" = 2 ]
expect 2 sft --input clean.jsonl --tokenizer w --template chatml --append-eod
err_has "the template chatml already ends conversations"

t "begin-of-text twice"
printf '{"text": "<s><s>hi</s>"}\n{"text": "<s>hi</s>"}\n{"text": "hi<s></s>"}\n' >twice.jsonl
expect 0 sft --input twice.jsonl --tokenizer w --specials parse
err_has "warning: 1 of 3 examples begin twice: token 272 stands twice in a row"
warns 1

t "padding that is the end token"
cp -r w p
echo '{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}' >p/tokenizer_config.json
expect 0 sft --input ends.jsonl --tokenizer p --append-eod --eod-token '</s>'
err_has "warning: padding and end of text are the same token, id 273: 2 such tokens at ends of texts are not learnt"
err_has "warning: 2 of 2 examples learn no end token"
warns 2
expect 0 sft --input ends.jsonl --tokenizer p --append-eod --eod-token '</s>' --learn all
warns 0

t "an answer that --seq-length cuts, and one that it leaves out"
{ says hi 'say hi say hi say hi say hi say hi'; says 'say say say say say say say say say say say say say' hi; says hi hi; } >long.jsonl
expect 0 sft --input long.jsonl --tokenizer w --template chatml --seq-length 30
err_has "warning: 2 examples were too long and were truncated"
err_has "warning: 1 answers are cut by --seq-length 30: their end is not learnt"
err_has "warning: 1 examples have no token with a loss"
warns 3
check grep -q '"cut_answers": 1' o.manifest.json
printf '{"text": "7 8 1 2 3 4 5 6"}\n{"text": "9 7 8"}\n' >marks.jsonl
expect 0 sft --input marks.jsonl $null --response-template '6 7 8' --seq-length 5
err_has "warning: 1 answers are cut by --seq-length 5"
expect 0 sft --input marks.jsonl $null --response-template '6 7 8' --seq-length 8
err_lacks "are cut"

t "an empty thought that is learnt, spelled by text or by tokens"
{ says hi '<think>\n\n</think>\n\nhi'; says hi '<think>say</think>hi'; says '<think></think>' hi; } >think.jsonl
expect 0 sft --input think.jsonl --tokenizer w --template chatml
err_has "warning: 1 of 3 examples learn an empty <think></think>"
warns 1
expect 0 "$TOK" extend --quiet w/tokenizer.json --add-special '<think>' '</think>' --output q.json
printf '{"text": "hi<think>  </think>hi</s>"}\n' >think2.jsonl
expect 0 sft --input think2.jsonl --tokenizer q.json --specials parse
err_has "1 of 1 examples learn an empty <think></think>"
printf '{"text": "hi<think> say </think>hi</s>"}\n' >think4.jsonl
expect 0 sft --input think4.jsonl --tokenizer q.json --specials parse
err_lacks "learn an empty"

t "--overlong split: the rest of an example is further ones, with their part of the mask"
printf '{"text": "1 7 8 2 3 4 5"}\n{"text": "1 7 8"}\n' >o.jsonl
expect 0 sft --input o.jsonl $null --response-template '7 8' --append-eod --seq-length 3 --overlong split --packing none
err_has "warning: 2 examples were too long and were split"
check grep -q '"split": 2' o.manifest.json
err_has "5 examples, 12 tokens"
expect 0 "$PREP" unpack o
out_is '{"input_ids":[1,7,8],"loss_mask":[0,0,0],"seq_start_id":[0]}
{"input_ids":[2,3,4],"loss_mask":[1,1,1],"seq_start_id":[0]}
{"input_ids":[5,1000],"loss_mask":[1,1],"seq_start_id":[0]}
{"input_ids":[1,7,8],"loss_mask":[0,0,0],"seq_start_id":[0]}
{"input_ids":[1000],"loss_mask":[1],"seq_start_id":[0]}'
expect 0 sft --input o.jsonl $null --response-template '7 8' --append-eod --seq-length 4 --overlong drop --packing none
err_has "warning: 1 examples were too long and were dropped"
expect 0 sft --input o.jsonl $null --response-template '7 8' --append-eod --seq-length 4 --overlong truncate --packing none
err_has "warning: 1 examples were too long and were truncated"
expect 0 "$PREP" unpack o
out_has '{"input_ids":[1,7,8,2],"loss_mask":[0,0,0,1]'

t "--show: a line for each token in a pipe, without or beside a set, and of one that is there"
rm -f o.*
expect 0 "$PREP" sft -q --input clean.jsonl --tokenizer w --template chatml --show 1
head -n 1 .out >head
check [ "$(cat head)" = "example 1: $(grep -c '^[+-]' .out) tokens, $(grep -c '^[+]' .out) learnt" ]
out_has '-*     270  "<|im_start|>"'
out_has '+*     271  "<|im_end|>"'
check [ "$(sed -n 's/^+[ *] *[0-9]*  "\(.*\)"$/\1/p' .out | tr -d '\n')" = 'say hi<|im_end|>' ]
check [ "$(sed -n 's/^[+-][ *] *[0-9]*  "\(.*\)"$/\1/p' .out | tr -d '\n')" = \
    '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nsay hi<|im_end|>\n' ]
no_file o.bin
cp .out one
expect 0 "$PREP" sft -q --input clean.jsonl --tokenizer w --template chatml --show 9 --output-prefix o
check [ "$(grep -c '^example' .out)" = 2 ]
has_file o.bin
expect 0 "$PREP" sft --input clean.jsonl --tokenizer w --template chatml --show 1 --output-prefix o
err_has "nothing to do"
same .out one
expect 0 sh -c '"$@" <clean.jsonl' sh "$PREP" sft -q --input - --tokenizer w --template chatml --show 1
same .out one
expect 2 "$PREP" sft --input clean.jsonl --tokenizer w --show 1 --on-bad-record quarantine
err_has "quarantine needs --output-prefix"
expect 3 "$PREP" sft --input x.txt --tokenizer w --show 3
err_has "x.txt: line 1: "

t "--show on a terminal is coloured, and what a terminal would obey is spelled"
{ says '\u001b[2Jhi\u007f' 'say hi'; } >escape.jsonl
expect 0 python3 -c '
import os, pty, re, sys
out = []
def read(fd):
    out.append(os.read(fd, 4096))
    return out[-1]
assert pty.spawn(sys.argv[1:], read) == 0
text = b"".join(out).replace(b"\r\n", b"\n").decode()
assert "\x1b[32;7m<|im_end|>\x1b[0m" in text and "\x1b[90;7m<|im_start|>\x1b[0m" in text, text
assert "\x1b[2J" not in text and "\x7f" not in text and "\\u001b" in text and "\\u007f" in text, text
assert re.search(r"\x1b\[32m[^\x1b]*hi", text), text' "$PREP" sft -q --input escape.jsonl --tokenizer w --template chatml --show 1 </dev/null
