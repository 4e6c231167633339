#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds weft and passes its tests: the quick tier of every suite, the same
# once more under sanitizers, and the planted faults. Ends in "N passed, N failed".
#
#   tests/run.sh            all of it (thirty to forty-five minutes on two cores)
#   tests/run.sh --plain    one build, no sanitizers, no faults (about twenty)
#   tests/run.sh --full     the long tier of every suite as well, and the mutants of train/ (two hours)
#
# Needs Debian 12, root or sudo where packages are missing (0.5 GB to download, 2.2 GB on the disk), PyPI for the
# libraries that weft is compared with (0.5 GB; without it their tests are skipped), 5 GB here for the builds
# (2 GB with --plain) and 4 GB of memory.
set -eu
cd "$(dirname "$0")/.."

mode=all room=5000 disk=5 time="thirty to forty-five minutes"
for a in "$@"; do
    case $a in
    --plain) mode=plain room=2000 disk=2 time="about twenty minutes" ;;
    --full) export WEFT_FULL=1; full=", and hours for the long tier" ;;
    -h | --help) sed -n '3,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown option $a (--help lists them)" >&2; exit 2 ;;
    esac
done
free=$(df -Pm . | awk 'NR == 2 { print $4 }')
if [ ! -d build-gcc ] && [ "$free" -lt $room ]; then
    echo "tests/run.sh: $PWD has $free MB free, and the builds need $room MB: nothing was begun" >&2
    exit 4
fi

echo "needs Debian 12; root or sudo where packages are missing (0.5 GB to download, 2.2 GB); $disk GB of disk here and 4 GB of memory; $time on two cores${full:-}"
begin=$(date +%s)
say() { printf '== %d:%02d %s\n' $((($(date +%s) - begin) / 60)) $((($(date +%s) - begin) % 60)) "$*"; }

say "packages"
samples/install.sh test

# Oracles that Debian 12 lacks come from PyPI into a folder of their own; without them their tests are skipped.
if [ -z "${WEFT_PYTHON:-}" ]; then
    [ -x build-oracles/bin/python ] || {
        /usr/bin/python3 -m venv --system-site-packages build-oracles &&
            build-oracles/bin/pip install -q safetensors tokenizers==0.23.3 tiktoken==0.14.0 \
                transformers==5.23.0 jinja2==3.1.6 pyarrow==17.0.0 nltk==3.10.4 'numpy<2' &&
            build-oracles/bin/pip install -q --target build-oracles/sp022 sentencepiece==0.2.2 protobuf &&
            build-oracles/bin/pip install -q --no-deps --target build-oracles/hf446 transformers==4.46.3 \
                tokenizers==0.20.3 huggingface_hub==0.26.5 &&
            build-oracles/bin/pip install -q --no-deps --target build-oracles/peft peft==0.13.2 accelerate==0.34.2 psutil &&
            build-oracles/bin/pip install -q --no-deps --target build-oracles/gguf gguf==0.19.0
    } || { rm -rf build-oracles; echo "PyPI is out of reach: some oracles are missing" >&2; }
    [ ! -x build-oracles/bin/python ] || { WEFT_PYTHON=$PWD/build-oracles/bin/python; export WEFT_PYTHON; }
fi

# The long tier makes the records of tests/interop/hf523.py, curves.py and trainer.py again, with the PyTorch of PyPI (6 GB): see there.
if [ -n "${WEFT_FULL:-}" ] && [ -z "${WEFT_TORCH:-}" ]; then
    [ -x build-torch/bin/python ] || {
        /usr/bin/python3 -m venv build-torch && build-torch/bin/pip install -q torch==2.15.0 transformers==5.23.0 accelerate==1.15.0 safetensors 'numpy<2'
    } || { rm -rf build-torch; echo "PyTorch could not be installed from PyPI: the records are not made again" >&2; }
    [ ! -x build-torch/bin/python ] || { WEFT_TORCH=$PWD/build-torch/bin/python; export WEFT_TORCH; }
fi

# So does llama.cpp, which runs the GGUF files.
if [ -n "${WEFT_FULL:-}" ] && [ ! -x build-oracles/llama/llama_run ] && [ -x build-oracles/bin/pip ]; then
    say "llama.cpp"
    nice tests/interop/llama_build.sh build-oracles/bin/pip build-oracles/llama ||
        echo "llama.cpp could not be built from PyPI's sources: GGUF files are not run" >&2
fi

failed=0 problem=
broken() { echo "failed: build-$1 was not built: see above"; exit 1; }
# build NAME OPTIONS...: sets up and compiles build-NAME
build() {
    name=$1
    shift
    [ -f "build-$name/build.ninja" ] || meson setup "build-$name" -Dwerror=true "$@" >"build-$name.log" 2>&1 ||
        { cat "build-$name.log"; broken "$name"; }
    samples/compile.sh "build-$name" || broken "$name"
}
# run NAME LOG SUITES...: the suites of build-NAME; results go to LOG.json
logs=
run() {
    name=$1 log=$2
    shift 2
    logs="$logs build-$name/meson-logs/$log.json"
    suites=
    for s in "$@"; do suites="$suites --suite $s"; done
    # shellcheck disable=SC2086
    # time limits are for what hangs: a loaded machine may take four times as long
    meson test -C "build-$name" --no-rebuild --print-errorlogs --timeout-multiplier 4 --logbase "$log" $suites || {
        failed=1
        python3 tests/count.py --failed "build-$name/meson-logs/$log.json" || true
    }
}

say "gcc, warnings as errors"
build gcc -Dbuildtype=debugoptimized

if [ -z "${WEFT_TEST_DATA:-}" ]; then
    say "test data (WEFT_TEST_DATA names no folder): texts and tokenizers are made"
    if tests/interop/python -B tests/interop/testdata.py build-oracles/data build-gcc/tok/tok build-gcc/samples/stories; then
        WEFT_TEST_DATA=$PWD/build-oracles/data
        export WEFT_TEST_DATA
    else
        failed=1 problem="the test data could not be made: see above"
    fi
fi

say "gcc: every suite"
run gcc gcc unit lint ops cli interop fuzz parallel

if [ "$mode" = all ]; then
    say "clang with the address and undefined-behaviour sanitizers"
    CC=clang CXX=clang++ build asan -Dcuda=disabled -Dprogram_prefix=weft- -Db_sanitize=address,undefined -Db_lundef=false
    export ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    run asan asan unit ops fuzz sanitized

    say "the same without test data: what is skipped frees what it holds"
    data=${WEFT_TEST_DATA:-}
    unset WEFT_TEST_DATA
    run asan asan-without-data data
    [ -z "$data" ] || export WEFT_TEST_DATA="$data"

    say "gcc with the thread sanitizer: what has threads"
    build tsan -Dcuda=disabled -Db_sanitize=thread
    export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp"
    run tsan tsan threads

    say "planted faults"
    python3 tests/fault/run.py build-fault || failed=1
    logs="$logs build-fault/faults.json"
fi

# Two hours of a processor. The copy of the sources that it changes is outside of this tree, 2 GB.
if [ "$mode" = all ] && [ -n "${WEFT_FULL:-}" ]; then
    say "mutants of collectives, groups and counts in train/ (two hours of a processor, 2 GB under ${TMPDIR:-/var/tmp})"
    mutants=$(mktemp -d "${TMPDIR:-/var/tmp}/weft-mutants-XXXXXX")
    nice python3 -B tests/mutate/mutate.py "$mutants" || { failed=1 problem="mutants of train/: see above"; }
    rm -rf "$mutants"
fi

say "results"
[ -z "$problem" ] || echo "failed: $problem"
# shellcheck disable=SC2086
python3 tests/count.py $logs || failed=1
exit $failed
