#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# llama_build.sh PIP FOLDER: libllama from PyPI's source package llama-cpp-python 0.3.36, for llama.py: lib, lib-gelu (GELU calculated, not
# read from a table of halves) and llama_run. 77 files of C++: 6 minutes on two cores. Needs cmake and ninja.
set -eu
pip=$1 folder=$2 here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$pip" download -q --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36 -d "$tmp"
tar -C "$tmp" -xzf "$tmp"/llama_cpp_python-*.tar.gz
source=$(echo "$tmp"/llama_cpp_python-*/vendor/llama.cpp)
mkdir -p "$tmp/ready/lib" "$tmp/ready/lib-gelu"

# build NAME TARGET
build() {
    cmake -S "$source" -B "$tmp/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_COMMON=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF \
        -DBUILD_SHARED_LIBS=ON >"$tmp/$1.log"
    ninja -j2 -C "$tmp/$1" "$2" >"$tmp/$1.log" || { tail -n 40 "$tmp/$1.log"; exit 1; }
    cp -a "$tmp/$1/bin"/*.so* "$tmp/ready/$1/"
}
build lib llama
sed -i 's|^#define GGML_GELU_FP16$|// &|' "$source/ggml/src/ggml-cpu/vec.h"
grep -q '^// #define GGML_GELU_FP16$' "$source/ggml/src/ggml-cpu/vec.h"
build lib-gelu ggml-cpu
cc -O1 -I "$source/include" -I "$source/ggml/include" "$here/llama_run.c" -o "$tmp/ready/llama_run" \
    -L "$tmp/ready/lib" -lllama -lggml -lggml-base -Wl,-rpath-link,"$tmp/ready/lib"
rm -rf "$folder"
mv "$tmp/ready" "$folder"
