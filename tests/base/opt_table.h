/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BASE_OPT_TABLE_H
#define TESTS_BASE_OPT_TABLE_H

/* A table with one option of every kind, for the tests of base/opt*.c. */

#include <string.h>

#include "base/cli/opt.h"
#include "tests/t.h"

struct values {
    struct opt_common common;
    int64_t layers, vocab, eod, limit;
    double rate, share;
    bool shuffle, tie;
    const char *save, *title;
    int family;
    struct opt_list input, symbols;
    int64_t other_vocab;
};

enum { VERB_LEARN = 1u << 0, VERB_SHOW = 1u << 1 };

#define AT(member) .offset = offsetof(struct values, member)

static const struct opt rows[] = {
    OPT_ROW(.name = "num-layers", .type = OPT_INT, AT(layers), .def = "4", .min = 1, .max = 1000,
            .meta = "N", .group = "model", .verbs = VERB_LEARN, .alias = "layers,depth",
            .basic = true, .help = "number of layers"),
    OPT_ROW(.name = "vocab_size", .type = OPT_INT, AT(vocab), .def = "8k", .min = 1, .meta = "N",
            .group = "model", .verbs = VERB_LEARN, .basic = true, .help = "size of the vocabulary"),
    OPT_ROW(.name = "vocab-size", .type = OPT_INT, AT(other_vocab), .def = "7", .meta = "N",
            .group = "model", .verbs = VERB_SHOW, .help = "another vocabulary"),
    OPT_ROW(.name = "eod", .type = OPT_INT, AT(eod), .def = "-1", .min = -1, .max = 1e18,
            .meta = "ID", .group = "model", .verbs = VERB_LEARN,
            .help = "id of the end, -1 for none"),
    OPT_ROW(.name = "model-family", .type = OPT_CHOICE, AT(family), .def = "gpt",
            .meta = "gpt|llama|a-much-longer-name", .group = "model", .verbs = VERB_LEARN,
            .help = "kind of model"),
    OPT_ROW(.name = "lr", .type = OPT_REAL, AT(rate), .def = "1.5e-4", .max = 1e18, .meta = "X",
            .group = "Learning rate", .verbs = VERB_LEARN, .alias = "learning-rate", .basic = true,
            .help = "step size"),
    OPT_ROW(.name = "min-share", .type = OPT_REAL, AT(share), .max = 1, .meta = "X",
            .group = "Learning rate", .verbs = VERB_LEARN, .help = "least share"),
    OPT_ROW(.name = "shuffle", .type = OPT_SWITCH, AT(shuffle), .group = "data",
            .verbs = VERB_LEARN, .help = "shuffle the documents"),
    OPT_ROW(.name = "tie", .type = OPT_SWITCH, AT(tie), .def = "true", .group = "data",
            .verbs = VERB_LEARN, .help = "tie the ends"),
    OPT_ROW(.name = "input", .type = OPT_LIST, AT(input), .meta = "PATH", .paths = true,
            .group = "data", .basic = true, .help = "files to read"),
    OPT_ROW(.name = "user_defined_symbols", .type = OPT_LIST, AT(symbols), .def = "<a>,<b>",
            .meta = "TEXT", .group = "data", .verbs = VERB_LEARN,
            .brief = "pieces that always match",
            .help =
                "pieces that always match, whatever the text that surrounds them may look like"),
    OPT_ROW(.name = "save", .type = OPT_TEXT, AT(save), .meta = "DIR", .group = "data",
            .verbs = VERB_LEARN, .help = "where results go"),
    OPT_ROW(.name = "title", .type = OPT_TEXT, AT(title), .def = "it's .a \"\\title\"",
            .meta = "TEXT", .group = "data", .help = "what to call it"),
    OPT_ROW(.name = "warm-up-limit", .type = OPT_INT, AT(limit), .max = 1e18, .meta = "N",
            .group = "Learning rate", .verbs = VERB_LEARN, .help = "steps of warm-up"),
    {.name = NULL},
};

static const char *const tiny[][2] = {
    {"num-layers", "2"}, {"lr", "1e-3"}, {"user-defined-symbols", "x,y"}, {NULL, NULL}};

static const struct opt_preset presets[] = {{"tiny", "two layers", tiny}, {NULL}};

static const struct opt_verb verbs[] = {
    {"learn", "[FILE...]", "learn a thing",
     "demo learn --input a.txt --num-layers 2\ndemo learn --config run.toml", true},
    {"show", "", "show a thing",
     "demo show --input the-first-of-some-files.txt --title 'a title within quotes' --input b.txt",
     false},
    {NULL},
};

static const struct opt_table table = {
    "demo", "shows how options work", "demo learn --input a.txt", verbs, rows, presets, NULL, ~0u};

enum { MAX_WORDS = 32 };

/* Parses a line of words split at blanks. */
static inline int parse_table(struct opts *o, const struct opt_table *t, struct values *v,
                              const char *line, struct err *e)
{
    static char text[2048];
    static char *argv[MAX_WORDS + 1];
    int n = 0;
    memset(v, 0, sizeof(*v));
    memset(text, 0, sizeof(text));
    strncpy(text, line, sizeof(text) - 1);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) && n < MAX_WORDS;)
        if (*word)
            argv[n++] = word;
    argv[n] = NULL;
    return opts_init(o, t, v, n, argv, e);
}

static inline int parse_line(struct opts *o, struct values *v, const char *line, struct err *e)
{
    return parse_table(o, &table, v, line, e);
}

#endif
