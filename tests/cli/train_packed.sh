# SPDX-License-Identifier: Apache-2.0
# train on a packed set: what a model makes of examples does not depend on how they are packed.

awk 'BEGIN { for (d = 0; d < 40; d++) { s = "50 51"; n = 3 + (d * 7) % 15
    for (i = 0; i < n; i++) s = s " " ((d + i * i) % 12) " " ((d + i * i) % 12 + 12)
    print "{\"text\": \"" s "\"}" } }' >e.jsonl
sft() { "$PREP" sft --quiet --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod \
    --response-template '50 51' --seq-length 64 "$@"; }
tiny="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 64 --seq-length 64
    --micro-batch-size 2 --global-batch-size 4 --tokenizer-type NullTokenizer --vocab-size 60 --lr 5e-3
    --log-interval 5 --eval-interval 10 --eval-iters 0 --split 1"
llama="--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2"

seqs() { "$PREP" unpack "$1" | wc -l; }

t "the packed and the unpacked set"
expect 0 sft --output-prefix one --packing none
expect 0 sft --output-prefix many
check [ "$(wc -c <one.bin)" = "$(wc -c <many.bin)" ]
check [ "$(wc -c <one.idx)" -gt "$(wc -c <many.idx)" ]

# loss FOLDER PREFIX: over all sequences, one at a time
loss() {
    expect 0 "$TRAIN" eval --load "$1" --data-path "$2" --data-part train --split 1 --micro-batch-size 1 \
        --global-batch-size 1 --eval-iters 1000
    sed -E 's/.*loss ([0-9.]+),.*/\1/' .out
}
for kind in gpt llama; do
    t "$kind: the loss is that of the examples, however they are packed"
    expect 0 "$TRAIN" run $tiny $([ $kind = llama ] && echo $llama) --data-path many --train-iters 20 --save $kind
    a=$(loss $kind one)
    b=$(loss $kind many)
    check awk "BEGIN { d = $a - $b; exit !(d < 2e-5 && d > -2e-5 && $a < 3.5) }"
done

t "padding is not computed, in training without dropout and in evaluation, whatever the micro-batch"
dry="$tiny --hidden-dropout 0 --attention-dropout 0 --data-path one --train-iters 20 --no-save"
last() { sed -E -n 's/.*lm loss: ([0-9.E+-]+).*grad norm: ([0-9.]+).*/\1 \2/p' .out | tail -n 1; }
expect 0 "$TRAIN" run $dry
a=$(last)
all=$(sed -n 's/^padding: [0-9]* of \([0-9]*\) tokens, which were not computed$/\1/p' .err)
spared=$(sed -n 's/^padding: \([0-9]*\) of .*/\1/p' .err)
check [ "$all" = $((20 * 4 * 64)) ]
check [ $((spared * 3)) -gt "$all" ]
expect 0 "$TRAIN" run $tiny --data-path one --train-iters 20 --no-save
err_lacks "not computed" # masks of dropout are by row
# the same with the padding computed: stages of a pipeline send passes of one size
expect 0 "$TRAIN" run $dry --pp 2 --nproc-per-node 2 --loss-scale 1
err_lacks "not computed"
b=$(last)
check awk "BEGIN { split(\"$a $b\", v, \" \"); d = v[1] - v[3]; e = v[2] - v[4]; exit !(d * d < 1e-10 && e * e < 1e-8 && v[1] > 1) }"
for mbs in 2 8; do
    expect 0 "$TRAIN" eval --load gpt --data-path one --data-part train --split 1 --micro-batch-size $mbs --global-batch-size $mbs \
        --eval-iters $((40 / mbs))
    sed -E 's/.*loss ([0-9.]+),.*/\1/' .out >"mbs$mbs"
done
expect 0 "$TRAIN" eval --load gpt --data-path one --data-part train --split 1 --micro-batch-size 1 --global-batch-size 1 --eval-iters 40
check awk "BEGIN { d = $(cat mbs2) - $(cat mbs8); exit !(d < 2e-5 && d > -2e-5) }"
check awk "BEGIN { d = $(sed -E 's/.*loss ([0-9.]+),.*/\1/' .out) - $(cat mbs8); exit !(d < 2e-5 && d > -2e-5) }"

t "a stopped run resumes as if it had not stopped"
expect 0 "$TRAIN" run $tiny --data-path many --train-iters 20 --save part --exit-interval 10
expect 0 "$TRAIN" run $tiny --data-path many --train-iters 20 --save part
check [ "$(tail -n 1 part/metrics.jsonl | sed -E 's/.*"lm_loss": ([0-9.]+).*/\1/')" = \
    "$(tail -n 1 gpt/metrics.jsonl | sed -E 's/.*"lm_loss": ([0-9.]+).*/\1/')" ]

t "sets blend by weights, each in epochs of its own, and a stopped run resumes"
sed 's/50 51/50 51 3/' e.jsonl | head -n 25 >f.jsonl
expect 0 "$PREP" sft --quiet --input f.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod \
    --response-template '50 51' --seq-length 64 --packing none --output-prefix few
blend="--data-path 0.7 many 0.3 few --train-iters 20 --save-interval 10"
expect 0 "$TRAIN" run $tiny $blend --save mixed
expect 0 "$TRAIN" run $tiny $blend --save mixed2 --exit-interval 10
expect 0 "$TRAIN" run $tiny $blend --save mixed2
for f in mixed/iter_0000020/*.safetensors; do same "$f" "mixed2/iter_0000020/${f##*/}"; done
check [ "$(grep -c "" mixed/metrics.jsonl)" = 20 ]
expect 0 "$TRAIN" run $tiny --data-path 0.3 many 0.7 few --train-iters 20 --save mixed3
differ mixed/metrics.jsonl mixed3/metrics.jsonl
expect 0 "$TRAIN" run $tiny --data-path 2 many --train-iters 20 --save alone
check [ "$(tail -n 1 alone/metrics.jsonl | sed -E 's/.*"lm_loss": ([0-9.]+).*/\1/')" = \
    "$(tail -n 1 gpt/metrics.jsonl | sed -E 's/.*"lm_loss": ([0-9.]+).*/\1/')" ]

t "sets without weights: an epoch takes each sequence once"
expect 0 "$TRAIN" run $tiny --data-path many few --num-train-epochs 2 --no-save
err_has "train               $((2 * ($(seqs few) + $(seqs many))))"
expect 2 "$TRAIN" run $tiny --data-path 0.7 many 0.3 few --num-train-epochs 2 --no-save
err_has "data that are blended by weights have no epochs"

t "a set for each part"
expect 0 "$TRAIN" run $(echo $tiny | sed 's/--eval-iters 0 --split 1/--eval-iters 2/') --train-data-path many \
    --valid-data-path one --train-iters 10 --save parts
out_has "validation loss at iteration 10"

t "generate answers a conversation"
mkdir v w
printf 'hi say yes no the user and the assistant\n%.0s' 1 2 3 4 >x.txt
expect 0 "$TOK" train --quiet --type bpe --vocab_size 270 --model_prefix v/ --input x.txt
expect 0 "$TOK" extend --quiet v/tokenizer.json --add-special '<|im_start|>' '<|im_end|>' --output w/tokenizer.json
says() { echo "{\"role\": \"$1\", \"content\": \"$2\"}"; }
one="$(says user hi), $(says assistant 'yes yes')" two="$(says user say), $(says assistant no)"
for i in 1 2 3 4 5 6; do echo "{\"messages\": [$one, $two]}"; echo "{\"messages\": [$two, $one]}"; done >talk.jsonl
small="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --max-position-embeddings 96 --seq-length 96
    --micro-batch-size 2 --lr 1e-2 --log-interval 50 --eval-iters 0 --split 1 --tokenizer w --train-iters 300"
for form in chatml guanaco; do
    expect 0 "$PREP" sft --quiet --input talk.jsonl --tokenizer w --template $form --seq-length 96 --output-prefix $form --learn all
    expect 0 "$TRAIN" run $small --data-path $form --save said-$form
    talk() { "$TRAIN" generate --load said-$form --tokenizer w --chat $form --temperature 0 --max-new-tokens 30 "$@"; }
    expect 0 talk --prompt hi
    check [ "$(tr -d ' ' <.out)" = yesyes ]
    expect 0 talk --prompt "{\"messages\": [$(says user say)]}"
    check [ "$(tr -d ' ' <.out)" = no ]
done
expect 3 talk --prompt '{"messages": 5}'
err_has "messages"
expect 2 "$TRAIN" generate --load said-chatml --tokenizer w --chat llama3 --prompt hi
err_has "needs the token <|begin_of_text|>"
expect 2 "$TRAIN" generate --load said-chatml --tokenizer w --chat nobody --prompt hi
err_has "unknown template 'nobody'"

t "what does not fit is said"
expect 2 "$TRAIN" run $tiny --data-path many --train-iters 5 --seq-length 32 --save no
err_has "many: was packed into sequences of 64 tokens, and those of the run have 32"
"$PREP" build --quiet --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --output-prefix plain
expect 2 "$TRAIN" run $tiny --data-path many plain_text_document --train-iters 5 --save no
err_has "many is a packed set (.pack) and plain_text_document is none: packed sets can be mixed with each other alone"
expect 2 "$TRAIN" run $(echo $tiny | sed 's/--split 1//') --train-data-path many --valid-data-path plain_text_document --train-iters 5 --save no
err_has "many is a packed set (.pack) and plain_text_document is none"
expect 0 "$TRAIN" run $tiny --data-path many --train-iters 1 --no-save --no-index-cache
err_has "--no-index-cache has no effect"
expect 2 "$TRAIN" run $tiny --data-path many --reset-attention-mask --train-iters 5 --save no
err_has "--reset-attention-mask"
cp one.idx many.idx
expect 3 "$TRAIN" run $tiny --data-path many --train-iters 5 --save no

t "a set in which nothing is to be learnt is refused"
for x in bin idx pack; do cp few.$x deaf.$x; done
python3 - <<'END'
import struct
b = bytearray(open("deaf.pack", "rb").read())
sequences, examples = struct.unpack_from("<QQ", b, 16)
at = 72 + 8 * (sequences + 1) + 4 * examples
assert any(b[at:])
b[at:] = bytes(len(b) - at)
open("deaf.pack", "wb").write(b)
END
expect 3 "$TRAIN" run $tiny --data-path deaf --train-iters 5 --no-save
err_has "deaf.pack: no token of the set is to be learnt"

t "a checkpoint keeps what files beside a tokenizer.json add, and the digest tells of it"
mkdir x y
printf 'the user and the assistant say hi\n%.0s' 1 2 3 4 >x.txt
expect 0 "$TOK" train --quiet --type bpe --vocab_size 270 --model_prefix x/ --input x.txt
cp x/tokenizer.json y
cat >y/tokenizer_config.json <<'END'
{"added_tokens_decoder": {"270": {"content": "<|user|>", "special": true}}, "model_max_length": 1024}
END
sum() { "$TOK" inspect "$1" | sed -n 's/^sha256 *//p'; }
check [ "$(sum x)" != "$(sum y)" ]
echo '{"model_max_length": 1024}' >x/tokenizer_config.json
check [ "$(sum x)" = "$(sha256sum x/tokenizer.json | cut -d' ' -f1)" ]
echo '{"prompt": "<|user|> say hi", "completion": "hi the user"}' >y.jsonl
for i in 1 2 3 4 5 6 7; do cat y.jsonl y.jsonl >z.jsonl && mv z.jsonl y.jsonl; done
expect 0 "$PREP" build --input y.jsonl --json-keys prompt --tokenizer y --specials parse --output-prefix y
own=$(echo $tiny | sed 's/--tokenizer-type NullTokenizer --vocab-size 60//; s/--eval-interval 10//; s/--split 1/--split 100,0,0/')
expect 0 "$TRAIN" run $own --tokenizer y --data-path y_prompt_document --train-iters 2 --save kept
mv y away
expect 0 "$TRAIN" generate --load kept --prompt "<|user|>" --max-new-tokens 2 --temperature 0
expect 2 "$TRAIN" generate --load kept --tokenizer x --prompt "<|user|>" --max-new-tokens 2
err_has "tokenizers differ"
