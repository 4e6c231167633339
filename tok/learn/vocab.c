/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/vocab.h"

#include <stdlib.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/learn/queue.h"

enum { FIRST = 1 << 12 };

void learn_vocab_init(struct learn_vocab *v)
{
    *v = (struct learn_vocab){.cap = FIRST};
    v->piece = mem_new(FIRST, sizeof(*v->piece));
    string_map_init(&v->map, FIRST);
}

void learn_vocab_finish(struct learn_vocab *v)
{
    free(v->piece);
    free(v->merge);
    string_map_finish(&v->map);
    arena_finish(&v->arena);
    *v = (struct learn_vocab){0};
}

int32_t learn_vocab_find(const struct learn_vocab *v, const char *text, size_t n)
{
    return string_map_find(&v->map, text, n);
}

static void vocab_grow(struct learn_vocab *v)
{
    v->cap *= 2;
    v->piece = mem_grow(v->piece, v->cap, sizeof(*v->piece));
    string_map_finish(&v->map);
    string_map_init(&v->map, v->cap);
    for (size_t i = 0; i < v->n; i++)
        string_map_add(&v->map, v->piece[i].text, v->piece[i].length, (int32_t)i);
}

uint32_t learn_vocab_add(struct learn_vocab *v, const char *text, size_t n)
{
    int32_t id = learn_vocab_find(v, text, n);
    if (id >= 0)
        return (uint32_t)id;
    if (v->n == v->cap)
        vocab_grow(v);
    v->piece[v->n] = (struct learn_piece){arena_strndup(&v->arena, text, n), n};
    string_map_add(&v->map, v->piece[v->n].text, n, (int32_t)v->n);
    return (uint32_t)v->n++;
}

void learn_vocab_merge(struct learn_vocab *v, struct learn_pair p)
{
    ARRAY_GROW(v->merge, v->nmerges, v->merge_cap);
    v->merge[v->nmerges++] = p;
}

void learn_vocab_settle(struct learn_vocab *v)
{
    struct learn_counts c;
    learn_counts_init(&c);
    for (size_t i = 0; i < v->nmerges; i++)
        learn_counts_put(&c, v->merge[i])->count = (int64_t)i;
    size_t n = 0;
    for (size_t i = 0; i < v->nmerges; i++)
        if (learn_counts_get(&c, v->merge[i])->count == (int64_t)i)
            v->merge[n++] = v->merge[i];
    v->nmerges = n;
    learn_counts_finish(&c);
}
