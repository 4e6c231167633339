/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/pack.h"

#include <stdlib.h>

#include "base/core/err.h"
#include "base/core/mem.h"

enum { NONE = UINT32_MAX };

/*
 * Open sequences by free space: a list per size, and over the lists a tree of bits that says below
 * which node there is a sequence.
 */
struct rooms {
    unsigned char *any; /* [2 * leaves]; the children of k are 2 k and 2 k + 1 */
    size_t leaves;
    uint32_t *head; /* [leaves] first sequence with that much space */
    uint32_t *next; /* of each sequence, the next in its list */
};

static void rooms_init(struct rooms *r, uint32_t most, size_t n)
{
    r->leaves = 1;
    while (r->leaves <= most)
        r->leaves *= 2;
    r->any = mem_new(2 * r->leaves, 1);
    r->head = mem_new(r->leaves, sizeof(*r->head));
    r->next = mem_new(n, sizeof(*r->next));
    for (size_t i = 0; i < r->leaves; i++)
        r->head[i] = NONE;
}

static void rooms_finish(struct rooms *r)
{
    free(r->any);
    free(r->head);
    free(r->next);
}

static void rooms_put(struct rooms *r, uint32_t room, uint32_t seq)
{
    r->next[seq] = r->head[room];
    r->head[room] = seq;
    for (size_t k = r->leaves + room; k && !r->any[k]; k /= 2)
        r->any[k] = 1;
}

/* Removes the sequence with the least space of at least `want`; NONE if there is none. */
static uint32_t rooms_take(struct rooms *r, uint32_t want, uint32_t *ret_room)
{
    size_t k = r->leaves + want;
    while (k && !r->any[k])
        k = k & 1 ? (k & (k + 1)) == 0 ? 0 : (k + 1) / 2 : k + 1;
    if (!k)
        return NONE;
    while (k < r->leaves)
        k = r->any[2 * k] ? 2 * k : 2 * k + 1;
    uint32_t room = (uint32_t)(k - r->leaves), seq = r->head[room];
    r->head[room] = r->next[seq];
    for (r->any[k] = r->head[room] != NONE; k > 1; k /= 2)
        r->any[k / 2] = r->any[k] | r->any[k ^ 1];
    *ret_room = room;
    return seq;
}

/* Examples by length, the longest first, stable. */
static uint32_t *sort(const uint32_t *length, size_t n, uint32_t room)
{
    uint32_t *order = mem_new(n, sizeof(*order));
    size_t *at = mem_new((size_t)room + 2, sizeof(*at));
    for (size_t i = 0; i < n; i++)
        at[room - length[i] + 1]++;
    for (uint32_t k = 0; k <= room; k++)
        at[k + 1] += at[k];
    for (size_t i = 0; i < n; i++)
        order[at[room - length[i]]++] = (uint32_t)i;
    free(at);
    return order;
}

/* Assigns a sequence to each example; returns the number of sequences. */
static uint32_t pack_place(const uint32_t *length, size_t n, uint32_t room, uint32_t *seq)
{
    struct rooms r;
    uint32_t nseq = 0, *order = sort(length, n, room);
    rooms_init(&r, room, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t left, to = rooms_take(&r, length[order[i]], &left);
        if (to == NONE) {
            to = nseq++;
            left = room;
        }
        seq[order[i]] = to;
        rooms_put(&r, left - length[order[i]], to);
    }
    rooms_finish(&r);
    free(order);
    return nseq;
}

void pack_best_fit(const uint32_t *length, size_t n, uint32_t room, struct pack *ret)
{
    BUG_ON(n >= NONE, "%zu examples at once", n);
    uint32_t *seq = mem_new(n, sizeof(*seq)), named = 0;
    uint32_t nseq = pack_place(length, n, room, seq), *name = mem_new(nseq, sizeof(*name));
    *ret = (struct pack){.order = mem_new(n, sizeof(*ret->order)),
                         .end = mem_new((size_t)nseq + 1, sizeof(*ret->end)),
                         .nseq = nseq};
    for (uint32_t s = 0; s < nseq; s++)
        name[s] = NONE;
    for (size_t i = 0; i < n; i++) {
        if (name[seq[i]] == NONE)
            name[seq[i]] = named++;
        seq[i] = name[seq[i]];
        ret->end[seq[i] + 1]++;
    }
    for (uint32_t s = 0; s < nseq; s++)
        ret->end[s + 1] += ret->end[s];
    for (size_t i = 0; i < n; i++) /* end[s] advances from the beginning of s to its end */
        ret->order[ret->end[seq[i]]++] = (uint32_t)i;
    free(name);
    free(seq);
}

void pack_finish(struct pack *p)
{
    free(p->order);
    free(p->end);
    *p = (struct pack){0};
}
