/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_QUEUE_H
#define TOK_LEARN_QUEUE_H

/*
 * Parts of the merge engine (merge.h): the counts of all pairs, and the queue of those that may be
 * merged. An entry whose count has fallen since it was queued is put back with its current count
 * when it reaches the top, so that the best pair is popped. One thread.
 */

#include "tok/learn/merge.h"

struct learn_count_of {
    uint64_t key; /* the pair, with two flags on top; UINT64_MAX: free */
    int64_t count;
};

#define LEARN_QUEUED ((uint64_t)1 << 63) /* was queued */
#define LEARN_AGAIN ((uint64_t)1 << 62)  /* was queued more than once */

struct learn_counts {
    struct learn_count_of *slot;
    size_t mask, used;
};

static inline uint64_t learn_pair_hash(uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 32) * 0xd6e8feb86659fd93u >> 20;
}

static inline void learn_counts_prefetch(const struct learn_counts *c, uint32_t l, uint32_t r)
{
    __builtin_prefetch(&c->slot[(size_t)learn_pair_hash((uint64_t)l << 32 | r) & c->mask], 1);
}

void learn_counts_init(struct learn_counts *c);
void learn_counts_finish(struct learn_counts *c);
struct learn_count_of *learn_counts_get(struct learn_counts *c, struct learn_pair p); /* or NULL */
/* Created with count 0 if missing; valid until the next put. */
struct learn_count_of *learn_counts_put(struct learn_counts *c, struct learn_pair p);

struct learn_entry {
    struct learn_pair pair;
    uint64_t count;
    uint32_t *at; /* positions, ascending */
    uint32_t n;
    bool again; /* the pair has other entries */
};

struct learn_node {
    uint64_t count, tie;
    uint32_t entry;
};

struct learn_queue {
    const struct learn_rule *rule;
    struct learn_node *node; /* a heap */
    size_t n, cap;
    struct learn_entry *entry;
    size_t nentry, entry_cap;
};

void learn_queue_push(struct learn_queue *q, struct learn_pair p, uint64_t count, uint64_t tie,
                      uint32_t *at, uint32_t n);
/* The best entry; false if no pair is left. */
bool learn_queue_pop(struct learn_queue *q, struct learn_counts *c, struct learn_entry *ret);
void learn_queue_finish(struct learn_queue *q);

#endif
