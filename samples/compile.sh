#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles targets of a build folder and shows how far it is: ninja's own line on a terminal, else a line for
# each tenth of the work. What the compiler says is shown when it fails.
#
#   samples/compile.sh FOLDER [TARGET...]
set -eu

case ${1:-} in
-h | --help) sed -n '3,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
"" | -*) echo "usage: samples/compile.sh FOLDER [TARGET...]" >&2; exit 2 ;;
esac
folder=$1
shift
if [ -t 1 ]; then
    NINJA_STATUS='[%f/%t %es] ' exec ninja -C "$folder" "$@"
fi
result=$(mktemp)
trap 'rm -f "$result"' EXIT
{
    code=0
    NINJA_STATUS='[%f/%t %e s] ' ninja -C "$folder" "$@" 2>&1 || code=$?
    echo $code >"$result"
} | awk '
    /^\[[0-9]+\/[0-9]+ / {
        split(substr($1, 2), n, "/")
        tenth = int(10 * n[1] / n[2])
        if (tenth != last) { printf "compiled %d of %d (%d s)\n", n[1], n[2], $2; fflush() }
        last = tenth
        next
    }
    /^ninja: (Entering|no work)/ { next }
    { print; fflush() }'
exit "$(cat "$result")"
