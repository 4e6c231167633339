/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables of the host with types of 16 bits: each op gives what it gives in fp32 on the same rounded
 * numbers, rounded once, bit for bit; gaps between rows stay as they are. Fills, casts and sums of
 * 16 bits have known answers.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/ops/twins.h"
#include "train/ops/widen.h"
#include "train/tensor/box.h"

enum { WORKSPACE = 48 << 20, FIELDS = 8, ROUNDS = 24, GAP = 3 };

static struct world w;
static struct ops narrow;

/* Where the tensors of the type `real` lie in an op's arguments; 0 past the last. */
struct fields {
    size_t bytes; /* of the arguments */
    size_t at[FIELDS];
};

#define AT(op, field) offsetof(struct op##_args, field)
#define OF(op) sizeof(struct op##_args)

static const struct fields fields[OP_COUNT] = {
    [OP_EMBED] = {OF(embed), {AT(embed, y), AT(embed, tok), AT(embed, pos)}},
    [OP_EMBED_BWD] = {OF(embed_bwd), {AT(embed_bwd, dy)}},
    [OP_NORM] = {OF(norm),
                 {AT(norm, y), AT(norm, r), AT(norm, x), AT(norm, a), AT(norm, bias), AT(norm, w),
                  AT(norm, b)}},
    [OP_NORM_BWD] = {OF(norm_bwd),
                     {AT(norm_bwd, dr), AT(norm_bwd, dy), AT(norm_bwd, r), AT(norm_bwd, w),
                      AT(norm_bwd, da)}},
    [OP_MATMUL] = {OF(matmul),
                   {AT(matmul, y), AT(matmul, a), AT(matmul, b), AT(matmul, bias),
                    AT(matmul, pre)}},
    [OP_GLU] = {OF(glu), {AT(glu, y), AT(glu, x)}},
    [OP_GLU_BWD] = {OF(glu_bwd), {AT(glu_bwd, dx), AT(glu_bwd, dy), AT(glu_bwd, x)}},
    [OP_ROPE] = {OF(rope), {AT(rope, x)}},
    [OP_ATTENTION] = {OF(attention),
                      {AT(attention, o), AT(attention, q), AT(attention, k), AT(attention, v)}},
    [OP_ATTENTION_BWD] = {OF(attention_bwd),
                          {AT(attention_bwd, fwd.o), AT(attention_bwd, fwd.q),
                           AT(attention_bwd, fwd.k), AT(attention_bwd, fwd.v),
                           AT(attention_bwd, dout), AT(attention_bwd, dq), AT(attention_bwd, dk),
                           AT(attention_bwd, dv)}},
    [OP_XENT_STATS] = {OF(xent_stats), {AT(xent_stats, logits)}},
    [OP_XENT_LOSS] = {OF(xent_loss), {AT(xent_loss, logits)}},
};

/* A tensor's numbers, in order, as another type. */
static void cast_out(void *to, enum dtype d, struct tensor t)
{
    int64_t n = tensor_count(t), width = t.size[0] ? n / t.size[0] : 0;
    for (int64_t i = 0; i < t.size[0]; i++)
        box_cast((char *)to + (size_t)(i * width) * dtype_size(d), d,
                 (char *)t.data + (size_t)(i * t.stride) * dtype_size(t.dtype), t.dtype, width);
}

static void cast_in(struct tensor t, const void *from, enum dtype d)
{
    int64_t n = tensor_count(t), width = t.size[0] ? n / t.size[0] : 0;
    for (int64_t i = 0; i < t.size[0]; i++)
        box_cast((char *)t.data + (size_t)(i * t.stride) * dtype_size(t.dtype), t.dtype,
                 (const char *)from + (size_t)(i * width) * dtype_size(d), d, width);
}

/* Rounds a tensor's numbers where they are, and gives them in the type `real`. */
static struct tensor round_tensor(struct tensor t)
{
    void *bits = mem_new((size_t)tensor_count(t) + 1, 2);
    struct tensor ret =
        world_poisoned(&w, narrow.real, tensor_contiguous(t) ? 0 : GAP, t.rank, t.size);
    cast_out(bits, narrow.real, t);
    cast_in(t, bits, narrow.real);
    cast_in(ret, bits, narrow.real);
    free(bits);
    return ret;
}

struct pair {
    struct tensor wide, narrow;
};

static struct tensor narrowed(struct pair *p, int *n, struct tensor t)
{
    for (int i = 0; i < *n; i++)
        if (p[i].wide.data == t.data)
            return p[i].narrow;
    p[*n] = (struct pair){t, round_tensor(t)};
    return p[(*n)++].narrow;
}

static const struct pair *pair_of(const struct pair *p, int n, struct tensor t)
{
    for (int i = 0; i < n; i++)
        if (p[i].wide.data == t.data)
            return &p[i];
    return NULL;
}

static void check_out(const char *name, int k, struct tensor wide, const void *want,
                      const struct pair *p)
{
    size_t n = (size_t)tensor_count(wide);
    if (!p) {
        void *have = world_bytes(wide);
        if (memcmp(have, want, tensor_bytes(wide)) != 0)
            t_fail(__FILE__, __LINE__, "%s: output %d is not that in fp32", name, k);
        free(have);
        return;
    }
    uint16_t *rounded = mem_new(n + 1, 2), *have = mem_new(n + 1, 2);
    box_cast(rounded, narrow.real, want, DTYPE_F32, (int64_t)n);
    cast_out(have, narrow.real, p->narrow);
    for (size_t i = 0; i < n; i++)
        if (rounded[i] != have[i])
            t_fail(__FILE__, __LINE__, "%s: output %d [%zu] is %04x, expected %04x", name, k, i,
                   have[i], rounded[i]);
    free(rounded);
    free(have);
}

static void one_call(const char *name, struct call *c)
{
    const struct fields *f = &fields[c->op];
    struct pair pair[FIELDS];
    struct call there = *c;
    void *before[CALL_OUTS], *want[CALL_OUTS];
    int n = 0;
    for (int k = 0; k < FIELDS && (k == 0 || f->at[k]); k++) {
        struct tensor *t = (struct tensor *)(void *)((char *)&there.u + f->at[k]);
        if (!tensor_none(*t) &&
            !(t->data == c->u.matmul.y.data && c->op == OP_MATMUL && c->u.matmul.accumulate))
            *t = narrowed(pair, &n, *t);
    }
    for (int k = 0; k < c->outs; k++)
        before[k] = world_bytes(c->out[k]);
    call_run(&w.ops, c);
    for (int k = 0; k < c->outs; k++) {
        want[k] = world_bytes(c->out[k]);
        world_restore(c->out[k], before[k]);
    }
    call_run(&narrow, &there);
    for (int k = 0; k < c->outs; k++) {
        check_out(name, k, c->out[k], want[k], pair_of(pair, n, c->out[k]));
        free(before[k]);
        free(want[k]);
    }
    world_guarded(&w);
}

static void all_ops(enum dtype real)
{
    struct err e;
    int calls = 0;
    world_open(&w, DTYPE_F32, NULL, 2, WORKSPACE);
    T_OK(ops_cpu_init(&narrow, &w.dev, &w.workspace, real, NULL, &e), &e);
    T_EQ(narrow.stat, DTYPE_F32);
    for (int op = 0; op < OP_COUNT; op++)
        if (!widen_lists((enum op)op))
            t_fail(__FILE__, __LINE__, "%s: widen.c does not list its tensors",
                   op_name((enum op)op));
    for (int i = 0; i < twin_count; i++)
        for (uint32_t round = 0; round < ROUNDS; round++) {
            struct call c = {0};
            int64_t d[TWIN_SIZES];
            for (int k = 0; k < TWIN_SIZES; k++)
                d[k] =
                    twins[i].most[k]
                        ? 1 + (int64_t)(t_rand(round, (uint64_t)(i * 8 + k)) %
                                        (uint64_t)(twins[i].most[k] < 40 ? twins[i].most[k] : 40))
                        : 0;
            world_clear(&w, round);
            twins[i].make(&w, &c, d, (uint32_t)t_rand(round, 1000) % (1 << TWIN_BITS));
            if (fields[c.op].bytes) {
                one_call(twins[i].name, &c);
                calls++;
            }
        }
    printf("# %d calls\n", calls);
    T_CHECK(calls > 200);
    world_close(&w);
}

static void bf16(void)
{
    all_ops(DTYPE_BF16);
}

static void fp16(void)
{
    all_ops(DTYPE_F16);
}

/* ---- known answers ------------------------------------------------------------------------ */

static void put(struct tensor t, const float *v)
{
    cast_in(t, v, DTYPE_F32);
}

static void has(struct tensor t, const float *v, int64_t n)
{
    float have[16];
    cast_out(have, DTYPE_F32, t);
    for (int64_t i = 0; i < n; i++)
        T_CHECK(have[i] == v[i]);
}

/* 1 + 2^-8 lies half way between two numbers of BF16 and goes to the even one; 2^-9 more goes up.
 */
static void casts(void)
{
    struct err e;
    int64_t size[] = {2, 3};
    world_open(&w, DTYPE_F32, NULL, 1, WORKSPACE);
    T_OK(ops_cpu_init(&narrow, &w.dev, &w.workspace, DTYPE_BF16, NULL, &e), &e);
    struct tensor x = world_poisoned(&w, DTYPE_F32, 2, 2, size);
    struct tensor y = world_poisoned(&w, DTYPE_BF16, 1, 2, size);
    put(x, (const float[]){1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1p-8f + 0x1p-9f, -3, 0, 5});
    op_copy(&narrow, &(struct copy_args){.y = y, .x = x});
    has(y, (const float[]){1, 1 + 0x1p-6f, 1 + 0x1p-7f, -3, 0, 5}, 6);
    op_copy(&narrow, &(struct copy_args){.y = y, .x = y, .accumulate = true});
    has(y, (const float[]){2, 2 + 0x1p-5f, 2 + 0x1p-6f, -6, 0, 10}, 6);
    op_copy(&narrow, &(struct copy_args){.y = x, .x = y});
    has(x, (const float[]){2, 2 + 0x1p-5f, 2 + 0x1p-6f, -6, 0, 10}, 6);
    op_fill(&narrow, &(struct fill_args){.y = y, .value = 1 + 0x3p-9});
    has(y,
        (const float[]){1 + 0x1p-7f, 1 + 0x1p-7f, 1 + 0x1p-7f, 1 + 0x1p-7f, 1 + 0x1p-7f,
                        1 + 0x1p-7f},
        6);
    world_guarded(&w);
    world_close(&w);
}

/* Weights in fp32 with a copy, moments in bf16: what is kept is rounded, the update is not. */
static void optimizer(void)
{
    struct err e;
    struct ops_config c = {.real = DTYPE_F16, .narrow = {.moment = {true, true}}};
    int64_t n = 2;
    world_open(&w, DTYPE_F32, NULL, 1, WORKSPACE);
    T_OK(ops_cpu_open(&narrow, &w.dev, &w.workspace, &c, &e), &e);
    struct tensor p = world_poisoned(&w, DTYPE_F32, 0, 1, &n);
    struct tensor g = world_poisoned(&w, DTYPE_F32, 0, 1, &n);
    struct tensor m = world_poisoned(&w, DTYPE_BF16, 0, 1, &n);
    struct tensor v = world_poisoned(&w, DTYPE_BF16, 0, 1, &n);
    struct tensor copy = world_poisoned(&w, DTYPE_F16, 0, 1, &n);
    struct tensor values = world_values(&w, step_values_make(0x1p-12, 0, 1, 0.5, 0.5));
    put(p, (const float[]){1, 2});
    put(g, (const float[]){1 + 0x1p-8f + 0x1p-12f, -1});
    put(m, (const float[]){0, 0});
    put(v, (const float[]){0, 0});
    op_adamw(&narrow, &(struct adamw_args){.p = p,
                                           .g = g,
                                           .m = m,
                                           .v = v,
                                           .copy = copy,
                                           .values = values,
                                           .beta1 = 0.5,
                                           .beta2 = 0.5});
    has(p, (const float[]){1 - 0x1p-12f, 2 + 0x1p-12f}, 2);
    has(m, (const float[]){0.5f + 0x1p-8f, -0.5f}, 2);
    has(copy, (const float[]){1, 2}, 2);
    put(p, (const float[]){1 - 0x1p-11f, 65530});
    struct tensor still = world_values(&w, step_values_make(0, 0, 1, 0, 0));
    op_sgd(&narrow, &(struct sgd_args){.p = p, .g = g, .copy = copy, .values = still});
    has(copy, (const float[]){1 - 0x1p-11f, (float)INFINITY}, 2);
    world_guarded(&w);
    world_close(&w);
}

T_MAIN(T_CASE(bf16), T_CASE(fp16), T_CASE(casts), T_CASE(optimizer))
