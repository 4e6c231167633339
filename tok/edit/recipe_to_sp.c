/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/proto.h"
#include "base/core/utf8.h"
#include "tok/edit/recipe.h"

/*
 * A tokenizer.json in the style of Llama-2, Mistral or T5 as a SentencePiece model: white space
 * becomes a mark; a BPE whose merges follow from an order of its pieces, or a unigram model.
 */

#define MARK "\u2581"

enum { TRAINER = 2, NORMALIZER = 3 };

struct rules {
    struct string_ref charsmap;
    bool strip, collapse, prefix, escape;
};

/* ---- the pipeline --------------------------------------------------------------------------- */

static bool text_is(struct string_ref t, const char *s)
{
    return t.n == strlen(s) && !memcmp(t.p, s, t.n);
}

static bool take_replace(const struct norm_step *s, struct rules *n)
{
    const char *pattern = regex_text(s->pattern);
    static const char *const ends[] = {"\\A +| +\\z", "\\A +|[ " MARK "]+\\z"};
    if (!strcmp(pattern, " ") && text_is(s->content, MARK))
        return n->escape = true;
    if (!strcmp(pattern, " {2,}") && (text_is(s->content, " ") || text_is(s->content, MARK)))
        return n->collapse = true;
    if ((!strcmp(pattern, ends[0]) || !strcmp(pattern, ends[1])) && !s->content.n)
        return n->strip = true;
    /* before a user-defined piece alone, and CR before LF: recipe_sp.c */
    if (n->prefix && !strncmp(pattern, "\\A" MARK "(?=", 8) && !s->content.n)
        return true;
    return !strcmp(pattern, "\\r(?=\\n)") && text_is(s->content, " ");
}

static bool take_norm(const struct pipe_spec *s, struct rules *n)
{
    for (size_t i = 0; i < s->nnorm; i++) {
        const struct norm_step *step = &s->norm[i];
        bool ok = false;
        if (step->kind == NORM_PRECOMPILED && i <= 1 && !n->charsmap.n) {
            n->charsmap = step->content;
            ok = true;
        } else if (step->kind == NORM_REPLACE) {
            ok = take_replace(step, n);
        } else if (step->kind == NORM_PREPEND && !n->prefix) {
            ok = n->prefix = text_is(step->content, n->escape ? " " : MARK);
        } else if (step->kind == NORM_STRIP && step->right) {
            ok = n->strip = true;
        }
        if (!ok)
            return false;
    }
    return n->strip == n->collapse;
}

static bool take_pre(const struct pipe_spec *s, struct rules *n)
{
    if (s->npre > 1 || (s->npre && s->pre[0].kind != PRE_METASPACE))
        return false;
    if (!s->npre)
        return n->escape;
    n->escape = true;
    if (s->pre[0].scheme != META_NEVER && n->prefix)
        return false;
    n->prefix |= s->pre[0].scheme != META_NEVER;
    return text_is(s->pre[0].content, MARK);
}

static int take_rules(struct recipe *r, struct rules *n, struct err *e)
{
    *n = (struct rules){0};
    if (!take_norm(&r->store, n))
        return recipe_refuse_component(r, RECIPE_SP, COMPONENT_NORMALIZER, e);
    if (!take_pre(&r->store, n))
        return r->component[COMPONENT_PRE_TOKENIZER]
                   ? recipe_refuse_component(r, RECIPE_SP, COMPONENT_PRE_TOKENIZER, e)
                   : recipe_refuse(r, RECIPE_SP, e, "text whose spaces stay spaces", "");
    if (r->store.npre && r->store.pre[0].scheme != META_NEVER && !n->strip)
        recipe_note(r, "a text that begins with a space gets a " MARK " of its own from a "
                       "SentencePiece model");
    return 0;
}

/* ---- types of pieces ------------------------------------------------------------------------ */

static int recipe_to_sp_check_tokens(const struct recipe *r, struct err *e)
{
    for (size_t i = 0; i < r->ntokens; i++) {
        const struct recipe_token *t = &r->token[i];
        if (t->single_word || t->lstrip || t->rstrip)
            return recipe_refuse(r, RECIPE_SP, e,
                                 "single_word, lstrip or rstrip of the added token ", t->text);
    }
    return 0;
}

static int set_bytes(struct recipe *r, struct err *e)
{
    for (unsigned b = 0; b < 256 && r->byte_fallback; b++) {
        char name[16] = "<0x00>";
        name[3] = "0123456789ABCDEF"[b >> 4];
        name[4] = "0123456789ABCDEF"[b & 15];
        int32_t id = recipe_find(r, name, 6);
        if (id < 0)
            return recipe_refuse(r, RECIPE_SP, e, "a byte_fallback without the piece ", name);
        r->piece[id].type = SP_BYTE;
    }
    return 0;
}

static int set_types(struct recipe *r, struct err *e)
{
    int64_t unk = r->model == MODEL_UNIGRAM ? r->unk_id
                  : r->unk                  ? recipe_find(r, r->unk, strlen(r->unk))
                                            : -1;
    int code = set_bytes(r, e);
    if (code)
        return code;
    for (size_t i = 0; i < r->ntokens; i++)
        r->piece[r->token[i].id].type = r->token[i].special ? SP_CONTROL : SP_USER;
    if (unk < 0)
        return recipe_refuse(r, RECIPE_SP, e, "a vocabulary without an unknown token", "");
    r->piece[unk].type = SP_UNKNOWN;
    r->unk_id = unk;
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (!p->text || !p->n)
            return recipe_refuse(r, RECIPE_SP, e, "an id without a piece", "");
        if (memchr(p->text, 0, p->n))
            return recipe_refuse(r, RECIPE_SP, e, "a piece that contains NUL", "");
        if (p->type != SP_NORMAL)
            r->piece[i].score = 0;
    }
    return 0;
}

/* ---- scores of a BPE ------------------------------------------------------------------------ */

/*
 * Merges of one piece are adjacent, and pieces are in the order of their scores; pieces with
 * interleaved merges get one score, and then the leftmost merges first.
 */
static void score_by_merges(struct recipe *r)
{
    size_t *last = mem_new(r->npieces + 1, sizeof(*last));
    size_t group = 0, end = 0, mixed = 0;
    for (size_t i = 0; i < r->nmerges; i++)
        last[r->merge[i].id] = i;
    double lowest = 0;
    for (size_t i = 0; i < r->nmerges; i++) {
        int32_t id = r->merge[i].id;
        bool fresh = i == 0 || i > end;
        group += i && fresh;
        mixed += !fresh && id != r->merge[i - 1].id;
        end = last[id] > end ? last[id] : end;
        lowest = r->piece[id].score = -(double)group;
    }
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].type == SP_NORMAL &&
            (!r->nmerges || (!last[i] && r->merge[0].id != (int32_t)i)))
            r->piece[i].score = --lowest;
    if (mixed)
        recipe_note(r, "merges of several pieces are interleaved: these pieces get one score, and "
                       "the leftmost merges first");
    free(last);
}

/* Scores that fall with the ids, as trainers assign them, are the trainer's. */
static void score_by_ids(struct recipe *r)
{
    double before = 1;
    size_t first = r->npieces;
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (p->type != SP_NORMAL)
            continue;
        if (p->score >= before)
            return;
        before = p->score;
        first = first < i ? first : i;
    }
    for (size_t i = first; i < r->npieces; i++)
        if (r->piece[i].type == SP_NORMAL)
            r->piece[i].score = -(double)(i - first);
}

static int compare_merges(const void *a, const void *b)
{
    const struct recipe_merge *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static int refuse_gap(const struct recipe *r, const struct recipe_merge *m, struct err *e)
{
    struct buf b = {0};
    recipe_put_shown(&b, r->piece[m->left].text);
    buf_adds(&b, "\" and \"");
    recipe_put_shown(&b, r->piece[m->right].text);
    buf_adds(&b, "\" do not merge, because \"");
    recipe_put_shown(&b, r->piece[m->id].text);
    err_set(e, ERR_USAGE, "%s: a SentencePiece model cannot express that \"%s\" is a piece",
            r->path, buf_str(&b));
    buf_finish(&b);
    return ERR_USAGE;
}

/* A SentencePiece model merges any two pieces that form a piece: does that give these merges? */
static int check_merges(struct recipe *r, struct err *e)
{
    struct recipe_merge *own = r->merge;
    size_t n = r->nmerges;
    r->merge = NULL;
    recipe_derive_merges(r, false);
    struct recipe_merge *all = r->merge;
    size_t m = r->nmerges;
    r->merge = own;
    r->nmerges = n;
    struct recipe_merge *sorted = mem_new(n + 1, sizeof(*sorted));
    if (n)
        memcpy(sorted, own, n * sizeof(*own));
    qsort(sorted, n, sizeof(*sorted), compare_merges);
    qsort(all, m, sizeof(*all), compare_merges);
    int code = 0;
    for (size_t i = 0, k = 0; i < m && !code; i++) {
        while (k < n && compare_merges(&sorted[k], &all[i]) < 0)
            k++;
        if (k == n || compare_merges(&sorted[k], &all[i]))
            code = refuse_gap(r, &all[i], e);
    }
    for (size_t i = 0; i < n && !code; i++)
        if (!bsearch(&own[i], all, m, sizeof(*all), compare_merges))
            code = recipe_refuse(r, RECIPE_SP, e, "a merge of special pieces, into ",
                                 r->piece[own[i].id].text);
    free(sorted);
    free(all);
    return code;
}

static int check_bpe(struct recipe *r, struct err *e)
{
    if (r->prefix || r->suffix)
        return recipe_refuse(r, RECIPE_SP, e, "the prefix of tokens within words ",
                             r->prefix ? r->prefix : r->suffix);
    if (r->ignore_merges)
        return recipe_refuse(r, RECIPE_SP, e, "ignore_merges", "");
    if (!r->fuse_unk && !r->byte_fallback)
        return recipe_refuse(r, RECIPE_SP, e, "unknown characters one by one (fuse_unk is false)",
                             "");
    const char *lone = recipe_lone_character(r);
    if (lone)
        return recipe_refuse(r, RECIPE_SP, e,
                             "a piece with a character that is not a piece: ", lone);
    int code = check_merges(r, e);
    if (code)
        return code;
    score_by_merges(r);
    score_by_ids(r);
    return 0;
}

const char *recipe_lone_character(const struct recipe *r)
{
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        size_t k;
        for (size_t at = 0; p->text && p->type == SP_NORMAL && at < p->n; at += k) {
            utf8_at(p->text + at, &k);
            int32_t id = recipe_find(r, p->text + at, k);
            if (id < 0 || r->piece[id].type != SP_NORMAL)
                return p->text;
        }
    }
    return NULL;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* Field numbers of sentencepiece_model.proto. */
enum { T_KIND = 3, T_SIZE = 4, T_BYTES = 35, T_UNK_ID = 40, T_UNK_PIECE = 45 };
enum { N_NAME = 1, N_RULES, N_PREFIX, N_EXTRA, N_ESCAPE };

static void recipe_to_sp_keep(struct recipe *r, uint32_t number, struct buf *b)
{
    r->fields[number] = arena_strndup(&r->arena, b->data, b->len);
    r->nfields[number] = b->len;
    buf_finish(b);
}

static int64_t find_control(const struct recipe *r, const char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = recipe_find(r, name[i], strlen(name[i]));
        if (id >= 0 && r->piece[id].type == SP_CONTROL)
            return id;
    }
    return -1;
}

static void put_trainer(struct recipe *r)
{
    static const char *const bos[] = {"<s>", "<bos>"}, *const eos[] = {"</s>", "<eos>"},
                             *const pad[] = {"<pad>", "[PAD]"};
    int64_t id[4] = {r->unk_id, find_control(r, bos, 2), find_control(r, eos, 2),
                     find_control(r, pad, 2)};
    struct buf b = {0};
    protow_varint(&b, T_KIND, r->model == MODEL_UNIGRAM ? SP_UNIGRAM : SP_BPE);
    protow_varint(&b, T_SIZE, r->npieces);
    if (r->byte_fallback)
        protow_varint(&b, T_BYTES, 1);
    for (uint32_t i = 0; i < 4; i++)
        protow_varint(&b, T_UNK_ID + i, (uint64_t)id[i]);
    for (uint32_t i = 0; i < 4; i++)
        if (id[i] >= 0)
            protow_bytes(&b, T_UNK_PIECE + i, r->piece[id[i]].text, r->piece[id[i]].n);
    recipe_to_sp_keep(r, TRAINER, &b);
}

static void put_normalizer(struct recipe *r, const struct rules *n)
{
    static const char none[] = "identity", some[] = "user_defined";
    struct buf b = {0};
    protow_bytes(&b, N_NAME, n->charsmap.n ? some : none, strlen(n->charsmap.n ? some : none));
    protow_bytes(&b, N_RULES, n->charsmap.p ? n->charsmap.p : "", n->charsmap.n);
    protow_varint(&b, N_PREFIX, n->prefix);
    protow_varint(&b, N_EXTRA, n->strip);
    protow_varint(&b, N_ESCAPE, n->escape);
    recipe_to_sp_keep(r, NORMALIZER, &b);
}

int recipe_to_sp(struct recipe *r, struct err *e)
{
    struct rules n;
    if (r->model != MODEL_BPE && r->model != MODEL_UNIGRAM)
        return recipe_refuse(r, RECIPE_SP, e, "a model of type ",
                             r->model == MODEL_WORDPIECE ? "WordPiece" : "WordLevel");
    int code = take_rules(r, &n, e);
    if (!code)
        code = recipe_to_sp_check_tokens(r, e);
    if (code)
        return code;
    recipe_settle_tokens(r);
    code = set_types(r, e);
    if (!code && r->model == MODEL_BPE)
        code = check_bpe(r, e);
    if (code)
        return code;
    put_trainer(r);
    put_normalizer(r, &n);
    recipe_note_ties(r);
    return 0;
}
