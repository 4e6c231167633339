/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/program.h"
#include "tok/cmd.h"
#include "tok/cmd_facts.h"
#include "tok/sp_model.h"

/* What a tokenizer is: its facts, and those of a SentencePiece model's parts. */

static void say_tokenizer(struct facts *f, const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    if (i->path)
        facts_text(f, "file", i->path);
    facts_text(f, "type", i->type_name);
    facts_number(f, "vocab_size", i->vocab_size);
    facts_id(f, "eod", t, i->eod);
    facts_id(f, "bos", t, i->bos);
    facts_id(f, "eos", t, i->eos);
    facts_id(f, "pad", t, i->pad);
    facts_id(f, "unk", t, i->unk);
    facts_text(f, "sha256", i->digest);
}

static void say_model(struct facts *f, const struct sp_model *m)
{
    static const char *const plural[] = {"",
                                         "normal_pieces",
                                         "unknown_pieces",
                                         "control_pieces",
                                         "user_defined_pieces",
                                         "unused_pieces",
                                         "byte_pieces"};
    size_t longest = 0;
    for (size_t i = 0; i < m->npieces; i++)
        longest = m->piece[i].length > longest ? m->piece[i].length : longest;
    facts_group(f, "model");
    facts_text(f, "algorithm", sp_kind_name(m->kind));
    facts_number(f, "pieces", (int64_t)m->npieces);
    for (int i = SP_NORMAL; i <= SP_BYTE; i++)
        facts_number(f, plural[i], (int64_t)m->count[i]);
    facts_number(f, "longest_piece_bytes", (int64_t)longest);
    facts_switch(f, "byte_fallback", m->byte_fallback);
    facts_number(f, "self_tests", (int64_t)m->self_tests);
    facts_group_end(f);
    facts_group(f, "normalization");
    facts_text(f, "name", m->normalizer.name);
    facts_number(f, "rules_bytes", (int64_t)m->normalizer.charsmap_size);
    facts_switch(f, "add_dummy_prefix", m->normalizer.add_dummy_prefix);
    facts_switch(f, "whitespace_as_suffix", m->whitespace_as_suffix);
    facts_switch(f, "remove_extra_whitespaces", m->normalizer.remove_extra_whitespaces);
    facts_switch(f, "escape_whitespaces", m->normalizer.escape_whitespaces);
    facts_switch(f, "denormalizer", m->has_denormalizer);
    facts_group_end(f);
}

/* The symbols that text can turn into, and those that it cannot. */
static void say_symbols(struct facts *f, const struct tokenizer *t, const struct sp_model *m)
{
    facts_group(f, "symbols");
    for (int64_t id = 0; id < tok_info(t)->vocab_size; id++) {
        bool own = (size_t)id < m->npieces;
        enum sp_piece_type type = own ? m->piece[id].type : SP_CONTROL;
        if (type != SP_CONTROL && type != SP_USER && type != SP_UNKNOWN)
            continue;
        char name[32];
        snprintf(name, sizeof(name), "%lld", (long long)id);
        facts_kind(f, name, own ? sp_type_name(type) : "added", tok_piece(t, id));
    }
    facts_group_end(f);
}

static int say_sp(struct facts *f, const struct tokenizer *t, struct err *e)
{
    struct buf b;
    struct sp_model m;
    const char *path = tok_info(t)->path;
    int code = file_read(path, (size_t)1 << 30, &b, e);
    if (code)
        return code;
    code = sp_check(path, b.data, b.len, &m, e);
    buf_finish(&b);
    if (code)
        return code;
    say_model(f, &m);
    say_symbols(f, t, &m);
    sp_model_finish(&m);
    return 0;
}

static int inspect(const struct cli *c, const struct tokenizer *t, struct err *e)
{
    struct facts f;
    facts_init(&f, c->json);
    say_tokenizer(&f, t);
    enum tok_type type = tok_info(t)->type;
    int code = type == TOK_SENTENCEPIECE || type == TOK_GPT_SENTENCEPIECE ? say_sp(&f, t, e) : 0;
    return facts_finish(&f, code, e);
}

int cmd_inspect(const struct cli *c, struct err *e)
{
    struct tok_flags flags = c->tok;
    if (c->nfile > 1 || (c->nfile && flags.path))
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok inspect looks at one tokenizer at a time");
    if (c->nfile)
        flags.path = c->file[0];
    struct tokenizer *t;
    int code = tok_open_flags(&flags, &t, e);
    if (code)
        return code;
    code = inspect(c, t, e);
    tok_close(t);
    return code;
}
