#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The collectives over MPI: on 2, 4 and 8 ranks against plain loops and against threads, then a rank
# that stays away and one that aborts.
#
#   mpi.sh PROGRAM       mpi_calls of the build
set -u
program=$1
command -v mpirun >/dev/null || { echo "1..0 # SKIP no mpirun: apt-get install libopenmpi-dev"; exit 0; }

output=$(mktemp)
trap 'rm -f "$output"' EXIT
n=0 failed=0

# more ranks than processors, as root, without the network; no word of hwloc where /sys is not mounted
run() {
    ranks=$1
    shift
    HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        timeout 600 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader \
        -n "$ranks" "$program" "$@" >"$output" 2>&1 </dev/null
}

# check NAME CODE GOT WORDS COUNT: the code, and COUNT lines with WORDS
check() {
    n=$((n + 1))
    if [ "$3" = "$2" ] && [ "$(grep -c -- "$4" "$output")" = "$5" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "# exit code $3, expected $2"
        sed 's/^/# /' "$output"
        failed=$((failed + 1))
    fi
}

for ranks in 2 4 8; do
    run "$ranks"
    check "${ranks}_processes" 0 $? . 0
done
run 4 late
check a_missing_rank_is_named 70 $? "waited 5 s for rank 3 in call 1 of the data-parallel group (all-reduce)" 4
run 2 other
check calls_that_do_not_fit_are_named 70 $? "calls all-reduce of 6 F32" 2
run 4 abort
check an_abort_frees_all 4 $? "rank [0-3]: the last rank: the disk is full" 4
echo "1..$n"
echo "# $((n - failed)) passed, $failed failed, 0 skipped"
[ $failed = 0 ]
