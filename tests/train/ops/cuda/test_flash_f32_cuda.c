/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attention in F32 by the GPU's table, with products in fp32 and in TF32, against the plain twin on
 * the host, which sums in double: head sizes by forms (full, window, cap; ragged rows or not; with
 * dropout or not) by lengths. Inputs are numbers of TF32, so that what differs is what the kernels
 * round. Outputs and scratch are poisoned, rows have gaps that must stay as they are, and a second
 * run gives the same bytes. Without a GPU the cases are skipped.
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/compare.h"
#include "tests/train/ops/cuda/mirror.h"
#include "train/ops/cuda/flash_f32.h"
#include "train/ops/cuda/ops_cuda.h"

enum { WORKSPACE = 64 << 20, GAP = 4, PRODUCTS = 2, SEQUENCES = 3 };

/* Of |gpu - host| / (|host| + root mean square of host + floor). */
static const struct {
    double forward, backward, lse;
} tolerance[PRODUCTS] = {[F32_EXACT] = {1e-5, 2e-5, 2e-5}, [F32_TF32] = {4e-3, 8e-3, 1e-4}};

struct form {
    int64_t tokens, groups, each, dim;
    bool window, cap, documents, drop;
    int64_t queries; /* of each sequence, its last; 0: all */
};

static struct world w;
static struct mirror gpu;
static struct ops table[PRODUCTS];
static const char *const product_names[PRODUCTS] = {"fp32", "TF32"};

static void open_both(void)
{
    struct err e;
    mirror_open(&gpu, WORKSPACE);
    table[F32_EXACT] = gpu.ops;
    T_OK(ops_cuda_open(&table[F32_TF32], &gpu.dev, &gpu.workspace,
                       &(struct ops_config){.real = DTYPE_F32, .tf32 = true}, &e),
         &e);
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
}

static void close_both(void)
{
    ops_close(&table[F32_TF32]);
    gpu.ops = table[F32_EXACT];
    world_close(&w);
    mirror_close(&gpu);
}

/* Even random numbers, to the nearest of TF32. */
static struct tensor numbers(int64_t n, int64_t heads, int64_t dim)
{
    struct tensor t = world_3d(&w, 1, n, heads, dim, GAP);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        float x = (float)world_get(t, i);
        uint32_t u;
        memcpy(&u, &x, sizeof(u));
        u = (u + 0x1000) & 0xffffe000u;
        memcpy(&x, &u, sizeof(u));
        world_set(t, i, (double)x);
    }
    return t;
}

/* Documents of different lengths, the first the longest, with a row of keys that is no one's before
 * each and behind the last. */
static void make_rows(struct attention_args *a, const struct form *f)
{
    int32_t q_start[SEQUENCES + 1] = {0}, k_start[SEQUENCES], k_len[SEQUENCES], at = 0;
    const int n = f->documents ? SEQUENCES : 1;
    for (int s = 0; s < n; s++) {
        int64_t keys = s ? 1 + (f->tokens * 5 + s * 7) % f->tokens : f->tokens;
        at += f->documents ? 1 : 0;
        k_start[s] = at;
        k_len[s] = (int32_t)keys;
        at += (int32_t)keys;
        q_start[s + 1] =
            q_start[s] + (int32_t)(f->queries && f->queries < keys ? f->queries : keys);
    }
    a->q_start = world_ints(&w, n + 1, q_start);
    a->k_start = world_ints(&w, n, k_start);
    a->k_len = world_ints(&w, n, k_len);
    a->max_len = f->tokens + 2;
    a->q = numbers(q_start[n], f->groups * f->each, f->dim);
    a->k = numbers(at + (f->documents ? 1 : 0), f->groups, f->dim);
    a->v = numbers(at + (f->documents ? 1 : 0), f->groups, f->dim);
}

static struct tensor poisoned(struct tensor like)
{
    return world_poisoned(&w, DTYPE_F32, GAP, like.rank, like.size);
}

static void make(const struct form *f, struct attention_bwd_args *b)
{
    struct attention_args *a = &b->fwd;
    *b = (struct attention_bwd_args){0};
    make_rows(a, f);
    a->window = f->window ? 1 + f->tokens / 3 : 0;
    a->cap = f->cap ? 1.5f : 0;
    a->scale = 1 / sqrtf((float)f->dim);
    a->head0 = 3;
    a->all_heads = f->groups * f->each + 4;
    if (f->drop)
        a->drop = (struct dropout){.p = 0.3f, .seed = 77, .sub = 3, .row0 = 2};
    a->o = poisoned(a->q);
    a->lse = world_poisoned(&w, DTYPE_F32, 3, 2, (const int64_t[]){a->q.size[1], a->q.size[0]});
    b->dout = numbers(a->q.size[0], a->q.size[1], f->dim);
    b->dq = poisoned(a->q);
    b->dk = poisoned(a->k);
    b->dv = poisoned(a->v);
}

/* By the kernels that are meant, not by those for all other forms. */
static bool taken(const struct call *c, enum f32_products products)
{
    const struct dev_desc *d = &gpu.dev.desc;
    return c->op == OP_ATTENTION ? flash_f32_takes(d, &c->u.attention, products)
                                 : flash_f32_takes_bwd(d, &c->u.attention_bwd, products);
}

/* A call is made twice on the GPU, after the host has left its outputs in `ref`. */
static void twice(const char *name, struct call *c, const struct outcome *before,
                  const struct outcome *ref)
{
    struct outcome first, second;
    outcome_put_back(c, before);
    mirror_run(&gpu, &w, c);
    first = outcome_save(c);
    outcome_put_back(c, before);
    mirror_run(&gpu, &w, c);
    second = outcome_save(c);
    for (int k = 0; k < c->outs; k++)
        if (memcmp(first.bytes[k], second.bytes[k], tensor_bytes(c->out[k])) != 0)
            t_fail(__FILE__, __LINE__, "%s: output %d differs between two runs", name, k);
    outcome_near(name, c, ref, &first);
    outcome_put_back(c, ref);
    outcome_drop(&first);
    outcome_drop(&second);
}

static void compare_call(const char *what, struct call *c, bool backward)
{
    char name[200];
    struct outcome before = outcome_save(c), ref;
    call_run(&w.ops, c);
    ref = outcome_save(c);
    for (int p = 0; p < PRODUCTS; p++) {
        snprintf(name, sizeof(name), "%s, %s, %s", product_names[p],
                 backward ? "backward" : "forward", what);
        c->tolerance = backward ? tolerance[p].backward : tolerance[p].forward;
        c->floor = backward ? 0.3 : 0; /* one key: no slope but what rounding leaves */
        c->limit[1] = (struct limit){!backward, 0, tolerance[p].lse};
        gpu.ops = table[p];
        T_CHECK(taken(c, (enum f32_products)p));
        twice(name, c, &before, &ref);
    }
    outcome_drop(&before);
    outcome_drop(&ref);
}

static void compare(const struct form *f)
{
    char what[160];
    struct attention_bwd_args b;
    struct call forward = {.op = OP_ATTENTION, .outs = 2},
                backward = {.op = OP_ATTENTION_BWD, .outs = 3};
    snprintf(what, sizeof(what), "%lld tokens, %lld x %lld heads of %lld, queries %lld%s%s%s%s",
             (long long)f->tokens, (long long)f->groups, (long long)f->each, (long long)f->dim,
             (long long)f->queries, f->window ? ", window" : "", f->cap ? ", cap" : "",
             f->documents ? ", documents" : "", f->drop ? ", dropout" : "");
    world_clear(&w, (uint64_t)(f->tokens + f->dim));
    make(f, &b);
    forward.u.attention = b.fwd;
    forward.out[0] = b.fwd.o;
    forward.out[1] = b.fwd.lse;
    compare_call(what, &forward, false);
    backward.u.attention_bwd = b; /* with the host's o and lse */
    backward.out[0] = b.dq;
    backward.out[1] = b.dk;
    backward.out[2] = b.dv;
    compare_call(what, &backward, true);
}

static void forms(int64_t dim)
{
    static const int64_t lengths[] = {1, 127, 173, 299};
    open_both();
    for (int bits = 0; bits < 12; bits++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
            compare(&(struct form){.tokens = lengths[i],
                                   .groups = 1 + bits % 2,
                                   .each = 2 - bits % 2,
                                   .dim = dim,
                                   .window = bits % 3 == 1,
                                   .cap = bits % 3 == 2,
                                   .documents = bits / 3 % 2,
                                   .drop = bits / 6});
    compare(&(struct form){.tokens = 201, .groups = 1, .each = 2, .dim = dim, .queries = 37});
    close_both();
}

#define FORMS(dim)                                                                                 \
    static void of_##dim(void)                                                                     \
    {                                                                                              \
        forms(dim);                                                                                \
    }

FORMS(20)
FORMS(32)
FORMS(64)
FORMS(80)
FORMS(96)
FORMS(112)
FORMS(128)
FORMS(192)
FORMS(256)

/* Blocks of the backward wait for each other here. */
static void long_rows(void)
{
    static const struct form calls[] = {
        {.tokens = 4097, .groups = 1, .each = 1, .dim = 64},
        {.tokens = 4097, .groups = 1, .each = 1, .dim = 64, .window = true, .drop = true},
        {.tokens = 2049, .groups = 1, .each = 2, .dim = 128, .documents = true},
        {.tokens = 1030, .groups = 1, .each = 4, .dim = 256, .cap = true},
        {.tokens = 700, .groups = 12, .each = 1, .dim = 64},
    };
    open_both();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        compare(&calls[i]);
    close_both();
}

T_MAIN(T_CASE(of_20), T_CASE(of_32), T_CASE(of_64), T_CASE(of_80), T_CASE(of_96), T_CASE(of_112),
       T_CASE(of_128), T_CASE(of_192), T_CASE(of_256), T_CASE(long_rows))
