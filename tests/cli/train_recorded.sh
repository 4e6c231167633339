# SPDX-License-Identifier: Apache-2.0
# Each `train run` of the other tests of train, as they come, first with --dry-run: where that refuses, the start says the same,
# and where it does not, the start comes to its first step. With WEFT_FULL=1.
t "--dry-run has the verdict of the starts that the other tests make"
if [ -z "${WEFT_FULL:-}" ]; then
    skip "WEFT_FULL=1 runs it"
    return 0
fi
mkdir seen
cat >train <<END2
#!/bin/bash
real=$TRAIN seen=$PWD/seen
END2
cat >>train <<'END2'
# a process that mpirun has started may meet the others once
[ "$1" = run ] && [ -z "${OMPI_COMM_WORLD_SIZE:-}" ] || exec "$real" "$@"
for a in "$@"; do case $a in --dry?run* | --help* | -h | --print-config) exec "$real" "$@" ;; esac; done
n=$(mktemp "$seen/XXXXXXXX")
shift
code=0
"$real" run --dry-run "$@" >"$n.out" 2>"$n.dry" </dev/null || code=$?
printf '%s ' "$code" "$@" >"$n"
exec "$real" run "$@" 2> >(tee "$n.real" >&2)
END2
chmod +x train
for script in "$SRC"/tests/cli/train_*.sh "$SRC"/tests/cli/wrong_inputs_train.sh; do
    name=$(basename "$script" .sh)
    # not those whose starts are traced, short of memory, or of other machines; nor what compares verdicts itself
    case $name in train_data | train_kills | train_memory | train_hosts | train_screen | train_verdicts | train_recorded) continue ;; esac
    mkdir "$name"
    env WEFT_FULL= TRAIN="$PWD/train" timeout 200 sh -c 'cd "$0" && . "$SRC/tests/cli/lib.sh" && . "$1"' "$name" "$script" >"$name.log" 2>&1
done
sleep 1
expect 0 python3 - <<'END2'
import glob, re
error = lambda text: re.sub(r"127\.0\.0\.1:\d+|rank \d+", "", next(iter(re.findall(r"^(?:\[rank \d+\] )?error: .*", text, re.M)), ""))
n = refused = 0
for path in sorted(glob.glob("seen/????????")):
    code, _, args = open(path).read().partition(" ")
    try:
        dry, real, out = (open(path + x, errors="replace").read() for x in (".dry", ".real", ".out"))
    except FileNotFoundError:
        continue
    n += 1
    refused += code != "0"
    later = re.search(r"error: .*(step [0-9]+[,:]|step [0-9]+$|between replicas)", real, re.M)
    stepped = "saved step" in real or "(after 1 iterations)" in real or later
    listed = re.search(r"^(unknown|not supported) ", out, re.M)
    same = error(dry) == error(real) or (listed and error(real)) if code != "0" else stepped or not error(real)
    if not same or (code != "0" and stepped):
        print("# %s\n#   dry run: %s %s\n#   start: %s" % (args, code, error(dry), error(real)))
print("# %d starts, %d of them refused" % (n, refused))
END2
cat .out
check [ "$(grep -c "dry run:" .out)" = 0 ]
check [ "$(sed -n 's/^# \([0-9]*\) starts.*/\1/p' .out)" -gt 216 ]
