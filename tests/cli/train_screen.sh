# SPDX-License-Identifier: Apache-2.0
# Progress, resume, Ctrl-C and SIGTERM on terminals of 50, 80 and 200 columns: golden screens, in tests/cli/screens.
# To write them anew: WEFT_SCREENS=1 tests/cli/run.sh build train_screen
. "$SRC/tests/cli/train_data.sh"
why=$(python3 -c 'import os; os.openpty()' 2>&1) || { t "screens"; skip "no terminal can be opened here: ${why##*: }"; return 0; }

ln -s "$TRAIN" train
tiny=$(echo $tiny | sed 's/--log-interval [0-9]*//; s/--eval-interval [0-9]*//; s/--global-batch-size [0-9]*//')
common="--log-interval 1 --threads 2 --kernels plain --seed 1"
log="$common --global-batch-size 4 --eval-interval 2"
slow="--global-batch-size 300 --eval-interval 100"
screen() { python3 "$SRC/tests/cli/screen.py" "$@"; }

# golden NAME: .out is that screen
golden() {
    [ -z "${WEFT_SCREENS:-}" ] || cp .out "$SRC/tests/cli/screens/$1"
    [ -n "$_bad" ] || diff "$SRC/tests/cli/screens/$1" .out >diff || { sed 's/^/# /' diff; _wrong "another screen than $1"; }
}

for columns in 50 80 200; do
    t "$columns columns: a run from its start to its end"
    expect 0 screen $columns "" "" ./train run $tiny $log --train-iters 4 --save r$columns
    golden run_$columns.txt

    t "$columns columns: the same, resumed: steps counted on, rate and time left of this start"
    expect 0 screen $columns "" "" ./train run --config r$columns/config.toml --train-iters 1000 --exit-interval 6
    golden resume_$columns.txt

    t "$columns columns: Ctrl-C stops after the step, and the end says how to resume"
    rm -rf "my run"
    expect 0 screen $columns "1 of 90 steps" ^C ./train run $tiny $common --train-iters 90 --save "my run" \
        $slow
    golden interrupt_$columns.txt
    out_has "exit: 130"
    expect 0 ./train run --config "my run/config.toml" --exit-interval 1
    err_has "resuming from my run/iter_"

    t "$columns columns: SIGTERM likewise, with its own code"
    expect 0 screen $columns "1 of 90 steps" TERM ./train run $tiny $common --train-iters 90 --save t$columns \
        $slow
    golden terminate_$columns.txt
    out_has "exit: 75"
done

t "Ctrl-C without --save says that nothing was saved"
expect 0 screen 80 "1 of 90 steps" ^C ./train run $tiny $common --train-iters 90 --no-save $slow
out_has "; nothing was saved (--save DIR keeps the model)"
out_has "exit: 130"

t "a terminal gets Megatron's line where it is asked for, a file always"
expect 0 screen 200 "" "" ./train run $tiny $log --train-iters 1 --no-save --log-format megatron-v3
out_has " iteration        1/       1 | consumed samples:            4 |"
expect 0 ./train run $tiny $log --train-iters 1 --no-save
out_has "iteration        1/       1 | consumed samples:            4 |"

t "generate without --prompt says on a terminal that it reads"
expect 0 ./train run $tiny $log --train-iters 2 --save g
expect 0 screen 80 "Ctrl-D ends" TERM ./train generate --load g --max-new-tokens 2
out_has "reading prompts from standard input, one in each line; Ctrl-D ends"
