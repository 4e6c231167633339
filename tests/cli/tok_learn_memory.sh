# SPDX-License-Identifier: Apache-2.0
# tok train keeps to --memory while it reads a stream with ever new words. WEFT_FULL=1 takes 1 GB, else 25 MB.

[ -x /usr/bin/time ] || { t "peak memory of learning"; skip "no /usr/bin/time"; return 0; }
if [ -n "${WEFT_FULL:-}" ]; then bytes=1000000000 limit=128; else bytes=25000000 limit=48; fi

# 3 MB of words of four syllables; the stream is this over and over, its letters moved on each time
awk 'BEGIN { srand(5); n = split("ba ko mi tsu ran del o vi sta en pri qua lo fe gru hal we zi jon ut", p, " ")
    for (i = 0; i < 100000; i++) { s = ""
        for (k = 0; k < 12; k++) s = s p[int(rand() * n) + 1] (k % 4 == 3 ? " " : ""); print s } }' >text.txt
stream() {
    letters=abcdefghijklmnopqrstuvwxyz done=0
    while [ $done -lt $bytes ]; do
        tr a-z $letters$letters <text.txt
        tr a-z $letters$letters <text.txt | tr a-z m-za-l | tr -d aeiou
        letters=${letters#?}${letters%"${letters#?}"}
        done=$((done + 6000000))
    done
}
# memory that malloc fills is memory that is used, whether the program touches it or not
unset MALLOC_PERTURB_
learn() { stream | TMPDIR=$PWD /usr/bin/time -f %M -o .peak "$TOK" train --overwrite --vocab_size 5000 --input - "$@"; }
below() { check [ "$(tail -n 1 .peak)" -le $((limit * 1024)) ]; }

for type in bpe wordpiece; do
    t "peak memory of learning: $type"
    expect 0 learn --type $type --memory $limit --model_prefix $type
    below
    err_has "sorted runs on disk"
    check [ -s $type-tokenizer.json ]
    no_temps .
done
