# SPDX-License-Identifier: Apache-2.0
# Programs with their libraries beside them (meson compile bundle): what is in the folder is what runs.

t "a bundle's programs take their libraries from it"
expect 0 sh "$SRC/train/bundle.sh" b "$TOK" "$PREP" "$CONVERT"
for program in "$TOK" "$PREP" "$CONVERT"; do
    expect 0 env -i "b/bin/${program##*/}" --version
    out_has "weft"
done
mv b moved
ldd moved/bin/* >libraries
check grep -q "moved/bin/\.\./lib/libsentencepiece" libraries
check [ -z "$(grep '=> /' libraries | grep -v 'moved/bin/\.\./lib/' | grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|mvec))\.so')" ]

t "what those who get it may read is in it"
same moved/README.md "$SRC/README.md"
same moved/licenses/weft "$SRC/LICENSE"
for program in "$TOK" "$PREP" "$CONVERT"; do
    check grep -q '^\.TH' "moved/share/man/man1/${program##*/}.1"
done
for library in moved/lib/*; do
    package=$(dpkg-query -S "*/${library##*/}" 2>/dev/null | head -n 1 | cut -d: -f1)
    [ -z "$package" ] || check grep -qi "licen[cs]e" "moved/licenses/$package"
done

t "they run from where it was moved to"
printf 'a small text\n' >text.txt
expect 0 moved/bin/"${TOK##*/}" train -q --type bpe --vocab_size 260 --input text.txt --model_prefix h/
expect 0 moved/bin/"${TOK##*/}" encode --tokenizer h/tokenizer.json text.txt --output -

t "the folder is replaced as a whole"
touch b-old && mkdir -p b && mv b-old b/
expect 0 sh "$SRC/train/bundle.sh" b "$TOK"
no_file b/b-old
check [ -x b/bin/"${TOK##*/}" ]
no_file b/bin/"${PREP##*/}"

t "a program that needs MPI is refused, and nothing is left"
if ldd "$TRAIN" | grep -q libmpi; then
    expect 1 sh "$SRC/train/bundle.sh" mpi "$TRAIN"
    err_has "-Dmpi=disabled"
    no_file mpi
    no_file mpi.new
else
    skip "built without MPI"
fi

t "arguments"
expect 2 sh "$SRC/train/bundle.sh" b
err_has "usage"
