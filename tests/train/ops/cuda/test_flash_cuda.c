/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Our own attention on tensor cores (the device's kernels and the portable ones) against the plain
 * twin, on the same rounded inputs: the forms
 * of the twins' calls (ragged rows, windows, grouped heads, dropout, caps, fewer queries than keys)
 * and some at larger sizes. Outputs and scratch are poisoned, rows have gaps that must stay as they
 * are, and a second run gives the same bytes. Without a GPU the cases are skipped.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/ops/compare.h"
#include "tests/train/ops/cuda/narrow.h"
#include "train/ops/cuda/flash.h"
#include "train/tensor/cuda/dev_cuda.h"

enum {
    WORKSPACE = 64 << 20,
    DEVICE = 256 << 20,
    GAP = 8,
    POISON = 0xffff,
    RAGGED = 16,
    WINDOW = 32,
    DROP = 64,
    CAP = 512,
    DRAWN = 40
};

static const double bound[] = {[DTYPE_BF16] = 5e-3, [DTYPE_F16] = 8e-4};

static struct world w;
static struct dev gpu;
static struct slab memory; /* of the device: everything of one call */
static enum dtype type;
static enum flash_kernels kernels;

/* A tensor on the device; narrow ones have GAP numbers between their rows. */
struct there {
    struct tensor t;
    size_t bytes;
    uint16_t *first; /* what the first run left, for narrow outputs */
};

static void send(void *to, const void *from, size_t bytes)
{
    gpu.fn->copy(&gpu, STREAM_COMPUTE, to, from, bytes);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
}

/* The world's numbers, rounded there too; an output is all poison. */
static struct there narrow(struct tensor t, bool output)
{
    int64_t cols = t.size[1] * t.size[2], stride = cols + GAP, n = t.size[0];
    struct there x = {.bytes = (size_t)(n * stride) * 2};
    uint16_t *bits = mem_new((size_t)(n * stride) + 1, 2);
    for (int64_t i = 0; i < n * stride; i++)
        bits[i] = POISON;
    for (int64_t i = 0; i < n * cols && !output; i++) {
        uint16_t u = narrow_bits(type, world_get(t, i));
        bits[i / cols * stride + i % cols] = u;
        world_set(t, i, narrow_value(type, u));
    }
    x.t = t;
    x.t.dtype = type;
    x.t.stride = stride;
    x.t.data = slab_bytes(&memory, x.bytes);
    send(x.t.data, bits, x.bytes);
    free(bits);
    return x;
}

static struct tensor ints(struct tensor t)
{
    void *p = slab_bytes(&memory, tensor_bytes(t));
    send(p, t.data, tensor_bytes(t));
    t.data = p;
    return t;
}

static uint16_t *fetch(const struct there *x)
{
    struct err e;
    uint16_t *bits = mem_new(x->bytes + 1, 1);
    send(bits, x->t.data, x->bytes);
    T_OK(dev_fault(&gpu, &e), &e);
    return bits;
}

/* ||have - ref|| within the bound of ||ref|| and of a tenth of as many ones; gaps untouched. */
static void check(const char *call, const char *what, const struct there *x, struct tensor ref)
{
    int64_t cols = ref.size[1] * ref.size[2], stride = x->t.stride;
    uint16_t *bits = fetch(x);
    double off = 0, square = 0, n = (double)tensor_count(ref);
    for (int64_t i = 0; i < tensor_count(ref); i++) {
        double r = world_get(ref, i);
        double h = narrow_value(type, bits[i / cols * stride + i % cols]);
        off += (h - r) * (h - r);
        square += r * r;
    }
    for (int64_t i = 0; i < ref.size[0] * GAP; i++)
        if (bits[i / GAP * stride + cols + i % GAP] != POISON)
            t_fail(__FILE__, __LINE__, "%s: %s is written outside of row %lld", call, what,
                   (long long)(i / GAP));
    free(bits);
    if (!(sqrt(off) <= bound[type] * (sqrt(square) + 0.1 * sqrt(n))))
        t_fail(__FILE__, __LINE__, "%s: %s is off by %.3g of %.3g", call, what, sqrt(off / n),
               sqrt(square / n));
}

static void check_lse(const char *call, const struct tensor there, struct tensor ref)
{
    size_t bytes = (size_t)(there.size[0] * there.stride) * sizeof(float);
    float *x = mem_new(bytes + 1, 1);
    send(x, there.data, bytes);
    for (int64_t i = 0; i < tensor_count(ref); i++) {
        double r = world_get(ref, i),
               h = (double)x[i / ref.size[1] * there.stride + i % ref.size[1]];
        if (!(fabs(h - r) <= 1e-4))
            t_fail(__FILE__, __LINE__, "%s: lse [%lld] is %.9g, not %.9g", call, (long long)i, h,
                   r);
    }
    free(x);
}

struct run {
    struct there q, k, v, o, dout, dq, dk, dv;
    struct attention_bwd_args args;
    void *scratch;
    size_t scratch_bytes;
};

static void poison(void *p, size_t bytes)
{
    void *x = mem_new(bytes + 1, 1);
    memset(x, 0xff, bytes);
    send(p, x, bytes);
    free(x);
}

/* Whether `even` of attention_args can be promised. */
static bool are_even(const struct attention_args *a)
{
    const int32_t *q = a->q_start.data, *k = a->k_start.data, *len = a->k_len.data;
    bool even = a->q.size[0] == a->k.size[0];
    for (int64_t s = 0; s < a->k_len.size[0]; s++)
        even = even && q[s] == s * a->max_len && k[s] == q[s] && len[s] == a->max_len;
    return even && a->q.size[0] == a->k_len.size[0] * a->max_len;
}

static void place(struct run *r, const struct attention_bwd_args *b)
{
    slab_reset(&memory, 0);
    r->q = narrow(b->fwd.q, false);
    r->k = narrow(b->fwd.k, false);
    r->v = narrow(b->fwd.v, false);
    r->dout = narrow(b->dout, false);
    r->o = narrow(b->fwd.o, true);
    r->dq = narrow(b->dq, true);
    r->dk = narrow(b->dk, true);
    r->dv = narrow(b->dv, true);
    r->args = *b;
    r->args.fwd.q = r->q.t;
    r->args.fwd.k = r->k.t;
    r->args.fwd.v = r->v.t;
    r->args.fwd.o = r->o.t;
    r->args.dout = r->dout.t;
    r->args.dq = r->dq.t;
    r->args.dk = r->dk.t;
    r->args.dv = r->dv.t;
    r->args.fwd.lse.stride = b->fwd.lse.size[1] + 3;
    r->args.fwd.lse.data =
        slab_bytes(&memory, (size_t)(b->fwd.lse.size[0] * r->args.fwd.lse.stride) * 4);
    r->args.fwd.q_start = ints(b->fwd.q_start);
    r->args.fwd.k_start = ints(b->fwd.k_start);
    r->args.fwd.k_len = ints(b->fwd.k_len);
    if (!tensor_none(b->fwd.drop.origin))
        r->args.fwd.drop.origin = ints(b->fwd.drop.origin);
    r->args.fwd.even = are_even(&b->fwd);
    r->scratch_bytes = flash_bwd_scratch(&r->args);
    r->scratch = slab_bytes(&memory, r->scratch_bytes);
}

static void run(struct run *r)
{
    struct there *const outs[] = {&r->o, &r->dq, &r->dk, &r->dv};
    poison(r->args.fwd.lse.data,
           (size_t)(r->args.fwd.lse.size[0] * r->args.fwd.lse.stride) * sizeof(float));
    poison(r->scratch, r->scratch_bytes);
    for (int i = 0; i < 4; i++)
        poison(outs[i]->t.data, outs[i]->bytes);
    T_CHECK(flash_takes_bwd(&r->args));
    flash_attention(&gpu, &r->args.fwd, kernels);
    flash_attention_bwd(&gpu, &r->args, kernels, r->scratch);
}

static void twice(const char *call, struct run *r)
{
    struct there *const outs[] = {&r->o, &r->dq, &r->dk, &r->dv};
    run(r);
    for (int i = 0; i < 4; i++)
        outs[i]->first = fetch(outs[i]);
    run(r);
    for (int i = 0; i < 4; i++) {
        uint16_t *second = fetch(outs[i]);
        bool same = memcmp(second, outs[i]->first, outs[i]->bytes) == 0;
        free(second);
        free(outs[i]->first);
        if (!same)
            t_fail(__FILE__, __LINE__, "%s: output %d differs between two runs", call, i);
    }
}

static void compare(const int64_t *d, uint32_t bits)
{
    struct call c = {0};
    struct run r;
    char name[160];
    const struct twin *t = twins;
    while (strcmp(t->name, "attention_bwd") != 0)
        t++;
    world_clear(&w, bits);
    t->make(&w, &c, d, bits);
    struct attention_bwd_args *b = &c.u.attention_bwd;
    place(&r, b); /* rounds the inputs */
    op_attention(&w.ops, &b->fwd);
    op_attention_bwd(&w.ops, b);
    bool even = are_even(&b->fwd);
    for (int k = FLASH_FASTEST; k <= FLASH_PORTABLE + even; k++) {
        kernels = (enum flash_kernels)(k % 2);
        r.args.fwd.even = k == 2;
        snprintf(name, sizeof(name), "kernels %d, bits %u, %s = %lld %lld %lld %lld %lld %lld", k,
                 bits, t->what, (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3],
                 (long long)d[4], (long long)d[5]);
        twice(name, &r);
        check(name, "o", &r.o, b->fwd.o);
        check_lse(name, r.args.fwd.lse, b->fwd.lse);
        check(name, "dq", &r.dq, b->dq);
        check(name, "dk", &r.dk, b->dk);
        check(name, "dv", &r.dv, b->dv);
    }
}

static void open_all(enum dtype narrow_type)
{
    struct err e;
    if (dev_cuda_open(&gpu, 0, &e))
        t_skip("%s", e.msg);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, DEVICE);
    T_OK(slab_bind(&memory, &gpu, &e), &e);
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
    type = narrow_type;
}

static void close_all(void)
{
    world_close(&w);
    slab_release(&memory, &gpu);
    dev_close(&gpu);
}

static void drawn(enum dtype narrow_type)
{
    static const int64_t most[] = {5, 200, 3, 3, 16, 200};
    open_all(narrow_type);
    for (uint64_t i = 0; i < DRAWN; i++) {
        int64_t d[TWIN_SIZES];
        for (uint64_t k = 0; k < TWIN_SIZES; k++)
            d[k] = 1 + (int64_t)(t_rand(i + 900, k) % (uint32_t)most[k]);
        d[4] *= 8;
        d[5] = i % 3 ? 0 : d[5];
        compare(d, t_rand(77, i) & (RAGGED | WINDOW | DROP | CAP));
    }
    close_all();
}

static void bf16(void)
{
    drawn(DTYPE_BF16);
}

static void f16(void)
{
    drawn(DTYPE_F16);
}

static void model_sizes(void)
{
    static const struct {
        int64_t d[TWIN_SIZES];
        uint32_t bits;
    } calls[] = {
        {{2, 1024, 2, 1, 64, 0}, 0},
        {{1, 1000, 1, 4, 128, 0}, 0},
        {{1, 640, 2, 2, 64, 0}, DROP},
        {{1, 900, 1, 2, 64, 0}, WINDOW},
        {{4, 500, 1, 2, 128, 0}, RAGGED},
        {{1, 512, 1, 1, 64, 1}, 0},
        {{40, 70, 1, 1, 64, 0}, RAGGED},
        {{1, 600, 2, 2, 128, 0}, CAP | WINDOW},
        {{2, 1021, 1, 2, 64, 0}, DROP},
        {{1, 517, 2, 1, 128, 0}, DROP},
        {{3, 301, 1, 2, 64, 0}, DROP | RAGGED | WINDOW},
    };
    open_all(DTYPE_BF16);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        compare(calls[i].d, calls[i].bits);
    close_all();
}

T_MAIN(T_CASE(bf16), T_CASE(f16), T_CASE(model_sizes))
