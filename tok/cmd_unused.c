/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "tok/cmd.h"

/* Options that were given and change nothing: each is named, with the reason. */

struct use {
    const struct cli *c;
    struct tokenizer *const *t;
    size_t n;
    struct buf with; /* "with a TikTokenizer" */
};

static bool has_type(const struct use *u, unsigned types)
{
    for (size_t i = 0; i < u->n; i++)
        if (types >> tok_info(u->t[i])->type & 1)
            return true;
    return false;
}

enum {
    SP_TYPES =
        1 << TOK_SENTENCEPIECE | 1 << TOK_GPT_SENTENCEPIECE | 1 << TOK_LLAMA2 | 1 << TOK_JAPANESE_SP
};

/* The types that an option is for. */
static unsigned types_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } list[] = {{"engine", SP_TYPES},
                {"merge-file", 1 << TOK_GPT2_BPE},
                {"tiktoken-pattern", 1 << TOK_TIKTOKEN},
                {"tiktoken-num-special-tokens", 1 << TOK_TIKTOKEN},
                {"tiktoken-special-tokens", 1 << TOK_TIKTOKEN},
                {"add-special-tokens", 1 << TOK_HUGGINGFACE | 1 << TOK_LLAMA2},
                {"skip-special-tokens", ~(SP_TYPES | 1u << TOK_WHITESPACE | 1u << TOK_NULL)},
                {"specials", ~(1u << TOK_NULL)}};
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        if (strcmp(name, list[i].name) == 0)
            return list[i].types;
    return ~0u;
}

/* What verbs have to be given for options about texts; NULL: it was. */
static const char *lacks_texts(const struct cli *c)
{
    if (strcmp(c->verb, "inspect") == 0)
        return c->corpus.n ? NULL : "without --corpus";
    if (strcmp(c->verb, "diff") == 0)
        return c->nfile > 2 ? NULL : "without a corpus";
    if (strcmp(c->verb, "convert") == 0)
        return c->proof.n ? NULL : "without --proof";
    if (strcmp(c->verb, "prune") == 0)
        return c->keep_used.n ? NULL : "without --keep-used";
    return NULL;
}

static bool about_texts(const struct cli *c, const char *name)
{
    static const char *const list[] = {"input_format", "json-keys", "show", "strict", NULL};
    for (size_t i = 0; list[i]; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return (strcmp(name, "json") == 0 && strcmp(c->verb, "convert") == 0) ||
           (strcmp(name, "specials") == 0 && strcmp(c->verb, "diff") == 0);
}

/* The end of document is part of what is written, or a string that is looked for. */
static const char *lacks_end(const struct use *u)
{
    const struct cli *c = u->c;
    if (strcmp(c->verb, "encode") == 0 && !c->append_eod && c->format != CMD_DOCS &&
        !has_type(u, SP_TYPES | 1 << TOK_WHITESPACE))
        return "without --append-eod";
    if (strcmp(c->verb, "decode") == 0 && c->input_format < (int)CMD_IN_U16)
        return "without --input_format u16 or u32";
    return NULL;
}

/* Why an option changes nothing; NULL: it may. */
static const char *reason(struct use *u, const char *name)
{
    const struct cli *c = u->c;
    bool decodes = strcmp(c->verb, "decode") == 0, inspects = strcmp(c->verb, "inspect") == 0;
    if (about_texts(c, name) && lacks_texts(c))
        return lacks_texts(c);
    if (strcmp(name, "input_format") == 0 && c->by)
        return "with --by, which reads JSONL";
    if (strcmp(name, "eod-token") == 0)
        return lacks_end(u);
    if (strcmp(name, "seed") == 0)
        return tok_info(u->t[0])->draws ? NULL : "where nothing is left to chance";
    if (strcmp(name, "dropout") == 0 && cmd_shape(c) == CMD_SAMPLE)
        return "with --output_format sample_id or sample_piece, which go by --alpha";
    if (strcmp(name, "truncation-side") == 0 && !c->truncation)
        return "without --truncation";
    if (strcmp(name, "stride") == 0 && !c->overflow)
        return "without --overflow";
    if (strcmp(name, "alpha") == 0 && cmd_shape(c) != CMD_SAMPLE)
        return "without --output_format sample_id or sample_piece";
    if (strcmp(name, "nbest_size") == 0 && cmd_shape(c) == CMD_BEST)
        return "without --output_format nbest_id or sample_id";
    if (strcmp(name, "nbest_size") == 0 && !has_type(u, SP_TYPES))
        return buf_str(&u->with);
    bool unread = strcmp(name, "add-special-tokens") == 0 ? decodes || inspects
                  : strcmp(name, "strict") == 0 || strcmp(name, "specials") == 0 ? decodes
                                                                                 : false;
    return unread || !has_type(u, types_of(name)) ? buf_str(&u->with) : NULL;
}

void cmd_unused_warn(const struct cli *c, struct tokenizer *const *t, size_t n)
{
    struct use u = {.c = c, .t = t, .n = n};
    for (size_t i = 0; i < n; i++)
        buf_addf(&u.with, "%s a %s", i ? " and" : "with", tok_info(t[i])->type_name);
    for (const struct opt *o = c->opts->table->opt; o->name; o++) {
        const char *why;
        if (o->verbs & 1u << c->opts->verb && opts_origin(c->opts, o->name) >= FROM_FILE &&
            (why = reason(&u, o->name)))
            log_warn("--%s has no effect here: tok %s %s", o->name, c->verb, why);
    }
    buf_finish(&u.with);
}

void cmd_unused_keys(const struct cli *c, bool had_jsonl)
{
    if (!had_jsonl && opts_origin(c->opts, "json-keys") >= FROM_FILE)
        log_warn("--json-keys has no effect here: no input is JSONL");
}
