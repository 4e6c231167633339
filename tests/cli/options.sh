# SPDX-License-Identifier: Apache-2.0
# What each program's option table answers: screens that fit, a manual without complaints, scripts
# that shells can read, a configuration that reads back.

# fits FILE LINES: at most so many lines of 80 columns
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

    t "$name knows its name"
    expect 0 "$program" --completion fish
    out_has "complete -c $name -n __fish_use_subcommand"
    expect 0 "$program" --man
    out_has ".B $name"
    expect 0 "$program" -h
    check [ "$(awk 'NR == 2 { print $1 }' .out)" = "$name" ]
    expect 2 "$program"
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

    t "$name without a verb, and with one that is none"
    expect 2 "$program"
    err_has "needs a verb"
    expect 2 "$program" frobnicate
    err_has "unknown verb 'frobnicate'"

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

        t "$name $verb refuses an unknown option and key by the nearest name"
        expect 2 "$program" "$verb" --print-confg
        err_has "unknown option --print-confg of"
        err_has "did you mean --print-config?"
        printf '\n  verbos = true\n' >bad.toml
        expect 2 "$program" "$verb" --config bad.toml
        err_has "bad.toml:2:3: unknown key 'verbos'"
        err_has "did you mean verbose?"
    done
done
