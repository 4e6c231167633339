#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that weft needs, without a question; does nothing if they are there.
#
#   samples/install.sh         to build and run weft (0.1 GB to download, 0.5 GB on the disk)
#   samples/install.sh test    also what the tests compare it with (0.5 GB and 2.2 GB)
#
# Needs root, or sudo that asks for no password. Says what is missing and how much it takes; below that
# much free space, or without a network, it changes nothing.
set -eu

build="gcc g++ libc6-dev meson ninja-build pkg-config cmake python3
    libsimdjson-dev libtomlplusplus-dev libsentencepiece-dev libxxhash-dev libssl-dev libzstd-dev
    zlib1g-dev liblzma-dev libpcre2-dev libuchardet-dev"
test="libopenblas-dev clang clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm sentencepiece zstd gzip xz-utils python3-numpy
    python3-torch python3-sentencepiece python3-venv binutils iproute2 time gdb groff-base zsh fish libopenmpi-dev"

packages=$build
for a in "$@"; do
    case $a in
    test) packages="$build $test" ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "install.sh: unknown argument $a; expected nothing or \"test\" (--help explains)" >&2; exit 2 ;;
    esac
done

missing=
for p in $packages; do
    state=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

say() { printf 'install.sh: %s\n' "$*" >&2; }
by_hand="    apt-get install --no-install-recommends$missing"

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
        say "these packages are missing, and installing them needs root, or sudo without a password. Run as root:"
        echo "$by_hand" >&2
        exit 4
    fi
    as_root="sudo -n"
fi

# apt ARGUMENTS...: apt-get, which waits up to ten minutes while another one holds a lock: for those of dpkg it
# does so itself, for those of the lists and of the archives it fails at once.
errors=$(mktemp) plan=$(mktemp)
trap 'rm -f "$errors" "$plan"' EXIT
apt() {
    tries=0
    while :; do
        code=0
        $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@" \
            >&2 2>"$errors" || code=$?
        if [ $code = 0 ] || [ $tries = 120 ] || ! grep -q '^E: Could not get lock' "$errors"; then
            return $code
        fi
        [ $tries != 0 ] || grep '^E: Could not get lock' "$errors" | sed 's/^E: /waiting: /' >&2
        tries=$((tries + 1))
        sleep 5
    done
}

# The network's errors are one sentence; apt-get's own words follow only where they are about something else.
fail_network() {
    if grep -qE 'Temporary failure resolving|Could not (resolve|connect)|Failed to fetch|Unable to locate' "$errors"; then
        why=$(grep -oE "Temporary failure resolving '[^']*'|Could not (resolve|connect)[^.]*|Failed to fetch [^ ]*|Unable to locate package" "$errors" | tail -n 1)
        say "the package server gives no packages ($why): nothing was installed. With a network, run this again, or as root:"
    else
        cat "$errors" >&2
        say "apt-get failed, and nothing was installed. When it works again, run this again, or as root:"
    fi
    echo "$by_hand" >&2
    exit 4
}

free_mb() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }
# need MB FOLDER: refuses where less is free
need() {
    free=$(free_mb "$2")
    [ "$free" -ge "$1" ] || {
        say "$2 has $free MB free, and the packages need $1 MB there: nothing was installed"
        exit 4
    }
}

say "missing:$missing"
archives=/var/cache/apt/archives
[ -d $archives ] || archives=/var
need 200 /var # the lists of packages
apt update || fail_network
update_errors=$(cat "$errors")

# What apt-get would do, in its words: "Need to get 105 MB/120 MB of archives.", "After this operation, 413 MB of ..."
# shellcheck disable=SC2086
$as_root env LC_ALL=C apt-get -q install --assume-no --no-install-recommends $missing >"$plan" 2>"$errors" || true
if grep -q '^E: Unable to locate' "$errors"; then
    { echo "E: Unable to locate package"; printf '%s\n' "$update_errors"; } >"$errors"
    fail_network
fi
# megabytes WORDS: the number behind them, rounded up
megabytes() {
    sed -n "s/^$1 \([0-9.,]*\) \([kMG]\{0,1\}\)B.*/\1 \2/p" "$plan" | tr -d , |
        awk '{ f = $2 == "G" ? 1000 : $2 == "M" ? 1 : $2 == "k" ? 0.001 : 0.000001; m = $1 * f; printf "%d\n", m == int(m) ? m : m + 1 }'
}
download=$(megabytes 'Need to get')
added=$(megabytes 'After this operation,')
download=${download:-0} added=${added:-0}
say "$download MB to download, $added MB on the disk"
# dpkg takes room of its own while it unpacks
if [ "$(df -P $archives | awk 'NR == 2 { print $1 }')" = "$(df -P /usr | awk 'NR == 2 { print $1 }')" ]; then
    need $((download + added + added / 10 + 100)) /usr
else
    need $((download + 20)) $archives
    need $((added + added / 10 + 100)) /usr
fi

# shellcheck disable=SC2086
apt install -y --no-install-recommends --download-only $missing || fail_network
# shellcheck disable=SC2086
apt install -y --no-install-recommends $missing || { cat "$errors" >&2; exit 4; }
