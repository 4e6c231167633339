/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/edit/recipe_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"

/*
 * Pieces are short and each is processed once, so the lowest merge is found by testing all
 * neighbours. SentencePiece merges any two neighbours whose concatenation is a piece, even if they
 * are not pieces themselves.
 */

struct slot {
    uint64_t pair; /* left and right, plus 1 */
    uint32_t rank;
    int32_t id;
};

struct symbol {
    int32_t id;      /* -1: not a piece */
    const char *end; /* in the text being merged */
};

struct recipe_bpe {
    const struct recipe *r;
    struct slot *slot;
    size_t mask;
    struct symbol *sym;
    int32_t *made;
    size_t cap, nmade;
};

static uint64_t key_of(int32_t left, int32_t right)
{
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

static struct slot *recipe_bpe_find(const struct recipe_bpe *b, uint64_t pair)
{
    uint64_t h = pair * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(h >> 20) & b->mask;
    while (b->slot[i].pair && b->slot[i].pair != pair)
        i = (i + 1) & b->mask;
    return &b->slot[i];
}

struct recipe_bpe *recipe_bpe_create(const struct recipe *r)
{
    struct recipe_bpe *b = mem_new(1, sizeof(*b));
    size_t n = 64;
    while (n < 2 * r->nmerges)
        n *= 2;
    b->r = r;
    b->mask = n - 1;
    b->slot = mem_new(n, sizeof(*b->slot));
    for (size_t i = 0; i < r->nmerges; i++) {
        const struct recipe_merge *m = &r->merge[i];
        struct slot *s = recipe_bpe_find(b, key_of(m->left, m->right));
        uint32_t rank = r->from == RECIPE_TIKTOKEN ? (uint32_t)m->id : (uint32_t)i;
        /* a later line replaces an earlier one, as in tokenizers */
        *s = (struct slot){key_of(m->left, m->right), rank, m->id};
    }
    return b;
}

void recipe_bpe_destroy(struct recipe_bpe *b)
{
    if (!b)
        return;
    free(b->slot);
    free(b->sym);
    free(b->made);
    free(b);
}

bool recipe_bpe_has(const struct recipe_bpe *b, int32_t left, int32_t right)
{
    return recipe_bpe_find(b, key_of(left, right))->pair != 0;
}

/* The piece of one character, with the prefix or suffix of its position. */
static int32_t character(const struct recipe *r, const char *p, size_t n, bool first, bool last)
{
    char name[256];
    const char *prefix = !first && r->prefix ? r->prefix : "";
    const char *suffix = last && r->suffix ? r->suffix : "";
    size_t a = strlen(prefix), c = strlen(suffix);
    if (a + n + c > sizeof(name))
        return -1;
    memcpy(name, prefix, a);
    memcpy(name + a, p, n);
    memcpy(name + a + n, suffix, c);
    return recipe_find(r, name, a + n + c);
}

/* The characters of a piece; 0: one of them is not a piece and cannot be merged. The piece has its
 * prefix or suffix only once. */
static size_t recipe_bpe_spell(struct recipe_bpe *b, int32_t id)
{
    const struct recipe *r = b->r;
    const struct recipe_piece *p = &r->piece[id];
    size_t a = r->prefix ? strlen(r->prefix) : 0, c = r->suffix ? strlen(r->suffix) : 0, n = 0;
    bool inside = a && p->n > a && !memcmp(p->text, r->prefix, a);
    bool ends = c && p->n > c && !memcmp(p->text + p->n - c, r->suffix, c);
    size_t at = inside ? a : 0, end = p->n - (ends ? c : 0);
    if (b->cap < p->n) {
        b->cap = 2 * p->n;
        b->sym = mem_grow(b->sym, b->cap, sizeof(*b->sym));
        b->made = mem_grow(b->made, b->cap, sizeof(*b->made));
    }
    bool begin = !inside;
    while (at < end) {
        size_t k = utf8_char(p->text + at, p->text + end);
        k = k ? k : 1;
        int32_t s = character(r, p->text + at, k, begin, ends && at + k == end);
        if (s < 0 && r->from != RECIPE_SP)
            return 0;
        at += k;
        b->sym[n++] = (struct symbol){s, p->text + at};
        begin = false;
    }
    return n;
}

/* The merge of two neighbours, with its rank in `order`, lowest first; -1: none. */
static int32_t recipe_bpe_join(const struct recipe_bpe *b, const char *begin,
                               const struct symbol *s, double *order)
{
    const struct recipe *r = b->r;
    if (r->from != RECIPE_SP) {
        const struct slot *m = recipe_bpe_find(b, key_of(s[0].id, s[1].id));
        *order = m->rank;
        return m->pair ? m->id : -1;
    }
    int32_t id = recipe_find(r, begin, (size_t)(s[1].end - begin));
    enum sp_piece_type type = id < 0 ? SP_CONTROL : r->piece[id].type;
    *order = id < 0 ? 0 : -r->piece[id].score;
    return type == SP_NORMAL || type == SP_USER || type == SP_UNUSED ? id : -1;
}

static bool recipe_bpe_merge(struct recipe_bpe *b, int32_t id)
{
    size_t n = recipe_bpe_spell(b, id);
    b->nmade = 0;
    while (n > 1) {
        const char *begin = b->r->piece[id].text;
        int32_t best = -1;
        double least = 0, order;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; begin = b->sym[i++].end) {
            int32_t made = recipe_bpe_join(b, begin, b->sym + i, &order);
            if (made >= 0 && (best < 0 || order < least)) {
                best = made;
                least = order;
                at = i;
            }
        }
        if (best < 0)
            break;
        b->made[b->nmade++] = best;
        b->sym[at] = (struct symbol){best, b->sym[at + 1].end};
        memmove(b->sym + at + 1, b->sym + at + 2, (n - at - 2) * sizeof(*b->sym));
        n--;
    }
    return n == 1 && b->sym[0].id == id;
}

bool recipe_bpe_reaches(struct recipe_bpe *b, int32_t id)
{
    return recipe_bpe_merge(b, id);
}

bool recipe_bpe_walk(struct recipe_bpe *b, int32_t id, void (*on)(void *arg, int32_t id), void *arg)
{
    if (!recipe_bpe_merge(b, id))
        return false;
    size_t n = recipe_bpe_spell(b, id), nmade = b->nmade;
    for (size_t i = 0; i < n; i++)
        if (b->sym[i].id >= 0)
            on(arg, b->sym[i].id);
    for (size_t i = 0; i < nmade; i++)
        on(arg, b->made[i]);
    return true;
}
