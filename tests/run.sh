#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds weft and passes its tests: the quick tier of every suite, the same
# once more under sanitizers, and one planted fault after the other. Ends in "N passed, N failed".
#
#   tests/run.sh            all of it (some twenty minutes on two cores)
#   tests/run.sh --plain    one build, no sanitizers, no faults
#   tests/run.sh --full     the long tier of every suite as well
set -eu
cd "$(dirname "$0")/.."

mode=all
for a in "$@"; do
    case $a in
    --plain) mode=plain ;;
    --full) export WEFT_FULL=1 ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown option $a" >&2; exit 2 ;;
    esac
done

say() { printf '== %s\n' "$*"; }

say "packages"
samples/install.sh test

# Oracles that Debian 12 lacks come from PyPI into a folder of their own; without them their tests are skipped.
if [ -z "${WEFT_PYTHON:-}" ]; then
    [ -x build-oracles/bin/python ] || {
        /usr/bin/python3 -m venv --system-site-packages build-oracles &&
            build-oracles/bin/pip install -q safetensors tokenizers==0.23.3 tiktoken==0.14.0 \
                transformers==5.23.0 jinja2==3.1.6 pyarrow==17.0.0 nltk==3.10.4 'numpy<2' &&
            build-oracles/bin/pip install -q --target build-oracles/sp022 sentencepiece==0.2.2 protobuf
    } || { rm -rf build-oracles; echo "PyPI is out of reach: some oracles are missing" >&2; }
    [ ! -x build-oracles/bin/python ] || { WEFT_PYTHON=$PWD/build-oracles/bin/python; export WEFT_PYTHON; }
fi

failed=0
# build NAME OPTIONS...: sets up and compiles build-NAME
build() {
    name=$1
    shift
    [ -f "build-$name/build.ninja" ] || meson setup "build-$name" -Dwerror=true "$@" >"build-$name.log" 2>&1 ||
        { cat "build-$name.log"; return 1; }
    ninja -C "build-$name" >"build-$name.log" 2>&1 || { tail -n 60 "build-$name.log"; return 1; }
}
# run NAME SUITES...: the suites of build-NAME
run() {
    name=$1
    shift
    suites=
    for s in "$@"; do suites="$suites --suite $s"; done
    # shellcheck disable=SC2086
    meson test -C "build-$name" --no-rebuild --print-errorlogs --logbase "$name" $suites || failed=1
}

say "gcc, warnings as errors: every suite"
build gcc -Dbuildtype=debugoptimized
run gcc unit lint ops cli interop fuzz

logs=build-gcc/meson-logs/gcc.json
if [ "$mode" = all ]; then
    say "clang with the address and undefined-behaviour sanitizers"
    CC=clang CXX=clang++ build asan -Dcuda=disabled -Dprogram_prefix=weft- -Db_sanitize=address,undefined -Db_lundef=false
    export ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    run asan unit ops fuzz sanitized

    say "gcc with the thread sanitizer: what has threads"
    build tsan -Dcuda=disabled -Db_sanitize=thread
    export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp"
    run tsan threads
    logs="$logs build-asan/meson-logs/asan.json build-tsan/meson-logs/tsan.json"

    say "planted faults"
    python3 tests/fault/run.py build-fault || failed=1
    logs="$logs build-fault/faults.json"
fi

# shellcheck disable=SC2086
python3 tests/count.py $logs || failed=1
exit $failed
