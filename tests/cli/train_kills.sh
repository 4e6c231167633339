# SPDX-License-Identifier: Apache-2.0
# A job of 8 ranks that is killed again and again, in steps and in saves, by one rank or as a whole, always resumes, and its
# final weights are those of a job that was left alone. The same after a full disk on one rank, in either kind of save.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1 --hidden-size 64 --global-batch-size 8 --tp 2 --pp 2 --sequence-parallel --use-distributed-optimizer
    --attention-dropout 0.1 --hidden-dropout 0.1 --eval-iters 0 --log-interval 1 --log-format megatron-core --train-iters 24
    --distributed-timeout-minutes 2"
kills=5
[ -z "${WEFT_FULL:-}" ] || kills=100
tensors() { cat "$1"/*.safetensors; }
some() { python3 -c "import random, sys; random.seed($1); print($2)"; }

t "8 ranks that are left alone"
expect 0 "$TRAIN" run $tiny --save alone --save-interval 8 --nproc-per-node 8
tensors alone/iter_0000024 >alone.bin

# strike N: a job that saves every step is killed after some time; every third time a save is under way
strike() {
    "$TRAIN" run $tiny --save killed --save-interval 1 --keep-checkpoints 3 --nproc-per-node 8 >.out 2>.err &
    _pid=$!
    until grep -q "iteration" .out || has_ended $_pid; do sleep 0.05; done
    if [ $(($1 % 3)) = 0 ]; then
        until has_ended $_pid; do
            [ -n "$(find killed -name '*.tmp*' -print -quit 2>/dev/null)" ] && saving=$((saving + 1)) && break
        done
    else
        sleep "$(some "$1" "random.random() * 0.4")"
    fi
    _victim=$_pid
    _ranks=$(cat /proc/$_pid/task/*/children 2>/dev/null)
    [ $(($1 % 2)) = 0 ] || _victim=$(echo $_ranks | cut -d ' ' -f "$(some "$1" "random.randint(1, 8)")")
    if kill -9 $_victim 2>/dev/null; then struck=$((struck + 1)); fi
    wait $_pid 2>/dev/null
    _code=$?
    for _rank in $_ranks; do
        for _ in $(seq 1200); do
            has_ended "$_rank" && break
            sleep 0.1
        done
        kill -0 "$_rank" 2>/dev/null && _wrong "rank $_rank runs on after kill $1"
    done
    if [ $_code = 0 ]; then # it had ended: once more from nothing
        done_jobs=$((done_jobs + 1))
        tensors killed/iter_0000024 >killed.bin
        same alone.bin killed.bin
        rm -rf killed
    fi
}

t "killed $kills times, it ends with the same weights"
struck=0 saving=0 done_jobs=0 at=0
while [ $struck -lt $kills ] && [ -z "$_bad" ] && [ $at -lt $((kills * 3)) ]; do
    at=$((at + 1))
    strike $at
done
expect 0 "$TRAIN" run $tiny --save killed --save-interval 8 --nproc-per-node 8
tensors killed/iter_0000024 >killed.bin
same alone.bin killed.bin
expect 0 "$CONVERT" verify killed/iter_0000024
check [ $struck = $kills ]
echo "# $struck kills, $saving of them while a checkpoint was written; $done_jobs jobs had ended before"

# one rank by hand, as torchrun starts it; the one with the full disk writes into a small file system over the folder
rank() {
    WEFT_JOB_TOKEN=a-token-of-this-test RANK=$1 WORLD_SIZE=8 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$TRAIN" run $tiny --save killed --save-interval 12 $how >out.$1 2>err.$1
}
on_small_disk() {
    unshare -m sh -c 'mount -t tmpfs -o size=24k none disk && mkdir disk/upper disk/work &&
        mount -t overlay overlay -o lowerdir=killed,upperdir=disk/upper,workdir=disk/work killed && "$0" "$@"' "$@"
}

# full_disk HOW: rank 5 meets it at step 12, in an ordinary save or in one that goes on beside the next steps
full_disk() {
    how=$1 port=$(free_port)
    rm -rf killed
    expect 0 "$TRAIN" run $tiny --save killed --nproc-per-node 8 --exit-interval 9
    for r in 0 1 2 3 4 6 7; do rank $r & done
    export WEFT_JOB_TOKEN=a-token-of-this-test RANK=5 WORLD_SIZE=8 LOCAL_RANK=5 LOCAL_WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
    expect 4 on_small_disk "$TRAIN" run $tiny --save killed --save-interval 12 $how
    unset WEFT_JOB_TOKEN RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
    wait
    err_has "[rank 5] error: killed/"
    err_has "disk is full"
    check [ "$(cat err.* | grep -c "error: ")" = 0 ]
    no_file killed/iter_0000012
    expect 0 "$TRAIN" run $tiny --save killed --nproc-per-node 8
    tensors killed/iter_0000024 >killed.bin
    same alone.bin killed.bin
    no_temps killed
}

t "a full disk on one rank ends all with its sentence; the job resumes"
mkdir -p disk killed
if ! on_small_disk true 2>/dev/null; then
    skip "$(why_no_mount)"
    return 0
fi
full_disk ""

t "a full disk on one rank while the next steps run"
full_disk --async-save
