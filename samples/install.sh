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
test="libopenblas-dev clang libclang-rt-14-dev sentencepiece zstd gzip xz-utils python3-numpy python3-torch
    python3-sentencepiece python3-venv binutils time groff-base zsh fish"

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
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q >&2
# shellcheck disable=SC2086
$as_root apt-get install -q -y --no-install-recommends $missing >&2
