# SPDX-License-Identifier: Apache-2.0
# Ranks that hang or disagree: named, with exit code 70, and the job ends; a rank that is slow is left alone.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
long="--log-format megatron-core --train-iters 100000 --lr-decay-iters 20 --no-save --log-interval 1"
soon="--distributed-timeout-minutes 0.1"

# rank_pid LAUNCHER RANK: the process of a rank that LAUNCHER has started
rank_pid() {
    for _p in $(cat /proc/"$1"/task/*/children); do
        tr '\0' '\n' <"/proc/$_p/environ" | grep -Eqx "(OMPI_COMM_WORLD_)?RANK=$2" && echo "$_p" && return
    done
}

# steps PID FILE N: waits until FILE has N log lines
steps() { await "$1" lines_with "iteration" "$2" "$3"; }

# ended PID CODE: it ends by itself, with this code
ended() {
    await "$1" has_ended "$1"
    kill -9 "$1" 2>/dev/null
    _code=0
    wait "$1" || _code=$?
    [ "$_code" = "$2" ] || _wrong "exit code $_code instead of $2"
}

t "a rank that hangs ends the job: the others name step, phase, call and the rank"
"$TRAIN" run $tiny $long $soon --nproc-per-node 4 --tp 2 --log-dir logs >.out 2>.err &
pid=$!
steps $pid .out 3
stopped=$(rank_pid $pid 1)
kill -STOP "$stopped"
ended $pid 70
check grep -Eq '^(\[rank [023]\] )?error: rank [023], step [0-9]+, (update|forward and backward|waiting for data|evaluation): no progress for [1-9][0-9.]* s, in .* group \(.*\), which waits for rank [0-3]$' .err
check [ "$(grep -c "error: .*rank" .err)" = 1 ]
check [ ! -d "/proc/$stopped" ]
check grep -q "^\[rank 3\] .*parameters, 1 thread; memory" logs/rank_0003.log
check [ -z "$(grep "^\[rank [1-3]\] " .err | grep -v "error: ")" ]

t "a rank that comes back before the time is over is no hang"
"$TRAIN" run $tiny $long --distributed-timeout-minutes 1 --nproc-per-node 2 --exit-interval 100 >.out 2>.err &
pid=$!
steps $pid .out 3
stopped=$(rank_pid $pid 1)
kill -STOP "$stopped"
sleep 1
kill -CONT "$stopped"
steps $pid .out 100
ended $pid 0

t "under mpirun, too, and each fault is told once"
if command -v mpirun >/dev/null; then
    HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader -n 2 \
        "$TRAIN" run $tiny $long $soon >.out 2>.err </dev/null &
    pid=$!
    steps $pid .out 3
    kill -STOP "$(rank_pid $pid 1)"
    ended $pid 70
    check grep -Eq '^error: rank 0, step [0-9]+, (update|forward and backward|waiting for data|evaluation): no progress for [1-9][0-9.]* s, in .*, which waits for rank 1$' .err
else
    skip "no mpirun: apt-get install libopenmpi-dev"
fi

# A number of the embedding that is not among those by which a model is known, which would be seen at the start.
t "ranks that hold other weights are named, with the tensor"
"$TRAIN" run $tiny --train-iters 1 --save first-run --export-hf weights >/dev/null 2>&1
cp -r weights other-weights
check python3 - <<'END'
import json
with open("other-weights/model.safetensors", "r+b") as f:
    n = int.from_bytes(f.read(8), "little")
    begin = json.loads(f.read(n))["transformer.wte.weight"]["data_offsets"][0]
    f.seek(8 + n + begin)
    f.write(b"\0\0\0\x3f")
END
export WEFT_JOB_TOKEN=a-token-of-this-test
port=$(free_port)
two="--nnodes 2 --master-addr 127.0.0.1 --master-port $port --check-weight-hash-across-dp-replicas-interval 2"
timeout 600 "$TRAIN" run $tiny --train-iters 20 --no-save $two --node-rank 1 --load other-weights >/dev/null 2>second &
pid=$!
expect 70 timeout 600 "$TRAIN" run $tiny --train-iters 20 --no-save $two --node-rank 0 --load weights
err_has "embed.weight differs between replicas: rank 1 has other values than rank 0"
check [ "$(grep -c "iteration" .out)" = 0 ]
ended $pid 70
check [ "$(grep -c "^ .*iteration" second)" = 0 ]

t "tensor-parallel ranks, too"
expect 0 "$TRAIN" run $tiny --train-iters 4 --no-save --nproc-per-node 2 --tp 2 --check-weight-hash-across-dp-replicas-interval 1
timeout 600 "$TRAIN" run $tiny --train-iters 20 --no-save $two --device cpu --tp 2 --node-rank 1 --kernels plain >/dev/null 2>second &
pid=$!
expect 70 timeout 600 "$TRAIN" run $tiny --train-iters 20 --no-save $two --device cpu --tp 2 --node-rank 0
err_has "position.weight differs between replicas: rank 1 has other values than rank 0"
ended $pid 70

# other_kernels OPTION...: the second of two tensor-parallel processes rounds otherwise
other_kernels() {
    timeout 600 "$TRAIN" run $tiny --train-iters 3 $apart --node-rank 1 --kernels plain "$@" >/dev/null 2>second &
    pid=$!
    expect 70 timeout 600 "$TRAIN" run $tiny --train-iters 3 $apart --node-rank 0 "$@"
    err_has "position.weight differs between replicas: rank 1 has other values than rank 0"
    ended $pid 70
}

t "what differs is seen at the end of a run, and is not saved"
apart="--device cpu --nnodes 2 --master-addr 127.0.0.1 --master-port $port --tp 2 --check-weight-hash-across-dp-replicas-interval 1000"
other_kernels --no-save
other_kernels --save differs --save-interval 2
check [ -f differs/metrics.jsonl ]
check [ -z "$(find differs -mindepth 1 -type d)" ]

t "machines that do not come are named within the time"
expect 70 "$TRAIN" run $tiny --train-iters 20 --no-save --nnodes 2 --master-addr 127.0.0.1 --master-port $port --distributed-timeout-minutes 0.01
err_has "1 of 2 ranks did not come to port $port within 0.6 s: 1"
