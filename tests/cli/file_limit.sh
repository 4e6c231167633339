# SPDX-License-Identifier: Apache-2.0
# A limit on the size of files (ulimit -f) ends in a sentence and exit 4, not in SIGXFSZ; nothing half-written is left.
. "$SRC/tests/cli/train_data.sh"

# limited COMMAND...: no file may exceed that many blocks, including stderr
blocks=2
limited() { expect 4 sh -c 'ulimit -f "$0"; exec "$@"' $blocks "$@"; }
says_limit() { err_has "File too large"; err_has "ulimit -f"; }

awk 'BEGIN { for (i = 0; i < 4000; i++) print i % 97, i % 89 }' >numbers.txt

t "tok: --output"
limited "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 100 numbers.txt --output ids
says_limit
err_has "ids: cannot write"
no_file ids
no_temps .

t "tok: standard output"
limited "$TOK" encode --tokenizer-type NullTokenizer --vocab-size 100 numbers.txt
says_limit
err_has "standard output: cannot write"

t "tok train"
limited "$TOK" train --type bpe --vocab_size 300 --model_prefix P numbers.txt
says_limit
check [ -z "$(ls P* 2>/dev/null)" ]
no_temps .

t "prep build"
limited "$PREP" build --input-format text --input numbers.txt --tokenizer-type NullTokenizer --vocab-size 100 --output-prefix o
says_limit
no_file o_text_document.bin
no_file o_text_document.idx

t "train run: the checkpoint"
blocks=64
limited "$TRAIN" run $tiny --train-iters 2 --save run
says_limit
err_has "run/"
check [ -z "$(ls -A run | grep iter)" ]
blocks=2

t "convert: standard output"
expect 0 "$TRAIN" run --quiet $tiny --train-iters 2 --save good
limited "$CONVERT" inspect good
says_limit
err_has "standard output: cannot write"
