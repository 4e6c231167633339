/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/maps_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/fault.h"
#include "base/core/mem.h"

enum { PIECE = 1 << 14 /* documents */, ROWS = 1 << 10, AHEAD = 64 };

/* One thread's buffers: lengths of a piece of the document map, and rows to be stored. */
struct hand {
    uint32_t length[PIECE];
    union {
        int64_t wide[ROWS][2];
        int32_t narrow[ROWS][2];
    } row;
};

int maps_walk_init(struct maps_walk *w, struct err *e)
{
    void *p;
    uint64_t n = w->spec->end - w->spec->first;
    int code = mem_try(n, sizeof(*w->brief), "memory for the lengths of documents", &p, e);
    if (code)
        return code;
    mem_large_pages(p, n * sizeof(*w->brief));
    w->brief = p;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    return 0;
}

static void is_there(struct maps_walk *w, bool *what)
{
    pthread_mutex_lock(&w->lock);
    *what = true;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

/* Lengths are read in random order: copied to memory with huge pages, as a file's small pages would
 * cost a TLB miss each. */
void maps_walk_lengths(struct maps_walk *w)
{
    uint64_t first = w->spec->first, n = w->spec->end - first;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t length = (uint32_t)shard_length(w->shard, first + i);
        w->brief[i] = length < UINT16_MAX ? (uint16_t)length : UINT16_MAX;
    }
    is_there(w, &w->lengths);
}

void maps_walk_documents(struct maps_walk *w)
{
    is_there(w, &w->documents);
}

/* The lengths of documents [from, from + n), and their sum. */
static uint64_t maps_walk_gather(const struct maps_walk *w, uint64_t from, uint64_t n,
                                 uint32_t *ret)
{
    const int32_t *doc = w->maps->doc + from;
    uint64_t sum = 0, first = w->spec->first, left = w->maps->ndoc - from;
    for (uint64_t i = 0; i < n; i++) {
        if (i + AHEAD < left)
            __builtin_prefetch(&w->brief[(uint64_t)doc[i + AHEAD] - first], 0, 2);
        uint32_t length = w->brief[(uint64_t)doc[i] - first];
        if (length == UINT16_MAX)
            length = (uint32_t)shard_length(w->shard, (uint64_t)doc[i]);
        ret[i] = length;
        sum += length;
    }
    return sum;
}

/* Stores rows [first, first + n); those after the last row are dropped. */
static void maps_walk_put(struct maps_walk *w, struct hand *h, uint64_t first, uint64_t n)
{
    const struct maps *m = w->maps;
    size_t width = m->wide_sample ? 16 : 8;
    uint64_t left = first <= m->nsample ? m->nsample + 1 - first : 0;
    n = n < left ? n : left;
    if (w->to)
        mem_copy_past((char *)w->to + first * width, &h->row, n * width);
    else if (memcmp((const char *)m->sample + first * width, &h->row, n * width)) {
        pthread_mutex_lock(&w->lock);
        w->differs = true;
        pthread_mutex_unlock(&w->lock);
    }
}

static inline void set_row(struct hand *h, bool wide, uint64_t r, uint64_t place, int64_t token)
{
    if (wide) {
        h->row.wide[r][0] = (int64_t)place;
        h->row.wide[r][1] = token;
    } else {
        h->row.narrow[r][0] = (int32_t)place;
        h->row.narrow[r][1] = (int32_t)token;
    }
}

/*
 * The rows that lie in n documents, the first of which has number `place` and begins after `tokens`
 * tokens. A row lies in the first document that contains its sample's first token, or with extra =
 * 0 the last token of the sample before. The number of rows in a document is hard to predict: two
 * are written before any branch.
 */
static inline void rows_of(struct maps_walk *w, struct hand *h, bool wide, uint64_t place,
                           uint64_t n, uint64_t tokens)
{
    const int64_t step = w->spec->seq_length, extra = w->spec->extra;
    uint64_t r = tokens > (uint64_t)extra ? (tokens - (uint64_t)extra) / (uint64_t)step + 1 : 1;
    int64_t next = (int64_t)(r * (uint64_t)step + (uint64_t)extra - tokens); /* of its tokens */
    uint64_t k = 0;
    for (uint64_t i = 0; i < n; i++) {
        const int64_t length = h->length[i] - (int64_t)FAULT("map_walk");
        set_row(h, wide, k, place + i, next - extra);
        set_row(h, wide, k + 1, place + i, next + step - extra);
        int64_t rows = (next <= length) + (next + step <= length);
        k += (uint64_t)rows;
        next += rows * step;
        for (;;) {
            if (k > ROWS - 3) {
                maps_walk_put(w, h, r, k);
                r += k;
                k = 0;
            }
            if (next > length)
                break;
            set_row(h, wide, k++, place + i, next - extra);
            next += step;
        }
        next -= h->length[i];
    }
    maps_walk_put(w, h, r, k);
}

/* Waits for the thread with the previous piece; returns where this one begins. */
static uint64_t maps_walk_begin(struct maps_walk *w, uint64_t piece, uint64_t sum)
{
    pthread_mutex_lock(&w->lock);
    while (w->begun != piece)
        pthread_cond_wait(&w->moved, &w->lock);
    uint64_t at = w->tokens;
    w->tokens += sum;
    w->begun++;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
    return at;
}

static uint64_t maps_walk_take(struct maps_walk *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->lengths || !w->documents)
        pthread_cond_wait(&w->moved, &w->lock);
    uint64_t piece = w->taken++;
    pthread_mutex_unlock(&w->lock);
    return piece;
}

void maps_walk_run(struct maps_walk *w)
{
    struct hand *h = mem_new(1, sizeof(*h));
    for (;;) {
        uint64_t piece = maps_walk_take(w), from = piece * PIECE;
        if (from >= w->maps->ndoc)
            break;
        uint64_t left = w->maps->ndoc - from, n = left < PIECE ? left : PIECE;
        uint64_t tokens = maps_walk_begin(w, piece, maps_walk_gather(w, from, n, h->length));
        if (w->maps->wide_sample)
            rows_of(w, h, true, from, n, tokens);
        else
            rows_of(w, h, false, from, n, tokens);
    }
    free(h);
}

bool maps_walk_finish(struct maps_walk *w)
{
    const struct maps *m = w->maps;
    uint64_t extra = w->spec->extra;
    uint64_t r = w->tokens > extra ? (w->tokens - extra) / w->spec->seq_length + 1 : 1;
    bool whole = r > m->nsample;
    struct hand *h = mem_new(1, sizeof(*h));
    set_row(h, m->wide_sample, 0, 0, 0);
    maps_walk_put(w, h, 0, 1);
    for (; r <= m->nsample; r++) {
        uint64_t last = m->ndoc - 1;
        int64_t length = shard_length(w->shard, (uint64_t)m->doc[last]);
        set_row(h, m->wide_sample, 0, last, length - (int64_t)extra);
        maps_walk_put(w, h, r, 1);
    }
    free(h);
    free(w->brief);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->moved);
    return (whole || w->spec->keep_last) && !w->differs;
}
