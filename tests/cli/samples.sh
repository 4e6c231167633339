# SPDX-License-Identifier: Apache-2.0
. "$SRC/tests/cli/train_data.sh"

# two iterations of each run file on the small corpus; --full takes the sequences that the file names
length=128
[ -z "${WEFT_FULL:-}" ] || length=2048

t "the 0.125B run file: two iterations at a small global batch"
expect 0 "$TRAIN" run --config "$SRC/samples/gpt-0.125b.toml" --tokenizer-type NullTokenizer --vocab-size 60 \
    --data-path d_text_document --seq-length $length --global-batch-size 2 --exit-interval 2 --log-interval 1 \
    --split 100,0,0 --save-interval 0 --no-index-cache --train-samples 40
err_has "parameters"
out_has "iteration        2/      20 | consumed samples:            4 |"

t "the quick start's run file"
expect 0 "$TRAIN" run --config "$SRC/samples/quickstart.toml" --tokenizer-type NullTokenizer --vocab-size 60 \
    --data-path d_text_document --train-iters 2 --lr-warmup-iters 1 --log-interval 1 --split 100,0,0 --no-index-cache
out_has "iteration        2/       2 | consumed samples:           32 |"

# ---- the scripts: nothing is installed, built or overwritten here ----

samples="$SRC/samples"
t "each script explains itself and refuses what it does not know"
for s in quickstart.sh install.sh compile.sh sft.sh ../tests/run.sh; do
    expect 0 "$samples/$s" --help
    out_has "$(basename "$s")"
    expect 2 "$samples/$s" --hepl
done
expect 2 "$samples/quickstart.sh" --out
err_has "--out needs a folder"
expect 2 "$samples/install.sh" tests
err_has "unknown argument tests"

t "what is installed is built without the tests"
if ninja -C "$BUILD" -t inputs programs >inputs 2>/dev/null; then
    for p in "$TOK" "$PREP" "$CONVERT" "$TRAIN"; do
        check grep -qxF "${p#"$BUILD"/}" inputs
    done
    expect 0 sh -c 'ninja -C "$0" -t query programs' "$BUILD"
    for p in "$TOK" "$PREP" "$CONVERT" "$TRAIN"; do
        for page in .1 -bash -zsh -fish; do out_has "${p##*/}$page"; done
    done
    check [ "$(grep -c '^tests/\|/tests/' inputs)" = 0 ]
else
    skip "this ninja lists no inputs"
fi

t "the quick start does not overwrite results, wherever it is called from"
mkdir -p here/out
echo kept >here/out/stories.jsonl
expect 2 sh -c 'cd here && "$0" --out out' "$samples/quickstart.sh"
err_has "here/out/stories.jsonl exists: --overwrite replaces what is there"
check [ "$(cat here/out/stories.jsonl)" = kept ]
rm here/out/stories.jsonl
mkdir here/out/run
expect 2 "$samples/quickstart.sh" --out="$PWD/here/out"
err_has "here/out/run exists"

# stand-ins: a system that lacks one package
mkdir -p bin
cat >bin/dpkg-query <<'END'
#!/bin/sh
case "$*" in *libpcre2-dev) echo "unknown ok not-installed" ;; *) echo "install ok installed" ;; esac
END
cat >bin/apt-get <<'END'
#!/bin/sh
echo "$@" >>calls
case "$*" in
*update*) [ ! -e offline ] || echo "W: Failed to fetch http://server/InRelease  Temporary failure resolving 'server'" >&2 ;;
*--assume-no*)
    [ ! -e offline ] || { echo "E: Unable to locate package libpcre2-dev" >&2; exit 100; }
    echo "Need to get 1,234 kB of archives."
    echo "After this operation, $(cat added) MB of additional disk space will be used." ;;
esac
END
cat >bin/df <<'END'
#!/bin/sh
echo "Filesystem 1M-blocks Used Available Capacity Mounted on"
echo "/dev/one 9000 1 $(cat "${0%/bin/df}/free") 1% /"
END
printf '#!/bin/sh\necho 0\n' >bin/id
chmod +x bin/*
install() { PATH="$PWD/bin:$PATH" "$samples/install.sh"; }

t "packages are installed where there is room for them"
echo 900 >free; echo 500 >added
expect 0 install
err_has "missing: libpcre2-dev"
err_has "2 MB to download, 500 MB on the disk"
check grep -q -- "install -y --no-install-recommends --download-only libpcre2-dev" calls
check grep -q -- "install -y --no-install-recommends libpcre2-dev" calls

t "where there is too little room nothing is installed"
rm calls; echo 640 >free
expect 4 install
err_has "/usr has 640 MB free, and the packages need 652 MB there: nothing was installed"
check [ "$(grep -c -- "install -y" calls)" = 0 ]
echo 150 >free
expect 4 install
err_has "/var has 150 MB free"

t "without a network one sentence says so, and the command to run later"
rm calls; echo 900 >free; : >offline
expect 4 install
err_has "the package server gives no packages (Temporary failure resolving 'server'): nothing was installed"
err_has "apt-get install --no-install-recommends libpcre2-dev"
check [ "$(grep -c -- "install -y" calls)" = 0 ]

t "a user who is not root and has no sudo is told what to run"
printf '#!/bin/sh\necho 1000\n' >bin/id
printf '#!/bin/sh\nexit 1\n' >bin/sudo
chmod +x bin/sudo
expect 4 install
err_has "installing them needs root, or sudo without a password"
err_has "apt-get install --no-install-recommends libpcre2-dev"

t "both commands say what they need before they do anything"
echo 9000 >free
for s in "$samples/quickstart.sh --out new" "$SRC/tests/run.sh" "$SRC/tests/run.sh --plain"; do
    PATH="$PWD/bin:$PATH" expect 4 $s
    err_has "installing them needs root, or sudo without a password"
    check [ "$(sed -n '1s/.*needs Debian 12; root or sudo where packages are missing (.* GB to download.*); .* GB of disk.* GB of memory; .* minutes on two cores/said/p' .out)" = said ]
done
no_file new

t "the compiler's words are shown when a target cannot be built"
mkdir broken
printf 'rule cc\n  command = echo "wrong here" >&2; exit 1\nbuild a: cc\n' >broken/build.ninja
expect 1 "$samples/compile.sh" broken
out_has "wrong here"
