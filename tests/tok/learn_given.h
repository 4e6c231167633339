/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_LEARN_GIVEN_H
#define TESTS_TOK_LEARN_GIVEN_H

/* Feeds lines of text to the common part of SentencePiece's trainers. */

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tok/learn/sp/sp.h"

static const struct opt given_rows[] = {SP_TRAIN_ROWS(struct sp_train_options, , 0),
                                        {.name = NULL}};

/* Options at their defaults; identity, because its rules need no library. */
static inline struct sp_train_options defaults(void)
{
    struct sp_train_options o;
    memset(&o, 0, sizeof(o));
    for (const struct opt *r = given_rows; r->name; r++) {
        char *at = (char *)&o + r->offset;
        if (r->type == OPT_INT)
            *(int64_t *)(void *)at = strtoll(r->def, NULL, 10);
        else if (r->type == OPT_REAL)
            *(double *)(void *)at = strtod(r->def, NULL);
        else if (r->type == OPT_SWITCH)
            *(bool *)at = strcmp(r->def, "true") == 0;
        else if (r->type == OPT_TEXT)
            *(const char **)(void *)at = r->def;
    }
    o.normalization_rule_name = 4;
    o.character_coverage = 1;
    return o;
}

struct lines {
    const char *p;
};

static inline int next_line(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more,
                            struct err *e)
{
    (void)e;
    struct lines *l = arg;
    *ret_more = *l->p != '\0';
    *ret_text = l->p;
    *ret_n = strcspn(l->p, "\n");
    l->p += *ret_n + (l->p[*ret_n] == '\n');
    return 0;
}

struct given {
    struct sp_train_options o;
    enum learn_sp_cut cut;
    bool tsv;
    int threads;
};

static inline int load(struct given *g, const char *text, struct learn_sp *s, struct err *e)
{
    struct learn_meta meta;
    struct learn_rules rules;
    struct lines l = {text};
    struct sp_train_input in = {.next = next_line, .arg = &l, .tsv = g->tsv, .input_format = ""};
    T_OK(learn_meta_init(&meta, &g->o, e), e);
    T_OK(learn_rules_init(&rules, &g->o, e), e);
    struct pool *pool = pool_create(g->threads ? g->threads : 1);
    struct learn_sp_options o = {.train = &g->o,
                                 .in = &in,
                                 .meta = &meta,
                                 .rules = &rules,
                                 .cut = g->cut,
                                 .pool = pool,
                                 .beside = t_path("x")};
    int code = learn_sp_load(&o, s, e);
    pool_destroy(pool);
    learn_rules_finish(&rules);
    learn_meta_finish(&meta);
    return code;
}

#endif
