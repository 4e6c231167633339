/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/meaning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "tok/sp/model.h"
#include "tok/text/byte_alphabet.h"

enum { DIGITS = 16 };

/* ---- fields --------------------------------------------------------------------------------- */

static void put_digest(struct buf *line, const char *field, const char *hex)
{
    buf_addf(line, " %s=%.*s", field, DIGITS, hex);
}

/* Nothing for what is empty: a field that is not there and one without content are the same. */
static void put_content(struct buf *line, const char *field, struct buf *content)
{
    char hex[XXH_TEXT];
    xxh_once(content->data, content->len, hex);
    if (content->len)
        put_digest(line, field, hex);
    buf_reset(content);
}

/* Texts with their lengths, so that two lists are equal only if all texts are. */
static void put_text(struct buf *b, const char *p, size_t n)
{
    buf_addf(b, "%zu:", n);
    buf_add(b, p, n);
}

/* ---- pipelines ------------------------------------------------------------------------------ */

static void put_pattern(struct buf *b, const struct regex *r)
{
    size_t n = 0;
    const char *text = regex_literal_text(r, &n);
    enum scan_family f = regex_family(r);
    if (f != SCAN_NONE)
        buf_addf(b, "family %d", (int)f);
    else if (text)
        put_text(b, text, n);
    else
        buf_addf(b, "/%s/", regex_text(r));
}

/* A step that changes no text is none. */
static bool norm_does(const struct norm_step *s)
{
    if (s->kind == NORM_STRIP)
        return s->left || s->right;
    if (s->kind == NORM_BERT)
        return s->clean || s->chinese || s->accents || s->lower;
    return (s->kind != NORM_PREPEND && s->kind != NORM_PRECOMPILED) || s->content.n;
}

static void put_normalizer(struct buf *b, const struct pipe_spec *s)
{
    for (size_t i = 0; i < s->nnorm; i++) {
        const struct norm_step *n = &s->norm[i];
        if (!norm_does(n))
            continue;
        buf_addf(b, ";%d %d%d %d%d%d%d ", (int)n->kind, n->left, n->right, n->clean, n->chinese,
                 n->accents, n->lower);
        if (n->pattern)
            put_pattern(b, n->pattern);
        put_text(b, n->content.p ? n->content.p : "", n->content.n);
    }
}

/* A pattern that is a known family matches all text: to keep the matches is to isolate them. */
static void put_split(struct buf *b, const struct regex *r, enum pre_behavior behavior, bool invert)
{
    if (regex_family(r) != SCAN_NONE && behavior == SPLIT_REMOVED && invert) {
        behavior = SPLIT_ISOLATED;
        invert = false;
    }
    buf_addf(b, ";split %d%d ", (int)behavior, invert);
    put_pattern(b, r);
}

/* ByteLevel is a space put in front, a split, and bytes as letters. */
static void put_pre_tokenizer(struct buf *b, const struct pipe_spec *s)
{
    for (size_t i = 0; i < s->npre; i++) {
        const struct pre_step *p = &s->pre[i];
        if (p->kind == PRE_SPLIT) {
            put_split(b, p->pattern, p->behavior, p->invert);
        } else if (p->kind == PRE_BYTE_LEVEL) {
            buf_adds(b, p->prefix_space ? ";space" : "");
            if (p->pattern)
                put_split(b, p->pattern, SPLIT_ISOLATED, false);
            buf_adds(b, ";letters");
        } else {
            buf_addf(b, ";%d %d%d %d %d %zu ", (int)p->kind, p->split, p->single, (int)p->behavior,
                     (int)p->scheme, p->length);
            put_text(b, p->content.p ? p->content.p : "", p->content.n);
        }
    }
}

/* ---- models --------------------------------------------------------------------------------- */

static bool has_piece(const struct pipe_spec *s, const char *text, size_t n)
{
    return vocab_find(&s->vocab, text, n) >= 0;
}

/* Does the model see nothing but letters for bytes, and know all of them? Then no text is unknown.
 */
static bool knows_bytes(const struct pipe_spec *s)
{
    char text[4];
    bool all =
        s->npre && s->pre[s->npre - 1].kind == PRE_BYTE_LEVEL && !s->prefix.n && !s->suffix.n;
    for (unsigned b = 0; b < 256 && all; b++)
        all = has_piece(s, text, letter_put(text, (uint8_t)b));
    return all;
}

static bool has_byte_pieces(const struct pipe_spec *s)
{
    char text[8];
    bool some = false;
    for (unsigned b = 0; b < 256 && !some; b++) {
        int n = snprintf(text, sizeof(text), "<0x%02X>", b);
        some = has_piece(s, text, (size_t)n);
    }
    return some;
}

static void put_option(struct buf *b, const char *name, struct string_ref v)
{
    if (!v.p || !v.n)
        return;
    buf_addf(b, ";%s ", name);
    put_text(b, v.p, v.n);
}

/* Looking whole pre-tokens up first changes nothing where merging reaches every entry. */
static bool looks_up_whole(const struct pipe_spec *s, const struct bpe_merges *m)
{
    bool some = s->ignore_merges && !m->unreached;
    for (size_t i = 0; s->ignore_merges && m->unreached && i < s->vocab.npieces && !some; i++)
        some = s->vocab.piece[i].p && m->unreached[i];
    return some;
}

static void put_options(struct buf *b, const struct pipe_spec *s, const struct bpe_merges *m)
{
    bool bytes = s->model == MODEL_BPE && knows_bytes(s);
    bool words = s->model == MODEL_WORDPIECE || s->model == MODEL_WORDLEVEL;
    if (!bytes && s->model != MODEL_UNIGRAM)
        put_option(b, "unk", s->unk);
    if (!bytes && s->model == MODEL_BPE && s->unk.n && s->fuse_unk)
        buf_adds(b, ";fuse_unk");
    if (!bytes && !words && s->byte_fallback && has_byte_pieces(s))
        buf_adds(b, ";byte_fallback");
    if (s->model == MODEL_UNIGRAM)
        buf_addf(b, ";unk %" PRId64, s->unk_id);
    if (s->model == MODEL_WORDPIECE)
        buf_addf(b, ";max_chars %zu", s->max_chars);
    put_option(b, "prefix", s->prefix);
    put_option(b, "suffix", s->suffix);
    if (s->model == MODEL_BPE && looks_up_whole(s, m))
        buf_adds(b, ";ignore_merges");
    if (s->model == MODEL_BPE && s->dropout > 0)
        buf_addf(b, ";dropout %a", s->dropout);
}

/* Entries are those that a text may be looked up as; tokens beside them are found by themselves. */
static void put_entries(struct buf *line, const struct pipe_spec *s, struct buf *b)
{
    for (size_t i = 0; i < s->vocab.npieces; i++) {
        if (!s->vocab.piece[i].p)
            continue;
        buf_addf(b, "%zu ", i);
        if (s->score)
            buf_add(b, &s->score[i], sizeof(s->score[i]));
    }
    put_content(line, s->score ? "scores" : "entries", b);
}

/* *ret: a copy where merges must stay as they are. */
static struct bpe_merges *made(struct pipe_spec *s, bool all, struct bpe_merges *copy)
{
    bool letters =
        s->npre && s->pre[s->npre - 1].kind == PRE_BYTE_LEVEL && !s->prefix.n && !s->suffix.n;
    struct bpe_merges *m = &s->merges;
    if (letters && all) {
        copy->npairs = m->npairs;
        copy->pair = mem_new(m->npairs + 1, sizeof(*copy->pair));
        memcpy(copy->pair, m->pair, m->npairs * sizeof(*copy->pair));
        m = copy;
    }
    if (letters)
        rank_pairs_keep_made(&s->vocab, m);
    return m;
}

static void meaning_put_merges(struct buf *line, const struct bpe_merges *m, struct buf *b)
{
    for (size_t i = 0; i < m->npairs; i++) {
        const uint32_t x[3] = {m->pair[i].left, m->pair[i].right, m->pair[i].id};
        buf_add(b, x, sizeof(x));
    }
    put_content(line, "merges", b);
}

static void put_template(struct buf *b, const int32_t *before, size_t nbefore, const int32_t *after,
                         size_t nafter)
{
    if (!nbefore && !nafter)
        return;
    for (size_t i = 0; i < nbefore; i++)
        buf_addf(b, "%d ", before[i]);
    buf_addc(b, '|');
    for (size_t i = 0; i < nafter; i++)
        buf_addf(b, "%d ", after[i]);
}

void meaning_of_spec(struct meaning *m, struct pipe_spec *s, bool all)
{
    static const char *const model[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    struct buf b = {0};
    struct bpe_merges copy = {0};
    struct bpe_merges *merges = s->model == MODEL_BPE ? made(s, all, &copy) : &s->merges;
    *m = (struct meaning){.ntokens = s->ntokens};
    m->token = mem_new(s->ntokens + 1, sizeof(*m->token));
    if (s->ntokens)
        memcpy(m->token, s->token, s->ntokens * sizeof(*m->token));
    buf_addf(&m->text, "model=%s", model[s->model]);
    put_normalizer(&b, s);
    m->normalizes = b.len > 0;
    put_content(&m->text, "normalizer", &b);
    put_pre_tokenizer(&b, s);
    put_content(&m->text, "pre-tokenizer", &b);
    put_options(&b, s, merges);
    put_content(&m->text, "options", &b);
    meaning_put_merges(&m->text, merges, &b);
    if (s->model != MODEL_BPE || looks_up_whole(s, merges))
        put_entries(&m->text, s, &b);
    bpe_merges_finish(&copy);
    buf_finish(&b);
}

/* ---- SentencePiece -------------------------------------------------------------------------- */

void meaning_of_sp(struct meaning *m, const struct tok_options *o, const char *p, size_t n)
{
    struct sp_model sp;
    struct buf b = {0};
    struct err e;
    *m = (struct meaning){0};
    if (sp_check(o->path, p, n, &sp, &e))
        return;
    const struct sp_normalizer *r = &sp.normalizer;
    buf_addf(&m->text, "model=SentencePiece-%s", sp_kind_name(sp.kind));
    buf_addf(&b, "%d%d%d%d ", r->add_dummy_prefix, r->remove_extra_whitespaces,
             r->escape_whitespaces, o->type == TOK_JAPANESE_SP);
    put_text(&b, (const char *)r->charsmap, r->charsmap_size);
    put_content(&m->text, "normalizer", &b);
    buf_addf(&b, "%d%d %d", sp.byte_fallback, sp.whitespace_as_suffix, sp.unk);
    put_content(&m->text, "options", &b);
    for (size_t i = 0; i < sp.npieces; i++) {
        const struct sp_piece *x = &sp.piece[i];
        buf_add(&b, &x->score, sizeof(x->score));
        buf_addc(&b, (char)x->type);
    }
    put_content(&m->text, "scores", &b);
    sp_model_finish(&sp);
    buf_finish(&b);
}

/* ---- what all have -------------------------------------------------------------------------- */

/* Those that are matched in a text, by id. The last of the same content counts; it is special if
 * any is. */
static void put_added(struct meaning *m, const struct tok_engine *g, int64_t size, struct buf *b)
{
    struct string_map seen;
    size_t kept = 0;
    string_map_init(&seen, m->ntokens + 1);
    for (size_t i = 0; i < m->ntokens; i++) {
        struct pipe_token t = m->token[i];
        int64_t at = string_map_find(&seen, t.text, t.length);
        if (at < 0)
            string_map_add(&seen, t.text, t.length, (int32_t)kept);
        else
            t.special |= m->token[at].special;
        m->token[at < 0 ? (int64_t)kept++ : at] = t;
    }
    for (int64_t id = 0; id < size && kept; id++) {
        size_t n = 0;
        const char *p = g->piece(g->state, id, &n);
        int64_t at = n ? string_map_find(&seen, p, n) : -1;
        const struct pipe_token *t = at < 0 ? NULL : &m->token[at];
        if (t)
            buf_addf(b, "%" PRId64 " %d%d%d%d%d ", id, t->special, t->normalized && m->normalizes,
                     t->single_word, t->lstrip, t->rstrip);
    }
    string_map_finish(&seen);
}

void meaning_end(struct meaning *m, const char *name, const struct tok_engine *g,
                 struct tok_info *info)
{
    struct buf b = {0};
    if (!m->text.len)
        buf_addf(&m->text, "model=%s", name);
    for (int64_t id = 0; g->piece && info->type != TOK_NULL && id < info->vocab_size; id++) {
        size_t n = 0;
        const char *p = g->piece(g->state, id, &n);
        put_text(&b, p, n);
    }
    buf_addf(&m->text, " size=%" PRId64, info->vocab_size);
    put_content(&m->text, "tokens", &b);
    put_added(m, g, info->vocab_size, &b);
    put_content(&m->text, "added-tokens", &b);
    put_template(&b, g->before, g->nbefore, g->after, g->nafter);
    put_content(&m->text, "template", &b);
    buf_addf(&m->text, " end-of-document=%" PRId64, info->eod);
    BUG_ON(m->text.len >= sizeof(info->meaning), "a meaning of %zu bytes", m->text.len);
    memcpy(info->meaning, buf_str(&m->text), m->text.len + 1);
    buf_finish(&b);
    meaning_finish(m);
}

void meaning_finish(struct meaning *m)
{
    buf_finish(&m->text);
    free(m->token);
    *m = (struct meaning){0};
}
