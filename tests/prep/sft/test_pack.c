/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

/* Each example once, in its order within a sequence; sequences by their first ones; none too long.
 */
static void check(const uint32_t *length, size_t n, uint32_t room, const struct pack *p)
{
    char *seen = mem_new(n, 1);
    size_t at = 0;
    for (size_t s = 0; s < p->nseq; s++) {
        uint64_t sum = 0;
        T_CHECK(p->end[s] > at && p->end[s] <= n);
        T_CHECK(!s || p->order[at] > p->order[s > 1 ? p->end[s - 2] : 0]);
        for (size_t first = at; at < p->end[s]; at++) {
            T_CHECK(p->order[at] < n && !seen[p->order[at]]);
            T_CHECK(at == first || p->order[at] > p->order[at - 1]);
            seen[p->order[at]] = 1;
            sum += length[p->order[at]];
        }
        T_CHECK(sum <= room);
    }
    T_EQ(at, n);
    free(seen);
}

static int longer(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Sequences that best fit takes, by looking at all of them each time. */
static size_t plain(const uint32_t *length, size_t n, uint32_t room)
{
    uint32_t *sorted = mem_new(n, sizeof(*sorted)), *left = mem_new(n, sizeof(*left));
    size_t nseq = 0;
    if (n)
        memcpy(sorted, length, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), longer);
    for (size_t i = 0; i < n; i++) {
        size_t best = nseq;
        for (size_t s = 0; s < nseq; s++)
            if (left[s] >= sorted[i] && (best == nseq || left[s] < left[best]))
                best = s;
        if (best == nseq)
            left[nseq++] = room;
        left[best] -= sorted[i];
    }
    free(sorted);
    free(left);
    return nseq;
}

static void takes_as_many_as_best_fit(void)
{
    uint32_t length[300];
    for (uint64_t k = 0; k < 3000; k++) {
        size_t n = t_rand(k, 0) % 300;
        uint32_t room = 1 + t_rand(k, 1) % (k % 3 ? 70 : 2000);
        for (size_t i = 0; i < n; i++)
            length[i] = 1 + t_rand(k, 2 + i) % room;
        struct pack p;
        pack_best_fit(length, n, room, &p);
        check(length, n, room, &p);
        T_EQ(p.nseq, plain(length, n, room));
        pack_finish(&p);
    }
}

static void fills_sequences(void)
{
    static const uint32_t length[] = {3, 5, 2, 8, 5, 1};
    struct pack p;
    pack_best_fit(length, 6, 8, &p);
    check(length, 6, 8, &p);
    /* 8 | 5 3 | 5 2 1, by their first examples */
    T_EQ(p.nseq, 3);
    static const uint32_t order[] = {0, 4, 1, 2, 5, 3};
    for (size_t i = 0; i < 6; i++)
        T_EQ(p.order[i], order[i]);
    pack_finish(&p);
    pack_best_fit(NULL, 0, 8, &p);
    T_EQ(p.nseq, 0);
    pack_finish(&p);
}

/* A hundred thousand examples take a moment, not minutes. */
static void packs_many(void)
{
    enum { MANY = 200000 };
    uint32_t *length = mem_new(MANY, sizeof(*length));
    uint64_t sum = 0;
    for (size_t i = 0; i < MANY; i++) {
        length[i] = 1 + t_rand(7, i) % 900;
        sum += length[i];
    }
    struct pack p;
    pack_best_fit(length, MANY, 2048, &p);
    check(length, MANY, 2048, &p);
    T_CHECK((double)sum > 0.999 * 2048 * (double)p.nseq);
    pack_finish(&p);
    free(length);
}

T_MAIN(T_CASE(takes_as_many_as_best_fit), T_CASE(fills_sequences), T_CASE(packs_many))
