/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/text/string_map.h"

enum { CHUNK = 1 << 14, BINS = 32, AHEAD = 12 };

struct found {
    uint64_t hash, at, count;
    uint32_t n;
};

/* The parts of a chunk of words by bin, in order of occurrence. */
struct chunk {
    struct found *found;
    size_t begin[BINS + 1];
};

/* Distinct parts of one bin of hashes, in order of first occurrence. */
struct bin {
    struct found *found;
    size_t n, cap;
    uint32_t *slot; /* index plus 1 */
    size_t mask;
};

struct cutting {
    const struct learn_valid *v;
    const uint32_t *symbol;
    const uint8_t *class;
    struct learn_sentences *s;
    struct chunk *chunk;
    size_t nchunks;
    struct bin bin[BINS];
};

static size_t bin_of(uint64_t hash)
{
    return hash >> 59;
}

/* ---- words into parts -------------------------------------------------------------------- */

struct finding {
    struct found *found;
    size_t n, cap;
};

static void add_found(struct finding *f, const uint32_t *ch, uint64_t at, uint64_t end,
                      uint64_t count)
{
    if (end - at < 2)
        return;
    ARRAY_GROW(f->found, f->n, f->cap);
    size_t bytes = (size_t)(end - at) * sizeof(*ch);
    uint64_t hash = string_key((const char *)(ch + at), bytes).hash * 0x9e3779b97f4a7c15u;
    f->found[f->n++] = (struct found){hash, at, count, (uint32_t)(end - at)};
}

static void cut_word(const struct cutting *c, size_t i, struct finding *f)
{
    uint32_t *ch = c->s->ch, before = LEARN_NO_SYMBOL;
    uint64_t end = c->s->start[i + 1], from = c->s->start[i];
    for (uint64_t k = from; k < end; k++) {
        uint32_t x = c->symbol[ch[k]];
        ch[k] = x;
        if (before != LEARN_NO_SYMBOL && x != LEARN_NO_SYMBOL &&
            learn_valid_joins(c->v, c->class[before], c -> class[x])) {
            before = x;
            continue;
        }
        add_found(f, ch, from, k, c->s->count[i]);
        from = x == LEARN_NO_SYMBOL ? k + 1 : k;
        before = x;
    }
    add_found(f, ch, from, end, c->s->count[i]);
}

static void cut_chunk(void *arg, int task, int thread)
{
    (void)thread;
    struct cutting *c = arg;
    struct chunk *k = &c->chunk[task];
    struct finding f = {0};
    size_t from = (size_t)task * CHUNK, end = from + CHUNK < c->s->n ? from + CHUNK : c->s->n;
    for (size_t i = from; i < end; i++)
        cut_word(c, i, &f);
    size_t next[BINS];
    for (size_t i = 0; i < f.n; i++)
        k->begin[bin_of(f.found[i].hash) + 1]++;
    for (size_t b = 0; b < BINS; b++) {
        k->begin[b + 1] += k->begin[b];
        next[b] = k->begin[b];
    }
    k->found = mem_grow(NULL, f.n + 1, sizeof(*k->found));
    for (size_t i = 0; i < f.n; i++)
        k->found[next[bin_of(f.found[i].hash)]++] = f.found[i];
    free(f.found);
}

/* ---- distinct parts ---------------------------------------------------------------------- */

static uint32_t *find_slot(const struct bin *b, const uint32_t *ch, const struct found *x)
{
    size_t i = (size_t)x->hash & b->mask;
    for (; b->slot[i]; i = (i + 1) & b->mask) {
        const struct found *y = &b->found[b->slot[i] - 1];
        if (y->hash == x->hash && y->n == x->n &&
            memcmp(ch + y->at, ch + x->at, x->n * sizeof(*ch)) == 0)
            break;
    }
    return &b->slot[i];
}

static void grow_bin(struct bin *b, const uint32_t *ch)
{
    b->cap = b->cap ? 2 * b->cap : 1024;
    b->found = mem_grow(b->found, b->cap, sizeof(*b->found));
    free(b->slot);
    b->mask = 2 * b->cap - 1;
    b->slot = mem_new(b->mask + 1, sizeof(*b->slot));
    for (size_t i = 0; i < b->n; i++)
        *find_slot(b, ch, &b->found[i]) = (uint32_t)i + 1;
}

static void join_bin(void *arg, int task, int thread)
{
    (void)thread;
    struct cutting *c = arg;
    struct bin *b = &c->bin[task];
    const uint32_t *ch = c->s->ch;
    for (size_t k = 0; k < c->nchunks; k++) {
        const struct found *x = c->chunk[k].found + c->chunk[k].begin[task];
        const struct found *end = c->chunk[k].found + c->chunk[k].begin[task + 1];
        for (; x < end; x++) {
            if (b->n == b->cap)
                grow_bin(b, ch);
            if (end - x > AHEAD)
                __builtin_prefetch(&b->slot[x[AHEAD].hash & b->mask]);
            uint32_t *slot = find_slot(b, ch, x);
            if (*slot) {
                b->found[*slot - 1].count += x->count;
            } else {
                b->found[b->n++] = *x;
                *slot = (uint32_t)b->n;
            }
        }
    }
    free(b->slot);
}

/* ---- all bins in order ------------------------------------------------------------------- */

/* A heap of the bins' first parts that are not taken yet. */
struct front {
    uint64_t at;
    size_t bin;
};

static void sink(struct front *h, size_t n, size_t i)
{
    struct front x = h[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && h[k + 1].at < h[k].at;
        if (h[k].at >= x.at)
            break;
        h[i] = h[k];
    }
    h[i] = x;
}

static void merge_bins(struct cutting *c, struct learn_parts *ret)
{
    struct front h[BINS];
    size_t n = 0, next[BINS] = {0}, all = 0;
    for (size_t b = 0; b < BINS; b++) {
        all += c->bin[b].n;
        if (c->bin[b].n)
            h[n++] = (struct front){c->bin[b].found[0].at, b};
    }
    for (size_t i = n; i-- > 0;)
        sink(h, n, i);
    ret->part = mem_grow(NULL, all + 1, sizeof(*ret->part));
    while (n) {
        const struct bin *b = &c->bin[h[0].bin];
        const struct found *x = &b->found[next[h[0].bin]++];
        ret->part[ret->n++] = (struct learn_part){x->at, x->count, x->n};
        ret->symbols += x->n;
        if (next[h[0].bin] < b->n)
            h[0].at = x[1].at;
        else
            h[0] = h[--n];
        sink(h, n, 0);
    }
}

void learn_parts_cut(struct pool *pool, const struct learn_valid *v, const uint32_t *symbol,
                     const uint8_t *class, struct learn_sentences *s, struct learn_parts *ret)
{
    struct cutting c = {.v = v, .symbol = symbol, .class = class, .s = s};
    *ret = (struct learn_parts){0};
    c.nchunks = (s->n + CHUNK - 1) / CHUNK;
    c.chunk = mem_new(c.nchunks + 1, sizeof(*c.chunk));
    pool_run(pool, (int)c.nchunks, cut_chunk, &c);
    pool_run(pool, BINS, join_bin, &c);
    for (size_t i = 0; i < c.nchunks; i++)
        free(c.chunk[i].found);
    free(c.chunk);
    merge_bins(&c, ret);
    for (size_t b = 0; b < BINS; b++)
        free(c.bin[b].found);
}
