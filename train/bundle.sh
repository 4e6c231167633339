#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a folder of programs that runs on a machine without the libraries they were built with:
#
#   train/bundle.sh FOLDER PROGRAM...     what `meson compile bundle` runs
#
# FOLDER/bin has the programs without debug information, FOLDER/lib the libraries beside them, FOLDER/share/man their
# manual pages, FOLDER/licenses our licence and those of the libraries' packages; README.md says how to use them. The C
# library, the GPU's driver and NVIDIA's other libraries are those of the machine. FOLDER is replaced.
set -eu

[ $# -ge 2 ] || { echo "usage: train/bundle.sh FOLDER PROGRAM..." >&2; exit 2; }
folder=$1 source=$(cd "$(dirname "$0")/.." && pwd)
shift
most=$((40 * 1024)) # KiB

trap 'rm -rf "$folder.new"' EXIT
rm -rf "$folder.new"
mkdir -p "$folder.new/bin" "$folder.new/lib" "$folder.new/share/man/man1" "$folder.new/licenses"
cp "$source/README.md" "$folder.new/"
cp "$source/LICENSE" "$folder.new/licenses/weft"
# keep_license LIBRARY: the copyright file of the Debian package that it is of
keep_license() {
    package=$(dpkg-query -S "$(readlink -f "$1")" "$1" 2>/dev/null | head -n 1 | cut -d: -f1)
    text=/usr/share/doc/$package/copyright
    if [ -n "$package" ] && [ -f "$text" ]; then
        cp -L "$text" "$folder.new/licenses/$package"
    else
        echo "bundle: warning: the licence of $1 was not found; add it to $folder/licenses before you pass the folder on" >&2
    fi
}
for program in "$@"; do
    if ldd "$program" | grep -q 'libmpi\.so'; then
        echo "bundle: $program needs MPI, which is a machine's own: meson configure -Dmpi=disabled" >&2
        exit 1
    fi
    if ldd "$program" | grep 'not found' >&2; then
        exit 1
    fi
    strip -o "$folder.new/bin/${program##*/}" "$program"
    "$program" --man >"$folder.new/share/man/man1/${program##*/}.1"
    # all but those of the C library, which belong together and to the system
    ldd "$program" | awk '$2 == "=>" { print $3 }' |
        grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|mvec))\.so\.[0-9]+$' |
        while read -r library; do
            cp -Lf "$library" "$folder.new/lib/"
            keep_license "$library"
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
