#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a folder of programs that runs on a machine without the libraries they were built with:
#
#   train/bundle.sh FOLDER PROGRAM...     what `meson compile bundle` runs
#
# FOLDER/bin has the programs without debug information, FOLDER/lib the libraries beside them; the C library,
# the GPU's driver and NVIDIA's other libraries are those of the machine. FOLDER is replaced.
set -eu

[ $# -ge 2 ] || { echo "usage: train/bundle.sh FOLDER PROGRAM..." >&2; exit 2; }
folder=$1
shift
most=$((40 * 1024)) # KiB

trap 'rm -rf "$folder.new"' EXIT
rm -rf "$folder.new"
mkdir -p "$folder.new/bin" "$folder.new/lib"
for program in "$@"; do
    if ldd "$program" | grep -q 'libmpi\.so'; then
        echo "bundle: $program needs MPI, which is a machine's own: meson configure -Dmpi=disabled" >&2
        exit 1
    fi
    if ldd "$program" | grep 'not found' >&2; then
        exit 1
    fi
    strip -o "$folder.new/bin/${program##*/}" "$program"
    # all but those of the C library, which belong together and to the system
    ldd "$program" | awk '$2 == "=>" { print $3 }' |
        grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|mvec))\.so\.[0-9]+$' |
        while read -r library; do
            cp -Lf "$library" "$folder.new/lib/"
        done
done
chmod u+w "$folder.new"/lib/*
strip --strip-unneeded "$folder.new"/lib/*
size=$(du -sk "$folder.new" | cut -f 1)
if [ "$size" -gt "$most" ]; then
    echo "bundle: $size KiB, at most $most are allowed: -Dgpu_arch names fewer GPUs" >&2
    exit 1
fi
rm -rf "$folder"
mv "$folder.new" "$folder"
echo "$folder: $size KiB"
