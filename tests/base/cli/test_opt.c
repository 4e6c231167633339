/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/cli/opt.h"
#include "tests/base/opt_table.h"
#include "tests/t.h"

static struct opts o;
static struct values v;
static struct err e;

static void reads(const char *line)
{
    T_OK(parse_line(&o, &v, line, &e), &e);
}

static void refuses(const char *line, const char *words, const char *hint)
{
    e.hint[0] = '\0';
    T_ERR(parse_line(&o, &v, line, &e), &e, ERR_USAGE, words);
    if (!strstr(e.hint, hint))
        t_fail(__FILE__, __LINE__, "%s: no '%s' in the hint '%s'", line, hint, e.hint);
}

static void defaults_stand(void)
{
    reads("demo learn");
    T_EQ(o.verb, 0);
    T_EQ(v.layers, 4);
    T_EQ(v.vocab, 8000);
    T_EQ(v.eod, -1);
    T_NEAR(v.rate, 1.5e-4, 0);
    T_NEAR(v.share, 0, 0);
    T_CHECK(!v.shuffle && v.tie);
    T_EQ(v.family, 0);
    T_CHECK(v.save == NULL);
    T_STR(v.title, "it's .a \"\\title\"");
    T_EQ(v.input.n, 0);
    T_EQ(v.symbols.n, 2);
    T_STR(v.symbols.item[1], "<b>");
    T_EQ(opts_origin(&o, "num_layers"), FROM_DEFAULT);
    opts_finish(&o);
}

static void every_spelling_is_read(void)
{
    reads("demo learn --num_layers=6 --vocab-size 12k --eod -1 --model-family llama --lr=3e-4 "
          "--min-share 0.5 --shuffle --no-tie --save=out --title=a=b file1 -q -- --file2");
    T_EQ(v.layers, 6);
    T_EQ(v.vocab, 12000);
    T_EQ(v.other_vocab, 7);
    T_EQ(v.eod, -1);
    T_EQ(v.family, 1);
    T_NEAR(v.rate, 3e-4, 0);
    T_CHECK(v.shuffle && !v.tie && v.common.quiet);
    T_STR(v.save, "out");
    T_STR(v.title, "a=b");
    T_EQ(o.nfile, 2);
    T_STR(o.file[0], "file1");
    T_STR(o.file[1], "--file2");
    T_EQ(opts_origin(&o, "layers"), FROM_FLAG);
    opts_finish(&o);
    reads("demo learn --shuffle=true --tie=false --depth 3 --learning_rate 1 --verbose=true -v");
    T_CHECK(v.shuffle && !v.tie && v.common.verbose);
    T_EQ(v.layers, 3);
    T_NEAR(v.rate, 1, 0);
    opts_finish(&o);
    reads("demo show --vocab_size 3");
    T_EQ(v.other_vocab, 3);
    opts_finish(&o);
    reads("demo -q --num-layers 5 learn - -1");
    T_EQ(v.layers, 5);
    T_EQ(o.nfile, 2);
    T_STR(o.file[1], "-1");
    opts_finish(&o);
}

static void list_is(const struct opt_list *list, const char *const *want, size_t n)
{
    T_EQ(list->n, n);
    for (size_t i = 0; i < n; i++)
        T_STR(list->item[i], want[i]);
}

#define LIST(list, ...)                                                                            \
    list_is(list, (const char *const[]){__VA_ARGS__},                                              \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void lists_take_words_and_commas(void)
{
    reads("demo learn --input a b,c -1 --shuffle d");
    LIST(&v.input, "a", "b", "c", "-1");
    T_EQ(o.nfile, 1);
    opts_finish(&o);
    reads("demo learn --input=a,b d --user-defined-symbols \"x,\"\"y\",\",\",z,,");
    LIST(&v.input, "a", "b");
    LIST(&v.symbols, "x,\"y", ",", "z");
    T_STR(o.file[0], "d");
    opts_finish(&o);
    reads("demo learn --input a b --input c --user-defined-symbols=");
    LIST(&v.input, "a", "b", "c");
    T_EQ(v.symbols.n, 0);
    opts_finish(&o);
}

static void a_path_that_exists_is_one_item(void)
{
    char line[2048];
    snprintf(line, sizeof(line), "demo learn --input %s c,d %s e --user-defined-symbols %s",
             t_path("a,b"), t_path("p,q"), t_path("a,b"));
    reads(line);
    T_EQ(v.input.n, 7);
    T_EQ(v.symbols.n, 2);
    opts_finish(&o);
    T_OK(file_replace(t_path("a,b"), "", 0, &e), &e);
    T_OK(file_replace(t_path("p,q.idx"), "", 0, &e), &e);
    reads(line);
    LIST(&v.input, t_path("a,b"), "c", "d", t_path("p,q"), "e");
    T_EQ(v.symbols.n, 2); /* they are not paths */
    opts_finish(&o);
}

static void the_last_flag_wins(void)
{
    reads("demo learn --num-layers 3 --lr 1 --layers 9 --tie --no-tie");
    T_EQ(v.layers, 9);
    T_CHECK(!v.tie);
    opts_finish(&o);
}

static int64_t whole(const char *text)
{
    char line[128];
    snprintf(line, sizeof(line), "demo learn --warm-up-limit %s", text);
    reads(line);
    opts_finish(&o);
    return v.limit;
}

static void numbers_are_exact(void)
{
    T_EQ(whole("1_000_000"), 1000000);
    T_EQ(whole("1e9"), 1000000000);
    T_EQ(whole("4k"), 4000);
    T_EQ(whole("8M"), 8000000);
    T_EQ(whole("2G"), 2000000000);
    T_EQ(whole("1T"), 1000000000000);
    T_EQ(whole("1.5k"), 1500);
    T_EQ(whole("2.50e1"), 25);
    T_EQ(whole("1200e-2"), 12);
    T_EQ(whole("9223372036854775807"), INT64_MAX);
    T_EQ(whole("9007199254740993"), 9007199254740993);
    T_EQ(whole("0e500"), 0);
    T_EQ(whole("007"), 7);
    T_EQ(whole("1.000"), 1);
    static const char *const bad[] = {
        "x",    "1.5",     "1e-1", "0x10", "1__0", "_1",
        "1_",   "1e",      "",     "k",    "4kk",  "9223372036854775808",
        "1e19", "1e99999", "--1",  "1.",   ".5",   "1 2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "demo learn --warm-up-limit=%s", bad[i]);
        if (!strchr(bad[i], ' '))
            refuses(line, "--warm-up-limit: expected an integer, got '", "");
    }
    reads("demo learn --lr 2.5e-4 --min-share .5");
    T_NEAR(v.rate, 2.5e-4, 0);
    T_NEAR(v.share, 0.5, 0);
    opts_finish(&o);
    reads("demo learn --lr 1_0.5k");
    T_NEAR(v.rate, 10500, 0);
    opts_finish(&o);
}

static void refusals_say_what_is_expected(void)
{
    refuses("demo learn --num-layers 0", "--num-layers: must be from 1 to 1000, got 0", "");
    refuses("demo learn --num-layers 1e4", "from 1 to 1000", "");
    refuses("demo learn --vocab_size=0", "--vocab_size: must be at least 1, got 0", "");
    refuses("demo learn --vocab_size ten",
            "--vocab_size: expected an integer of at least 1, got 'ten'", "");
    refuses("demo learn --min-share 1.01", "--min-share: must be from 0 to 1, got 1.01", "");
    refuses("demo learn --lr inf", "--lr: expected a number, got 'inf'", "");
    refuses("demo learn --lr nan", "--lr: expected a number, got 'nan'", "");
    refuses("demo learn --lr 1e999", "--lr: expected a number, got '1e999'", "");
    refuses("demo learn --lr -1", "must be at least 0, got -1", "");
    refuses("demo learn --shuffle=maybe", "--shuffle: expected true or false, got 'maybe'", "");
    refuses("demo learn --no-tie=true", "--no-tie takes no value", "");
    refuses("demo learn --model-family lama", "gpt, llama or a-much-longer-name", "llama");
    refuses("demo learn --save", "--save needs a value", "--save=DIR");
    refuses("demo learn --save --shuffle", "--save needs a value", "--save=--shuffle");
    refuses("demo learn --input", "--input needs at least one value", "");
    refuses("demo learn --save=\xff", "not UTF-8", "");
    refuses("demo learn --vocab-sze 3", "unknown option --vocab-sze of demo learn",
            "--vocab_size?");
    refuses("demo learn --vocab", "unknown option --vocab of", "did you mean --vocab_size?");
    refuses("demo learn --no-shufle", "unknown option --no-shufle", "--no-shuffle?");
    refuses("demo learn --no-save", "unknown option --no-save", "");
    refuses("demo learn --qqqqqqqqqqqq", "unknown option", "demo learn --help lists all");
    refuses("demo learn -x", "unknown option -x", "");
    refuses("demo learn -lr 3", "unknown option -lr", "--lr?");
    refuses("demo show --shuffle", "--shuffle is not an option of demo show",
            "it belongs to demo learn");
    refuses("demo show x", "demo show takes no files, but 'x' was given", "");
    refuses("demo show true", "takes no files", "=true");
    refuses("demo lern", "unknown verb 'lern'; demo has learn and show", "demo learn?");
    refuses("demo -q", "demo needs a verb; it has learn and show", "-h");
    refuses("demo --completion tcsh", "bash, zsh or fish", "");
    refuses("demo learn --preset tny", "unknown preset 'tny'; the presets are tiny", "tiny?");
    T_EQ(parse_line(&o, &v, "demo --vocab-size 3 learn", &e), 0);
    opts_finish(&o);
}

static void presets_stand_below_flags(void)
{
    reads("demo learn --layers 3 --preset tiny");
    T_EQ(v.layers, 3);
    T_NEAR(v.rate, 1e-3, 0);
    LIST(&v.symbols, "x", "y");
    T_EQ(opts_origin(&o, "lr"), FROM_PRESET);
    T_EQ(opts_origin(&o, "layers"), FROM_FLAG);
    T_STR(v.common.preset, "tiny");
    opts_finish(&o);
    reads("demo show --preset tiny"); /* its values are another verb's */
    T_EQ(v.layers, 4);
    opts_finish(&o);
}

static void values_are_set_by_rank(void)
{
    reads("demo learn --layers 3 --preset tiny");
    T_OK(opts_set(&o, FROM_FILE, "num_layers", "8", &e), &e);
    T_OK(opts_set(&o, FROM_FILE, "lr", "0.5", &e), &e);
    T_EQ(v.layers, 3);
    T_NEAR(v.rate, 0.5, 0);
    T_EQ(opts_origin(&o, "lr"), FROM_FILE);
    T_ERR(opts_set(&o, FROM_FLAG, "lr", "fast", &e), &e, ERR_USAGE,
          "--lr: expected a number, got 'fast'");
    T_ERR(opts_set(&o, FROM_FLAG, "lrr", "1", &e), &e, ERR_USAGE, "unknown option --lrr");
    T_NEAR(v.rate, 0.5, 0);
    opts_finish(&o);
}

/* ---- the nearest name ---- */

static uint64_t draw;

static uint32_t pick(uint32_t n)
{
    return t_rand(11, draw++) % n;
}

/* One random edit: a letter less, one more, another, or two changed places. */
static void edit(char *s)
{
    size_t n = strlen(s), i = pick((uint32_t)n);
    char c = (char)('a' + pick(26));
    switch (pick(4)) {
    case 0:
        memmove(s + i, s + i + 1, n - i);
        break;
    case 1:
        memmove(s + i + 1, s + i, n - i + 1);
        s[i] = c;
        break;
    case 2:
        s[i] = c;
        break;
    default:
        if (i + 1 < n) {
            c = s[i];
            s[i] = s[i + 1];
            s[i + 1] = c;
        }
    }
}

static void typos_find_their_name(void)
{
    int right = 0, all = 0;
    while (all < 200) {
        const struct opt *row = &rows[pick(sizeof(rows) / sizeof(rows[0]) - 1)];
        char word[64], line[128], want[64];
        if (strlen(row->name) < 5 || (row->verbs && !(row->verbs & VERB_LEARN)))
            continue;
        snprintf(word, sizeof(word), "%s", row->name);
        for (uint32_t edits = 1 + pick(2); edits; edits--)
            edit(word);
        snprintf(line, sizeof(line), "demo learn --%s=1", word);
        snprintf(want, sizeof(want), "did you mean --%s?", row->name);
        if (!parse_line(&o, &v, line, &e)) {
            opts_finish(&o); /* the edits cancelled out */
            continue;
        }
        if (!strstr(e.msg, "unknown option"))
            continue;
        all++;
        right += strcmp(e.hint, want) == 0;
    }
    printf("# %d of %d typos\n", right, all);
    T_CHECK(right * 100 >= all * 95);
}

/* The default of a list is replaced by the first, as any default. */
static void what_is_given_again(void)
{
    reads("demo learn --input a,b --lr 1 --input c --user-defined-symbols x --input=d,e "
          "--user_defined_symbols y");
    LIST(&v.input, "a", "b", "c", "d", "e");
    LIST(&v.symbols, "x", "y");
    opts_finish(&o);
    reads("demo learn --lr 1 --num-layers 3 --learning-rate 2 --shuffle --no-shuffle");
    T_NEAR(v.rate, 2, 0);
    T_CHECK(!v.shuffle);
    opts_finish(&o);
}

static void unknown_names_are_told_together(void)
{
    refuses("demo learn --num-layrs 3 f --zzz --save=x --zzz=4 --titel a",
            "3 unknown options of demo learn: --num-layrs, --zzz and --titel",
            "--num-layrs: --num-layers; --titel: --title");
    refuses("demo --zzzz learn --yyyy 3", "2 unknown options of demo learn: --zzzz and --yyyy",
            "demo learn --help lists all options");
    refuses("demo learn --learn-rates 3 --save", "unknown option --learn-rates of demo learn", "");
}

static void names_of_other_tools_are_hints(void)
{
    static const struct opt_synonym words[] = {{"epochs", "num-layers", "--num-layers, in steps"},
                                               {"out", "save", NULL},
                                               {"device", NULL, "there is one device"},
                                               {NULL, NULL, NULL}};
    struct opt_table t = table;
    t.synonym = words;
    T_ERR(parse_table(&o, &t, &v, "demo learn --epochs 3", &e), &e, ERR_USAGE, "--epochs");
    T_STR(e.hint, "did you mean --num-layers, in steps?");
    T_ERR(parse_table(&o, &t, &v, "demo learn --out x --device=0", &e), &e, ERR_USAGE, "2 unknown");
    T_STR(e.hint, "possible meanings: --out: --save; --device: there is one device");
    e.hint[0] = '\0';
    T_ERR(parse_table(&o, &t, &v, "demo show --device 0", &e), &e, ERR_USAGE, "--device");
    T_STR(e.hint, "there is one device");
    T_ERR(parse_table(&o, &t, &v, "demo show --out x", &e), &e, ERR_USAGE, "--out of demo show");
    T_STR(e.hint, "demo show --help lists all options");
}

static void verbs_of_other_tools_are_hints(void)
{
    static const struct opt_synonym words[] = {
        {"fit", "learn", NULL}, {"do_it", NULL, "nothing is done here"}, {NULL, NULL, NULL}};
    struct opt_table t = table;
    t.verb_synonym = words;
    T_ERR(parse_table(&o, &t, &v, "demo fit", &e), &e, ERR_USAGE, "unknown verb 'fit'");
    T_STR(e.hint, "did you mean demo learn?");
    T_ERR(parse_table(&o, &t, &v, "demo do-it x", &e), &e, ERR_USAGE, "unknown verb 'do-it'");
    T_STR(e.hint, "nothing is done here");
    T_ERR(parse_table(&o, &t, &v, "demo lern", &e), &e, ERR_USAGE, "unknown verb 'lern'");
    T_STR(e.hint, "did you mean demo learn?");
}

/* A list may have taken what was meant as a file. */
static void a_list_that_took_too_much_is_named(void)
{
    reads("demo learn --input a.txt P.model");
    err_set(&e, ERR_USAGE, "no model was named");
    T_EQ(opts_hint_swallowed(&o, &e), ERR_USAGE);
    T_STR(e.hint, "--input took 'P.model' as a value: write it before --input");
    opts_finish(&o);
    reads("demo learn --input a.txt --save P.model");
    e.hint[0] = '\0';
    T_EQ(opts_hint_swallowed(&o, &e), ERR_USAGE);
    T_STR(e.hint, "");
    opts_finish(&o);
}

static void a_list_of_numbers_ends_at_a_name(void)
{
    struct opt counted[sizeof(rows) / sizeof(rows[0])];
    struct opt_table t = table;
    memcpy(counted, rows, sizeof(rows));
    t.opt = counted;
    for (struct opt *r = counted; r->name; r++)
        r->numbers = !strcmp(r->name, "input");
    T_OK(parse_table(&o, &t, &v, "demo learn --input 5 7 P --shuffle", &e), &e);
    LIST(&v.input, "5", "7");
    T_EQ(o.nfile, 1);
    opts_finish(&o);
}

T_MAIN(T_CASE(defaults_stand), T_CASE(every_spelling_is_read), T_CASE(lists_take_words_and_commas),
       T_CASE(a_path_that_exists_is_one_item), T_CASE(the_last_flag_wins),
       T_CASE(numbers_are_exact), T_CASE(refusals_say_what_is_expected),
       T_CASE(presets_stand_below_flags), T_CASE(what_is_given_again),
       T_CASE(unknown_names_are_told_together), T_CASE(names_of_other_tools_are_hints),
       T_CASE(verbs_of_other_tools_are_hints), T_CASE(a_list_that_took_too_much_is_named),
       T_CASE(a_list_of_numbers_ends_at_a_name), T_CASE(values_are_set_by_rank),
       T_CASE(typos_find_their_name))
