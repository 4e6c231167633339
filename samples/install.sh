#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that weft needs, without a question; does nothing if they are there.
#
#   samples/install.sh         to build and run weft
#   samples/install.sh test    also what the tests compare it with
set -eu

build="gcc g++ libc6-dev meson ninja-build pkg-config cmake python3
    libsimdjson-dev libtomlplusplus-dev libsentencepiece-dev libxxhash-dev libssl-dev libzstd-dev
    zlib1g-dev liblzma-dev libpcre2-dev"
test="libopenblas-dev clang clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm sentencepiece zstd gzip xz-utils python3-numpy
    python3-torch python3-sentencepiece python3-venv binutils time groff-base zsh fish libopenmpi-dev"

packages=$build
[ "${1:-}" = test ] && packages="$packages $test"

missing=
for p in $packages; do
    state=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
        echo "These packages are missing and only root can install them. Run:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 4
    fi
    as_root="sudo -n"
fi

# apt ARGUMENTS...: apt-get, which waits up to ten minutes while another one holds a lock: for those of dpkg it
# does so itself, for those of the lists and of the archives it fails at once.
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
apt() {
    tries=0
    while :; do
        code=0
        $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@" \
            >&2 2>"$errors" || code=$?
        if [ $code = 0 ] || [ $tries = 120 ] || ! grep -q '^E: Could not get lock' "$errors"; then
            cat "$errors" >&2
            return $code
        fi
        [ $tries != 0 ] || grep '^E: Could not get lock' "$errors" | sed 's/^E: /waiting: /' >&2
        tries=$((tries + 1))
        sleep 5
    done
}

echo "installing:$missing" >&2
apt update
# shellcheck disable=SC2086
apt install -y --no-install-recommends $missing
