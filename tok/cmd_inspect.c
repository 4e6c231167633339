/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/core/program.h"
#include "tok/cmd.h"
#include "tok/cmd_facts.h"
#include "tok/inspect/describe.h"
#include "tok/edit/recipe.h"

/* The facts of a tokenizer, and those of a SentencePiece model. */

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
    facts_text(f, "meaning", i->meaning);
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

/* The pieces that text can become, and those that it cannot. */
static void say_symbols(struct facts *f, const struct tokenizer *t, const struct sp_model *m)
{
    facts_group(f, "symbols");
    for (int64_t id = 0; id < tok_info(t)->vocab_size; id++) {
        bool own = (size_t)id < m->npieces;
        enum sp_piece_type type = own ? m->piece[id].type : SP_CONTROL;
        if (type != SP_CONTROL && type != SP_USER && type != SP_UNKNOWN)
            continue;
        facts_kind(f, own ? sp_type_name(type) : "added", t, id);
    }
    facts_group_end(f);
}

/* ---- tokenizers of components --------------------------------------------------------------- */

static const char *const models[] = {"bpe", "unigram", "wordpiece", "wordlevel"};

static void say_sizes(struct facts *f, const struct tokenizer *t, const struct recipe *r)
{
    size_t pieces = 0, longest = 0, special = 0, bytes = 0, inside = 0;
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        pieces += p->text != NULL;
        longest = p->text && p->n > longest ? p->n : longest;
        bytes += r->byte_fallback && p->text && p->n == 6 && !strncmp(p->text, "<0x", 3);
    }
    for (size_t i = 0; i < r->ntokens; i++) {
        special += r->token[i].special;
        inside += recipe_find(r, r->token[i].text, r->token[i].n) >= 0;
    }
    size_t ids = (size_t)tok_info(t)->vocab_size, all = pieces + r->ntokens - inside;
    facts_group(f, "model");
    facts_text(f, "algorithm", models[r->model]);
    facts_number(f, "pieces", (int64_t)pieces);
    facts_number(f, "normal_pieces", (int64_t)(pieces - bytes - inside));
    facts_number(f, "byte_pieces", (int64_t)bytes);
    facts_number(f, "special_tokens", (int64_t)special);
    facts_number(f, "added_tokens", (int64_t)(r->ntokens - special));
    facts_number(f, "ids_without_piece", (int64_t)(ids > all ? ids - all : 0));
    facts_number(f, "longest_piece_bytes", (int64_t)longest);
    if (r->model == MODEL_BPE) {
        facts_number(f, "merges", (int64_t)r->nmerges);
        facts_switch(f, "whole_pieces_first", r->ignore_merges);
    }
    if (r->model == MODEL_BPE || r->model == MODEL_UNIGRAM)
        facts_switch(f, "byte_fallback", r->byte_fallback);
    if (r->prefix)
        facts_text(f, "prefix_inside_words", r->prefix);
    if (r->suffix)
        facts_text(f, "suffix_at_ends", r->suffix);
    if (r->model == MODEL_WORDPIECE)
        facts_number(f, "longest_word_characters", (int64_t)r->max_chars);
    facts_group_end(f);
}

static void say_pipeline(struct facts *f, const struct tokenizer *t, const struct recipe *r)
{
    struct buf b = {0};
    facts_group(f, "pipeline");
    describe_normalizer(&r->store, &b);
    facts_text(f, "normalizer", buf_str(&b));
    buf_reset(&b);
    describe_pre_tokenizer(&r->store, &b);
    facts_text(f, "pre_tokenizer", buf_str(&b));
    facts_pieces(f, "put_before_a_text", t, r->store.before, r->store.nbefore);
    facts_pieces(f, "put_behind_a_text", t, r->store.after, r->store.nafter);
    facts_group_end(f);
    buf_finish(&b);
    facts_group(f, "symbols");
    for (size_t i = 0; i < r->ntokens; i++)
        facts_kind(f, r->token[i].special ? "special" : "added", t, r->token[i].id);
    facts_group_end(f);
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int inspect(const struct cli *c, const struct tok_flags *flags, const struct tokenizer *t,
                   struct err *e)
{
    const struct tok_info *info = tok_info(t);
    struct tok_options o = {.path = info->path,
                            .pattern = flags->pattern,
                            .merges = flags->merges,
                            .type = info->type,
                            .vocab_size = flags->vocab_size,
                            .num_special = flags->num_special,
                            .special = flags->tiktoken_special.item,
                            .nspecial = flags->tiktoken_special.n};
    struct recipe r = {0};
    struct facts f;
    int code = 0;
    bool parts = recipe_can_read(info->type);
    if (parts)
        code = recipe_read(&r, t, &o, e);
    facts_init(&f, c->json);
    say_tokenizer(&f, t);
    if (code == ERR_USAGE) { /* it can be used, but not be written */
        facts_text(&f, "not_described", e->msg);
        parts = false;
        code = 0;
    }
    if (!code && parts && r.from == RECIPE_SP) {
        say_model(&f, &r.sp);
        say_symbols(&f, t, &r.sp);
    } else if (!code && parts) {
        say_sizes(&f, t, &r);
        say_pipeline(&f, t, &r);
    }
    if (!code && info->path)
        code = cmd_survey(c, &f, t, parts ? &r : NULL, e);
    code = facts_finish(&f, code, e);
    recipe_finish(&r);
    return code;
}

int cmd_inspect(const struct cli *c, struct err *e)
{
    struct tok_flags flags = c->tok;
    if (c->nfile > 1 || (c->nfile && flags.path))
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok inspect looks at one tokenizer at a time");
    if (c->nfile)
        flags.path = c->file[0];
    if (c->by && !c->corpus.n)
        return err_set(e, ERR_USAGE, "--by needs --corpus");
    flags.add_template = false; /* the template would not come back as text */
    struct tokenizer *t;
    int code = tok_open_flags(&flags, &t, e);
    if (code && !tok_flags_given(&flags))
        opts_hint_swallowed(c->opts, e);
    if (code)
        return code;
    cmd_unused_warn(c, &t, 1);
    code = inspect(c, &flags, t, e);
    tok_close(t);
    return code;
}
