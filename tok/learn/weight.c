/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/weight.h"

#include <stdlib.h>

#include "base/core/mem.h"

static void weight_push(struct learn_weights *w, uint32_t at, uint64_t count)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap + w->cap / 2 : 256;
        w->run = mem_grow(w->run, w->cap, sizeof(*w->run));
    }
    w->run[w->n++] = (struct learn_weight){count, at};
}

void learn_weights_add(struct learn_weights *w, size_t at, uint64_t count)
{
    if (!w->n) /* slots before the first word */
        weight_push(w, 0, 0);
    if (w->run[w->n - 1].count != count)
        weight_push(w, (uint32_t)at, count);
}

void learn_weights_index(struct learn_weights *w, size_t n)
{
    if (!w->n)
        weight_push(w, 0, 0);
    weight_push(w, UINT32_MAX, 0);
    w->block = mem_new((n >> LEARN_WEIGHT_BLOCK) + 1, sizeof(*w->block));
    uint32_t r = 0;
    for (size_t i = 0; i <= n >> LEARN_WEIGHT_BLOCK; i++) {
        while (w->run[r + 1].at <= i << LEARN_WEIGHT_BLOCK)
            r++;
        w->block[i] = r;
    }
}

void learn_weights_finish(struct learn_weights *w)
{
    free(w->run);
    free(w->block);
    *w = (struct learn_weights){0};
}
