# SPDX-License-Identifier: Apache-2.0
# Two hosts, played by network namespaces with a cable between them, and 8 ranks: the same losses, and a host that is cut
# off is named within the time, after which nothing of the job is left on either.
. "$SRC/tests/cli/train_data.sh"
export WEFT_JOB_TOKEN=a-token-of-this-test
tiny="$tiny --threads 1 --global-batch-size 8 --tp 2 --use-distributed-optimizer --log-format megatron-core --no-save"
long="--train-iters 100000 --lr-decay-iters 20 --log-interval 1 --distributed-timeout-minutes 0.2"

# hosts: opens two of them, whose processes end with those of this test
hosts() {
    unshare -n -u sleep 3600 &
    host_a=$!
    unshare -n -u sleep 3600 &
    host_b=$!
    for _ in $(seq 1200); do
        [ "$(readlink /proc/$host_a/ns/net)" != "$(readlink /proc/$$/ns/net)" ] &&
            [ "$(readlink /proc/$host_b/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break
        sleep 0.05
    done
    nsenter -t $host_a -n ip link add cable type veth peer name cable netns $host_b &&
        nsenter -t $host_a -n -u sh -c 'hostname host-a; ip addr add 10.77.0.1/24 dev cable; ip link set cable up; ip link set lo up' &&
        nsenter -t $host_b -n -u sh -c 'hostname host-b; ip addr add 10.77.0.2/24 dev cable; ip link set cable up; ip link set lo up'
}
# ends what runs on them, too: mpirun waits for a host that it has lost for ever
no_hosts() {
    _nets="$(readlink /proc/$host_a/ns/net) $(readlink /proc/$host_b/ns/net)"
    for _p in /proc/[0-9]*; do
        _net=$(readlink "$_p/ns/net") || continue
        case " $_nets " in *" $_net "*) [ "$_net" = "$(readlink /proc/$$/ns/net)" ] || kill -9 "${_p#/proc/}" 2>/dev/null ;; esac
    done
}
on_a() { nsenter -t $host_a -n -u timeout -k 5 600 "$@" </dev/null; }
on_b() { nsenter -t $host_b -n -u timeout -k 5 600 "$@" </dev/null; }
cut_off() { nsenter -t $host_b -n ip link set cable down; }
# steps PID FILE: waits until FILE has three log lines
steps() { await "$1" lines_with "iteration" "$2" 3; }
# the processes of train in a namespace
left() {
    for _p in /proc/[0-9]*; do
        [ "$(readlink "$_p/ns/net")" = "$1" ] && [ "$(readlink "$_p/exe")" = "$(readlink -f "$TRAIN")" ] && echo "$_p"
    done
}
# the ranks are gone
gone() {
    _nets="$(readlink /proc/$host_a/ns/net) $(readlink /proc/$host_b/ns/net)"
    for _ in $(seq 3000); do
        _left=
        for _net in $_nets; do _left="$_left$(left "$_net")"; done
        [ -z "$_left" ] && return
        sleep 0.2
    done
    _wrong "processes are left: $_left"
}
named='error: rank [0-7], step [0-9]+, (update|forward and backward|waiting for data|evaluation): no progress for [1-9][0-9.]* s, in call [0-9]+ of the .* group'
losses() { sed -n 's/.*iteration \( *[0-9]*\).*lm loss: \([0-9.E+-]*\).*/\1 \2/p' "$1"; }

t "8 ranks on two hosts learn what 8 on one learn"
if ! hosts 2>why; then
    skip "no network namespaces: $(head -n 1 why)"
    no_hosts
    return 0
fi
own="--nnodes 2 --nproc-per-node 4 --master-addr 10.77.0.1"
on_b "$TRAIN" run $tiny $own --train-iters 10 --node-rank 1 >b.out 2>b.err &
pid=$!
expect 0 on_a "$TRAIN" run $tiny $own --train-iters 10 --node-rank 0
check wait $pid
expect 0 "$TRAIN" run $tiny --train-iters 10 --nproc-per-node 8
losses .out >one
losses b.out >two
check [ "$(wc -l <one)" = 2 ]
same one two

t "a host that is cut off is named, the job ends on both"
on_a "$TRAIN" run $tiny $own $long --node-rank 0 >a.out 2>a.err &
pid_a=$!
on_b "$TRAIN" run $tiny $own $long --node-rank 1 >b.out 2>b.err &
pid_b=$!
steps $pid_b b.out
cut_off
gone
for _pid in $pid_a $pid_b; do
    _code=0
    wait $_pid || _code=$?
    check [ "$_code" = 70 ]
done
check grep -Eq "$named" a.err
check grep -Eq "$named" b.err
check [ "$(grep -c "error: " a.err)" = 1 ]
no_hosts

if ! command -v mpirun >/dev/null; then
    t "the same under mpirun"
    skip "no mpirun: apt-get install libopenmpi-dev"
    return 0
fi
hosts
printf '#!/bin/sh\nshift\nexec nsenter -t %s -n -u sh -c "$*"\n' $host_b >agent
chmod +x agent
mpi() {
    HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        on_a mpirun --mca plm rsh --mca plm_rsh_agent "$PWD/agent" -H 10.77.0.1:4,10.77.0.2:4 --bind-to none --mca mpi_yield_when_idle 1 \
        --mca btl self,vader,tcp -n 8 "$TRAIN" run $tiny "$@"
}

t "mpirun on two hosts"
expect 0 mpi --train-iters 10
losses .out >two
same one two

t "a host that is cut off is named under mpirun, too"
mpi $long >a.out 2>a.err &
pid=$!
steps $pid a.out
cut_off
gone
check grep -Eq "$named" a.err
no_hosts
wait
