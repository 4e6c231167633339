/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tok/pipe_run.h"

/*
 * BPE with dropout, as tokenizers does it: of the merges that are possible the first in order is
 * passed over with the probability given; those passed over come back as soon as one is taken; at
 * the end, when none is taken any more, they stay undone. The random numbers are those of the seed
 * and the text, so that a text gives the same ids whoever else is encoded.
 */

struct merge {
    uint32_t rank, at, id; /* at: the place of the left symbol */
};

struct word {
    uint32_t *sym, *next, *before; /* UINT32_MAX: none; a symbol that is gone is SYM_NONE */
    struct merge *heap, *passed;
    size_t nheap, npassed, room;
};

/* ---- pairs --------------------------------------------------------------------------------- */

static int by_symbols(const void *a, const void *b)
{
    const struct bpe_pair *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    if (x->right != y->right)
        return x->right < y->right ? -1 : 1;
    return x->rank < y->rank ? 1 : x->rank > y->rank ? -1 : 0; /* the later line counts */
}

void dropout_open(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    p->pair = mem_new(s->npairs + 1, sizeof(*p->pair));
    p->npairs = s->npairs;
    if (s->npairs)
        memcpy(p->pair, s->pair, s->npairs * sizeof(*p->pair));
    qsort(p->pair, p->npairs, sizeof(*p->pair), by_symbols);
}

static const struct bpe_pair *find(const struct pipe *p, uint32_t left, uint32_t right)
{
    size_t low = 0, high = p->npairs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct bpe_pair *x = &p->pair[mid];
        if (x->left < left || (x->left == left && x->right < right))
            low = mid + 1;
        else
            high = mid;
    }
    const struct bpe_pair *x = &p->pair[low];
    return low < p->npairs && x->left == left && x->right == right ? x : NULL;
}

/* ---- the queue ----------------------------------------------------------------------------- */

static bool before(const struct merge *a, const struct merge *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct word *w, struct merge m)
{
    size_t i = w->nheap++;
    for (; i && before(&m, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = m;
}

static struct merge pop(struct word *w)
{
    struct merge top = w->heap[0], last = w->heap[--w->nheap];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < w->nheap; i = k) {
        k += k + 1 < w->nheap && before(&w->heap[k + 1], &w->heap[k]);
        if (!before(&w->heap[k], &last))
            break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = last;
    return top;
}

static void offer(const struct pipe *p, struct word *w, uint32_t at)
{
    const struct bpe_pair *x =
        w->next[at] == UINT32_MAX ? NULL : find(p, w->sym[at], w->sym[w->next[at]]);
    if (x)
        push(w, (struct merge){x->rank, at, x->id});
}

/* Joins the symbol with the next; what was queued for others is told by what it no longer gives. */
static void take(const struct pipe *p, struct word *w, const struct merge *m)
{
    uint32_t right = w->sym[m->at] == SYM_NONE ? UINT32_MAX : w->next[m->at];
    const struct bpe_pair *x = right == UINT32_MAX ? NULL : find(p, w->sym[m->at], w->sym[right]);
    if (!x || x->id != m->id)
        return;
    w->sym[m->at] = m->id;
    w->sym[right] = SYM_NONE;
    w->next[m->at] = w->next[right];
    if (w->next[right] != UINT32_MAX)
        w->before[w->next[right]] = m->at;
    if (w->before[m->at] != UINT32_MAX)
        offer(p, w, w->before[m->at]);
    offer(p, w, m->at);
}

static bool is_dropped(const struct pipe *p, struct pipe_work *w)
{
    struct rng4 r = rng_block(w->draw_key, RNG_SAMPLE, 1, w->draws++);
    return rng_unit(r.v[0]) < (float)p->dropout;
}

size_t dropout_merge(const struct pipe *p, struct pipe_work *w, uint32_t *sym, size_t n)
{
    /* each join queues two more; what is passed over is queued again, but never twice at a time */
    struct word word = {.sym = sym,
                        .next = mem_new(2 * n + 1, sizeof(uint32_t)),
                        .heap = mem_new(3 * n + 1, sizeof(struct merge)),
                        .passed = mem_new(3 * n + 1, sizeof(struct merge))};
    word.before = word.next + n;
    for (size_t i = 0; i < n; i++) {
        word.before[i] = i ? (uint32_t)i - 1 : UINT32_MAX;
        word.next[i] = i + 1 < n ? (uint32_t)i + 1 : UINT32_MAX;
    }
    for (size_t i = 0; i + 1 < n; i++)
        offer(p, &word, (uint32_t)i);
    while (word.nheap) {
        struct merge top = pop(&word);
        if (is_dropped(p, w)) {
            word.passed[word.npassed++] = top;
            continue;
        }
        while (word.npassed)
            push(&word, word.passed[--word.npassed]);
        take(p, &word, &top);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (sym[i] != SYM_NONE)
            sym[kept++] = sym[i];
    free(word.next);
    free(word.heap);
    free(word.passed);
    return kept;
}
