/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/core/ids.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/core/err.h"
#include "base/core/array.h"
#include "base/core/mem.h"

enum {
    IDS_LARGE = 2 << 20, /* bytes from which a list gets pages of its own */
    IDS_MANY = 1 << 16   /* ids that a sink takes */
};

static bool in_pages(size_t cap)
{
    return cap >= IDS_LARGE / sizeof(int32_t);
}

/* Lists with pages of their own take a whole number of large pages. */
static void grow_ids(struct tok_ids *ids, size_t cap)
{
    const size_t size = sizeof(*ids->id);
    int32_t *was = ids->id;
    if (!in_pages(cap)) {
        ids->id = mem_grow(was, cap, size);
    } else {
        BUG_ON(cap > (SIZE_MAX - IDS_LARGE) / size, "%zu ids", cap);
        cap = (cap * size + IDS_LARGE - 1) / IDS_LARGE * IDS_LARGE / size;
        if (in_pages(ids->cap)) {
            ids->id = mem_pages_grow(was, ids->cap * size, cap * size);
        } else {
            ids->id = mem_pages(cap * size);
            if (was)
                memcpy(ids->id, was, ids->n * size);
            free(was);
        }
    }
    ids->cap = cap;
}

int32_t *tok_ids_reserve(struct tok_ids *ids, size_t n)
{
    size_t need;
    BUG_ON(__builtin_add_overflow(ids->n, n, &need), "tok_ids_reserve of %zu", n);
    if (need > ids->cap || !ids->id) {
        size_t cap = ids->cap + ids->cap / 2;
        cap = cap < need ? need : cap;
        grow_ids(ids, cap < 256 ? 256 : cap);
    }
    return ids->id + ids->n;
}

void tok_ids_finish(struct tok_ids *ids)
{
    if (in_pages(ids->cap))
        munmap(ids->id, ids->cap * sizeof(*ids->id));
    else
        free(ids->id);
    *ids = (struct tok_ids){0};
}

void tok_ids_add(struct tok_ids *ids, const int32_t *id, size_t n)
{
    if (!n)
        return;
    memcpy(tok_ids_reserve(ids, n), id, n * sizeof(*id));
    ids->n += n;
}

struct tok_span *tok_spans_add(struct tok_spans *s)
{
    ARRAY_GROW(s->at, s->n, s->cap);
    s->at[s->n] = (struct tok_span){0};
    return &s->at[s->n++];
}

void tok_spans_finish(struct tok_spans *s)
{
    free(s->at);
    *s = (struct tok_spans){0};
}

void tok_nbest_add(struct tok_nbest *list, float score)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 16;
        list->end = mem_grow(list->end, list->cap, sizeof(*list->end));
        list->score = mem_grow(list->score, list->cap, sizeof(*list->score));
    }
    list->end[list->n] = list->ids.n;
    list->score[list->n++] = score;
}

void tok_nbest_finish(struct tok_nbest *list)
{
    tok_ids_finish(&list->ids);
    free(list->end);
    free(list->score);
    *list = (struct tok_nbest){0};
}

void tok_unknown_add(struct tok_unknown *s, const char *text, size_t n)
{
    buf_add(&s->text, text, n);
    ARRAY_GROW(s->end, s->n, s->cap);
    s->end[s->n++] = s->text.len;
}

void tok_unknown_finish(struct tok_unknown *s)
{
    buf_finish(&s->text);
    free(s->end);
    *s = (struct tok_unknown){0};
}

int tok_sink_offer(const struct tok_sink *o, struct tok_ids *ids, struct err *e)
{
    return o && ids->n >= IDS_MANY ? o->take(o->arg, ids, e) : 0;
}
