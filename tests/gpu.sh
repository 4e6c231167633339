#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Passes the tests that need an NVIDIA GPU (suite gpu). Ends in "N passed, N failed, N skipped"; without a
# GPU every case is skipped and counted as skipped.
#
#   tests/gpu.sh            builds them into build-gpu (CUDA toolkit needed) and runs them
#   tests/gpu.sh FOLDER     runs those in FOLDER (build-gpu/tests), built elsewhere: they need nothing but
#                           the driver and NVIDIA's libraries, which LD_LIBRARY_PATH may name
set -eu

case ${1-} in
-h | --help) sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
-*) echo "tests/gpu.sh: unknown option $1" >&2; exit 2 ;;
esac

if [ $# -eq 0 ]; then
    cd "$(dirname "$0")/.."
    folder=build-gpu/tests
    [ -f build-gpu/build.ninja ] || meson setup build-gpu -Dwerror=true -Dcuda=enabled >build-gpu.log 2>&1 ||
        { cat build-gpu.log; exit 1; }
    ninja -C build-gpu gpu >build-gpu.log 2>&1 || { tail -n 60 build-gpu.log; exit 1; }
else
    folder=$1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
for program in "$folder"/test_*_cuda; do
    [ -x "$program" ] || { echo "tests/gpu.sh: $folder has no test of the suite gpu" >&2; exit 1; }
    echo "== ${program##*/}"
    "$program" >>"$log" 2>&1 || code=1
    tail -n +"$((${seen:-0} + 1))" "$log"
    seen=$(wc -l <"$log")
done
passed=$(grep -c '^ok' "$log" || :)
skipped=$(grep -c '^ok.*# SKIP' "$log" || :)
failed=$(grep -c '^not ok' "$log" || :)
[ "$code" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1 # a program that ended before its last case
echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
exit $code
