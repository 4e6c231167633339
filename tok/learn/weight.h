/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_WEIGHT_H
#define TOK_LEARN_WEIGHT_H

/*
 * Part of the merge engine (merge.h): the count of the word that a slot belongs to. One entry for
 * each run of words with equal counts, and a table of where to start searching. One thread adds;
 * once indexed it is read-only.
 */

#include <stddef.h>
#include <stdint.h>

/* Slots from `at` on have this count. */
struct learn_weight {
    uint64_t count;
    uint32_t at;
};

enum { LEARN_WEIGHT_BLOCK = 6 };

struct learn_weights {
    struct learn_weight *run;
    size_t n, cap;
    uint32_t *block; /* the run of the first slot of each 1 << LEARN_WEIGHT_BLOCK */
};

/* Add in the order of `at`, which is below UINT32_MAX. */
void learn_weights_add(struct learn_weights *w, size_t at, uint64_t count);
/* Call after the last one. There are n slots. */
void learn_weights_index(struct learn_weights *w, size_t n);
void learn_weights_finish(struct learn_weights *w);

static inline int64_t learn_weight_at(const struct learn_weights *w, size_t at)
{
    const struct learn_weight *r = &w->run[w->block[at >> LEARN_WEIGHT_BLOCK]];
    while (r[1].at <= at)
        r++;
    return (int64_t)r->count;
}

#endif
