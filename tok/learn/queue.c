/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"

enum { FIRST = 1 << 16 };

#define MARKS (LEARN_QUEUED | LEARN_AGAIN)

/* ---- counts ------------------------------------------------------------------------------ */

static struct learn_count_of *new_slots(size_t n)
{
    struct learn_count_of *s = mem_grow(NULL, n, sizeof(*s));
    mem_large_pages(s, n * sizeof(*s));
    memset(s, 0xff, n * sizeof(*s));
    return s;
}

void learn_counts_init(struct learn_counts *c)
{
    *c = (struct learn_counts){.slot = new_slots(FIRST), .mask = FIRST - 1};
}

void learn_counts_finish(struct learn_counts *c)
{
    free(c->slot);
    *c = (struct learn_counts){0};
}

static struct learn_count_of *queue_find(struct learn_counts *c, uint64_t key)
{
    size_t i = (size_t)learn_pair_hash(key) & c->mask;
    while ((c->slot[i].key & ~MARKS) != key && c->slot[i].key != UINT64_MAX)
        i = (i + 1) & c->mask;
    return &c->slot[i];
}

static uint64_t key_of(struct learn_pair p)
{
    return (uint64_t)p.left << 32 | p.right;
}

struct learn_count_of *learn_counts_get(struct learn_counts *c, struct learn_pair p)
{
    struct learn_count_of *s = queue_find(c, key_of(p));
    return s->key == UINT64_MAX ? NULL : s;
}

static void queue_grow(struct learn_counts *c)
{
    struct learn_count_of *old = c->slot;
    size_t n = c->mask + 1;
    c->mask = 2 * n - 1;
    c->slot = new_slots(2 * n);
    for (size_t i = 0; i < n; i++)
        if (old[i].key != UINT64_MAX)
            *queue_find(c, old[i].key & ~MARKS) = old[i];
    free(old);
}

struct learn_count_of *learn_counts_put(struct learn_counts *c, struct learn_pair p)
{
    struct learn_count_of *s = queue_find(c, key_of(p));
    if (s->key != UINT64_MAX)
        return s;
    if (c->used >= (c->mask + 1) / 8 * 5) {
        queue_grow(c);
        s = queue_find(c, key_of(p));
    }
    c->used++;
    *s = (struct learn_count_of){.key = key_of(p)};
    return s;
}

/* ---- queue ------------------------------------------------------------------------------- */

void learn_queue_finish(struct learn_queue *q)
{
    free(q->node);
    free(q->entry);
}

static bool queue_before(const struct learn_queue *q, const struct learn_node *a,
                         const struct learn_node *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    if (a->tie != b->tie)
        return a->tie < b->tie;
    int c = q->rule->compare
                ? q->rule->compare(q->rule->arg, q->entry[a->entry].pair, q->entry[b->entry].pair)
                : 0;
    return c || q->rule->as_they_come ? c < 0 : a->entry < b->entry;
}

static void sift_down(struct learn_queue *q, size_t i)
{
    struct learn_node x = q->node[i];
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= q->n)
            break;
        if (k + 1 < q->n && queue_before(q, &q->node[k + 1], &q->node[k]))
            k++;
        if (!queue_before(q, &q->node[k], &x))
            break;
        q->node[i] = q->node[k];
        i = k;
    }
    q->node[i] = x;
}

static void sift_up(struct learn_queue *q, size_t i)
{
    struct learn_node x = q->node[i];
    while (i && queue_before(q, &x, &q->node[(i - 1) / 2])) {
        q->node[i] = q->node[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->node[i] = x;
}

/* Moves the last node to the free top: down along the better children to the end, then up again;
 * equal nodes end up where std::pop_heap puts them, unlike with sift_down. */
static void refill_top(struct learn_queue *q)
{
    struct learn_node x = q->node[--q->n];
    size_t i = 0, n = q->n;
    while (2 * i + 2 < n) {
        size_t k = 2 * i + 2;
        if (queue_before(q, &q->node[k - 1], &q->node[k]))
            k--;
        q->node[i] = q->node[k];
        i = k;
    }
    if (2 * i + 2 == n) {
        q->node[i] = q->node[2 * i + 1];
        i = 2 * i + 1;
    }
    q->node[i] = x;
    sift_up(q, i);
}

void learn_queue_push(struct learn_queue *q, struct learn_pair p, uint64_t count, uint64_t tie,
                      uint32_t *at, uint32_t n)
{
    ARRAY_GROW(q->node, q->n, q->cap);
    ARRAY_GROW(q->entry, q->nentry, q->entry_cap);
    q->entry[q->nentry] = (struct learn_entry){.pair = p, .at = at, .n = n};
    q->node[q->n] = (struct learn_node){count, tie, (uint32_t)q->nentry++};
    sift_up(q, q->n++);
}

/* The top's count has changed to `count`. */
static void put_back(struct learn_queue *q, uint64_t count)
{
    struct learn_node x = q->node[0];
    x.count = count;
    if (q->rule->as_they_come) {
        refill_top(q);
        q->node[q->n] = x;
        sift_up(q, q->n++);
    } else {
        q->node[0] = x;
        sift_down(q, 0);
    }
}

bool learn_queue_pop(struct learn_queue *q, struct learn_counts *c, struct learn_entry *ret)
{
    while (q->n) {
        struct learn_node *top = &q->node[0];
        const struct learn_entry *entry = &q->entry[top->entry];
        const struct learn_count_of *now = learn_counts_get(c, entry->pair);
        uint64_t count = now && now->count > 0 ? (uint64_t)now->count : 0;
        bool wanted = count || q->rule->as_they_come;
        if (wanted && count != top->count) {
            put_back(q, count);
            continue;
        }
        if (wanted) {
            *ret = *entry;
            ret->count = count;
            ret->again = now && now->key & LEARN_AGAIN;
        }
        refill_top(q);
        if (wanted)
            return true;
    }
    return false;
}
