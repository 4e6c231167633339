/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tests/t.h"
#include "train/tensor/box.h"

static struct spec model(bool llama)
{
    struct spec s = {.layers = 3,
                     .hidden = 24,
                     .heads = 4,
                     .kv_heads = llama ? 2 : 4,
                     .head_dim = 6,
                     .ffn = 40,
                     .vocab = 101,
                     .padded_vocab = 128,
                     .max_positions = 11,
                     .norm_eps = 1e-5,
                     .tied = !llama,
                     .bias = !llama,
                     .init_std = 0.02};
    if (llama) {
        s.norm = SPEC_RMSNORM;
        s.act = SPEC_SWIGLU;
        s.position = SPEC_ROPE;
        s.rope_base = 10000;
        s.rope_percent = 1;
    }
    spec_settle(&s);
    return s;
}

static struct params build(bool llama, int tp, int rank)
{
    struct spec s = model(llama);
    struct params p;
    struct err e;
    T_OK(params_build(&p, &s, layout_plain(mesh_dense(tp, 1, 1, 1)), rank, &e), &e);
    return p;
}

/* A box of a global tensor that lies in a range of the slab. */
struct zero_box {
    int param, source; /* params.at[param].source[source] */
    struct box box;    /* of the global tensor */
    int64_t at;        /* element of the slab that holds the box's first one */
    int64_t stride;    /* elements from a row of the box to the next */
};

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

/* The elements [begin, end) of the slab, in its order, as state_held finds them (free). */
static size_t zero_boxes(const struct params *p, int64_t begin, int64_t end, struct zero_box **ret)
{
    struct boxes out = {0};
    for (int i = 0; i < p->n && p->at[i].offset < end; i++)
        for (int s = 0; s < p->at[i].sources; s++)
            add_source(&out, p, i, s, (struct zero_range){begin, end});
    *ret = out.at;
    return out.n;
}

/* For each element of the slab: where a box puts it in its tensor, and how many boxes have it. */
struct mark {
    int boxes, param, source;
    int64_t row, col;
};

static void mark_boxes(struct mark *m, const struct zero_box *b, size_t n, struct zero_range r)
{
    for (size_t i = 0; i < n; i++)
        for (int64_t row = 0; row < b[i].box.count[0]; row++)
            for (int64_t col = 0; col < b[i].box.count[1]; col++) {
                int64_t at = b[i].at + row * b[i].stride + col;
                T_CHECK(at >= r.begin && at < r.end);
                m[at].boxes++;
                m[at].param = b[i].param;
                m[at].source = b[i].source;
                m[at].row = b[i].box.begin[0] + row;
                m[at].col = b[i].box.begin[1] + col;
            }
}

/* At most three boxes for each tensor. */
static void check_number(const struct zero_box *b, size_t n)
{
    for (size_t i = 3; i < n; i++)
        T_CHECK(b[i].param != b[i - 3].param || b[i].source != b[i - 3].source);
}

/* Every element of every tensor that the rank holds was marked once, as what it is; others never.
 */
static void check_marks(const struct params *p, struct mark *m, int64_t elements)
{
    for (int i = 0; i < p->n; i++)
        for (int s = 0; s < p->at[i].sources; s++) {
            const struct param_source *q = &p->at[i].source[s];
            for (int64_t k = 0; k < q->count[0] * q->count[1]; k++) {
                struct mark *at = &m[p->at[i].offset + q->row * p->at[i].size[1] + k];
                T_EQ(at->boxes, 1);
                T_CHECK(at->param == i && at->source == s);
                T_EQ(at->row, q->begin[0] + k / q->count[1]);
                T_EQ(at->col, q->begin[1] + k % q->count[1]);
                at->boxes = 0;
            }
        }
    for (int64_t k = 0; k < elements; k++)
        T_EQ(m[k].boxes, 0);
}

static void shares_are_the_tensors(void)
{
    static const int64_t sizes[] = {1, 1000, 2500, 1 << 20};
    for (int k = 0; k < 4 * 3 * 4 * 2; k++) {
        bool llama = k % 2;
        int tp = 1 << (k / 2 % 3), shares = (const int[]){1, 2, 3, 8}[k / 6 % 4];
        struct params p = build(llama, tp, tp - 1);
        struct zero_bucket *bucket;
        int64_t all = zero_padded(p.elements, shares), end = all;
        struct mark *m = mem_new((size_t)all, sizeof(*m));
        size_t n = zero_buckets(&p, sizes[k / 24], shares, &bucket);
        for (size_t i = 0; i < n; i++) {
            T_EQ(bucket[i].range.end, end);
            end = bucket[i].range.begin;
            T_CHECK(i + 1 == n || bucket[i].range.end - end >= sizes[k / 24]);
            for (int r = 0; r < shares; r++) {
                struct zero_range share = zero_share(bucket[i].range, shares, r);
                struct zero_box *b;
                size_t boxes = zero_boxes(&p, share.begin, share.end, &b);
                T_EQ((share.end - share.begin) % 64, 0);
                for (size_t j = 0; j < boxes; j++)
                    T_CHECK(b[j].param >= bucket[i].param);
                check_number(b, boxes);
                mark_boxes(m, b, boxes, share);
                free(b);
            }
        }
        T_EQ(end, 0);
        check_marks(&p, m, all);
        free(bucket);
        free(m);
        params_finish(&p);
    }
}

/* A bucket waits for the parameters that have elements in it, and for no earlier one. */
static void buckets_wait_for_their_first_parameter(void)
{
    struct params p = build(true, 1, 0);
    struct zero_bucket *b;
    size_t n = zero_buckets(&p, 3000, 2, &b);
    T_CHECK(n > 3);
    T_EQ(b[n - 1].param, 0);
    for (size_t i = 0; i < n; i++) {
        const struct param *q = &p.at[b[i].param];
        T_CHECK(q->offset <= b[i].range.begin);
        T_CHECK(b[i].param + 1 == p.n || q[1].offset > b[i].range.begin);
    }
    free(b);
    n = zero_buckets(&p, 1 << 30, 4, &b);
    T_EQ(n, 1);
    T_EQ(b[0].range.end, zero_padded(p.elements, 4));
    free(b);
    params_finish(&p);
    T_EQ(zero_bucket_size(8), 40000000);
    T_EQ(zero_bucket_size(64), 64000000);
}

static struct params build_zero(int zero, int dp)
{
    struct spec s = model(true);
    struct layout l = layout_plain(mesh_dense(1, 1, dp, 1));
    struct params p;
    struct err e;
    l.zero = zero;
    T_OK(params_build(&p, &s, l, 0, &e), &e);
    return p;
}

/* Pieces of all ranks cover the slab once, and lie without gaps in what each keeps. */
static void pieces_are_the_slab(void)
{
    for (int k = 0; k < 4 * 3; k++) {
        int stage = k % 4, shares = (const int[]){1, 2, 8}[k / 4];
        struct params p = build_zero(stage, shares);
        char *seen = mem_new((size_t)p.elements, 1);
        for (int at = 0; at < (stage ? shares : 1); at++) {
            struct zero_split z;
            int64_t kept = 0;
            zero_split_build(&z, &p, stage, 2000, shares, at);
            for (size_t i = 0; i < zero_pieces(&z); i++) {
                struct zero_piece q = zero_piece(&z, i);
                T_EQ(q.at, kept);
                T_EQ(zero_place(&z, z.kept, q), kept);
                kept += q.end - q.begin;
                for (int64_t e = q.begin; e < q.end; e++)
                    seen[e]++;
                struct zero_piece cut = q;
                T_CHECK(zero_cut(&cut, q.begin + 1, q.end - 1));
                T_CHECK(cut.at == q.at + 1 && cut.begin == q.begin + 1 && cut.end == q.end - 1);
                T_CHECK(!zero_cut(&cut, q.end, q.end + 1));
            }
            T_EQ(kept, z.kept);
            T_EQ(z.kept, p.elements / (stage ? shares : 1));
            T_EQ(zero_pieces_of(&z, p.elements), 1);
            T_EQ(zero_piece_of(&z, p.elements, 0).end, p.elements);
            zero_split_finish(&z);
        }
        for (int64_t e = 0; e < p.elements; e++)
            T_EQ(seen[e], 1);
        free(seen);
        params_finish(&p);
    }
}

/* Of a mixture whose experts are on two ranks each, and have two copies. */
static struct params build_spread(int zero, int rank, struct layout *ret)
{
    struct spec s = model(false);
    struct params p;
    struct err e;
    s.experts = 4;
    s.topk = 2;
    s.expert_ffn = 20;
    *ret = layout_plain(mesh_dense(1, 1, 4, 1));
    ret->mesh.ep = 2;
    ret->zero = zero;
    T_OK(params_build(&p, &s, *ret, rank, &e), &e);
    return p;
}

/* Their pieces lie after the others, without gaps; ranks with the same experts have them all. */
static void experts_are_shared_out_apart(void)
{
    for (int stage = 1; stage <= 3; stage++) {
        static char seen[2][1 << 16]; /* by the experts' index of a rank */
        memset(seen, 0, sizeof(seen));
        for (int rank = 0; rank < 4; rank++) {
            struct layout l;
            struct params p = build_spread(stage, rank, &l);
            struct coord at = mesh_coord(l.mesh, rank);
            struct zero_split z;
            int64_t kept = 0;
            T_CHECK(p.experts < p.elements && p.elements <= (int64_t)sizeof(seen[0]));
            zero_split_build(&z, &p, stage, 2000, 4, rank);
            zero_split_experts(&z, &p, 2000, mesh_edp(l.mesh), at.edp);
            for (size_t i = 0; i < zero_pieces(&z); i++) {
                struct zero_piece q = zero_piece(&z, i);
                T_EQ(q.at, kept);
                kept += q.end - q.begin;
                T_CHECK((q.begin >= p.experts) == (q.at >= z.kept_before));
                for (int64_t e = q.begin; e < q.end; e++)
                    seen[q.begin >= p.experts ? at.ep : 0][e]++;
            }
            T_EQ(kept, z.kept);
            T_EQ(z.kept, p.experts / 4 + (p.elements - p.experts) / 2);
            if (stage > 1) /* one for each layer with experts, before the others */
                T_EQ(z.n, 2 * p.spec.layers + 2);
            for (int64_t e = 0; rank == 3 && e < p.elements; e++)
                T_CHECK(seen[0][e] == 1 && (e < p.experts || seen[1][e] == 1));
            zero_split_finish(&z);
            params_finish(&p);
        }
    }
}

/* The head, the layers from the last, the embedding. */
static void units_are_layers(void)
{
    struct params p = build_zero(3, 4);
    struct zero_bucket *b;
    size_t n = zero_units(&p, 4, &b);
    int64_t end = p.elements;
    T_EQ(n, 5);
    for (size_t i = 0; i < n; i++) {
        T_EQ(b[i].range.end, end);
        end = b[i].range.begin;
        T_EQ(end % (64 * 4), 0);
        T_EQ(p.at[b[i].param].offset, end);
        for (int k = 0; k < p.n; k++)
            T_EQ(zero_unit_of(&p, &p.at[k]) == 4 - (int)i,
                 p.at[k].offset >= end && p.at[k].offset < b[i].range.end);
    }
    T_EQ(end, 0);
    free(b);
    params_finish(&p);
}

static void nothing_is_no_box(void)
{
    struct params p = build(false, 1, 0);
    struct zero_box *b;
    const struct param *embed = params_find(&p, PARAM_EMBED, -1);
    T_EQ(zero_boxes(&p, 5, 5, &b), 0);
    T_CHECK(!b);
    /* padding rows of the vocabulary */
    T_EQ(zero_boxes(&p, embed->offset + 101 * 24, embed->offset + 128 * 24, &b), 0);
    T_EQ(zero_boxes(&p, embed->offset + 100 * 24 + 3, embed->offset + 128 * 24, &b), 1);
    T_CHECK(b[0].box.begin[0] == 100 && b[0].box.begin[1] == 3 && b[0].box.count[1] == 21);
    free(b);
    params_finish(&p);
}

T_MAIN(T_CASE(shares_are_the_tensors), T_CASE(buckets_wait_for_their_first_parameter),
       T_CASE(pieces_are_the_slab), T_CASE(experts_are_shared_out_apart), T_CASE(units_are_layers),
       T_CASE(nothing_is_no_box))
