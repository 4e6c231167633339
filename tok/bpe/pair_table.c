/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/pair_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* The table of pairs: their numbers, and a cuckoo hash table of these. */

enum { AHEAD = 16 /* pairs whose buckets are prefetched */, KICKS = 500 };

#define GAP UINT64_MAX

/* Uninitialized memory that will be written entirely. */
static void *fresh(size_t n, size_t size)
{
    void *p = mem_grow(NULL, n, size);
    mem_all_pages(p, n * size);
    return p;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Pairs sorted stably by rank: rank << 32 | index. NULL: already sorted. */
static uint64_t *order_of(const struct bpe_pair *pair, size_t n)
{
    size_t k = 1;
    while (k < n && pair[k - 1].rank <= pair[k].rank)
        k++;
    if (k >= n)
        return NULL;
    uint64_t *order = fresh(n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = (uint64_t)pair[i].rank << 32 | i;
    qsort(order, n, sizeof(*order), by_number);
    return order;
}

static inline uint32_t nth(const uint64_t *order, uint32_t k)
{
    return order ? (uint32_t)order[k] : k;
}

/*
 * If ranks are distinct and symbols are created in their order, with few gaps, numbers get the same
 * gaps (see `made`).
 */
static void leave_gaps(struct bpe *m, const struct bpe_pair *pair, const uint64_t *order)
{
    for (uint32_t k = 1; k < m->n; k++) {
        const struct bpe_pair *x = &pair[nth(order, k)], *y = &pair[nth(order, k - 1)];
        if (x->rank == y->rank || x->id <= y->id)
            return;
    }
    uint32_t first = m->n ? pair[nth(order, 0)].id : 0;
    size_t n = m->n ? pair[nth(order, m->n - 1)].id - first + (size_t)1 : 0;
    if (n > m->n + m->n / 8 + 256 || n > BPE_RANKS)
        return;
    m->n = m->ranks = (uint32_t)n;
    m->made = first;
}

/* Numbers the pairs and returns the index that each came from, ascending unless it is NULL. */
static uint32_t *number_pairs(struct bpe *m, const struct bpe_pair *pair, uint32_t n,
                              const uint64_t *order)
{
    m->pair = fresh((size_t)m->n + 1, sizeof(*m->pair));
    uint32_t *from = order ? fresh((size_t)m->n + 1, sizeof(*from)) : NULL;
    m->base = n ? NONE : 0;
    for (uint32_t k = 0, number = 0; k < n; k++, number++) {
        const struct bpe_pair *x = &pair[nth(order, k)];
        uint32_t low = x->left < x->right ? x->left : x->right;
        BUG_ON(x->left >= BPE_SYMBOLS || x->right >= BPE_SYMBOLS || x->id >= BPE_SYMBOLS,
               "symbols %u, %u, %u", x->left, x->right, x->id);
        while (m->made != NONE && number < x->id - m->made)
            m->pair[number++] = GAP;
        m->pair[number] = bpe_key(x->left, x->right) << SYMBOL_BITS | x->id;
        m->base = low < m->base ? low : m->base;
        if (from)
            from[number] = nth(order, k);
    }
    return from;
}

static void number_ranks(struct bpe *m, const struct bpe_pair *pair, const uint64_t *order)
{
    m->rank = mem_grow(NULL, (size_t)m->n + 1, sizeof(*m->rank));
    for (uint32_t k = 0; k < m->n; k++) {
        m->ranks += !k || pair[nth(order, k)].rank != pair[nth(order, k - 1)].rank;
        m->rank[k] = m->ranks - 1;
    }
    BUG_ON(m->ranks > BPE_RANKS, "%u ranks", m->ranks);
    if (m->ranks == m->n) {
        free(m->rank);
        m->rank = NULL;
    }
}

static uint32_t left_of(uint64_t pair)
{
    return (uint32_t)(pair >> 2 * SYMBOL_BITS);
}

static uint32_t right_of(uint64_t pair)
{
    return (uint32_t)(pair >> SYMBOL_BITS) & ((1u << SYMBOL_BITS) - 1);
}

static uint32_t hash_pair(const struct bpe *m, uint64_t pair)
{
    return bpe_hash(m, left_of(pair), right_of(pair));
}

/* Cuckoo insertion: a pair that is in the way moves to its other bucket, and so on; false: too many
 * moves. */
static bool pair_table_place(struct bpe *m, uint32_t number)
{
    uint32_t from = NONE;
    for (uint32_t kicks = 0; kicks < KICKS; kicks++) {
        uint32_t hash = hash_pair(m, m->pair[number]), a = bpe_first(m, hash);
        uint32_t to = a == from ? bpe_second(m, hash) : a, *at = m->slot + to;
        at += at[0] != NONE && (at[1] == NONE || (number + kicks) * HASH_MIX >> 31);
        uint32_t was = *at;
        *at = hash << m->bits | number;
        if (was == NONE)
            return true;
        number = bpe_number_in(m, was);
        from = to;
    }
    return false;
}

/* Inserts a pair into the first free one of its slots, branch-free; false, without a change, if
 * none is free, or one may hold the same pair. */
static inline bool put_free(struct bpe *m, uint32_t number, uint32_t hash)
{
    uint32_t *a = m->slot + bpe_first(m, hash), *b = m->slot + bpe_second(m, hash);
    uint32_t tag = hash << m->bits, n = m->n;
    bool own = ((a[0] ^ tag) < n) | ((a[1] ^ tag) < n) | ((b[0] ^ tag) < n) | ((b[1] ^ tag) < n);
    uint32_t *at = b[0] == NONE ? b : b + 1;
    at = a[1] == NONE ? a + 1 : at;
    at = a[0] == NONE ? a : at;
    if (own | (*at != NONE))
        return false;
    *at = tag | number;
    return true;
}

/* Inserts all pairs, later ones replacing earlier ones; false: the table is too small for this
 * seed. */
static bool pair_table_fill(struct bpe *m, const uint32_t *from)
{
    uint32_t hash[AHEAD] = {0};
    memset(m->slot, 0xff, 2 * sizeof(*m->slot) << (32 - m->shift));
    for (uint32_t next = 0; next < m->n + AHEAD; next++) {
        uint32_t i = next - AHEAD, *h = &hash[next % AHEAD], own = *h;
        if (next < m->n) {
            *h = hash_pair(m, m->pair[next]);
            __builtin_prefetch(&m->slot[bpe_first(m, *h)], 1);
            __builtin_prefetch(&m->slot[bpe_second(m, *h)], 1);
        }
        if (next < AHEAD || m->pair[i] == GAP || put_free(m, i, own))
            continue;
        uint32_t *same = bpe_slot(m, left_of(m->pair[i]), right_of(m->pair[i]));
        if (!same && !pair_table_place(m, i))
            return false;
        uint32_t was = same ? bpe_number_in(m, *same) : i;
        if (from ? from[was] < from[i] : was < i)
            *same ^= was ^ i;
    }
    return true;
}

static void make_slots(struct bpe *m)
{
    size_t n = (size_t)2 << (32 - m->shift);
    free(m->slot);
    m->slot = mem_grow(NULL, n, sizeof(*m->slot));
    mem_large_pages(m->slot, n * sizeof(*m->slot));
    mem_all_pages(m->slot, n * sizeof(*m->slot));
}

/* Fills the direct table, mostly of pairs of bytes. */
static void fill_first(struct bpe *m)
{
    m->first = fresh(FIRST * FIRST, sizeof(*m->first));
    memset(m->first, 0xff, FIRST * FIRST * sizeof(*m->first));
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t left = left_of(m->pair[i]), right = right_of(m->pair[i]);
        if (m->pair[i] != GAP && left - m->base < FIRST && right - m->base < FIRST)
            m->first[(left - m->base) * FIRST + right - m->base] = bpe_number(m, left, right);
    }
}

struct bpe *bpe_create(const struct bpe_pair *pair, size_t n)
{
    struct bpe *m = mem_new(1, sizeof(*m));
    BUG_ON(n >= (size_t)1 << 30, "%zu pairs", n);
    m->n = (uint32_t)n;
    m->made = NONE;
    uint64_t *order = order_of(pair, n);
    leave_gaps(m, pair, order);
    while (m->n >> m->bits)
        m->bits++;
    uint32_t *from = number_pairs(m, pair, (uint32_t)n, order);
    if (m->made == NONE)
        number_ranks(m, pair, order);
    free(order);
    m->shift = 29;
    while ((size_t)2 << (32 - m->shift) < n * 5 / 4)
        m->shift--;
    make_slots(m);
    while (!pair_table_fill(m, from))
        if (++m->seed % 4 == 0) {
            m->shift--;
            make_slots(m);
        }
    fill_first(m);
    free(from);
    return m;
}

void bpe_destroy(struct bpe *m)
{
    if (!m)
        return;
    free(m->slot);
    free(m->pair);
    free(m->rank);
    free(m->first);
    free(m);
}
