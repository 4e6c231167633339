# SPDX-License-Identifier: Apache-2.0
# What each program's option table answers: screens that fit, a manual without complaints, scripts
# that shells can read, a configuration that reads back.

# fits FILE LINES: at most LINES lines of 80 columns
fits() {
    [ -n "$_bad" ] || awk -v most="$2" 'length($0) > 80 || NR > most { print "line " NR ": " $0; bad = 1 }
        END { exit bad }' "$1" >.wide || _wrong "does not fit: $(head -n 1 .wide)"
}
first_line() { [ -n "$_bad" ] || [ "$(head -n 1 .out)" = "$1" ] || _wrong "does not begin with '$1'"; }
without_origin() { sed -E 's/ +# (default|flag|preset .*|file .*)$//' "$1"; }

for program in "$TOK" "$PREP" "$CONVERT" "$TRAIN"; do
    [ -n "$program" ] || continue
    name=$(basename "$program")

    t "$name -h fits a screen and begins with an example"
    expect 0 "$program" -h
    fits .out 24
    first_line "Example:"

    # the examples are between the first line and the first empty one
    t "$name: the help of every verb fits, cuts nothing and has examples that a shell can read"
    "$program" -h | awk 'NR > 1 && /^$/ { part++ } part == 2 && $1 { print $1 }' >verbs
    check [ -s verbs ]
    while read -r verb; do
        expect 0 "$program" "$verb" -h
        fits .out 40
        check sh -c '! grep -q "[.][.][.]$" .out'
        sed -n '2,/^$/p' .out >examples
        check sh -n examples
        awk '/^    / && !continued { print "not continued: " $0; exit 1 }
            { continued = /[\\|]$/ }' examples >.cut || _wrong "$verb: $(cat .cut)"
        expect 0 env COLUMNS=60 "$program" "$verb" --help
        awk 'length($0) > 60 && !/^ *(\(also )?--/ { print; exit 1 }' .out >.wide || _wrong "$verb: $(cat .wide)"
        grep -E '^[^ ].*:$' .out | sort | uniq -d >twice
        check [ ! -s twice ]
    done <verbs

    t "$name knows its name"
    expect 0 "$program" --completion fish
    out_has "complete -c $name -n __fish_use_subcommand"
    expect 0 "$program" --man
    out_has ".B $name"
    expect 0 "$program" -h
    check [ "$(awk 'NR == 2 { print $1 }' .out)" = "$name" ]
    expect 0 "$program"
    first_line "Example:"
    expect 0 "$program" help
    out_has "verbs:"
    expect 0 "$program" version
    out_has " (weft) "
    expect 2 "$program" -q
    err_has "$name needs a verb"

    t "$name says so when nothing can be printed"
    for answer in -h --help --man --version "--completion bash" "inspect --print-config"; do
        # shellcheck disable=SC2086
        case $answer in inspect*) [ "$program" != "$TRAIN" ] || answer="plan --print-config" ;; esac
        expect 4 sh -c '"$0" "$@" >/dev/full' "$program" $answer
        err_has "error: standard output: cannot write"
        check [ "$(wc -l <.err)" = 1 ]
    done

    t "$name --version names program, project and features"
    expect 0 "$program" --version
    out_has " (weft) "
    out_has "features: "

    t "$name --man is roff without a complaint"
    expect 0 "$program" --man
    if command -v groff >/dev/null; then
        cp .out page.1
        expect 0 groff -man -ww -Tutf8 page.1
        [ -n "$_bad" ] || [ ! -s .err ] || _wrong "groff complains"
    else
        skip "no groff"
    fi

    for shell in bash zsh fish; do
        t "$name --completion $shell can be read by it"
        expect 0 "$program" --completion "$shell"
        if command -v "$shell" >/dev/null; then
            cp .out script
            expect 0 "$shell" -n script
        else
            skip "no $shell"
        fi
    done

    t "$name with a verb that is not one"
    expect 2 "$program" frobnicate
    err_has "unknown verb 'frobnicate'"
    case $name in
    *tok) other=tokenize meant=encode ;;
    *prep) other=preprocess meant=build ;;
    *convert) other=validate meant=verify ;;
    *) other=evaluate meant=eval ;;
    esac
    expect 2 "$program" "$other"
    err_has "did you mean $name $meant?"

    for verb in $("$program" --completion fish | sed -n 's/^complete -c [^ ]* -n __fish_use_subcommand .* -a \([^ ]*\) .*/\1/p'); do
        t "$name $verb -h fits a screen and begins with an example"
        expect 0 "$program" "$verb" -h
        fits .out 24
        first_line "Example:"

        t "$name $verb --help fits the width"
        expect 0 "$program" "$verb" --help
        fits .out 1000

        t "$name $verb --print-config reads back"
        expect 0 "$program" "$verb" --print-config
        cp .out a.toml
        expect 0 "$program" "$verb" --config a.toml --print-config
        [ -n "$_bad" ] || [ "$(without_origin a.toml)" = "$(without_origin .out)" ] ||
            _wrong "another configuration"

        t "$name $verb rejects an unknown option and key with the nearest name"
        expect 2 "$program" "$verb" --print-confg
        err_has "unknown option --print-confg of"
        err_has "did you mean --print-config?"
        printf '\n  verbos = true\n' >bad.toml
        expect 2 "$program" "$verb" --config bad.toml
        err_has "bad.toml:2:3: unknown key 'verbos'"
        err_has "did you mean verbose?"
    done
done

t "lists add up, the last of two values counts, and all unknown names are reported"
printf '{"text": "a b"}\n' >a.jsonl
cp a.jsonl b.jsonl
null="--tokenizer-type NullTokenizer --vocab-size 9"
printf '{"text": "1 2"}\n' >a.jsonl
printf '{"text": "3"}\n' >b.jsonl
expect 0 "$PREP" build --input a.jsonl --input b.jsonl $null --output-prefix two --workers 1 --workers 2
err_has "2 documents"
err_has "--workers was given as 1 and as 2: the last one counts"
printf 'input = ["b.jsonl"]\n' >b.toml
expect 0 "$PREP" build --config b.toml --input a.jsonl $null --output-prefix one
err_has "1 documents"
expect 2 "$TRAIN" run --learning-rate 1 --max-steps 5 --epochs 1 --resume
err_has "4 unknown options of $(basename "$TRAIN") run: --learning-rate, --max-steps, --epochs and --resume"
err_has "--learning-rate: --lr; --max-steps: --train-iters"
expect 2 "$TRAIN" run --curriculum-learning-legacy
err_has "--curriculum-learning-legacy of $(basename "$TRAIN") run is not supported"
expect 2 "$TRAIN" generate --stop x --template chatml
err_has "--template: --chat"

t "what a list took is named"
expect 0 "$PREP" inspect --documents 0 two_text_document
out_has "document 0"
expect 2 "$TOK" inspect --corpus a.jsonl P.model
err_has "--corpus took 'P.model' as a value"
expect 2 "$TOK" train --special_tokens X file
err_has "--special_tokens took 'file' as a value"
expect 2 "$TOK" extend --output Q --add-special X P
err_has "--add-special took 'P' as a value"

t "the summary of the build says why there is no CUDA, and names no package that is too old"
if [ -f "$BUILD/meson-logs/meson-log.txt" ]; then
    grep 'GPU (cuda)' "$BUILD/meson-logs/meson-log.txt" | tail -n 1 >summary
    if grep -q '"name": "cuda", "value": "disabled"' "$BUILD/meson-info/intro-buildoptions.json"; then
        check grep -q ': no: -Dcuda=disabled' summary
    elif ! grep -q 'toolkit found' summary; then
        check grep -q 'needs nvcc of the CUDA toolkit, 12 or newer, from NVIDIA' summary
    fi
    check [ "$(grep -c 'apt-get' summary)" = 0 ]
else
    skip "no log of meson"
fi
