# SPDX-License-Identifier: Apache-2.0
# `train run --dry-run` has the verdict of a start, and leaves nothing: lists of arguments that start, that were made wrong, and
# those of users' projects. A sample of them; all with WEFT_FULL=1.
. "$SRC/tests/cli/train_data.sh"
mkdir fixture
cd fixture || exit 1
cp ../d_text_document.* .
sed 's/"7/"8/; s/ 3/ 4/g' ../d.jsonl >e.jsonl
"$PREP" build --quiet --input e.jsonl --tokenizer-type NullTokenizer --vocab-size 60 --append-eod --output-prefix e
for kind in bin idx; do cp d_text_document.$kind nomanifest.$kind; done
for kind in bin idx manifest.json; do cp d_text_document.$kind bad.$kind; cp d_text_document.$kind short.$kind; done
python3 -c 'open("bad.bin", "r+b").write(b"\xff\x7f" * 40000)'
head -c 100 d_text_document.bin >short.bin
echo a >file
mkdir empty foreign
echo 1 >foreign/latest
mkdir -p foreign/global_step1
: >foreign/global_step1/mp_rank_00_model_states.pt
echo '{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2}' >ds.json
echo '{"train_batch_sise": 4, "x": {"y": 1}}' >strange.json
echo '{"train_batch_size": 4,' >wrong.json
echo '{"train_batch_size": 7, "zero_optimization": {"stage": 9}}' >odd.json
tiny=$(echo "$tiny" | sed 's/--log-interval 5//; s/--eval-i[a-z]* [0-9]*//g')
"$TRAIN" run $tiny --train-iters 2 --save ckpt --eval-iters 0 >/dev/null 2>&1
cp -r ckpt cut
cp -r ckpt flip
for f in cut/iter_*/param*.safetensors; do head -c 500 "$f" >x && mv x "$f"; done
for f in flip/iter_*/param*.safetensors; do python3 -c '
import sys
f = open(sys.argv[1], "r+b"); f.seek(-100, 2); c = f.read(1); f.seek(-100, 2); f.write(bytes([c[0] ^ 4]))' "$f"; done
cd ..

t "a dry run ends as a start would: exit code and first error; nothing is left"
every="every 9"
[ -z "${WEFT_FULL:-}" ] || every=
python3 "$SRC/tests/cli/verdicts.py" fixture "$TRAIN" "$SRC/tests/cli/seeds" $every >seen 2>&1
code=$?
grep "^#" seen
[ $code = 0 ] || cat seen
check [ $code = 0 ]
check grep -q "verdicts differ" seen
