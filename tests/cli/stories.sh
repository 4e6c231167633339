# SPDX-License-Identifier: Apache-2.0
# The story generator: same seed, same bytes; sizes extend; enough words; nothing half written.

sum() { sha256sum <"$1" | cut -d' ' -f1; }

t "its help fits a screen and begins with an example"
expect 0 "$STORIES" -h
check sh -c 'head -n 2 .out | grep -q "^  stories --seed"'
check sh -c '[ $(wc -l <.out) -le 24 ]'
expect 0 "$STORIES" --help
out_has "instead of a number of"

t "the same seed gives the same bytes, another seed others"
expect 0 "$STORIES" --seed 1234 --documents 200 --output a
expect 0 "$STORIES" --seed=1234 --documents=200
same a .out
expect 0 "$STORIES" --seed 1234 --documents 200 --output -
same a .out
expect 0 "$STORIES" --seed 1235 --documents 200 --output b
differ a b

t "the bytes are those of every machine"
expect 0 "$STORIES" --seed 1234 --documents 1000 --output fixed
check [ "$(sum fixed)" = 969bcdcee5d7ca024f591a4a513a008a3f07371fb901da99f3b191d2b76b3f39 ]

t "a longer run begins with a shorter one"
expect 0 "$STORIES" --seed 9 --documents 50 --output short
expect 0 "$STORIES" --seed 9 --documents 90 --output long
head -n 50 long >begin
same short begin
expect 0 "$STORIES" --seed 9 --bytes 20K --output bytes
check [ "$(wc -c <bytes)" -ge 20480 ]
check [ "$(head -n -1 bytes | wc -c)" -lt 20480 ]
head -n "$(wc -l <bytes)" long >begin
same bytes begin

t "a run may begin anywhere"
expect 0 "$STORIES" --seed 9 --documents 40 --id_base 50 --output rest
tail -n 40 long >end
same rest end

t "every line is JSON, and 4 MB have more than 4,000 word forms"
expect 0 "$STORIES" --seed 77 --bytes 4000000 --output four
cat >count.py <<'END'
import json, re, sys
forms, total = set(), 0
for k, line in enumerate(open(sys.argv[1], encoding="ascii")):
    story = json.loads(line)
    assert list(story) == ["id", "text"] and story["id"] == k, line
    forms.update(re.findall("[a-z]+", story["text"].lower()))
print(len(forms))
END
expect 0 python3 count.py four
check sh -c '[ "$(cat .out)" -ge 4000 ]'

t "without a size there are ten stories, and none when none are asked for"
expect 0 "$STORIES"
check sh -c '[ $(wc -l <.out) = 10 ]'
expect 0 "$STORIES" --documents 0
out_is ""
expect 0 "$STORIES" --bytes 0
out_is ""

t "wrong options are refused"
expect 2 "$STORIES" --sed 1
err_has "unknown option --sed of stories"
err_has "did you mean --seed?"
expect 2 "$STORIES" --seed
err_has "--seed needs a value"
expect 2 "$STORIES" --documents many
err_has "--documents"
expect 2 "$STORIES" --seed=-1
err_has "--seed"
for bytes in 17179869184G 18446744073709551616 8Q 8MM M 1.5M ""; do
    expect 2 "$STORIES" "--bytes=$bytes"
    err_has "--bytes $bytes: expected a whole number below 2^64, K, M or G after it"
done
expect 2 "$STORIES" --documents 1 --bytes 1
err_has "exclude each other"
expect 2 "$STORIES" stray
err_has "unexpected argument 'stray'"
out_is ""

t "a device that is full is told, and where"
expect 4 "$STORIES" --documents 1000 --output /dev/full
err_has "/dev/full: the disk is full"
expect 4 sh -c '"$0" --documents 1000 >/dev/full' "$STORIES"
err_has "standard output: the disk is full"
expect 4 sh -c '"$0" -h >/dev/full' "$STORIES"

t "a file that exists is not overwritten without --overwrite"
echo kept >here
expect 2 "$STORIES" --documents 1 --output here
err_has "here: already exists"
check [ "$(cat here)" = kept ]
expect 0 "$STORIES" --documents 1 --output here --overwrite
expect 0 "$STORIES" --documents 1
same .out here

t "a file that cannot be written leaves nothing behind"
expect 4 "$STORIES" --output here/folder/file
err_has "here"
mkdir folder
expect 2 "$STORIES" --output folder
err_has "folder: is a folder"
echo kept >old
expect 4 sh -c 'ulimit -f 8; exec "$0" --documents 1000 --overwrite --output old' "$STORIES"
err_has "old: cannot write"
check [ "$(cat old)" = kept ]
no_temps .
