#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every cell of the lattice (space.h) once, by shards, several at a time: each layout with each model, type, count of micro-batches
# and recomputation; the optimizer, overlap and the copies of the optimizer's state alternate from cell to cell. FOLDER keeps what each
# shard said: those that have passed are not run again, so the command may be stopped at any time and repeated. Its last line has the
# counts; exit code 0: all cells have run and equal the single rank.
#
#   tests/train/lattice/sweep.sh PROGRAM FOLDER [WORKERS]   build/tests/test_train_lattice_sample; a worker for each processor
#   tests/train/lattice/sweep.sh --pack PROGRAM ARCHIVE     a .tar.gz for another machine, with what PROGRAM needs: unpacked
#                                                           there, lattice_sweep/sweep.sh lattice_sweep/program FOLDER
set -u
[ $# -ge 2 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 2; }
if [ "$1" = --pack ]; then
    set -e
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    pack=$work/lattice_sweep
    mkdir "$pack" "$pack/lib"
    ldd "$2" | awk '$2 == "=>" { print $3 } $1 ~ "^/" { print $1 }' | xargs -I '{}' cp -L '{}' "$pack/lib"
    strip -o "$pack/lib/program" "$2"
    cp "$0" "$pack/sweep.sh"
    {
        echo '#!/bin/sh'
        echo "# $(sha256sum <"$2")"
        echo 'here=$(dirname "$0")'
        echo 'exec "$here"/lib/ld-linux*.so.* --library-path "$here/lib" "$here/lib/program" "$@"'
    } >"$pack/program"
    chmod +x "$pack/program"
    tar -C "$work" -czf "$3" lattice_sweep
    exit 0
fi
program=$1 folder=$2 workers=${3:-$(nproc)} shards=1000
mkdir -p "$folder" || exit 2
exec 9>"$folder/lock"
flock -n 9 || { echo "sweep.sh: $folder is in use by another sweep"; exit 2; }
digest=$(sha256sum <"$program") || exit 2
[ -e "$folder/program" ] || echo "$digest" >"$folder/program"
[ "$(cat "$folder/program")" = "$digest" ] || { echo "sweep.sh: $folder has the shards of another build: name another folder"; exit 2; }
rm -f "$folder"/*.tmp
trap 'kill $! 2>/dev/null; exit 130' INT TERM HUP # shards that run end by themselves
export program folder shards
# spread over the space, so that the rate of the first ones is that of all
awk -v n="$shards" 'BEGIN { for (i = 0; i < n; i++) print i * 377 % n }' | xargs -P "$workers" -I '{}' sh -c '
    name=$folder/{}-of-$shards
    [ -e "$name" ] && exit 0
    rm -f "$name.failed"
    if WEFT_SHARD={}/$shards "$program" shard >"$name.$$.tmp" 2>&1 9>&-; then
        mv "$name.$$.tmp" "$name"
    else
        mv "$name.$$.tmp" "$name.failed"
        grep "^# cell" "$name.failed" || echo "shard {} of $shards: exit code other than 0, see $name.failed"
    fi' 9>&- &
wait $!
failed=$(find "$folder" -name "*-of-$shards.failed" | wc -l)
passed=$(find "$folder" -name "*-of-$shards" | wc -l)
cells=$(find "$folder" -name "*-of-$shards" -exec cat {} + | awk '/^# [0-9]+ of [0-9]+ cells/ { n += $2; all = $4 } END { print n + 0 " of " all + 0 }')
echo "$cells cells equal the single rank: $passed of $shards shards passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" = "$shards" ]
