/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/edit/recipe_bpe.h"
#include "tok/edit/recipe_edit.h"
#include "tok/edit/recipe_json.h"
#include "tok/inspect/token_bytes.h"

/* Vocabularies that shrink. */

struct prune {
    struct recipe *r;
    struct recipe_bpe *bpe; /* NULL: not a BPE */
    bool *keep;             /* by id of the whole vocabulary */
    const struct tokenizer *t;
    int64_t size;
    int64_t stray; /* an id in the template that is not a piece; -1: none */
    size_t kept;
    int32_t *wanted; /* pieces required by another and not kept yet */
    size_t nwanted, cap;
};

static void recipe_prune_keep(struct prune *p, int32_t id)
{
    p->kept += !p->keep[id];
    p->keep[id] = true;
}

/* ---- what must stay ------------------------------------------------------------------------- */

static void keep_found(struct prune *p, const char *text, size_t n)
{
    int32_t id = recipe_find(p->r, text, n);
    if (id >= 0)
        recipe_prune_keep(p, id);
}

static void keep_bytes(struct prune *p, bool letters)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[16] = "<0x00>";
        name[3] = "0123456789ABCDEF"[b >> 4];
        name[4] = "0123456789ABCDEF"[b & 15];
        if (p->r->byte_fallback)
            keep_found(p, name, 6);
        if (letters)
            keep_found(p, name, letter_put(name, (uint8_t)b));
    }
}

static bool has_piece(const struct prune *p, int64_t id)
{
    size_t n;
    tok_piece(p->t, id, &n);
    return n > 0;
}

static void keep_seen(void *arg, int64_t id)
{
    struct prune *p = arg;
    if (has_piece(p, id))
        recipe_prune_keep(p, (int32_t)id);
    else
        p->stray = id;
}

static void keep_needed(struct prune *p, const struct tokenizer *t)
{
    const struct recipe *r = p->r;
    struct token_bytes s;
    for (size_t i = 0; i < r->ntokens; i++)
        recipe_prune_keep(p, r->token[i].id);
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].text && r->piece[i].type != SP_NORMAL && r->piece[i].type != SP_UNUSED)
            recipe_prune_keep(p, (int32_t)i);
    for (int64_t id = (int64_t)r->npieces; id < p->size; id++)
        if (has_piece(p, id))
            recipe_prune_keep(p, (int32_t)id);
    if (r->unk)
        keep_found(p, r->unk, strlen(r->unk));
    if (r->unk_id >= 0)
        recipe_prune_keep(p, (int32_t)r->unk_id);
    recipe_see_ids(r, COMPONENT_POST_PROCESSOR, keep_seen, p);
    recipe_see_ids(r, COMPONENT_PADDING, keep_seen, p);
    token_bytes_init(&s, t);
    keep_bytes(p, s.kind == SPELLING_LETTERS);
    token_bytes_finish(&s);
}

/* Keeps the extreme scores of a unigram model, which determine those of unknown and user-defined
 * pieces. */
static void keep_ends(struct prune *p)
{
    const struct recipe *r = p->r;
    int64_t least = -1, most = -1;
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *q = &r->piece[i];
        if (!q->text || q->type != SP_NORMAL)
            continue;
        if (least < 0 || q->score < r->piece[least].score)
            least = (int64_t)i;
        if (most < 0 || q->score > r->piece[most].score)
            most = (int64_t)i;
    }
    if (least >= 0)
        recipe_prune_keep(p, (int32_t)least);
    if (most >= 0 && r->sp.count[SP_USER])
        recipe_prune_keep(p, (int32_t)most);
}

/* ---- optional pieces ------------------------------------------------------------------------ */

struct candidate {
    int32_t id;
    uint64_t count;
    double order; /* smaller is earlier */
};

static bool is_character(const struct recipe_piece *p)
{
    size_t k = 0;
    if (p->text && p->n)
        utf8_at(p->text, &k);
    return k && k == p->n;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->order < y->order || x->order > y->order)
        return x->order < y->order ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/*
 * Orders pieces by when they were learnt: first merge, score, or id; characters before all merges.
 */
static void order_pieces(const struct recipe *r, double *order)
{
    bool scores = r->model == MODEL_UNIGRAM || r->from == RECIPE_SP;
    for (size_t i = 0; i < r->npieces; i++)
        order[i] = scores ? -r->piece[i].score : r->model == MODEL_BPE ? -1 : (double)i;
    for (size_t i = 0; i < r->npieces; i++)
        if (r->from == RECIPE_SP && r->model == MODEL_BPE && is_character(&r->piece[i]))
            order[i] = -INFINITY;
    for (size_t i = r->nmerges; i--;)
        order[r->merge[i].id] = (double)i;
}

/* Unused pieces of a BPE are merged and then split again. */
static bool is_between(const struct prune *p, size_t id)
{
    return p->bpe && p->r->piece[id].type == SP_UNUSED;
}

static size_t list_candidates(const struct prune *p, const uint64_t *count, struct candidate *list)
{
    const struct recipe *r = p->r;
    double *order = mem_new(r->npieces + 1, sizeof(*order));
    size_t n = 0;
    order_pieces(r, order);
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].text && !p->keep[i] && (!count || count[i] || is_between(p, i)))
            list[n++] = (struct candidate){(int32_t)i, count ? count[i] : 0, order[i]};
    qsort(list, n, sizeof(*list), compare_candidates);
    free(order);
    return n;
}

static void want(void *arg, int32_t id)
{
    struct prune *p = arg;
    for (size_t i = 0; i < p->nwanted; i++)
        if (p->wanted[i] == id)
            return;
    if (p->keep[id])
        return;
    ARRAY_GROW(p->wanted, p->nwanted, p->cap);
    p->wanted[p->nwanted++] = id;
}

/* Keeps a piece, and what merging it passes through, if all of that fits. */
static void keep_candidate(struct prune *p, const struct candidate *c, size_t size)
{
    p->nwanted = 0;
    if (p->bpe && !recipe_bpe_walk(p->bpe, c->id, want, p) && !c->count)
        return; /* merging does not reach it, and no text uses it */
    want(p, c->id);
    if (size && p->kept + p->nwanted > size)
        return;
    for (size_t i = 0; i < p->nwanted; i++)
        recipe_prune_keep(p, p->wanted[i]);
}

/* ---- the new vocabulary --------------------------------------------------------------------- */

static void move_pieces(struct recipe *r, const int32_t *map, int64_t size)
{
    size_t n = 0, merges = 0, tokens = 0;
    for (size_t i = 0; i < r->npieces; i++)
        if (map[i] >= 0 && r->piece[i].text)
            r->piece[n++] = r->piece[i];
    for (size_t i = 0; i < r->nmerges; i++) {
        struct recipe_merge m = r->merge[i];
        m = (struct recipe_merge){map[m.left], map[m.right], map[m.id]};
        if (m.left >= 0 && m.right >= 0 && m.id >= 0)
            r->merge[merges++] = m;
    }
    struct recipe_token *token = mem_new(r->ntokens + 1, sizeof(*token));
    for (int outside = 0; outside < 2; outside++)
        for (size_t i = 0; i < r->ntokens; i++)
            if (outside == ((size_t)map[r->token[i].id] >= n)) {
                token[tokens] = r->token[i];
                token[tokens++].id = map[r->token[i].id];
            }
    free(r->token);
    r->token = token;
    r->npieces = n;
    r->nmerges = merges;
    if (r->unk_id >= 0)
        r->unk_id = map[r->unk_id];
    recipe_map_component(r, COMPONENT_POST_PROCESSOR, map, size);
    recipe_map_component(r, COMPONENT_PADDING, map, size);
    recipe_index(r);
}

/* In order; added tokens that are not pieces come last, as readers number them. */
static void recipe_prune_number(const struct prune *p, struct recipe_rows *w, int32_t *map)
{
    const struct recipe *r = p->r;
    *w = (struct recipe_rows){.old_size = (size_t)p->size};
    w->old = mem_new(p->kept + 1, sizeof(*w->old));
    w->start = mem_new(p->kept + 1, sizeof(*w->start));
    memset(map, 0xff, (size_t)p->size * sizeof(*map));
    for (int outside = 0; outside < 2; outside++)
        for (int64_t id = 0; id < p->size; id++)
            if (p->keep[id] && outside == !((size_t)id < r->npieces && r->piece[id].text)) {
                map[id] = (int32_t)w->n;
                w->old[w->n++] = (int32_t)id;
            }
}

static int recipe_prune_choose(struct prune *p, const struct tokenizer *t, const uint64_t *count,
                               size_t size, struct err *e)
{
    keep_needed(p, t);
    if (p->stray >= 0)
        return err_set(e, ERR_USAGE, "%s: the id %lld in post_processor or padding is not a piece",
                       p->r->path, (long long)p->stray);
    if (size && p->kept > size)
        return err_set(
            e, ERR_USAGE,
            "%s: %zu pieces are too few: %zu special tokens, added tokens and bytes must "
            "stay",
            p->r->path, size, p->kept);
    if (!size && p->r->model == MODEL_UNIGRAM)
        keep_ends(p);
    struct candidate *list = mem_new(p->r->npieces + 1, sizeof(*list));
    size_t n = list_candidates(p, count, list);
    for (size_t i = 0; i < n; i++)
        if (!p->keep[list[i].id])
            keep_candidate(p, &list[i], size);
    free(list);
    return 0;
}

/* Notes characters that become unknown, or bytes. */
static void note_characters(struct recipe *r, const struct prune *p)
{
    size_t n = 0, first = 0;
    for (size_t i = r->npieces; i--;) {
        if (p->keep[i] || !is_character(&r->piece[i]))
            continue;
        n++;
        first = i;
    }
    if (n)
        recipe_note(r,
                    "%zu characters are no longer pieces, the first is \"%s\": text with "
                    "them becomes %s",
                    n, r->piece[first].text, r->byte_fallback ? "bytes" : "unknown");
}

int recipe_prune(struct recipe *r, const struct tokenizer *t, const uint64_t *count, size_t size,
                 struct recipe_rows *ret, struct err *e)
{
    struct prune p = {.r = r, .t = t, .size = tok_info(t)->vocab_size, .stray = -1};
    bool merges = r->model == MODEL_BPE && (r->from != RECIPE_SP || r->sp.kind == SP_BPE);
    p.keep = mem_new((size_t)p.size + 1, sizeof(*p.keep));
    p.bpe = merges ? recipe_bpe_create(r) : NULL;
    int code = recipe_prune_choose(&p, t, count, size, e);
    if (!code) {
        int32_t *map = mem_new((size_t)p.size + 1, sizeof(*map));
        note_characters(r, &p);
        recipe_prune_number(&p, ret, map);
        move_pieces(r, map, p.size);
        free(map);
    }
    recipe_bpe_destroy(p.bpe);
    free(p.wanted);
    free(p.keep);
    return code;
}
