#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From nothing to a model that writes: installs the packages, builds weft, makes a corpus, trains a
# tokenizer, tokenizes, trains a small Llama on the CPU, evaluates it and lets it write. No questions;
# about five minutes on two cores once the packages are there. All results are under runs/quickstart.
#
#   samples/quickstart.sh [--out FOLDER]
set -eu
cd "$(dirname "$0")/.."

out=runs/quickstart
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$2; shift 2 ;;
    -h | --help) sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown option $1" >&2; exit 2 ;;
    esac
done

step() { printf '\n== %s\n' "$*"; }

step "1/7 packages"
samples/install.sh

step "2/7 build"
if [ ! -f build/build.ninja ]; then
    setup=$(meson setup build) || { printf '%s\n' "$setup" >&2; exit 1; }
    printf '%s\n' "$setup" | sed -n '/^weft [0-9]/,$p'
fi
ninja -C build --quiet programs

# What the programs of this build are called: -Dprogram_prefix=weft- makes them weft-tok and so on.
prefix=$(meson introspect build --buildoptions | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "program_prefix"))')
tok=build/tok/${prefix}tok prep=build/prep/${prefix}prep train=build/train/${prefix}train

mkdir -p "$out"
step "3/7 a corpus of generated stories"
build/samples/stories --seed 1234 --bytes 8M --output "$out/stories.jsonl"
ls -l "$out/stories.jsonl"

step "4/7 tok train: a vocabulary of 2000 pieces"
"$tok" train --preset ucllm --input "$out/stories.jsonl" --model_prefix "$out/stories" \
    --vocab_size 2000 --overwrite

step "5/7 prep build: text to token shards"
"$prep" build --input "$out/stories.jsonl" --tokenizer "$out/stories.model" \
    --output-prefix "$out/stories" --append-eod --overwrite

step "6/7 train run"
rm -rf "$out/run"
"$train" run --config samples/quickstart.toml --data-path "$out/stories_text_document" \
    --tokenizer "$out/stories.model" --save "$out/run"

step "7/7 what it learned"
python3 samples/judge.py --run "$out/run" --data "$out/stories_text_document" \
    --corpus "$out/stories.jsonl" --train "$train"
