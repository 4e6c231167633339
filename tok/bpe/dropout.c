/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/dropout.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"

#define NONE UINT32_MAX

struct bpe_drop {
    struct bpe_pair *pair; /* sorted by their symbols */
    size_t n;
    double probability;
    bool again;
};

struct merge {
    uint32_t rank, at; /* at: position of the left symbol */
    const struct bpe_pair *pair;
};

struct word {
    const struct bpe_drop *d;
    uint32_t *sym, *next, *before; /* NONE: none; a symbol that was merged away is NONE */
    struct merge *heap, *passed;
    size_t nheap, npassed;
    bpe_seen *seen;
    void *arg;
};

/* ---- pairs --------------------------------------------------------------------------------- */

struct numbered {
    struct bpe_pair pair;
    size_t at;
};

static int by_symbols(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->pair.left != y->pair.left)
        return x->pair.left < y->pair.left ? -1 : 1;
    if (x->pair.right != y->pair.right)
        return x->pair.right < y->pair.right ? -1 : 1;
    return x->at < y->at ? 1 : -1;
}

struct bpe_drop *bpe_drop_create(const struct bpe_pair *pair, size_t n, double probability,
                                 bool again)
{
    struct bpe_drop *d = mem_new(1, sizeof(*d));
    struct numbered *sorted = mem_new(n + 1, sizeof(*sorted));
    *d = (struct bpe_drop){mem_new(n + 1, sizeof(*d->pair)), 0, probability, again};
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct numbered){pair[i], i};
    qsort(sorted, n, sizeof(*sorted), by_symbols);
    for (size_t i = 0; i < n; i++) {
        const struct bpe_pair *x = &sorted[i].pair, *last = &d->pair[d->n - (d->n > 0)];
        if (!d->n || x->left != last->left || x->right != last->right)
            d->pair[d->n++] = *x;
    }
    free(sorted);
    return d;
}

void bpe_drop_destroy(struct bpe_drop *d)
{
    if (!d)
        return;
    free(d->pair);
    free(d);
}

static const struct bpe_pair *dropout_find(const struct bpe_drop *d, uint32_t left, uint32_t right)
{
    size_t low = 0, high = d->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct bpe_pair *x = &d->pair[mid];
        if (x->left < left || (x->left == left && x->right < right))
            low = mid + 1;
        else
            high = mid;
    }
    const struct bpe_pair *x = &d->pair[low];
    return low < d->n && x->left == left && x->right == right ? x : NULL;
}

/* ---- the queue ----------------------------------------------------------------------------- */

static bool dropout_before(const struct merge *a, const struct merge *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void dropout_push(struct word *w, struct merge m)
{
    size_t i = w->nheap++;
    for (; i && dropout_before(&m, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = m;
}

static struct merge dropout_pop(struct word *w)
{
    struct merge top = w->heap[0], last = w->heap[--w->nheap];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < w->nheap; i = k) {
        k += k + 1 < w->nheap && dropout_before(&w->heap[k + 1], &w->heap[k]);
        if (!dropout_before(&w->heap[k], &last))
            break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = last;
    return top;
}

/* ---- merges -------------------------------------------------------------------------------- */

/* The pair of a symbol and the next one. */
static const struct bpe_pair *pair_at(const struct word *w, uint32_t at)
{
    return w->next[at] == NONE ? NULL : dropout_find(w->d, w->sym[at], w->sym[w->next[at]]);
}

static void offer(struct word *w, uint32_t at)
{
    const struct bpe_pair *x = pair_at(w, at);
    if (!x)
        return;
    dropout_push(w, (struct merge){x->rank, at, x});
    if (w->seen)
        w->seen(w->arg, x->left, x->right, x->id);
}

/* Is it still current? tokenizers compares only what the pair becomes. */
static bool dropout_holds(const struct word *w, const struct merge *m)
{
    const struct bpe_pair *x = w->sym[m->at] == NONE ? NULL : pair_at(w, m->at);
    return x && (x == m->pair || (w->d->again && x->id == m->pair->id));
}

static void dropout_take(struct word *w, const struct merge *m)
{
    uint32_t right = w->next[m->at];
    w->sym[m->at] = m->pair->id;
    w->sym[right] = NONE;
    w->next[m->at] = w->next[right];
    if (w->next[right] != NONE)
        w->before[w->next[right]] = m->at;
    if (w->before[m->at] != NONE)
        offer(w, w->before[m->at]);
    offer(w, m->at);
}

static bool is_dropped(const struct bpe_drop *d, struct bpe_draws *draws)
{
    struct rng4 r = rng_block(draws->key, RNG_SAMPLE, 1, draws->n++);
    return rng_unit(r.v[0]) < (float)d->probability;
}

static void merge_all(struct word *w, struct bpe_draws *draws)
{
    while (w->nheap) {
        struct merge top = dropout_pop(w);
        if (!w->d->again && !dropout_holds(w, &top))
            continue;
        if (is_dropped(w->d, draws)) {
            if (w->d->again)
                w->passed[w->npassed++] = top;
            continue;
        }
        while (w->npassed)
            dropout_push(w, w->passed[--w->npassed]);
        if (dropout_holds(w, &top))
            dropout_take(w, &top);
    }
}

size_t bpe_drop_merge(const struct bpe_drop *d, struct bpe_draws *draws, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg)
{
    /* each merge queues at most two more; a merge that was left out is queued at most once at a
     * time */
    struct word w = {.d = d,
                     .sym = sym,
                     .next = mem_new(2 * n + 1, sizeof(uint32_t)),
                     .heap = mem_new(3 * n + 1, sizeof(struct merge)),
                     .passed = mem_new(3 * n + 1, sizeof(struct merge)),
                     .seen = seen,
                     .arg = arg};
    w.before = w.next + n;
    for (size_t i = 0; i < n; i++) {
        w.before[i] = i ? (uint32_t)i - 1 : NONE;
        w.next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
    }
    for (size_t i = 0; i + 1 < n; i++)
        offer(&w, (uint32_t)i);
    merge_all(&w, draws);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (sym[i] != NONE)
            sym[kept++] = sym[i];
    free(w.next);
    free(w.heap);
    free(w.passed);
    return kept;
}
