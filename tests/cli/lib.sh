# SPDX-License-Identifier: Apache-2.0
# What the command-line tests share. A test is tests/cli/NAME.sh, run by run.sh in a fresh folder:
#
#     t "an unknown option is an error"
#     expect 2 "$PREP" build --inputt x
#     err_has "did you mean --input"
#     out_is ""
#
# `t` begins a case; the first check of it that fails prints what was seen and ends the case (later checks of
# that case are passed over). $TOK $PREP $TRAIN $CONVERT $STORIES are the programs, $DATA the shared
# test data ("" if there is none), $SRC the source tree, $BUILD the
# folder of the build.

_number=0 _name= _bad= _failed=0

# what kill_at notes of its kills
WEFT_KILLS=$PWD/.kills
export WEFT_KILLS

_close() {
    [ -n "$_name" ] || return 0
    _number=$((_number + 1))
    if [ -n "$_bad" ]; then
        echo "not ok $_number - $_name"
        _failed=$((_failed + 1))
    else
        echo "ok $_number - $_name"
    fi
    _name=
}

t() {
    _close
    _name=$1 _bad=
}

# skip REASON: this case only
skip() {
    _number=$((_number + 1))
    echo "ok $_number - $_name # SKIP $1"
    _name= _bad=skipped
}

# why_no_mount: the reason for skip where a test could not mount a file system
why_no_mount() {
    _why=$(unshare -m true 2>&1)
    if [ -r /proc/self/mountinfo ]; then
        awk '$5 == "/" { found = 1 } END { exit !found }' /proc/self/mountinfo || _why=propagation
    fi
    case $_why in
    *propagation*) echo "no tmpfs can be mounted in a chroot: its root is not a mount point" ;;
    *) echo "no tmpfs can be mounted: ${_why:-user namespaces are not allowed}" ;;
    esac
}

_wrong() {
    _bad=1
    echo "# $*"
    [ ! -f .cmd ] || sed 's/^/#   /' .cmd
    echo "#   stdout: $(head -c 800 .out 2>/dev/null | tr '\n' '|')"
    echo "#   stderr: $(head -c 800 .err 2>/dev/null | tr '\n' '|')"
}

# expect CODE COMMAND...: runs it, keeps stdout in .out, stderr in .err
expect() {
    [ -z "$_bad" ] || return 0
    _want=$1
    shift
    printf '%s ' "$@" >.cmd
    echo >>.cmd
    _code=0
    "$@" >.out 2>.err || _code=$?
    [ "$_code" = "$_want" ] || _wrong "exit code $_code instead of $_want"
}

err_has() { [ -n "$_bad" ] || grep -qF -- "$1" .err || _wrong "no '$1' on stderr"; }
err_lacks() { [ -n "$_bad" ] || ! grep -qF -- "$1" .err || _wrong "'$1' on stderr"; }
out_has() { [ -n "$_bad" ] || grep -qF -- "$1" .out || _wrong "no '$1' on stdout"; }
out_is() { [ -n "$_bad" ] || [ "$(cat .out)" = "$1" ] || _wrong "stdout is not '$1'"; }
same() { [ -n "$_bad" ] || cmp -s "$1" "$2" || _wrong "$1 and $2 differ"; }
differ() { [ -n "$_bad" ] || ! cmp -s "$1" "$2" || _wrong "$1 and $2 are equal"; }
has_file() { [ -n "$_bad" ] || [ -e "$1" ] || _wrong "$1 is missing"; }
no_file() { [ -n "$_bad" ] || [ ! -e "$1" ] || _wrong "$1 is there"; }
# nothing half-written: no temporary names below the folder
no_temps() { [ -n "$_bad" ] || [ -z "$(find "$1" -name '*.tmp*')" ] || _wrong "left: $(find "$1" -name '*.tmp*')"; }
# check COMMAND...: any condition
check() { [ -n "$_bad" ] || "$@" || _wrong "not true: $*"; }

# await PID CONDITION...: until the command CONDITION is true; wrong if the process PID ends before, or after ten minutes,
# which even a busy machine does not need
await() {
    [ -z "$_bad" ] || return 0
    _pid=$1
    shift
    for _ in $(seq 12000); do
        "$@" && return
        if ! kill -0 "$_pid" 2>/dev/null; then
            "$@" || _wrong "process $_pid ended, and not yet: $*"
            return 0
        fi
        sleep 0.05
    done
    _wrong "after ten minutes not yet: $*"
}
# conditions of await: FILE has N lines with WORDS; PID has ended; FILE has something in it
lines_with() { [ "$(grep -c -- "$1" "$2" 2>/dev/null)" -ge "$3" ]; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }
not_empty() { [ -s "$1" ]; }

# free_port: a port at which nobody listens, below those that the system gives to outgoing connections
free_port() {
    python3 - <<'END'
import os, socket
port = 20000 + os.getpid() * 97 % 12000
while True:
    with socket.socket() as s:
        try:
            s.bind(("", port))
            break
        except OSError:
            port = 20000 + (port + 1) % 12000
print(port)
END
}

# struck: says how often kill_at killed since the last time; none at a write of data, or one at a system call
# that it does not know, is wrong
struck() {
    _data=$(grep -c data .kills 2>/dev/null)
    echo "# $_name: struck $(grep -c . .kills 2>/dev/null) times, ${_data:-0} of them at writes of data"
    check [ "${_data:-0}" -gt 0 ]
    [ -n "$_bad" ] || ! grep -q unknown .kills || _wrong "a system call of which trace.c does not know whether it changes files"
    rm -f .kills
}

finish() {
    _close
    echo "1..$_number"
    [ "$_failed" = 0 ]
}

# mpi_ranks N COMMAND...: N processes under mpirun: as root, more than there are processors, without the network
mpi_ranks() {
    mpi_n=$1
    shift
    HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        timeout 600 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader -n "$mpi_n" "$@" </dev/null
}

# mpi_probe ARGS...: sets no_mpi to the reason for which `train run ARGS` cannot be started by mpirun, or to nothing
mpi_probe() {
    no_mpi="no mpirun: apt-get install libopenmpi-dev"
    command -v mpirun >/dev/null || return 0
    no_mpi=
    mpi_ranks 2 "$TRAIN" run "$@" --train-iters 1 --no-save >probe 2>&1 || true
    ! grep -q "built without MPI" probe || no_mpi="built without MPI"
}

# any_ranks N COMMAND...: N processes under mpirun, or without MPI (mpi_probe) started by the command itself
any_ranks() {
    if [ -z "$no_mpi" ]; then
        mpi_ranks "$@"
    else
        any_n=$1
        shift
        "$@" --nproc-per-node "$any_n"
    fi
}
