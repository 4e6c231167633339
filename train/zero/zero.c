/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/zero.h"

#include <stdlib.h>

#include "base/core/array.h"

enum { ALIGN = 64 };

struct boxes {
    struct zero_box *at;
    size_t n, capacity;
};

/* What [begin, end) of the slab has of one source: its rows lie one after the other. */
static void add_source(struct boxes *out, const struct params *p, int param, int source,
                       struct zero_range r)
{
    const struct param *q = &p->at[param];
    const struct param_source *s = &q->source[source];
    struct box whole = {{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}}, part[3];
    int64_t width = q->size[1], first = q->offset + s->row * width;
    BUG_ON(s->count[0] && s->count[1] != width, "%s: %lld columns of %lld", s->name,
           (long long)s->count[1], (long long)width);
    int64_t begin = r.begin - first, end = r.end - first, all = box_count(whole);
    begin = begin > 0 ? begin : 0;
    end = end < all ? end : all;
    if (begin >= end)
        return;
    size_t n = box_of_range(whole, begin, end, part);
    for (size_t i = 0; i < n; i++) {
        ARRAY_GROW(out->at, out->n, out->capacity);
        out->at[out->n++] =
            (struct zero_box){.param = param,
                              .source = source,
                              .box = part[i],
                              .at = first + (part[i].begin[0] - whole.begin[0]) * width +
                                    part[i].begin[1] - whole.begin[1],
                              .stride = width};
    }
}

/* The last parameter that begins at or before an element of the slab. */
static int param_at(const struct params *p, int64_t element)
{
    int low = 0, high = p->n - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (p->at[middle].offset <= element)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

size_t zero_boxes(const struct params *p, int64_t begin, int64_t end, struct zero_box **ret)
{
    struct boxes out = {0};
    for (int i = param_at(p, begin); i < p->n && p->at[i].offset < end; i++)
        for (int s = 0; s < p->at[i].sources; s++)
            add_source(&out, p, i, s, (struct zero_range){begin, end});
    *ret = out.at;
    return out.n;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

int64_t zero_padded(int64_t elements, int shares)
{
    return round_up(elements, (int64_t)ALIGN * shares);
}

int64_t zero_bucket_size(int shares)
{
    int64_t most = 1000000 * (int64_t)shares;
    return most > 40000000 ? most : 40000000;
}

size_t zero_buckets(const struct params *p, int64_t size, int shares, struct zero_bucket **ret)
{
    struct {
        struct zero_bucket *at;
        size_t n, capacity;
    } out = {0};
    int64_t each = round_up(size > 0 ? size : 1, (int64_t)ALIGN * shares);
    for (int64_t end = zero_padded(p->elements, shares); end > 0;) {
        int64_t begin = end > each ? end - each : 0;
        ARRAY_GROW(out.at, out.n, out.capacity);
        out.at[out.n++] = (struct zero_bucket){{begin, end}, param_at(p, begin)};
        end = begin;
    }
    *ret = out.at;
    return out.n;
}

struct zero_range zero_share(struct zero_range r, int shares, int k)
{
    int64_t each = (r.end - r.begin) / shares;
    BUG_ON((r.end - r.begin) % shares, "%lld elements for %d ranks", (long long)(r.end - r.begin),
           shares);
    return (struct zero_range){r.begin + k * each, r.begin + (k + 1) * each};
}

/* ---- units ------------------------------------------------------------------------------- */

int zero_unit_of(const struct params *p, const struct param *q)
{
    bool first = q->kind == PARAM_EMBED || q->kind == PARAM_POSITION;
    return q->layer >= 0 ? q->layer + 1 : first ? 0 : (int)p->spec.layers + 1;
}

size_t zero_units(const struct params *p, int shares, struct zero_bucket **ret)
{
    struct {
        struct zero_bucket *at;
        size_t n, capacity;
    } out = {0};
    int64_t end = zero_padded(p->elements, shares);
    for (int i = p->n - 1; i >= 0; i--) {
        const struct param *q = &p->at[i];
        if (i && zero_unit_of(p, q - 1) == zero_unit_of(p, q))
            continue;
        BUG_ON(q->offset % ((int64_t)ALIGN * shares), "a unit begins at element %lld for %d ranks",
               (long long)q->offset, shares);
        ARRAY_GROW(out.at, out.n, out.capacity);
        out.at[out.n++] = (struct zero_bucket){{q->offset, end}, i};
        end = q->offset;
    }
    *ret = out.at;
    return out.n;
}

/* ---- what a rank keeps ------------------------------------------------------------------- */

void zero_split_build(struct zero_split *ret, const struct params *p, int stage, int64_t size,
                      int shares, int at)
{
    *ret = (struct zero_split){.stage = stage,
                               .shares = stage ? shares : 1,
                               .at = stage ? at : 0,
                               .elements = p->elements};
    ret->kept = p->elements / ret->shares;
    ret->n = stage > 1 ? zero_units(p, shares, &ret->bucket)
                       : zero_buckets(p, size, ret->shares, &ret->bucket);
}

void zero_split_finish(struct zero_split *z)
{
    free(z->bucket);
    *z = (struct zero_split){0};
}

size_t zero_pieces(const struct zero_split *z)
{
    return z->stage ? z->n : 1;
}

struct zero_piece zero_piece(const struct zero_split *z, size_t i)
{
    if (!z->stage)
        return (struct zero_piece){0, z->elements, 0};
    struct zero_range all = z->bucket[z->n - 1 - i].range;
    struct zero_range mine = zero_share(all, z->shares, z->at);
    return (struct zero_piece){mine.begin, mine.end, all.begin / z->shares};
}

size_t zero_pieces_of(const struct zero_split *z, int64_t numbers)
{
    return numbers == z->elements ? 1 : zero_pieces(z);
}

struct zero_piece zero_piece_of(const struct zero_split *z, int64_t numbers, size_t i)
{
    BUG_ON(numbers != z->elements && numbers != z->kept, "%lld numbers of %lld or %lld",
           (long long)numbers, (long long)z->elements, (long long)z->kept);
    return numbers == z->elements ? (struct zero_piece){0, z->elements, 0} : zero_piece(z, i);
}

bool zero_cut(struct zero_piece *p, int64_t begin, int64_t end)
{
    if (p->begin < begin) {
        p->at += begin - p->begin;
        p->begin = begin;
    }
    p->end = p->end < end ? p->end : end;
    return p->begin < p->end;
}

int64_t zero_place(const struct zero_split *z, int64_t numbers, struct zero_piece p)
{
    return numbers == z->elements ? p.begin : p.at;
}
