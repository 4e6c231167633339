#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 12 cells of the lattice whose ranks are processes under mpirun: as root, more of them than processors, yielding.
#
#   mpi.sh PROGRAM       mpi_cells of the build
set -u
program=$1
command -v mpirun >/dev/null || { echo "1..0 # SKIP no mpirun: apt-get install libopenmpi-dev"; exit 0; }
output=$(mktemp)
trap 'rm -f "$output"' EXIT
n=0 failed=0
for what in "2 2" "4 4" "8 6"; do
    set -- $what
    HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        timeout 600 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader \
        -n "$1" "$program" "$2" >"$output" 2>&1 </dev/null
    code=$?
    n=$((n + 1))
    if [ $code = 0 ] && grep -qx "$2 cells" "$output"; then
        echo "ok $n - $2_cells_of_$1_processes"
    else
        echo "not ok $n - $2_cells_of_$1_processes"
        sed 's/^/# /' "$output"
        failed=$((failed + 1))
    fi
done
echo "1..$n"
echo "# $((n - failed)) passed, $failed failed, 0 skipped"
[ $failed = 0 ]
