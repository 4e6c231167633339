#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks that are processes with sockets between them: the collectives on 2, 4 and 8 ranks started by
# train/launch and by mpirun, two machines played by one, and every way in which a job ends badly.
#
#   launch.sh PROGRAM       launch_calls of the build
set -u
program=$1
dir=$(mktemp -d)
output=$dir/output
trap 'rm -rf "$dir"' EXIT
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
n=0 failed=0

# check NAME CODE GOT WORDS COUNT: the code, and COUNT lines with WORDS
check() {
    n=$((n + 1))
    if [ "$3" = "$2" ] && [ "$(grep -c -- "$4" "$output")" = "$5" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "# exit code $3, expected $2; $(grep -c -- "$4" "$output") lines with '$4', expected $5"
        sed 's/^/# /' "$output"
        failed=$((failed + 1))
    fi
}

# the same with the first line alone: other ranks may have found a fault of their own meanwhile
check_first() {
    head -n 1 "$output" >"$dir/line"
    cp "$output" "$dir/all"
    cp "$dir/line" "$output"
    check "$1" "$2" "$3" "$4" 1
}

run() { timeout 300 "$program" "$@" >"$output" 2>&1 </dev/null; }

for ranks in 2 4 8; do
    run calls $ranks
    check "${ranks}_processes" 0 $? . 0
done
run where 3
check variables_of_the_ranks 0 $? "^torchrun [0-2] of 3, local [0-2] of 3, 127.0.0.1 [0-9]*$" 3

run late 4 "$dir/logs"
check_first a_missing_rank_is_named 70 $? "waited 5 s for rank 3 in call 1 of the data-parallel group (all-reduce)"
cat "$dir"/logs/rank_000[0-3].log >"$output"
check each_rank_has_its_log 70 70 "error: rank [0-9] waited 5 s for rank 3" 4
run other 2
check_first calls_that_do_not_fit_are_named 70 $? "^error: .*calls all-reduce of 6 F32"
run abort 4
check_first an_abort_ends_all 4 $? "^error: the last rank: the disk is full"
run die 4
check a_killed_rank_is_named 137 $? "^error: rank 3 was ended by signal 9" 1
run exit 4
code=$?
check and_ends_the_others 9 $code "rank 3 ended with exit code 9; the other ranks are ended" 1
check_first the_first_fault_comes_first 9 $code "^error: the last rank has had enough"
run alone 3
check those_who_do_not_come_are_named 70 $? "2 of 3 ranks did not come to port [0-9]* within 0.5 s: 1, 2" 1

# a signal reaches all ranks
"$program" wait 3 >"$output" 2>&1 </dev/null &
pid=$!
for _ in $(seq 6000); do
    [ "$(grep -c waits "$output")" = 3 ] && break
    sleep 0.05
done
kill -TERM $pid
wait $pid
check a_signal_is_passed_on 143 $? "rank [0-2] waits" 3

# the same command on two machines, with another node rank
port=$((20000 + $$ * 97 % 12000))
WEFT_JOB_TOKEN=the-token-of-this-job timeout 300 "$program" calls 2 2 1 127.0.0.1 $port >"$dir/second" 2>&1 </dev/null &
pid=$!
WEFT_JOB_TOKEN=the-token-of-this-job run calls 2 2 0 127.0.0.1 $port
check two_nodes_of_two_ranks 0 $? . 0
wait $pid
code=$?
cp "$dir/second" "$output"
check and_the_second_node 0 $code . 0
run where 2 2 2 127.0.0.1 1
check a_node_rank_beyond_the_nodes 2 $? "expected 0 to --nnodes 2 less 1" 1
WORLD_SIZE=2 RANK=2 timeout 300 "$program" calls >"$output" 2>&1
check a_rank_beyond_the_world 2 $? "started by torchrun: the environment has RANK=2: expected a number from 0 to 1" 1

if command -v mpirun >/dev/null; then
    for ranks in 2 8; do
        MASTER_PORT=$((port + ranks)) HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout 300 mpirun --oversubscribe --bind-to none -n $ranks "$program" calls >"$output" 2>&1 </dev/null
        check "sockets_under_mpirun_$ranks" 0 $? . 0
    done
else
    n=$((n + 1))
    echo "ok $n - sockets_under_mpirun # SKIP no mpirun: apt-get install libopenmpi-dev"
fi
echo "1..$n"
echo "# $((n - failed)) passed, $failed failed"
[ $failed = 0 ]
