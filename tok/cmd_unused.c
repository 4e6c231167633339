/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/program.h"
#include "tok/cmd.h"

/* The program's own conditions for options without effect (opts_warn_unused), queried by name. */

struct use {
    const struct cli *c;
    struct tokenizer *const *t;
    size_t n;
    struct buf why;
};

static bool is_verb(const struct use *u, const char *verb)
{
    return strcmp(u->c->verb, verb) == 0;
}

/* Does the verb encode texts? */
static const char *texts(const struct use *u)
{
    const struct cli *c = u->c;
    if (is_verb(u, "decode"))
        return "in " WEFT_PREFIX "tok decode";
    if (is_verb(u, "inspect"))
        return c->corpus.n ? NULL : "without --corpus";
    if (is_verb(u, "diff"))
        return c->nfile > 2 ? NULL : "without a corpus";
    if (is_verb(u, "convert"))
        return c->proof.n ? NULL : "without --proof";
    if (is_verb(u, "prune"))
        return c->keep_used.n ? NULL : "without --keep-used";
    return NULL;
}

/* Is the end of document written, or searched for? */
static const char *end_of_document(struct use *u)
{
    const struct cli *c = u->c;
    if (is_verb(u, "encode") && !c->append_eod && c->format != CMD_DOCS &&
        tok_flags_fact(u->t, u->n, "matches-eod", &u->why))
        return "without --append-eod";
    if (is_verb(u, "decode") && c->input_format < (int)CMD_IN_U16)
        return "without --input_format u16 or u32";
    return NULL;
}

static const char *fact(void *arg, const char *name)
{
    struct use *u = arg;
    const struct cli *c = u->c;
    if (strcmp(name, "texts") == 0)
        return texts(u);
    if (strcmp(name, "eod") == 0)
        return end_of_document(u);
    if (strcmp(name, "lenient") == 0)
        return NULL;
    if (strcmp(name, "frames") == 0)
        return is_verb(u, "inspect") ? "in " WEFT_PREFIX "tok inspect" : NULL;
    if (strcmp(name, "draws") == 0)
        return tok_info(u->t[0])->draws ? NULL : "without --dropout or sampling";
    if (strcmp(name, "ours") == 0)
        return cmd_is_theirs(c) ? "with SentencePiece's own trainer" : NULL;
    if (strcmp(name, "theirs") == 0)
        return cmd_is_theirs(c) ? NULL : "without --engine sentencepiece";
    if (strcmp(name, "alphabet") == 0)
        return c->type == CMD_BPE && c->limit_alphabet >= 256
                   ? "from 256 on with --type bpe, whose alphabet is the 256 bytes"
                   : NULL;
    return tok_flags_fact(u->t, u->n, name, &u->why);
}

void cmd_unused_warn(const struct cli *c, struct tokenizer *const *t, size_t n)
{
    struct use u = {.c = c, .t = t, .n = n};
    opts_warn_unused(c->opts, fact, &u);
    buf_finish(&u.why);
}

void cmd_unused_keys(const struct cli *c, bool had_keys)
{
    if (!had_keys)
        opts_warn_no_effect(c->opts, "json-keys", "no input is JSONL or Parquet");
}
