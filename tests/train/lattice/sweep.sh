#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every cell of the lattice, by shards: those that have passed are in FOLDER and are not run again, so the command may be
# interrupted and repeated. Several may run at once on one folder.
#
#   tests/train/lattice/sweep.sh PROGRAM FOLDER [SHARDS]     build/tests/test_train_lattice_sample; 400 shards
set -u
program=$1 folder=$2 shards=${3:-400}
mkdir -p "$folder"
failed=0 i=0
while [ "$i" -lt "$shards" ]; do
    name=$folder/$i-of-$shards
    if [ ! -e "$name" ] && mkdir "$name.lock" 2>/dev/null; then
        trap 'rmdir "$name.lock" 2>/dev/null; exit 130' INT TERM
        if WEFT_SHARD=$i/$shards "$program" shard >"$name.tmp" 2>&1; then
            mv "$name.tmp" "$name"
        else
            failed=$((failed + 1))
            grep '^# cell' "$name.tmp"
            mv "$name.tmp" "$name.failed"
        fi
        rmdir "$name.lock"
    fi
    i=$((i + 1))
done
done_now=$(find "$folder" -name "*-of-$shards" | wc -l)
cells=$(cat "$folder"/*-of-"$shards" 2>/dev/null | awk '/^# [0-9]+ of [0-9]+ cells/ { n += $2; all = $4 } END { print n + 0 " of " all + 0 }')
echo "$done_now of $shards shards, $cells cells equal the single rank; $failed shards failed"
[ "$failed" = 0 ] && [ "$done_now" = "$shards" ]
