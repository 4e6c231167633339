/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/core/engine.h"

#include <string.h>

const char *tok_type_name(enum tok_type type)
{
    static const char *const name[] = {[TOK_AUTO] = "auto",
#define TYPE_NAME(type, name) [type] = name,
                                       TOK_TYPES(TYPE_NAME)
#undef TYPE_NAME
    };
    BUG_ON((unsigned)type >= TOK_TYPE_END, "tokenizer type %d", (int)type);
    return name[type];
}

const char *tok_specials_name(enum tok_specials mode)
{
    static const char *const name[] = {
#define SPECIALS_NAME(mode, name) [mode] = name,
        TOK_SPECIALS(SPECIALS_NAME)
#undef SPECIALS_NAME
    };
    BUG_ON((unsigned)mode >= sizeof(name) / sizeof(*name), "specials %d", (int)mode);
    return name[mode];
}

enum tok_type tok_type_named(const char *name)
{
    for (enum tok_type type = TOK_AUTO + 1; type < TOK_TYPE_END; type++)
        if (!strcmp(name, tok_type_name(type)))
            return type;
    return TOK_AUTO;
}

int tok_engine_eod(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info,
                   struct err *e)
{
    if (o->eod_token) {
        info->eod = g->find(g->state, o->eod_token);
        if (info->eod < 0)
            return err_set(e, ERR_USAGE, "%s: the vocabulary has no piece '%s' (--eod-token)",
                           o->path ? o->path : tok_type_name(info->type), o->eod_token);
    }
    size_t n;
    info->eod_piece = info->eod >= 0 ? g->piece(g->state, info->eod, &n) : NULL;
    return 0;
}

size_t tok_cut_blank(const void *state, const char *text, size_t n)
{
    (void)state;
    while (n && text[n - 1] != ' ' && text[n - 1] != '\n' && text[n - 1] != '\t' &&
           text[n - 1] != '\r')
        n--;
    return n;
}
