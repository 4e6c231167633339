/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BASE_OPT_TABLE_H
#define TESTS_BASE_OPT_TABLE_H

/* A table with one option of every kind, for the tests of base/opt*.c. */

#include <string.h>

#include "base/opt.h"
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

#define AT(member) offsetof(struct values, member)

static const struct opt rows[] = {
    {"num-layers", OPT_INT, AT(layers), "4", "N", "model", "number of layers", VERB_LEARN,
     "layers,depth", 1, 1000, true},
    {"vocab_size", OPT_INT, AT(vocab), "8k", "N", "model", "size of the vocabulary", VERB_LEARN,
     NULL, 1, 0, true},
    {"vocab-size", OPT_INT, AT(other_vocab), "7", "N", "model", "another vocabulary", VERB_SHOW},
    {"eod", OPT_INT, AT(eod), "-1", "ID", "model", "id of the end, -1 for none", VERB_LEARN, NULL,
     -1, 1e18},
    {"model-family", OPT_CHOICE, AT(family), "gpt", "gpt|llama|a-much-longer-name", "model",
     "kind of model", VERB_LEARN},
    {"lr", OPT_REAL, AT(rate), "1.5e-4", "X", "Learning rate", "step size", VERB_LEARN,
     "learning-rate", 0, 1e18, true},
    {"min-share", OPT_REAL, AT(share), NULL, "X", "Learning rate", "least share", VERB_LEARN, NULL,
     0, 1},
    {"shuffle", OPT_SWITCH, AT(shuffle), NULL, NULL, "data", "shuffle the documents", VERB_LEARN},
    {"tie", OPT_SWITCH, AT(tie), "true", NULL, "data", "tie the ends", VERB_LEARN},
    {"input", OPT_LIST, AT(input), NULL, "PATH", "data", "files to read", 0, NULL, 0, 0, true},
    {"user_defined_symbols", OPT_LIST, AT(symbols), "<a>,<b>", "TEXT", "data",
     "pieces that always match, whatever the text that surrounds them may look like", VERB_LEARN},
    {"save", OPT_TEXT, AT(save), NULL, "DIR", "data", "where results go", VERB_LEARN},
    {"title", OPT_TEXT, AT(title), "it's .a \"\\title\"", "TEXT", "data", "what to call it", 0},
    {"warm-up-limit", OPT_INT, AT(limit), NULL, "N", "Learning rate", "steps of warm-up",
     VERB_LEARN, NULL, 0, 1e18},
    {NULL},
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
    "demo", "shows how options work", "demo learn --input a.txt", verbs, rows, presets};

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
