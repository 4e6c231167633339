#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From nothing to a model that writes: installs the packages, builds weft, makes a corpus, trains a
# tokenizer, tokenizes, trains a small Llama on the CPU, evaluates it and lets it write. No questions.
#
#   samples/quickstart.sh [--out FOLDER] [--overwrite]
#
#   --out FOLDER   where the results go (runs/quickstart)
#   --overwrite    replace what an earlier quick start has written there
#
# Needs Debian 12, root or sudo where packages are missing (0.1 GB to download), 1.5 GB of disk in all and
# 2 GB of memory; about five minutes on two cores once the packages are there.
set -eu

fail() { code=$1; shift; printf 'quickstart.sh: %s\n' "$*" >&2; exit "$code"; }

out= overwrite=
while [ $# -gt 0 ]; do
    case $1 in
    --out) [ $# -ge 2 ] || fail 2 "--out needs a folder"; out=$2; shift 2 ;;
    --out=*) out=${1#--out=}; shift ;;
    --overwrite) overwrite=--overwrite; shift ;;
    -h | --help) sed -n '3,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail 2 "unknown argument $1 (--help lists them)" ;;
    esac
done
case $out in "" | /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")/.."
out=${out:-runs/quickstart}

for f in stories.jsonl stories.model stories.vocab stories_text_document.bin stories_text_document.idx \
    stories_text_document.manifest.json run; do
    [ -n "$overwrite" ] || [ ! -e "$out/$f" ] ||
        fail 2 "$out/$f exists: --overwrite replaces what is there, --out FOLDER writes elsewhere"
done
[ ! -e "$out" ] || [ -d "$out" ] || fail 2 "$out exists but is not a directory"
free=$(df -Pm . | awk 'NR == 2 { print $4 }')
[ -f build/build.ninja ] || [ "$free" -ge 700 ] || fail 4 "$PWD has $free MB free, and the build needs 700 MB: nothing was begun"

echo "needs Debian 12; root or sudo where packages are missing (0.1 GB to download); 1.5 GB of disk and 2 GB of memory; about five minutes on two cores"

step() { printf '\n== %s\n' "$*"; }

step "1/7 packages"
samples/install.sh

step "2/7 build"
if [ ! -f build/build.ninja ]; then
    setup=$(meson setup build -Dtests=false) || { printf '%s\n' "$setup" >&2; exit 1; }
    printf '%s\n' "$setup" | sed -n '/^weft [0-9]/,$p'
fi
samples/compile.sh build programs

# What the programs of this build are called: -Dprogram_prefix=weft- makes them weft-tok and so on.
prefix=$(meson introspect build --buildoptions | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "program_prefix"))')
tok=build/tok/${prefix}tok prep=build/prep/${prefix}prep train=build/train/${prefix}train

mkdir -p "$out"
step "3/7 a corpus of generated stories"
build/samples/stories --seed 1234 --bytes 8M --output "$out/stories.jsonl" $overwrite
ls -l "$out/stories.jsonl"

step "4/7 tok train: a vocabulary of 2000 pieces"
"$tok" train --preset ucllm --input "$out/stories.jsonl" --model_prefix "$out/stories" \
    --vocab_size 2000 $overwrite

step "5/7 prep build: text to token shards"
"$prep" build --input "$out/stories.jsonl" --tokenizer "$out/stories.model" \
    --output-prefix "$out/stories" --append-eod $overwrite

step "6/7 train run"
[ -z "$overwrite" ] || rm -rf "$out/run"
"$train" run --config samples/quickstart.toml --data-path "$out/stories_text_document" \
    --tokenizer "$out/stories.model" --save "$out/run"

step "7/7 what it learned"
python3 samples/judge.py --run "$out/run" --data "$out/stories_text_document" \
    --corpus "$out/stories.jsonl" --train "$train"
