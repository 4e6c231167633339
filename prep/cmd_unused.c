/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/program.h"
#include "prep/cmd.h"

/* The facts of the option rows (opts_warn_unused). */

struct use {
    const struct cmd *c;
    struct tokenizer *const *tok;
    struct buf why;
};

static const char *in_verb(struct use *u, const char *more)
{
    buf_reset(&u->why);
    buf_addf(&u->why, "in %s %s%s", WEFT_PREFIX "prep", prep_table.verb[u->c->opts->verb].name,
             more);
    return buf_str(&u->why);
}

static bool encodes(const struct use *u)
{
    return u->c->opts->verb == PREP_BUILD || u->c->opts->verb == PREP_SFT;
}

static const char *fact(void *arg, const char *name)
{
    struct use *u = arg;
    if (strcmp(name, "texts") == 0 && encodes(u))
        return u->c->o->pretokenized ? "with --pretokenized" : NULL;
    if (strcmp(name, "texts") == 0)
        return in_verb(u, "");
    if (strcmp(name, "lenient") == 0)
        return in_verb(u, ", which always stops at invalid UTF-8");
    if (strcmp(name, "frames") == 0 || strcmp(name, "eod") == 0)
        return NULL;
    return tok_flags_fact(u->tok, *u->tok != NULL, name, &u->why);
}

void cmd_warn_unused(const struct cmd *c, struct tokenizer *tok)
{
    struct use u = {.c = c, .tok = &tok};
    opts_warn_unused(c->opts, fact, &u);
    buf_finish(&u.why);
}
