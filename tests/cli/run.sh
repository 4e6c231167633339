#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD-FOLDER SCRIPT: one command-line test in a fresh folder, as TAP.
set -u
build=$(cd "$1" && pwd) script=$2
SRC=$(cd "$(dirname "$0")/../.." && pwd) BUILD=$build
find_program() { ls "$build/$1/"*"$2" 2>/dev/null | grep -v '\.p$' | head -n 1; }
TOK=$(find_program tok tok) PREP=$(find_program prep prep) CONVERT=$(find_program convert convert)
TRAIN=$(find_program train train) STORIES=$build/samples/stories
DATA=${WEFT_TEST_DATA:-}
export SRC BUILD TOK PREP CONVERT TRAIN STORIES DATA LC_ALL=C.UTF-8

dir=$(mktemp -d "${TMPDIR:-/tmp}/weft-cli-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
. "$SRC/tests/cli/lib.sh"
. "$SRC/tests/cli/$script.sh"
finish
