# SPDX-License-Identifier: Apache-2.0
# What does not fit into memory ends before step 0, with need, limit and the option to lower; what fits runs.
. "$SRC/tests/cli/train_data.sh"

model="--num-layers 8 --hidden-size 384 --num-attention-heads 6 --threads 2"
work="--train-iters 4 --eval-interval 2 --save-interval 2 --log-interval 1"
huge="--num-layers 40 --hidden-size 640 --num-attention-heads 10 --threads 2"

# mib NUMBER UNIT: whole MiB, rounded up
mib() { awk -v v="$1" -v u="$2" 'BEGIN { x = v * (u == "GiB" ? 1024 : u == "KiB" ? 1 / 1024 : 1); print int(x + 0.999) }'; }
# the three numbers of the message in .err, in MiB: need, free, total
numbers() {
    set -- $(sed -n 's/^error: not enough memory: \([0-9.]* .iB\) are needed (.*), and \([0-9.]* .iB\) of \([0-9.]* .iB\) are free under the limit of .*/\1 \2 \3/p' .err)
    [ $# = 6 ] || { _wrong "not three numbers"; set -- 0 MiB 0 MiB 0 MiB; }
    need=$(mib "$1" "$2") free=$(mib "$3" "$4") total=$(mib "$5" "$6")
}
refused() {
    err_has "error: not enough memory: "
    err_has "(parameters "
    err_has "hint: lower --"
    no_file "$1"
    check [ ! -s .out ]
}

# under LIMIT COMMAND...: with ulimit -v of so many MiB
under() { (ulimit -v $(($1 * 1024)) && shift && exec "$@"); }

# no_proc COMMAND...: as in a chroot where /proc is not mounted
no_proc() { [ -r /proc/self/statm ] && set -- unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"; "$@"; }

t "without /proc: the limit is that of the machine, or of ulimit -v"
if no_proc true 2>/dev/null; then
    expect 5 no_proc "$TRAIN" run $tiny --num-layers 1000 --hidden-size 65536 --num-attention-heads 64 --train-iters 4 --save w
    refused w
    err_has "under the limit of the machine"
    expect 5 no_proc sh -c 'ulimit -v 122880 && exec "$@"' sh "$TRAIN" run $tiny $huge $work --save w
    refused w
    err_has "under the limit of ulimit -v"
    expect 0 no_proc "$TRAIN" run $tiny --train-iters 1 --no-save
else
    skip "$(why_no_mount)"
fi
[ -r /proc/self/statm ] || { t "memory"; skip "/proc is not mounted: how much is in use cannot be told"; return 0; }

t "ulimit -v: what fits into the need that is told runs to its end, 2 MiB less is refused"
expect 5 under 120 "$TRAIN" run $tiny $model $work --save u
refused u
err_has "under the limit of ulimit -v"
err_has "or raise \`ulimit -v\`"
numbers
used=$((total - free))
least=$((used + need))
expect 0 under $((least + 1)) "$TRAIN" run $tiny $model $work --save u
has_file u/iter_0000004
expect 5 under $((least - 2)) "$TRAIN" run $tiny $model $work --save v
refused v

t "ulimit -v: a model 1.2 times and one 20 times as large as the limit"
expect 5 under $((least * 10 / 12)) "$TRAIN" run $tiny $model $work --save v
refused v
numbers
check [ $((total * 12)) -le $((least * 10 + 24)) ]
expect 5 under 120 "$TRAIN" run $tiny $huge $work --save v
refused v
numbers
check [ "$need" -ge $((total * 20)) ]

t "the option to lower is the one that helps, whatever the limit"
for more in 130 220 236; do
    expect 5 under $((used + more)) "$TRAIN" run $tiny --train-iters 4 --micro-batch-size 4096 --global-batch-size 4096
    err_has "hint: lower --micro-batch-size from 4096 to "
    b=$(sed -n 's/^hint: lower --micro-batch-size from 4096 to \([0-9]*\).*/\1/p' .err)
    expect 0 under $((used + more)) "$TRAIN" run $tiny --train-iters 1 --eval-iters 0 --micro-batch-size $b --global-batch-size 4096
    expect 5 under $((used + more)) "$TRAIN" run $tiny --train-iters 1 --eval-iters 0 --micro-batch-size $((b * 2)) --global-batch-size 4096
done
expect 5 under $((used + 220)) "$TRAIN" run $tiny $huge --train-iters 4
err_has "hint: lower --num-layers (40) or --hidden-size (640)"

t "generate and eval look at the memory too"
expect 5 under 110 "$TRAIN" eval --load u --data-path d_text_document
err_has "error: not enough memory: "

# inside FOLDER COMMAND...: in a control group
inside() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$@"; }
group= file=
for g in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    for f in memory.limit_in_bytes memory.max; do
        [ -z "$group" ] && mkdir "$g/weft-test-$$" 2>/dev/null || continue
        [ -w "$g/weft-test-$$/$f" ] && group=$g/weft-test-$$ file=$f || rmdir "$g/weft-test-$$"
    done
done

t "a cgroup: what fits runs, a model 1.2 times and one 20 times as large as its limit is refused"
if [ -z "$group" ] || ! inside "$group" true 2>/dev/null; then
    skip "no cgroup with a memory limit can be made here"
else
    mb=1048576
    echo $((100 * mb)) >"$group/$file"
    [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
    expect 5 inside "$group" "$TRAIN" run $tiny $model $work --save g
    refused g
    err_has "under the limit of the cgroup "
    numbers
    echo $(((need + total - free + 2) * mb)) >"$group/$file"
    expect 0 inside "$group" "$TRAIN" run $tiny $model $work --save g
    has_file g/iter_0000004
    echo $((need * 10 / 12 * mb)) >"$group/$file"
    expect 5 inside "$group" "$TRAIN" run $tiny $model $work --save h
    refused h
    echo $((120 * mb)) >"$group/$file"
    expect 5 inside "$group" "$TRAIN" run $tiny $huge $work --save h
    refused h
    numbers
    check [ "$need" -ge $((total * 20)) ]
fi
[ -z "$group" ] || rmdir "$group"

t "a plan binds nothing: what does not fit is printed all the same, and then the error"
expect 0 "$TRAIN" plan $tiny
out_has "memory          parameters "
expect 5 sh -c 'ulimit -v 262144 && exec "$@"' sh "$TRAIN" plan --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
    --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --vocab-size 128000 --tokenizer-type NullTokenizer
out_has "parameters      6985"
out_has "operations "
err_has "error: not enough memory: "
