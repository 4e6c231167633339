/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/split.h"

#include <stdlib.h>

#include "base/core/array.h"

enum { ALIGN = 64 };

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

struct buckets {
    struct zero_bucket *at;
    size_t n, capacity;
};

/* Of the elements [first, end). */
static void add_buckets(struct buckets *out, const struct params *p, int64_t size, int shares,
                        struct zero_range all)
{
    int64_t each = round_up(size > 0 ? size : 1, (int64_t)ALIGN * shares);
    for (int64_t end = all.end; end > all.begin;) {
        int64_t begin = end - all.begin > each ? end - each : all.begin;
        ARRAY_GROW(out->at, out->n, out->capacity);
        out->at[out->n++] =
            (struct zero_bucket){{begin, end}, param_at(p, begin), begin >= p->experts, shares, 0};
        end = begin;
    }
}

size_t zero_buckets(const struct params *p, int64_t size, int shares, struct zero_bucket **ret)
{
    struct buckets out = {0};
    struct zero_range all = {0, zero_padded(p->experts, shares)};
    add_buckets(&out, p, size, shares, all);
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

/* Of the elements [first, end). */
static void add_units(struct buckets *out, const struct params *p, int shares,
                      struct zero_range all)
{
    int64_t end = all.end;
    for (int i = p->n - 1; i >= 0; i--) {
        const struct param *q = &p->at[i];
        if (q->offset < all.begin || q->offset >= all.end)
            continue;
        if (q->offset > all.begin && zero_unit_of(p, q - 1) == zero_unit_of(p, q))
            continue;
        BUG_ON((q->offset - all.begin) % ((int64_t)ALIGN * shares),
               "a unit begins at element %lld for %d ranks", (long long)q->offset, shares);
        ARRAY_GROW(out->at, out->n, out->capacity);
        out->at[out->n++] =
            (struct zero_bucket){{q->offset, end}, i, all.begin >= p->experts, shares, 0};
        end = q->offset;
    }
}

size_t zero_units(const struct params *p, int shares, struct zero_bucket **ret)
{
    struct buckets out = {0};
    add_units(&out, p, shares, (struct zero_range){0, zero_padded(p->experts, shares)});
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
                               .elements = p->elements,
                               .experts = p->experts};
    ret->kept = ret->kept_before = p->experts / ret->shares;
    ret->n = stage > 1 ? zero_units(p, shares, &ret->bucket)
                       : zero_buckets(p, size, ret->shares, &ret->bucket);
    for (size_t i = 0; i < ret->n; i++)
        ret->bucket[i].at = ret->at;
}

void zero_split_experts(struct zero_split *z, const struct params *p, int64_t size, int shares,
                        int at)
{
    struct buckets out = {0};
    int ways = z->stage ? shares : 1;
    if (p->experts == p->elements)
        return;
    struct zero_range all = {p->experts, p->elements};
    if (z->stage > 1)
        add_units(&out, p, ways, all);
    else
        add_buckets(&out, p, size, ways, all);
    for (size_t i = 0; i < out.n; i++)
        out.at[i].at = z->stage ? at : 0;
    for (size_t i = 0; i < z->n; i++) {
        ARRAY_GROW(out.at, out.n, out.capacity);
        out.at[out.n++] = z->bucket[i];
    }
    free(z->bucket);
    z->bucket = out.at;
    z->n = out.n;
    z->kept = z->kept_before + (p->elements - p->experts) / ways;
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
    const struct zero_bucket *b = &z->bucket[z->n - 1 - i];
    struct zero_range mine = zero_share(b->range, b->shares, b->at);
    int64_t first = b->experts ? z->experts : 0, before = b->experts ? z->kept_before : 0;
    return (struct zero_piece){mine.begin, mine.end, before + (b->range.begin - first) / b->shares};
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
