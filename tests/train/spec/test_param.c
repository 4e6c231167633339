/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/param.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/spec/same.h"
#include "train/tensor/box.h"

enum { GPT, LLAMA, QWEN, LLAMA_BIASED, MIXTRAL, MODELS };

static struct spec model(int which)
{
    struct spec s = {.layers = 3,
                     .hidden = 32,
                     .heads = 8,
                     .kv_heads = 8,
                     .head_dim = 4,
                     .ffn = 48,
                     .vocab = 100,
                     .padded_vocab = 512,
                     .max_positions = 20,
                     .norm_eps = 1e-5,
                     .tied = true,
                     .bias = true,
                     .init_std = 0.02};
    if (which != GPT) {
        s.kv_heads = 2;
        s.head_dim = 6;
        s.norm = SPEC_RMSNORM;
        s.act = SPEC_SWIGLU;
        s.position = SPEC_ROPE;
        s.rope_base = 10000;
        s.rope_percent = 1;
        s.tied = which == QWEN;
        s.bias = which == LLAMA_BIASED;
        s.qkv_bias = which == QWEN;
        s.experts = which == MIXTRAL ? 4 : 0;
        s.topk = 2;
        s.expert_ffn = 16;
    }
    spec_settle(&s);
    struct err e;
    T_OK(spec_check(&s, &e), &e);
    return s;
}

static struct params build(const struct spec *s, int tp, int dp, int rank)
{
    struct params p;
    struct err e;
    T_OK(params_build(&p, s, layout_plain(mesh_dense(tp, 1, dp, 1)), rank, &e), &e);
    return p;
}

/* ---- the table against shapes written out by hand ------------------------------------------- */

static void one_rank_holds_what_the_header_says(void)
{
    struct spec s = model(LLAMA);
    struct params p = build(&s, 1, 1, 0);
    const struct param *q = params_find(&p, PARAM_QKV, 2);
    T_EQ(q->layer, 2);
    T_EQ(q->rank, 2);
    T_EQ(q->size[0], (8 + 2 * 2) * 6);
    T_EQ(q->size[1], 32);
    T_EQ(q->sources, 3);
    T_STR(q->source[0].name, "layers.2.attn.q.weight");
    T_STR(q->source[1].name, "layers.2.attn.k.weight");
    T_STR(q->source[2].name, "layers.2.attn.v.weight");
    T_EQ(q->source[0].row, 0);
    T_EQ(q->source[1].row, 48);
    T_EQ(q->source[2].row, 60);
    const struct param *up = params_find(&p, PARAM_UP, 0);
    T_EQ(up->size[0], 96);
    T_STR(up->source[0].name, "layers.0.mlp.gate.weight");
    T_STR(up->source[1].name, "layers.0.mlp.up.weight");
    T_EQ(up->source[1].row, 48);
    const struct param *embed = params_find(&p, PARAM_EMBED, -1);
    T_EQ(embed->size[0], 512);
    T_EQ(embed->source[0].size[0], 100);
    T_EQ(embed->source[0].count[0], 100);
    T_STR(params_find(&p, PARAM_HEAD, -1)->source[0].name, "head.weight");
    T_CHECK(!params_find(&p, PARAM_POSITION, -1) && !params_find(&p, PARAM_NORM1_B, 0));
    T_CHECK(!params_find(&p, PARAM_QKV_B, 0) && !params_find(&p, PARAM_DOWN_B, 1));
    T_EQ(p.parameters, 100 * 32 * 2 + 32 + 3 * (72 * 32 + 32 * 48 + 3 * 48 * 32 + 2 * 32));
    params_finish(&p);
    s = model(QWEN);
    p = build(&s, 1, 1, 0);
    T_CHECK(params_find(&p, PARAM_QKV_B, 0) && !params_find(&p, PARAM_OUT_B, 0));
    T_CHECK(!params_find(&p, PARAM_HEAD, -1));
    T_EQ(params_find(&p, PARAM_QKV_B, 0)->rank, 1);
    params_finish(&p);
    s = model(LLAMA_BIASED);
    p = build(&s, 1, 1, 0);
    T_STR(params_find(&p, PARAM_UP_B, 1)->source[0].name, "layers.1.mlp.gate.bias");
    T_EQ(params_find(&p, PARAM_UP_B, 1)->size[0], 96);
    params_finish(&p);
    s = model(MIXTRAL);
    p = build(&s, 1, 1, 0);
    T_CHECK(!params_find(&p, PARAM_UP, 1) && !params_find(&p, PARAM_DOWN, 1));
    T_EQ(params_find(&p, PARAM_ROUTER, 2)->size[0], 4);
    up = params_find(&p, PARAM_EXPERT_UP, 2);
    T_EQ(up[3].expert, 3);
    T_EQ(up[3].offset - up->offset, 3 * up->count);
    T_STR(up[3].source[1].name, "layers.2.mlp.experts.3.up.weight");
    T_EQ(up[3].size[0], 32);
    T_CHECK(params_same(&p, &up[3]) == &up[3]);
    T_STR(params_find(&p, PARAM_EXPERT_DOWN, 0)->source[0].name,
          "layers.0.mlp.experts.0.down.weight");
    T_EQ(p.parameters,
         100 * 32 * 2 + 32 + 3 * (72 * 32 + 32 * 48 + 2 * 32 + 4 * (32 + 3 * 16 * 32)));
    params_finish(&p);
}

static void slab_has_no_overlaps(void)
{
    for (int m = 0; m < MODELS; m++) {
        struct spec s = model(m);
        struct params p = build(&s, 2, 1, 1);
        int64_t at = 0;
        for (int i = 0; i < p.n; i++) {
            const struct param *q = &p.at[i];
            T_EQ(q->offset % 64, 0);
            T_CHECK(q->offset >= at && q->offset < at + 64);
            T_EQ(q->count, q->size[0] * q->size[1]);
            at = q->offset + q->count;
            T_CHECK(params_same(&p, q) == q);
            T_EQ(q->decay, q->rank == 2);
            T_CHECK(q->trained);
        }
        T_CHECK(p.elements >= at && p.elements < at + 64);
        params_finish(&p);
    }
}

/* ---- cuts ------------------------------------------------------------------------------------ */

struct piece {
    const char *name;
    struct box box, whole;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct piece *)a)->name, ((const struct piece *)b)->name);
}

static struct box source_box(const struct param_source *s)
{
    return (struct box){{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}};
}

/* The boxes that owners hold cover each tensor once; returns the elements of all tensors. */
static int64_t check_cover(struct piece *piece, size_t n)
{
    int64_t sum = 0;
    qsort(piece, n, sizeof(*piece), by_name);
    for (size_t i = 0, j; i < n; i = j) {
        struct box part[64];
        size_t at;
        for (j = i; j < n && strcmp(piece[j].name, piece[i].name) == 0; j++) {
            T_CHECK(box_equal(piece[i].whole, piece[j].whole));
            part[j - i] = piece[j].box;
        }
        enum box_flaw flaw = box_cover(piece[i].whole, part, j - i, &at);
        if (flaw)
            t_fail(__FILE__, __LINE__, "flaw %d in %s", (int)flaw, piece[i].name);
        sum += box_count(piece[i].whole);
    }
    return sum;
}

static void cuts_cover_each_tensor_once(void)
{
    for (int m = 0; m < MODELS; m++) {
        for (int tp = 1; tp <= 8; tp *= 2) {
            struct spec s = model(m);
            struct params p[16];
            struct piece piece[2048];
            size_t n = 0;
            int dp = 2;
            for (int r = 0; r < tp * dp; r++) {
                p[r] = build(&s, tp, dp, r);
                for (int i = 0; i < p[r].n; i++)
                    for (int k = 0; k < p[r].at[i].sources; k++) {
                        struct param_source *c = &p[r].at[i].source[k];
                        T_CHECK(c->row + c->count[0] <= p[r].at[i].size[0]);
                        T_CHECK(c->count[1] == p[r].at[i].size[1]);
                        if (c->saves)
                            piece[n++] =
                                (struct piece){c->name, source_box(c), box_whole(c->rank, c->size)};
                    }
            }
            T_EQ(check_cover(piece, n), p[0].parameters);
            T_EQ(spec_parameters(&s), p[0].parameters);
            for (int r = 0; r < tp * dp; r++)
                params_finish(&p[r]);
        }
    }
}

static void heads_of_a_rank_stay_together(void)
{
    struct spec s = model(LLAMA); /* 8 heads, 2 groups, head of 6 */
    struct params p = build(&s, 2, 1, 1);
    const struct param *q = params_find(&p, PARAM_QKV, 0);
    T_EQ(q->size[0], (4 + 2) * 6);
    T_EQ(q->source[0].begin[0], 24);
    T_EQ(q->source[1].begin[0], 6);
    T_EQ(q->source[1].row, 24);
    T_EQ(q->source[2].row, 30);
    const struct param *out = params_find(&p, PARAM_OUT, 0);
    T_EQ(out->size[0], 32);
    T_EQ(out->size[1], 24);
    T_EQ(out->source[0].begin[1], 24);
    T_EQ(params_find(&p, PARAM_UP, 0)->source[1].row, 24);
    T_EQ(params_find(&p, PARAM_UP, 0)->source[1].begin[0], 24);
    T_EQ(params_find(&p, PARAM_EMBED, -1)->size[0], 256);
    T_EQ(params_find(&p, PARAM_EMBED, -1)->sources, 0); /* ids 256 and on: padding alone */
    T_CHECK(!params_find(&p, PARAM_NORM1, 0)->source[0].saves);
    params_finish(&p);
}

static void shared_key_heads(void)
{
    struct spec s = model(LLAMA);
    for (int r = 0; r < 8; r++) { /* four ranks to a group */
        struct params p = build(&s, 8, 1, r);
        const struct param *q = params_find(&p, PARAM_QKV, 0);
        T_EQ(q->size[0], (1 + 2) * 6);
        T_EQ(q->source[0].begin[0], 6 * r);
        for (int k = 1; k < 3; k++) {
            T_EQ(q->source[k].begin[0], 6 * (r / 4));
            T_EQ(q->source[k].count[0], 6);
            T_EQ(q->source[k].shared, 4);
            T_EQ(q->source[k].saves, r % 4 == 0);
        }
        T_EQ(q->source[0].shared, 1);
        T_EQ(q->summed, 1u << GROUP_TP);
        T_EQ(params_find(&p, PARAM_OUT, 0)->summed, 0);
        params_finish(&p);
    }
    struct params p = build(&s, 2, 2, 3);
    T_EQ(params_find(&p, PARAM_QKV, 0)->summed, 1u << GROUP_DP_CP);
    T_CHECK(!params_find(&p, PARAM_QKV, 0)->source[0].saves); /* data rank 0 has it */
    params_finish(&p);
    struct err e;
    T_OK(params_build(&p, &s, layout_plain(mesh_dense(2, 2, 1, 1)), 2, &e), &e);
    T_EQ(params_find(&p, PARAM_QKV, 0)->summed, 1u << GROUP_DP_CP);
    T_CHECK(!params_find(&p, PARAM_QKV, 0)->source[0].saves); /* context rank 0 has it */
    params_finish(&p);
}

static void cuts_that_cannot_be(void)
{
    struct params p;
    struct err e;
    struct spec s = model(LLAMA);
    T_ERR(params_build(&p, &s, layout_plain(mesh_dense(3, 1, 1, 1)), 0, &e), &e, ERR_USAGE,
          "8 attention heads cannot be shared out to tensor-model-parallel-size 3");
    s.ffn = 50;
    T_ERR(params_build(&p, &s, layout_plain(mesh_dense(4, 1, 1, 1)), 0, &e), &e, ERR_USAGE,
          "50 MLP channels");
    s.ffn = 48;
    s.padded_vocab = 102;
    T_ERR(params_build(&p, &s, layout_plain(mesh_dense(4, 1, 1, 1)), 0, &e), &e, ERR_USAGE,
          "102 padded");
    s = model(LLAMA);
    s.heads = 12;
    s.kv_heads = 3;
    T_ERR(params_build(&p, &s, layout_plain(mesh_dense(2, 1, 1, 1)), 0, &e), &e, ERR_USAGE,
          "3 query groups");
    T_ERR(params_build(&p, &s, layout_plain(mesh_dense(1, 1, 1, 2)), 0, &e), &e, ERR_USAGE,
          "3 layers cannot be shared out to pipeline-model-parallel-size 2");
}

/* ---- initial values -------------------------------------------------------------------------- */

static float *values_of(const struct params *p, uint64_t seed)
{
    float *v = mem_new((size_t)p->elements, sizeof(*v));
    for (int i = 0; i < p->n; i++)
        param_init_rows(&p->at[i], seed, 0, p->at[i].size[0], v + p->at[i].offset);
    return v;
}

static void initial_values_do_not_depend_on_the_cut(void)
{
    for (int m = 0; m < MODELS; m++) {
        struct spec s = model(m);
        struct params whole = build(&s, 1, 1, 0);
        float *all = values_of(&whole, 1234);
        for (int tp = 2; tp <= 8; tp *= 2) {
            for (int r = 0; r < tp; r++) {
                struct params part = build(&s, tp, 1, r);
                float *own = values_of(&part, 1234);
                for (int i = 0; i < part.n; i++) {
                    const struct param *p = &part.at[i];
                    const struct param *w = params_same(&whole, p);
                    for (int k = 0; k < p->sources; k++) {
                        const struct param_source *a = &p->source[k], *b = &w->source[k];
                        T_STR(a->name, b->name);
                        for (int64_t row = 0; row < a->count[0]; row++)
                            T_MEM(own + p->offset + (a->row + row) * p->size[1],
                                  all + w->offset + (b->row + a->begin[0] + row) * w->size[1] +
                                      a->begin[1],
                                  (size_t)a->count[1] * sizeof(float));
                    }
                }
                free(own);
                params_finish(&part);
            }
        }
        free(all);
        params_finish(&whole);
    }
}

static void initial_values_have_their_spread(void)
{
    struct spec s = model(GPT);
    s.hidden = 128;
    s.head_dim = 16;
    s.ffn = 512;
    struct params p = build(&s, 1, 1, 0);
    float *v = values_of(&p, 7), *w = values_of(&p, 8);
    for (int i = 0; i < p.n; i++) {
        const struct param *q = &p.at[i];
        int64_t real = q->kind == PARAM_EMBED ? 100 * 128 : q->count;
        double sum = 0, square = 0,
               want = q->kind == PARAM_OUT || q->kind == PARAM_DOWN ? 0.02 / sqrt(6) : 0.02;
        for (int64_t k = 0; k < q->count; k++) {
            double x = v[q->offset + k];
            sum += x;
            square += x * x;
            if (q->init == INIT_ONE || q->init == INIT_ZERO)
                T_CHECK(x == (q->init == INIT_ONE ? 1 : 0));
            else
                T_CHECK(k < real ? x != w[q->offset + k] : x == 0);
        }
        if (q->init == INIT_ONE || q->init == INIT_ZERO) {
            T_EQ(q->init == INIT_ONE,
                 q->kind == PARAM_NORM || q->kind == PARAM_NORM1 || q->kind == PARAM_NORM2);
            continue;
        }
        double n = (double)real;
        T_CHECK(fabs(sum / n) < 5 * want / sqrt(n));
        T_NEAR(sqrt(square / n) / want, 1, 4 / sqrt(n));
    }
    free(v);
    free(w);
    params_finish(&p);
}

static void rows_alone_are_the_same(void)
{
    struct spec s = model(LLAMA);
    struct params p = build(&s, 2, 1, 0);
    float *v = values_of(&p, 3), *w = mem_new((size_t)p.elements, sizeof(*w));
    for (int i = 0; i < p.n; i++)
        for (int64_t at = 0, n; at < p.at[i].size[0]; at += n) {
            n = 1 + t_rand(9, (uint64_t)at) % 7;
            if (n > p.at[i].size[0] - at)
                n = p.at[i].size[0] - at;
            param_init_rows(&p.at[i], 3, at, n, w + p.at[i].offset + at * p.at[i].size[1]);
        }
    T_MEM(w, v, (size_t)p.elements * sizeof(*v));
    free(v);
    free(w);
    params_finish(&p);
}

/* Two tensors with the same stream would begin with the same numbers. */
static void no_two_tensors_begin_alike(void)
{
    struct spec s = model(LLAMA);
    s.layers = 200;
    s.hidden = 4;
    s.init_std = 1;
    struct params p = build(&s, 1, 1, 0);
    double *first = mem_new((size_t)p.n * 3, sizeof(*first));
    size_t n = 0;
    for (int i = 0; i < p.n; i++) {
        if (p.at[i].init != INIT_NORMAL)
            continue;
        for (int k = 0; k < p.at[i].sources; k++) {
            float row[4];
            param_init_rows(&p.at[i], 1, p.at[i].source[k].row, 1, row);
            first[n++] = (double)row[0];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            T_CHECK(first[i] != first[k]);
    free(first);
    params_finish(&p);
}

T_MAIN(T_CASE(one_rank_holds_what_the_header_says), T_CASE(slab_has_no_overlaps),
       T_CASE(cuts_cover_each_tensor_once), T_CASE(heads_of_a_rank_stay_together),
       T_CASE(shared_key_heads), T_CASE(cuts_that_cannot_be),
       T_CASE(initial_values_do_not_depend_on_the_cut), T_CASE(initial_values_have_their_spread),
       T_CASE(rows_alone_are_the_same), T_CASE(no_two_tensors_begin_alike))
