/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tok/cmd.h"

static bool is_sp(enum tok_type type)
{
    return type == TOK_SENTENCEPIECE || type == TOK_GPT_SENTENCEPIECE || type == TOK_LLAMA2 ||
           type == TOK_JAPANESE_SP;
}

/* Only a tokenizer.json may say itself that merges are left out. */
static bool may_drop(const struct cli *c, enum tok_type type)
{
    return c->tok.dropout ? strtod(c->tok.dropout, NULL) > 0 : type == TOK_HUGGINGFACE;
}

static bool has_effect(const struct cli *c, const char *name, enum tok_type type)
{
    bool decodes = strcmp(c->verb, "decode") == 0;
    if (strcmp(name, "engine") == 0)
        return is_sp(type);
    if (strncmp(name, "tiktoken-", 9) == 0)
        return type == TOK_TIKTOKEN;
    if (strcmp(name, "merge-file") == 0)
        return type == TOK_GPT2_BPE;
    if (strcmp(name, "seed") == 0)
        return may_drop(c, type);
    if (strcmp(name, "strict") == 0 || strcmp(name, "specials") == 0 ||
        strcmp(name, "add-special-tokens") == 0)
        return !decodes;
    return true;
}

void cmd_unused_warn(const struct cli *c, const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    for (const struct opt *o = c->opts->table->opt; o->name; o++)
        if (o->verbs & 1u << c->opts->verb && !has_effect(c, o->name, i->type) &&
            opts_origin(c->opts, o->name) >= FROM_FILE)
            log_warn("--%s has no effect here: tok %s with a %s", o->name, c->verb, i->type_name);
}
