/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/cpu.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/bpe/pair_table.h"

enum { FEW = BPE_SHORT /* symbols up to which the best pair is searched linearly */ };

/* ---- few symbols --------------------------------------------------------------------------- */

struct note {
    bpe_seen *seen;
    void *arg;
};

static inline uint32_t rank_of(const struct bpe *m, uint32_t left, uint32_t right,
                               const struct note *note)
{
    uint32_t l = left - m->base, r = right - m->base;
    uint32_t number = l < FIRST && r < FIRST ? m->first[l * FIRST + r] : bpe_number(m, left, right);
    if (number == NONE)
        return NONE;
    if (note)
        note->seen(note->arg, left, right, bpe_id(m, number));
    return m->rank ? m->rank[number] : number;
}

static inline uint32_t id_of(const struct bpe *m, uint32_t left, uint32_t right, uint32_t rank)
{
    return bpe_id(m, m->rank ? bpe_number(m, left, right) : rank);
}

/* rank[i] is that of symbols i and i + 1; after the last it stays NONE up to a multiple of 8. */
static inline size_t merge_few(const struct bpe *m, uint32_t *sym, size_t n,
                               const struct note *note)
{
    uint32_t rank[FEW + 8];
    memset(rank, 0xff, sizeof(rank));
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = rank_of(m, sym[i], sym[i + 1], note);
    for (;;) {
        uint32_t best = NONE;
        for (size_t i = 0; i < n; i += 8)
            for (size_t k = i; k < i + 8; k++)
                best = rank[k] < best ? rank[k] : best;
        if (best == NONE)
            return n;
        size_t at = 0;
        while (rank[at] != best)
            at++;
        sym[at] = id_of(m, sym[at], sym[at + 1], best);
        n--;
        memmove(sym + at + 1, sym + at + 2, (n - at - 1) * sizeof(*sym));
        memmove(rank + at + 1, rank + at + 2, (n - at - 1) * sizeof(*rank));
        rank[n] = NONE;
        if (at)
            rank[at - 1] = rank_of(m, sym[at - 1], sym[at], note);
        rank[at] = at + 1 < n ? rank_of(m, sym[at], sym[at + 1], note) : NONE;
    }
}

/* ---- many ---------------------------------------------------------------------------------- */

/*
 * Each position whose symbol forms a pair with the next one is in the list of that pair's rank. A
 * round takes the list of the lowest rank, sorts it by position and merges along it. A merge
 * changes lists only for its own position and the one before; so when a list of the same or a lower
 * rank fills meanwhile, all its positions precede the rest of the round, and it is processed first,
 * as a round stacked on top.
 */
struct bpe_round {
    uint32_t rank;
    size_t at, end; /* in `taken` */
};

struct many {
    const struct bpe *m;
    struct bpe_work *w;
    uint32_t *sym;
    uint32_t *prev, *next;     /* symbols; NONE at the ends */
    uint32_t *rank;            /* of the pair with the next symbol; NONE: no pair, or merged away */
    uint32_t *before, *behind; /* list links; before: TAKEN while in a round */
    size_t rounds;
    bool look; /* a list of the same or a lower rank may have filled */
    const struct note *note;
};

enum { ARRAYS = 5, KEPT = 1 << 20 };

#define TAKEN (NONE - 1)

static size_t words_of(size_t n)
{
    return n / 64 + 1;
}

static void make_lists(struct bpe_work *w, size_t ranks)
{
    if (ranks <= w->ranks)
        return;
    size_t words = 0, n = ranks;
    do {
        n = words_of(n);
        words += n;
    } while (n > 1);
    free(w->bits);
    w->bits = mem_new(words, sizeof(*w->bits));
    w->head = mem_grow(w->head, ranks, sizeof(*w->head));
    w->tail = mem_grow(w->tail, ranks, sizeof(*w->tail));
    memset(w->head, 0xff, ranks * sizeof(*w->head));
    w->ranks = ranks;
}

static void bpe_make_room(struct many *c, size_t n)
{
    struct bpe_work *w = c->w;
    if (n > w->room) {
        free(w->place);
        w->room = n + n / 2;
        w->place = mem_grow(NULL, w->room, ARRAYS * sizeof(*w->place));
    }
    c->prev = w->place;
    c->next = c->prev + w->room;
    c->rank = c->next + w->room;
    c->before = c->rank + w->room;
    c->behind = c->before + w->room;
}

/* Frees scratch that one very long text needed. */
static void give_back(struct bpe_work *w)
{
    if (w->room <= KEPT)
        return;
    free(w->place);
    free(w->taken);
    w->place = w->taken = NULL;
    w->room = w->taken_room = 0;
}

static void mark(struct bpe_work *w, size_t i, bool on)
{
    uint64_t *bits = w->bits;
    for (size_t n = w->ranks;; i /= 64) {
        uint64_t *word = &bits[i / 64], old = *word, bit = (uint64_t)1 << (i % 64);
        *word = on ? old | bit : old & ~bit;
        size_t words = words_of(n);
        if (words == 1 || (on ? old : *word) != 0)
            return;
        bits += words;
        n = words;
    }
}

/* The lowest rank with a non-empty list, NONE if all are empty. */
static uint32_t lowest(const struct bpe_work *w)
{
    const uint64_t *level[8];
    int levels = 0;
    const uint64_t *bits = w->bits;
    for (size_t n = w->ranks; !levels || n > 1; bits += n) {
        level[levels++] = bits;
        n = words_of(n);
    }
    size_t i = 0;
    while (levels--) {
        uint64_t word = level[levels][i];
        if (!word)
            return NONE;
        i = i * 64 + (size_t)__builtin_ctzll(word);
    }
    return (uint32_t)i;
}

static void leave_list(struct many *c, uint32_t i)
{
    uint32_t r = c->rank[i], before = c->before[i], behind = c->behind[i];
    c->rank[i] = NONE;
    if (r == NONE || before == TAKEN)
        return;
    if (before != NONE)
        c->behind[before] = behind;
    else
        c->w->head[r] = behind;
    if (behind != NONE)
        c->before[behind] = before;
    else
        c->w->tail[r] = before;
    if (c->w->head[r] == NONE)
        mark(c->w, r, false);
}

/* Adds position i to the list of its pair's rank. */
static inline void enter_list(struct many *c, uint32_t i)
{
    uint32_t r = NONE;
    if (c->next[i] != NONE)
        r = rank_of(c->m, c->sym[i], c->sym[c->next[i]], c->note);
    c->rank[i] = r;
    if (r == NONE)
        return;
    uint32_t last = c->w->head[r] == NONE ? NONE : c->w->tail[r];
    c->before[i] = last;
    c->behind[i] = NONE;
    c->w->tail[r] = i;
    c->look |= !c->rounds || r <= c->w->round[c->rounds - 1].rank;
    if (last != NONE) {
        c->behind[last] = i;
    } else {
        c->w->head[r] = i;
        mark(c->w, r, true);
    }
}

/* Merges the sorted runs p[0 .. k) and p[k .. n). */
static void merge_runs(const uint32_t *p, size_t k, size_t n, uint32_t *to)
{
    size_t a = 0, b = k;
    while (a < k && b < n)
        *to++ = p[a] < p[b] ? p[a++] : p[b++];
    memcpy(to, p + a, (k - a) * sizeof(*p));
    memcpy(to + (k - a), p + b, (n - b) * sizeof(*p));
}

static size_t run_end(const uint32_t *p, size_t at, size_t n)
{
    while (++at < n && p[at - 1] < p[at])
        ;
    return at < n ? at : n;
}

/* Merge sort that detects runs: lists are mostly sorted, or a few runs. `spare` is as long as p. */
static void sort_places(uint32_t *p, uint32_t *spare, size_t n)
{
    uint32_t *from = p, *to = spare;
    while (run_end(from, 0, n) < n) {
        for (size_t at = 0; at < n;) {
            size_t middle = run_end(from, at, n);
            size_t end = middle < n ? run_end(from, middle, n) : n;
            merge_runs(from + at, middle - at, end - at, to + at);
            at = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != p)
        memcpy(p, from, n * sizeof(*p));
}

static void open_round(struct many *c, uint32_t r)
{
    struct bpe_work *w = c->w;
    size_t at = c->rounds ? w->round[c->rounds - 1].end : 0, end = at;
    for (uint32_t i = w->head[r]; i != NONE; i = c->behind[i]) {
        if (end * 2 + 2 > w->taken_room) {
            w->taken_room = end * 4 + 64;
            w->taken = mem_grow(w->taken, w->taken_room, sizeof(*w->taken));
        }
        w->taken[end++] = i;
        c->before[i] = TAKEN;
    }
    sort_places(w->taken + at, w->taken + end, end - at);
    w->head[r] = NONE;
    mark(w, r, false);
    ARRAY_GROW(w->round, c->rounds, w->round_room);
    w->round[c->rounds++] = (struct bpe_round){r, at, end};
}

static void bpe_join(struct many *c, uint32_t i)
{
    uint32_t j = c->next[i], h = c->prev[i], k = c->next[j];
    c->sym[i] = id_of(c->m, c->sym[i], c->sym[j], c->rank[i]);
    leave_list(c, j);
    c->next[i] = k;
    if (k != NONE)
        c->prev[k] = i;
    if (h != NONE) {
        leave_list(c, h);
        enter_list(c, h);
    }
    enter_list(c, i);
}

static void run_rounds(struct many *c)
{
    for (;;) {
        if (c->look || !c->rounds) {
            uint32_t r = lowest(c->w);
            c->look = false;
            if (r != NONE && (!c->rounds || r <= c->w->round[c->rounds - 1].rank))
                open_round(c, r);
            if (!c->rounds)
                return;
        }
        struct bpe_round *top = &c->w->round[c->rounds - 1];
        uint32_t i = c->w->taken[top->at++];
        bool due = c->rank[i] == top->rank && c->before[i] == TAKEN;
        if (top->at == top->end) {
            c->rounds--;
            c->look = true;
        }
        if (due)
            bpe_join(c, i);
    }
}

static inline size_t merge_many(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n,
                                const struct note *note)
{
    struct many c = {.m = m, .w = w, .sym = sym, .note = note};
    BUG_ON(n >= NONE / 2, "%zu symbols", n);
    if (!m->ranks)
        return n;
    make_lists(w, m->ranks);
    bpe_make_room(&c, n);
    for (uint32_t i = 0; i < n; i++) {
        c.prev[i] = i ? i - 1 : NONE;
        c.next[i] = i + 1 < n ? i + 1 : NONE;
        enter_list(&c, i);
    }
    run_rounds(&c);
    size_t k = 0;
    for (uint32_t i = 0; i != NONE; i = c.next[i])
        sym[k++] = sym[i];
    give_back(w);
    return k;
}

void bpe_work_finish(struct bpe_work *w)
{
    free(w->place);
    free(w->head);
    free(w->tail);
    free(w->bits);
    free(w->round);
    free(w->taken);
    *w = (struct bpe_work){0};
}

size_t bpe_merge(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n)
{
    return n <= FEW ? merge_few(m, sym, n, NULL) : merge_many(m, w, sym, n, NULL);
}

size_t bpe_merge_seen(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg)
{
    const struct note note = {seen, arg};
    return n <= FEW ? merge_few(m, sym, n, &note) : merge_many(m, w, sym, n, &note);
}

void bpe_merge_short(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count)
{
    bool lanes = !m->rank && count > 1 && cpu_avx512();
    uint32_t todo =
        lanes ? bpe_lanes_merge(m, sym, n, count) : (uint32_t)(((uint64_t)1 << count) - 1);
    for (; todo; todo &= todo - 1) {
        unsigned k = (unsigned)__builtin_ctz(todo);
        uint32_t word[BPE_SHORT];
        for (size_t i = 0; i < n[k]; i++)
            word[i] = sym[i][k];
        n[k] = (uint32_t)merge_few(m, word, n[k], NULL);
        for (size_t i = 0; i < n[k]; i++)
            sym[i][k] = word[i];
    }
}

void bpe_put_bytes(const uint32_t of[256], const char *text, const uint32_t *at, const uint32_t *n,
                   size_t count, uint32_t sym[][BPE_LANES])
{
    if (cpu_avx512()) {
        bpe_lanes_put(of, text, at, n, count, sym);
        return;
    }
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < n[k]; i++)
            sym[i][k] = of[(uint8_t)text[at[k] + i]];
}
