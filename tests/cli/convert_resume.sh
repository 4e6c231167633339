# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Conversions that are killed, or stopped by a full disk, and run again: the same bytes as without, and nothing under
# a final name before. WEFT_FULL=1 kills at every call of every conversion.
make=$build/tests/ckpt_make
kill_at=$BUILD/tests/kill_at
one=4
[ -z "${WEFT_FULL:-}" ] || one=1

"$make" save run 10
"$make" two two 10
cp -r run/iter_0000010 whole
"$CONVERT" export -q run model >/dev/null
"$CONVERT" import -q model imported >/dev/null
"$CONVERT" reshard -q --ranks 3 run cut
"$CONVERT" reshard -q --ranks 2 two cut2
"$make" save run2 20
"$CONVERT" average -q run run2 averaged
t "the conversions that the others are compared with"
expect 0 "$CONVERT" verify --same run cut
expect 0 "$CONVERT" verify imported

# nothing DIR: no output under a final name
nothing() { [ -n "$_bad" ] || [ -z "$(ls "$1" 2>/dev/null)" ] || _wrong "there: $(ls "$1")"; }
# no_rest DIR: nothing of a conversion is left beside its output
no_rest() { no_temps "$1"; check [ -z "$(find "$1" -name journal -o -name '*.old')" ]; }

# killed EVERY WANT OUT COMMAND...: killed at every EVERY-th call, then run again; OUT is then WANT
killed() {
    every=$1 want=$2 out=$3
    shift 3
    step=1 resumed=0 before=0
    while
        rm -rf k
        mkdir k
        "$kill_at" "$step" "$@" --threads 1 >.out 2>.err
        code=$?
        [ $code = 0 ]
    do
        if [ -e "$out" ]; then
            expect 0 diff -r "$want" "$out"
        else
            nothing k/x
            before=$((before + 1))
            expect 0 "$@"
            if grep -q "is continued" .err; then resumed=$((resumed + 1)); fi
        fi
        expect 0 diff -r "$want" "$out"
        step=$((step + every))
    done
    check [ $code = 3 ]
    echo "# $step calls, killed before the end $before times, continued $resumed times"
    check [ $((before * every)) -ge 20 ]
    check [ $((resumed * every)) -ge 5 ]
    struck
}

"$kill_at" 1000000 true
if [ $? = 3 ]; then
    t "killed at every call: reshard of two tensors"
    killed 1 cut2/iter_0000010 k/x/iter_0000010 "$CONVERT" reshard --ranks 2 two k/x
    t "killed: import"
    killed $one imported/iter_0000000 k/x/iter_0000000 "$CONVERT" import model k/x
    t "killed: export"
    killed $one model k/x/m "$CONVERT" export run k/x/m
    t "killed: reshard"
    killed $((one * 4 - 3)) cut/iter_0000010 k/x/iter_0000010 "$CONVERT" reshard --ranks 3 run k/x

    t "killed: average"
    killed $one averaged/iter_0000000 k/x/iter_0000000 "$CONVERT" average run run2 k/x

    t "killed while it replaces: the old one or the new one, and a rerun gives the new one"
    step=1
    while
        rm -rf k
        mkdir k
        cp -r model k/m
        "$kill_at" "$step" "$CONVERT" export -q --overwrite --dtype bfloat16 --threads 1 run k/m >.out 2>.err
        [ $? = 0 ]
    do
        expect 0 "$CONVERT" export --overwrite --dtype bfloat16 run k/m
        no_rest k
        step=$((step + 4 * one))
    done
    check [ $step -gt 40 ]
    struck

    t "killed at some moments of a larger one"
    rows=1500000 moments=4 each=7 # 42 MB
    [ -z "${WEFT_FULL:-}" ] || rows=38000000 moments=20 each=48 # 1 GB
    "$make" two big 10 $rows
    "$CONVERT" reshard -q big bigcut
    i=1
    while [ $i -le $moments ]; do
        rm -rf k
        expect 0 "$kill_at" data:$((i * each + 6)) "$CONVERT" reshard -q big k
        nothing k
        expect 0 "$CONVERT" reshard big k
        err_has "is continued"
        expect 0 diff -r bigcut k
        i=$((i + 1))
    done
    rm -rf big bigcut k
    struck

    t "what was written is not written again, and is only believed by its digest"
    rm -rf k
    expect 0 "$kill_at" 36 "$CONVERT" export -q --threads 1 run k/m
    lines=$(grep -c . k/.m.tmp.0/journal)
    check [ "$lines" -gt 8 ]
    cp -r k k2
    most=$((2 * (21 - lines) + 10)) # two for each tensor that is left, and headers, texts, messages
    expect 0 "$kill_at" data:$most "$CONVERT" export --threads 1 run fresh/m
    "$kill_at" data:$most "$CONVERT" export --threads 1 run k/m >.out 2>.err
    check [ $? = 3 ]
    err_has "is continued"
    expect 0 diff -r model k/m
    # a flipped byte, a cut file, a journal that lies, lines without an end
    printf 'x' | dd of=k2/.m.tmp.0/model.safetensors bs=1 seek=5000 conv=notrunc status=none
    printf '0 3 0 64 0123' >>k2/.m.tmp.0/journal
    cp -r k2 k3
    truncate -s 3000 k3/.m.tmp.0/model.safetensors
    for d in k2 k3; do
        expect 0 "$CONVERT" export run $d/m
        err_has "is continued"
        expect 0 diff -r model $d/m
        no_rest $d
    done

    t "other options, or a source that has changed: begun anew, and said so"
    for change in options source; do
        rm -rf k
        expect 0 "$kill_at" 36 "$CONVERT" export -q --threads 1 run k/m
        type=auto want=model
        [ $change = source ] || { type=bfloat16 want=b; }
        [ $change = options ] || touch -d '2001-01-01' run/iter_0000010/manifest.json
        rm -rf b
        "$CONVERT" export -q --dtype bfloat16 whole b
        expect 0 "$CONVERT" export --dtype $type run k/m
        err_has "k/m: what a conversion with other options or from other files had begun is removed"
        err_lacks "is continued"
        expect 0 diff -r $want k/m
        no_rest k
    done

    t "two at once: the second does not touch what the first has begun"
    rm -rf k
    expect 0 "$kill_at" 36 "$CONVERT" export -q --threads 1 run k/m
    cp -r k/.m.tmp.0 k/held
    (
        flock 9
        expect 0 "$CONVERT" export run k/m
        err_lacks "is continued"
        exit $((_bad + 0))
    ) 9<k/.m.tmp.0
    check [ $? = 0 ]
    expect 0 diff -r k/held k/.m.tmp.0
    expect 0 diff -r model k/m
    rm -f .kills
else
    t "killed conversions"
    skip "processes may not be traced here"
fi

t "a damaged source leaves nothing to continue"
rm -rf k
cp -r run bad
printf 'x' | dd of=bad/iter_0000010/param-00000.safetensors bs=1 seek=9000 conv=notrunc status=none
expect 7 "$CONVERT" export bad k/m
expect 7 "$CONVERT" reshard bad k/r
check [ -z "$(find k -type f)" ]

# full BLOCKS COMMAND...: in a file system of so many KiB, then in a large one
full() {
    unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size="$0"k none small || exit 9
        "$@" >/dev/null 2>first
        echo $? >code
        ls small/d >visible 2>/dev/null
        if [ "$(cat code)" != 0 ]; then mount -o remount,size=4m small && "$@" || exit; fi
        cp -r small/d result' "$@"
}

t "a full disk of 25 sizes: exit 4, nothing visible; with more space it is continued"
mkdir -p small
if unshare -m mount -t tmpfs none small 2>/dev/null; then
    continued=0
    for verb in import export; do
        size=4
        while [ $size -le 52 ]; do
            src=model
            [ $verb = import ] || src=run
            rm -rf result
            expect 0 full $size "$CONVERT" $verb --threads 1 $src small/d
            if [ $verb = import ]; then rm -f result/latest*; mv result/iter_0000000 r2; rm -rf result; mv r2 result; fi
            if grep -q "is continued" .err; then continued=$((continued + 1)); fi
            want=imported/iter_0000000
            [ $verb = import ] || want=model
            expect 0 diff -r $want result
            if [ "$(cat code)" = 4 ]; then
                check grep -q "disk is full" first
                check [ ! -s visible ]
                fulls=$((${fulls:-0} + 1))
            else
                check [ "$(cat code)" = 0 ]
            fi
            size=$((size + 2))
        done
    done
    echo "# full $fulls times, continued $continued times"
    check [ "$fulls" -ge 25 ]
    check [ $continued -ge 10 ]
else
    skip "$(why_no_mount)"
fi
