/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/cli/opt.h"
#include "tests/base/opt_table.h"
#include "tests/t.h"

static struct opts o;
static struct values v;
static struct err e;

/* The output of a command line; NULL if it requests none. */
static char *answer_of(const struct opt_table *t, const char *line)
{
    char *text = NULL;
    size_t n;
    T_OK(parse_table(&o, t, &v, line, &e), &e);
    FILE *f = open_memstream(&text, &n);
    bool asked = opts_answer(&o, f);
    fclose(f);
    opts_finish(&o);
    if (asked)
        return text;
    free(text);
    return NULL;
}

static char *answer(const char *line)
{
    return answer_of(&table, line);
}

static void has(const char *text, const char *words)
{
    if (!strstr(text, words))
        t_fail(__FILE__, __LINE__, "no '%s' in:\n%s", words, text);
}

static void fits(const char *text, int max_lines)
{
    int lines = 0, column = 0;
    for (const char *s = text; *s; s++) {
        column = *s == '\n' ? 0 : column + (((unsigned char)*s & 0xc0) != 0x80);
        lines += *s == '\n';
        T_CHECK(column <= 80);
        T_CHECK(!(*s == '\n' && s > text && s[-1] == ' '));
    }
    T_CHECK(lines <= max_lines);
}

static void short_help_fits_a_screen(void)
{
    static const char *const lines[] = {"demo -h", "demo learn -h", "demo show -h"};
    for (int i = 0; i < 3; i++) {
        char *text = answer(lines[i]);
        T_CHECK(strncmp(text, "Example:\n  demo ", 16) == 0);
        fits(text, 24);
        free(text);
    }
    char *text = answer("demo learn -h");
    has(text, "  --num-layers N              number of layers [4]\n");
    has(text, "demo learn [OPTION...] [FILE...]: learn a thing\n");
    T_CHECK(strstr(text, "--eod") == NULL);
    free(text);
    text = answer("demo show -h");
    has(text, "  demo show --input the-first-of-some-files.txt --title \\\n"
              "      'a title within quotes' --input b.txt\n");
    free(text);
    text = answer("demo -h");
    has(text, "  learn                       learn a thing\n");
    free(text);
}

/* Every basic option is shown, with its values and default; nothing is cut. */
static void short_help_cuts_nothing(void)
{
    static const struct opt wide[] = {
        OPT_ROW(.name = "a-rather-long-name-of-an-option", .type = OPT_INT, AT(layers), .def = "1",
                .meta = "N", .group = "s", .basic = true,
                .brief = "fifty columns are what a short sentence may have--",
                .help = "a help text that is so long that it does not fit the line at all"),
        OPT_ROW(.name = "kind", .type = OPT_CHOICE, AT(family), .def = "first-of-them",
                .meta = "first-of-them|second-of-them|third-of-them|fourth-of-them", .group = "s",
                .basic = true, .help = "which of a few things of this kind is meant"),
        OPT_ROW(.name = "stop", .type = OPT_INT, AT(limit), .meta = "N", .group = "s",
                .basic = true, .unset = "the last", .help = "step to stop at"),
        {.name = NULL}};
    struct opt_table t = table;
    t.opt = wide;
    t.preset = NULL;
    char *text = answer_of(&t, "demo learn -h");
    fits(text, 24);
    has(text, "  --a-rather-long-name-of-an-option N\n"
              "                              fifty columns are what a short sentence may have--\n"
              "                              [1]\n"
              "  --kind KIND                 which of a few things of this kind is meant:\n"
              "                              first-of-them, second-of-them, third-of-them,\n"
              "                              fourth-of-them [first-of-them]\n"
              "  --stop N                    step to stop at [the last]\n");
    has(text, "11 options");
    T_CHECK(!strstr(text, "...\n"));
    free(text);
    text = answer_of(&t, "demo learn --help");
    has(text, "  --stop N                    step to stop at (default: the last)\n");
    free(text);
}

/* COLUMNS, as set by a shell; a terminal has its own width. */
static void help_is_as_wide_as_the_terminal(void)
{
    setenv("COLUMNS", "120", 1);
    char *text = answer("demo learn --help");
    has(text, "  --user_defined_symbols TEXT...\n                              pieces that always "
              "match, whatever the text that surrounds them may look like\n");
    free(text);
    setenv("COLUMNS", "50", 1);
    text = answer("demo learn --help");
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
        T_CHECK(strcspn(s, "\n") <= 50);
    has(text, "  --lr X");
    free(text);
    unsetenv("COLUMNS");
}

static void long_help_tells_all(void)
{
    char *text = answer("demo learn --help");
    fits(text, 200);
    has(text, "\nmodel options:\n");
    has(text, "\nLearning rate options:\n");
    has(text, "  --num-layers N              number of layers, from 1 to 1000 (default 4)\n"
              "                              (also --layers, --depth)\n");
    has(text, "  --model-family KIND         kind of model: gpt, llama, a-much-longer-name");
    has(text, "  --[no-]tie  ");
    has(text, "  --user_defined_symbols TEXT...\n                              pieces that");
    has(text, "  tiny                        two layers\n");
    free(text);
    text = answer("demo --help");
    has(text, "  show                        show a thing\n");
    T_CHECK(strstr(text, "--num-layers N") == NULL);
    free(text);
}

static void help_wins_over_mistakes(void)
{
    static const char *const lines[] = {"demo learn --bogus --help",
                                        "demo --num-layers x learn --help", "demo bogus --help",
                                        "demo learn --config /no/where --help"};
    for (int i = 0; i < 4; i++) {
        char *text = answer(lines[i]);
        has(text, "examples:");
        free(text);
    }
    T_ERR(parse_line(&o, &v, "demo show -- --help", &e), &e, ERR_USAGE, "takes no files");
    T_CHECK(answer("demo learn x") == NULL);
}

/* As git and cargo answer. */
static void verbs_of_help_and_version(void)
{
    static const char *const same[][2] = {{"demo", "demo -h"},
                                          {"demo help", "demo --help"},
                                          {"demo help learn", "demo learn --help"},
                                          {"demo version", "demo --version"},
                                          {"demo -V", "demo --version"},
                                          {"demo learn -V", "demo --version"}};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        char *a = answer(same[i][0]), *b = answer(same[i][1]);
        T_STR(a, b);
        free(a);
        free(b);
    }
}

static void version_names_features(void)
{
    char *text = answer("demo --version");
    has(text, "demo (weft) " WEFT_VERSION "\nfeatures: cpu\n");
    free(text);
}

/* ---- all answers know the same options ---- */

/* `name` with one kind of dash, after `before` and not followed by a letter of a name. */
static bool mentions(const char *text, const char *before, const char *name)
{
    size_t n = strlen(name), k = strlen(before);
    for (const char *s = text; *s && (s = strstr(s, before)); s++) {
        size_t i = 0;
        while (i < n && (s[k + i] == name[i] || (s[k + i] == '-' && name[i] == '_')))
            i++;
        char c = s[k + i];
        if (i == n && !(c == '-' || c == '_' || (c >= 'a' && c <= 'z')))
            return true;
    }
    return false;
}

static void must(bool said, const char *what, const char *name)
{
    if (!said)
        t_fail(__FILE__, __LINE__, "%s does not know --%s", what, name);
}

/* roff writes each dash as \- */
static char *without_roff(char *text)
{
    char *d = text;
    for (char *s = text; *s; s++)
        if (!(s[0] == '\\' && s[1] == '-'))
            *d++ = *s;
    *d = '\0';
    return text;
}

/* Two verbs may have options of one name. */
static bool taken(const char *name, int verb)
{
    for (const struct opt *r = rows; r->name; r++)
        if ((!r->verbs || (r->verbs >> verb & 1)) && mentions(r->name, "", name))
            return true;
    return false;
}

static void all_answers_agree(void)
{
    static const char *const verb[] = {"learn", "show"};
    char *man = without_roff(answer("demo --man")), *bash = answer("demo --completion bash");
    char *zsh = answer("demo --completion zsh"), *fish = answer("demo --completion fish");
    has(man, "\nAlso --layers, --depth.\n");
    for (int k = 0; k < 2; k++) {
        char line[64], config_line[64];
        snprintf(line, sizeof(line), "demo %s --help", verb[k]);
        snprintf(config_line, sizeof(config_line), "demo %s --print-config", verb[k]);
        char *help = answer(line), *config = answer(config_line);
        for (const struct opt *r = rows; r->name; r++) {
            bool takes = taken(r->name, k);
            const char *dash = r->type == OPT_SWITCH && r->def ? "  --[no-]" : "  --";
            T_EQ(mentions(help, dash, r->name), takes);
            must(mentions(config, "\n", r->name) || mentions(config, "\n# ", r->name) || !takes,
                 "--print-config", r->name);
            must(mentions(man, "\n.B --", r->name), "--man", r->name);
            must(mentions(bash, " --", r->name) || mentions(bash, "\"--", r->name), "bash",
                 r->name);
            must(mentions(zsh, "'--", r->name), "zsh", r->name);
            must(mentions(fish, " -l ", r->name), "fish", r->name);
        }
        free(help);
        free(config);
    }
    free(man);
    free(bash);
    free(zsh);
    free(fish);
}

/* A build with -Dprogram_prefix=weft- has tables with such names. */
static void the_name_is_the_tables(void)
{
    static const char *const cases[][2] = {
        {"demo --completion bash", "complete -o default -o bashdefault -F _weft_demo weft-demo\n"},
        {"demo --completion zsh", "#compdef weft-demo\n_weft_demo()"},
        {"demo --completion zsh", "else compdef _weft_demo weft-demo\n"},
        {"demo --completion fish", "complete -c weft-demo -n __fish_use_subcommand -f -a learn"},
        {"demo --man", ".TH WEFT-DEMO 1 "},
        {"demo --man", ".B weft-demo\n"},
        {"demo --version", "weft-demo (weft) "},
        {"demo learn --help", "weft-demo learn [OPTION...]"},
        {"demo -h", "weft-demo VERB -h shows"},
    };
    struct opt_table named = table;
    named.program = "weft-demo";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = answer_of(&named, cases[i][0]);
        has(text, cases[i][1]);
        T_CHECK(strstr(text, "-c demo") == NULL && strstr(text, " demo\n") == NULL);
        free(text);
    }
    T_ERR(parse_table(&o, &named, &v, "demo -q", &e), &e, ERR_USAGE, "weft-demo needs a verb");
    T_ERR(parse_table(&o, &named, &v, "demo lern", &e), &e, ERR_USAGE, "unknown verb");
    T_STR(e.hint, "did you mean weft-demo learn?");
    named.program = "an-installed-demo";
    for (int i = 0; i < 2; i++) {
        char *text = answer_of(&named, i ? "demo learn -h" : "demo -h");
        fits(text, 24);
        free(text);
    }
}

/* ---- what other programs make of them ---- */

static int shell(const char *command)
{
    fflush(stdout);
    return system(command);
}

static void save_answer(const char *line, const char *name)
{
    char *text = answer(line);
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
    free(text);
}

static void roff_is_content(void)
{
    char command[700];
    if (shell("command -v groff >/dev/null"))
        t_skip("no groff");
    save_answer("demo --man", "demo.1");
    snprintf(command, sizeof(command),
             "groff -man -ww -Tutf8 '%s' >'%s' 2>'%s' && ! test -s '%s' && "
             "sed 's/\\x1b\\[[0-9;]*m//g' '%s' | grep -q -e \"it's .a \\\"[\\]title\\\"\"",
             t_path("demo.1"), t_path("out"), t_path("errors"), t_path("errors"), t_path("out"));
    T_EQ(shell(command), 0);
}

/* Words typed, the completions expected of bash, sorted. */
static void bash_completes_words(void)
{
    static const char *const cases[][2] = {
        {"demo ''", "learn show"},
        {"demo l", "learn"},
        {"demo learn --num", "--num-layers"},
        {"demo learn --vocab_s", "--vocab-size"},
        {"demo show --num", ""},
        {"demo learn --model-family l", "llama"},
        {"demo learn --model_family = l", "llama"},
        {"demo learn --preset ''", "tiny"},
        {"demo learn --completion z", "zsh"},
        {"demo --ver", "--verbose --version"},
        {"demo learn --save ''", ""},
        {"demo -q learn --titl", "--title"},
    };
    if (shell("command -v bash >/dev/null"))
        t_skip("no bash");
    save_answer("demo --completion bash", "demo.bash");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[1200];
        snprintf(
            command, sizeof(command),
            "bash -c 'source %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
            "COMPREPLY=(); _demo; got=$(printf \"%%s\\n\" \"${COMPREPLY[@]}\" | sort | xargs); "
            "test \"$got\" = \"%s\" || { echo \"# %s gave $got\"; exit 1; }'",
            t_path("demo.bash"), strstr(cases[i][0], "''") ? "demo" : cases[i][0], cases[i][1],
            cases[i][0]);
        if (strstr(cases[i][0], "''")) { /* an empty last word */
            char words[64];
            snprintf(words, sizeof(words), "%.*s \"\"",
                     (int)(strstr(cases[i][0], " ''") - cases[i][0]), cases[i][0]);
            snprintf(command, sizeof(command),
                     "bash -c 'source %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
                     "COMPREPLY=(); _demo; got=$(printf \"%%s\\n\" \"${COMPREPLY[@]}\" | sort | "
                     "xargs); test \"$got\" = \"%s\" || { echo \"# $got\"; exit 1; }'",
                     t_path("demo.bash"), words, cases[i][1]);
        }
        if (shell(command))
            t_fail(__FILE__, __LINE__, "%s", cases[i][0]);
    }
}

static void zsh_and_fish_can_read_theirs(void)
{
    char command[600];
    int tried = 0;
    save_answer("demo --completion zsh", "_demo");
    save_answer("demo --completion fish", "demo.fish");
    if (!shell("command -v zsh >/dev/null")) {
        snprintf(command, sizeof(command), "zsh -n '%s'", t_path("_demo"));
        T_EQ(shell(command), 0);
        tried++;
    }
    if (!shell("command -v fish >/dev/null")) {
        snprintf(command, sizeof(command),
                 "fish -c 'source %s; complete -C \"demo learn --num\"' | grep -q '^--num-layers'",
                 t_path("demo.fish"));
        T_EQ(shell(command), 0);
        tried++;
    }
    if (!tried)
        t_skip("neither zsh nor fish");
}

T_MAIN(T_CASE(short_help_fits_a_screen), T_CASE(short_help_cuts_nothing),
       T_CASE(help_is_as_wide_as_the_terminal), T_CASE(long_help_tells_all),
       T_CASE(help_wins_over_mistakes), T_CASE(version_names_features),
       T_CASE(verbs_of_help_and_version), T_CASE(all_answers_agree), T_CASE(the_name_is_the_tables),
       T_CASE(roff_is_content), T_CASE(bash_completes_words), T_CASE(zsh_and_fish_can_read_theirs))
