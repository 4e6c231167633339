/* SPDX-License-Identifier: Apache-2.0 */
/* Options that were given without effect, by their rows' `needs`. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/cli/opt.h"
#include "tests/t.h"

struct values {
    struct opt_common common;
    bool split, sample;
    int format;
    int64_t parts, seed;
    const char *lang, *separator, *engine, *lr, *save;
    struct opt_list input;
};

#define AT(member) .offset = offsetof(struct values, member)

enum { BUILD = 1, PLAN = 2 };

static const struct opt rows[] = {
    OPT_ROW(.name = "split", .type = OPT_SWITCH, AT(split), .help = "x"),
    OPT_ROW(.name = "sample", .type = OPT_SWITCH, AT(sample), .needs = "seed; !split", .help = "x"),
    OPT_ROW(.name = "format", .type = OPT_CHOICE, AT(format), .def = "auto",
            .meta = "auto|text|json", .help = "x"),
    OPT_ROW(.name = "parts", .type = OPT_INT, AT(parts), .def = "1", .needs = "plan: split",
            .help = "x"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(seed), .def = "7", .help = "x"),
    OPT_ROW(.name = "lang", .type = OPT_TEXT, AT(lang), .needs = "split", .help = "x"),
    OPT_ROW(.name = "separator", .type = OPT_TEXT, AT(separator),
            .needs = "format=text, format=json, split", .help = "x"),
    OPT_ROW(.name = "engine", .type = OPT_TEXT, AT(engine), .needs = "@model", .help = "x"),
    OPT_ROW(.name = "lr", .type = OPT_TEXT, AT(lr), .idle = PLAN, .help = "x"),
    OPT_ROW(.name = "save", .type = OPT_TEXT, AT(save), .verbs = BUILD, .help = "x"),
    OPT_ROW(.name = "input", .type = OPT_LIST, AT(input), .needs = "!parts=1, save", .help = "x"),
    {.name = NULL},
};

static const char *const few[][2] = {{"save", "x"}, {NULL, NULL}};
static const struct opt_preset presets[] = {{"few", "a few", few}, {.name = NULL}};
static const struct opt_verb verbs[] = {
    {"build", "", "x", "", false}, {"plan", "", "x", "", false}, {.name = NULL}};
static const struct opt_table table = {.program = "demo",
                                       .help = "x",
                                       .verb = verbs,
                                       .opt = rows,
                                       .preset = presets,
                                       .verbose = BUILD};

static const char *no_model(void *arg, const char *fact)
{
    T_STR(fact, "model");
    return arg ? "with a whitespace tokenizer" : NULL;
}

/* The warnings of a command line. */
static void warns(const char *line, void *arg, const char *want)
{
    struct values v = {0};
    struct opts o;
    struct err e = {0};
    struct buf b = {0};
    char *words = strdup(line), *rest = words, *argv[24];
    int argc = 0;
    for (char *w; (w = strsep(&rest, " "));)
        argv[argc++] = w;
    T_OK(opts_init(&o, &table, &v, argc, argv, &e), &e);
    opts_unused(&o, no_model, arg, &b);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    opts_finish(&o);
    free(words);
}

static void an_option_without_what_it_needs_is_named(void)
{
    warns("demo build --lang en", NULL, "--lang has no effect without --split\n");
    warns("demo build --lang en --split", NULL, "");
    warns("demo build --lang en --split=false", NULL, "--lang has no effect without --split\n");
    warns("demo build --separator x", NULL,
          "--separator has no effect without --format text or json or --split\n");
    warns("demo build --separator x --format json", NULL, "");
    warns("demo build --sample", NULL, "");
    warns("demo build --sample --split", NULL, "--sample has no effect with --split\n");
    warns("demo build --sample --split --seed 0", NULL, "--sample has no effect without --seed\n");
    warns("demo build --input a", NULL, "--input has no effect with --parts 1 or without --save\n");
    warns("demo build --input a --parts 2", NULL, "");
}

static void facts_are_the_programs(void)
{
    warns("demo build --engine x", NULL, "");
    warns("demo build --engine x", (void *)1,
          "--engine has no effect with a whitespace tokenizer\n");
}

static void verbs_count(void)
{
    warns("demo build --parts 3", NULL, "");
    warns("demo plan --parts 3", NULL, "--parts has no effect without --split\n");
    warns("demo build --lr 1", NULL, "");
    warns("demo plan --lr 1", NULL, "--lr has no effect in demo plan\n");
    warns("demo plan --input a", NULL, "--input has no effect with --parts 1\n");
}

static void common_options_have_verbs_too(void)
{
    warns("demo build --preset few -v", NULL, "");
    warns("demo plan --preset few -v -q", NULL,
          "--preset and --verbose have no effect in demo plan\n");
}

static void what_lacks_the_same_shares_a_sentence(void)
{
    warns("demo plan --lr 1 --lang x --parts 2 -v", NULL,
          "--verbose and --lr have no effect in demo plan\n"
          "--parts and --lang have no effect without --split\n");
}

/* A printed configuration names every option, and one file serves all verbs. */
static void a_file_counts_where_it_changes_something(void)
{
    char line[512];
    const char *path = t_path("a.toml");
    FILE *f = fopen(path, "w");
    fputs("parts = 1\nlr = '3'\nlang = 'en'\nseparator = 'x'\nformat = 'text'\n", f);
    fclose(f);
    snprintf(line, sizeof(line), "demo plan --config %s", path);
    warns(line, NULL, "--lang has no effect without --split\n");
}

T_MAIN(T_CASE(an_option_without_what_it_needs_is_named), T_CASE(facts_are_the_programs),
       T_CASE(verbs_count), T_CASE(common_options_have_verbs_too),
       T_CASE(what_lacks_the_same_shares_a_sentence),
       T_CASE(a_file_counts_where_it_changes_something))
