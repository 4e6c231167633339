# SPDX-License-Identifier: Apache-2.0
# Several processes under mpirun: losses are those of one process, any layout resumes any other, a process that dies ends
# the job.
. "$SRC/tests/cli/train_data.sh"
tiny="$tiny --threads 1"
unset WEFT_JOB_TOKEN
token="--job-token-file job.token"
head -c 32 /dev/urandom | base64 >job.token
chmod 600 job.token

# own N ARGS...: processes that the command starts itself, whose waiting takes no processor time from the others
own() {
    n=$1
    shift
    "$TRAIN" run "$@" --nproc-per-node "$n" </dev/null
}

# the numbers of a run and of each other one agree to 1e-4 of their size, step by step
agree() {
    check python3 - "$@" <<'END'
import json, sys
keys = ("iteration", "lm_loss", "grad_norm", "valid_loss", "test_loss", "consumed_samples", "learning_rate")
def rows(run):
    return [{k: v for k, v in json.loads(l).items() if k in keys} for l in open(run + "/metrics.jsonl")]
a = rows(sys.argv[1])
for run in sys.argv[2:]:
    b = rows(run)
    assert len(a) == len(b) > 0, (run, len(a), len(b))
    for x, y in zip(a, b):
        assert x.keys() == y.keys(), (run, x, y)
        assert all(abs(x[k] - y[k]) <= 1e-4 * abs(x[k]) for k in x), (run, x, y)
END
}
tensors() { cat "$1"/*.safetensors; }

t "processes that the command starts itself have the weights of mpirun's, or of one"
"$TRAIN" run $tiny --train-iters 20 --save alone >/dev/null 2>&1
expect 0 "$TRAIN" run $tiny --train-iters 20 --save own --nproc-per-node 2 --log-dir own-logs --log-format megatron-v3
out_has "iteration       20/      20 |"
check grep -q "2 processes meet at 127.0.0.1 port [0-9]*; job token: made for this job" own-logs/rank_0000.log
check [ -s own-logs/rank_0000.log ]
check [ -e own-logs/rank_0001.log ]
expect 0 "$TRAIN" run $tiny --train-iters 20 --save own-tp --num_gpus 4 --tp 2 --sequence-parallel --use-distributed-optimizer
"$TRAIN" run $tiny --train-iters 20 --save two --nnodes 2 $token --node-rank 1 --master-addr 127.0.0.1 --master-port $((20000 + $$ * 97 % 12000)) \
    >two.out 2>&1 &
expect 0 "$TRAIN" run $tiny --train-iters 20 --save two --nnodes 2 $token --node-rank 0 --master-addr 127.0.0.1 --master-port $((20000 + $$ * 97 % 12000))
check wait $!
agree alone own own-tp two

t "processes of one machine share its processors"
cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
expect 0 "$TRAIN" run $tiny --threads 0 --train-iters 1 --no-save --nproc-per-node 2
threads() { [ "$1" = 1 ] && echo "1 thread" || echo "$1 threads"; }
err_has " $(threads $((cpus > 1 ? cpus / 2 : 1)));"
"$TRAIN" run $tiny --threads 0 --train-iters 1 --no-save --nnodes 2 $token --node-rank 1 --master-addr 127.0.0.1 \
    --master-port $((20000 + $$ * 97 % 12000)) >two.out 2>&1 &
expect 0 "$TRAIN" run $tiny --threads 0 --train-iters 1 --no-save --nnodes 2 $token --node-rank 0 --master-addr 127.0.0.1 \
    --master-port $((20000 + $$ * 97 % 12000))
check wait $!
err_has " $(threads $cpus);"

t "of processes that the command starts, one that fails ends all with its sentence"
expect 2 "$TRAIN" run $tiny --train-iters 2 --no-save --micro-batch-size 4 --nproc-per-node 2
err_has "is not a multiple of --micro-batch-size 4 x 2 data-parallel processes"
check [ "$(grep -c "^error: " .err)" = 1 ]
expect 2 "$TRAIN" run $tiny --train-iters 2 --no-save --nnodes 2
err_has "--nnodes 2: expected the address of node 0 as --master-addr"
expect 2 env RANK=3 WORLD_SIZE=2 "$TRAIN" run $tiny --train-iters 2 --no-save
err_has "the environment has RANK=3: expected a number from 0 to 1"

t "a job on several machines has a token, or is refused with the line that sets one"
two="$tiny --train-iters 1 --no-save --nnodes 2 --master-addr 127.0.0.1 --master-port $((20000 + ($$ * 97 + 1) % 12000))"
expect 2 "$TRAIN" run $two
err_has "the processes of this job have no token by which they tell each other from strangers"
check [ "$(grep -c "^error: " .err)" = 1 ]
line=$(sed -n 's/^hint: .*: \(export WEFT_JOB_TOKEN=.*)\);.*/\1/p' .err)
check [ -n "$line" ]
eval "$line"
check [ ${#WEFT_JOB_TOKEN} = 64 ]
"$TRAIN" run $two --node-rank 1 >two.out 2>&1 &
expect 0 "$TRAIN" run $two
check wait $!
err_has "job token: from WEFT_JOB_TOKEN"
unset WEFT_JOB_TOKEN
WEFT_JOB_TOKEN=short expect 2 "$TRAIN" run $two
err_has "WEFT_JOB_TOKEN has a job token of 5 bytes: expected 16 to 1024"
chmod 640 job.token
expect 2 "$TRAIN" run $two $token
err_has "--job-token-file job.token: others may read it (mode 0640), expected 0600"
mkfifo -m 600 fifo.token
expect 2 "$TRAIN" run $two --job-token-file fifo.token
err_has "--job-token-file fifo.token: expected a regular file"
chmod 600 job.token
expect 4 "$TRAIN" run $two --job-token-file none.token
"$TRAIN" run $two --no-job-token --node-rank 1 >two.out 2>&1 &
expect 0 "$TRAIN" run $two --no-job-token
check wait $!
err_has "warning: 2 processes meet at 127.0.0.1 port $((20000 + ($$ * 97 + 1) % 12000)) without a job token: anybody who reaches the port may join"
expect 2 env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none "$TRAIN" run $tiny --train-iters 1 --no-save
err_has "torchrun names no job to derive it from (its --rdzv-id is not set)"
for rank in 0 1; do
    export RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=job-7 MASTER_PORT=$((20000 + ($$ * 97 + 2) % 12000))
    "$TRAIN" run $tiny --train-iters 1 --no-save >run.$rank 2>&1 &
done
wait
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TORCHELASTIC_RUN_ID MASTER_PORT
check grep -q "job token: derived from torchrun's run id job-7, which keeps jobs apart, but not a person who can guess it" run.0
check grep -q "iteration" run.1

mpi_probe $tiny
if [ -n "$no_mpi" ]; then
    t "several processes"
    skip "$no_mpi"
    return 0
fi

"$TRAIN" run $tiny $llama --train-iters 10 --save one-l >/dev/null 2>&1

t "data-parallel processes learn what one learns, and the last one prints it"
expect 0 mpi_ranks 2 "$TRAIN" run $tiny --train-iters 20 --save dp --log-format megatron-v3
out_has "iteration       20/      20 |"
check [ "$(grep -c "iteration" dp/metrics.jsonl)" = "$(grep -c "iteration" alone/metrics.jsonl)" ]
no_temps dp

t "tensor and sequence parallel, the optimizer shared out, fewer key heads than processes"
expect 0 mpi_ranks 2 "$TRAIN" run $tiny --train-iters 20 --save tp --tp 2 --sequence-parallel
expect 0 own 4 $tiny $llama --train-iters 10 --save tp-l --tensor-model-parallel-size 4
agree one-l tp-l
expect 0 own 4 $tiny --train-iters 20 --save zero --tp 2 --use-distributed-optimizer
expect 0 "$CONVERT" verify zero/iter_0000020

t "a pipeline, and one of tensor-parallel stages"
expect 0 mpi_ranks 2 "$TRAIN" run $tiny --train-iters 20 --save pp --pipeline-model-parallel-size 2
expect 0 own 4 $tiny --train-iters 20 --save tp-pp --pp 2 --tp 2 --sequence-parallel
expect 0 "$CONVERT" verify tp-pp/iter_0000020

t "another layout resumes"
expect 0 own 4 $tiny --train-iters 20 --save mixed --tp 2 --sequence-parallel --use-distributed-optimizer --exit-interval 5
expect 0 own 2 $tiny --train-iters 20 --save mixed --use-distributed-optimizer --exit-interval 10
expect 0 mpi_ranks 2 "$TRAIN" run $tiny --train-iters 20 --save mixed --pp 2 --exit-interval 15
expect 0 "$TRAIN" run $tiny --train-iters 20 --save mixed --exit-interval 18
expect 0 own 2 $tiny --train-iters 20 --save mixed --tp 2
agree alone dp tp zero pp tp-pp mixed

t "the same layout resumes with the same bytes, also after kill -9 of one process"
expect 0 own 2 $tiny --train-iters 20 --save again --use-distributed-optimizer
own 2 $tiny --train-iters 20 --save killed --use-distributed-optimizer --exit-interval 10 >/dev/null 2>&1
mpi_ranks 2 sh -c '
    "$0" "$@" & pid=$!
    if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then sleep 1; kill -9 $pid; fi
    wait $pid' "$TRAIN" run $tiny --train-iters 4000 --lr-decay-iters 20 --save killed --use-distributed-optimizer >killed.out 2>&1
check [ $? != 0 ]
no_file killed/iter_0004000
expect 0 own 2 $tiny --train-iters 20 --save killed --use-distributed-optimizer
tensors again/iter_0000020 >again.bin
tensors killed/iter_0000020 >killed.bin
same again.bin killed.bin

t "what cannot be is told once"
expect 2 mpi_ranks 2 "$TRAIN" run $tiny --train-iters 2 --no-save --tp 2 --num-attention-heads 1 --global-batch-size 2
err_has "1 attention heads cannot be shared out to tensor-model-parallel-size 2"
check [ "$(grep -c "^error: " .err)" = 1 ]
expect 2 "$TRAIN" run $tiny --train-iters 2 --no-save --tp 2
err_has "1 process cannot be shared out to --tensor-model-parallel-size 2"
expect 2 mpi_ranks 2 "$TRAIN" eval --load alone --data-path d_text_document --eval-iters 1
err_has "train eval runs as one process"
check [ "$(grep -c "^error: " .err)" = 1 ]
expect 2 mpi_ranks 2 "$TRAIN" run $tiny --no-such-option
check [ "$(grep -c "^error: " .err)" = 1 ]

t "a plan of several processes"
expect 0 "$TRAIN" plan $tiny --sequence-parallel --use-distributed-optimizer
err_has "warning: --sequence-parallel has no effect with --tensor-model-parallel-size 1"
err_has "warning: --use-distributed-optimizer has no effect with one data-parallel process"
"$TRAIN" plan $tiny --hidden-size 512 --world-size 1 >plan1 2>/dev/null
"$TRAIN" plan $tiny --hidden-size 512 --world-size 4 --tp 2 --use-distributed-optimizer >plan4 2>/dev/null
check python3 - <<'END'
import re
one, four = (float(re.search(r"optimizer ([0-9.]+) MiB", open(p).read())[1]) for p in ("plan1", "plan4"))
assert 0.2 * one < four < 0.3 * one, (one, four)
END

t "a signal ends all processes well: the step is named, and no error"
for signal in TERM INT TERM; do
    rm -rf stopped
    : >.out
    "$TRAIN" run $tiny --train-iters 100000 --log-interval 1 --save stopped --nproc-per-node 2 >.out 2>.err &
    pid=$!
    await $pid lines_with iteration .out 3
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    check [ $code = "$([ $signal = INT ] && echo 130 || echo 75)" ]
    err_has "after step"
    err_has "to resume"
    check [ "$(grep -c "error: " .err)" = 0 ]
done
