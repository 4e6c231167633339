/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/zero.h"

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
