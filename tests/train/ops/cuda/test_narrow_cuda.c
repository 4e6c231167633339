/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernels and matrix products on BF16 and F16 tensors against the plain twins in fp32, on the same
 * rounded inputs: the calls of test_twins.c and some at the sizes of models. Outputs are poisoned,
 * rows have gaps that must stay as they are, and a second run gives the same bytes. Gradients of
 * weights are F32, and BF16 in cases of their own. Without a GPU the cases are skipped.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/ops/compare.h"
#include "tests/train/ops/cuda/narrow.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

enum {
    WORKSPACE = 64 << 20,
    DEVICE = 1 << 30,
    GAP = 8,
    POISON = 0xffff,
    FIELDS = 9,
    GRADS = 4,
    MOST = 16
};

static const double bf16_bound = 5e-3; /* F16 has three bits more */
static enum dtype real, grad;

static struct world w;
static struct dev gpu;
static struct ops ops;
static struct slab workspace, memory; /* of the device */

/* Where tensors of the types `real` and `grad` lie in an op's arguments; SIZE_MAX past the last. */
struct narrowed {
    const char *name;
    size_t bytes; /* of the arguments */
    size_t field[FIELDS], grads[GRADS];
};

#define AT(op, field) offsetof(struct op##_args, field)
#define END SIZE_MAX

static const struct narrowed narrowed[] = {
    {"embed",
     sizeof(struct embed_args),
     {AT(embed, y), AT(embed, tok), AT(embed, pos), END},
     {END}},
    {"embed_bwd",
     sizeof(struct embed_bwd_args),
     {AT(embed_bwd, dy), END},
     {AT(embed_bwd, dtok), AT(embed_bwd, dpos), END}},
    {"norm",
     sizeof(struct norm_args),
     {AT(norm, y), AT(norm, r), AT(norm, x), AT(norm, a), AT(norm, bias), AT(norm, w), AT(norm, b),
      END},
     {END}},
    {"norm_bwd",
     sizeof(struct norm_bwd_args),
     {AT(norm_bwd, dr), AT(norm_bwd, dy), AT(norm_bwd, r), AT(norm_bwd, w), AT(norm_bwd, da), END},
     {AT(norm_bwd, dw), AT(norm_bwd, db), AT(norm_bwd, dbias), END}},
    {"glu", sizeof(struct glu_args), {AT(glu, y), AT(glu, x), END}, {END}},
    {"glu_bwd",
     sizeof(struct glu_bwd_args),
     {AT(glu_bwd, dx), AT(glu_bwd, dy), AT(glu_bwd, x), END},
     {END}},
    {"rope", sizeof(struct rope_args), {AT(rope, x), END}, {END}},
    {"xent_stats", sizeof(struct xent_stats_args), {AT(xent_stats, logits), END}, {END}},
    {"xent_loss", sizeof(struct xent_loss_args), {AT(xent_loss, logits), END}, {END}},
    {"forward",
     sizeof(struct matmul_args),
     {AT(matmul, y), AT(matmul, a), AT(matmul, b), AT(matmul, bias), AT(matmul, pre), END},
     {END}},
    {"dgrad",
     sizeof(struct matmul_args),
     {AT(matmul, y), AT(matmul, a), AT(matmul, b), AT(matmul, pre), END},
     {END}},
    {"wgrad",
     sizeof(struct matmul_args),
     {AT(matmul, a), AT(matmul, b), END},
     {AT(matmul, y), AT(matmul, dbias), END}},
    {"attention",
     sizeof(struct attention_args),
     {AT(attention, o), AT(attention, q), AT(attention, k), AT(attention, v), END},
     {END}},
    {"attention_bwd",
     sizeof(struct attention_bwd_args),
     {AT(attention_bwd, fwd.o), AT(attention_bwd, fwd.q), AT(attention_bwd, fwd.k),
      AT(attention_bwd, fwd.v), AT(attention_bwd, dout), AT(attention_bwd, dq),
      AT(attention_bwd, dk), AT(attention_bwd, dv), END},
     {END}},
    {"cap", sizeof(struct cap_args), {AT(cap, x), END}, {END}},
    {"head_norm",
     sizeof(struct head_norm_args),
     {AT(head_norm, x), AT(head_norm, pre), AT(head_norm, w), END},
     {END}},
    {"head_norm_bwd",
     sizeof(struct head_norm_bwd_args),
     {AT(head_norm_bwd, dx), AT(head_norm_bwd, pre), AT(head_norm_bwd, w), END},
     {AT(head_norm_bwd, dw), END}},
    {"route", sizeof(struct route_args), {AT(route, logits), END}, {END}},
    {"route_bwd", sizeof(struct route_bwd_args), {AT(route_bwd, dlogits), END}, {END}},
    {"permute", sizeof(struct permute_args), {AT(permute, to), AT(permute, x), END}, {END}},
    {"permute_bwd",
     sizeof(struct permute_bwd_args),
     {AT(permute_bwd, dx), AT(permute_bwd, dto), END},
     {END}},
    {"unpermute",
     sizeof(struct unpermute_args),
     {AT(unpermute, y), AT(unpermute, from), END},
     {END}},
    {"unpermute_bwd",
     sizeof(struct unpermute_bwd_args),
     {AT(unpermute_bwd, dfrom), AT(unpermute_bwd, dy), AT(unpermute_bwd, from), END},
     {END}},
    {"grouped",
     sizeof(struct grouped_args),
     {AT(grouped, y), AT(grouped, x), AT(grouped, w), END},
     {END}},
    {"grouped_bwd",
     sizeof(struct grouped_bwd_args),
     {AT(grouped_bwd, dy), AT(grouped_bwd, x), END},
     {AT(grouped_bwd, dw), END}},
    {"gate", sizeof(struct gate_args), {AT(gate, y), AT(gate, x), AT(gate, logit), END}, {END}},
    {"gate_bwd",
     sizeof(struct gate_bwd_args),
     {AT(gate_bwd, dx), AT(gate_bwd, dy), AT(gate_bwd, x), AT(gate_bwd, logit),
      AT(gate_bwd, dlogit), END},
     {END}},
};

/* A tensor of the world and its twin on the device. */
struct pair {
    struct tensor host, there;
    bool output;
    size_t bytes;
    void *image, *first; /* what is sent; what the first run left */
};

static struct pair pairs[MOST];
static int pair_count;

static void send(void *to, const void *from, size_t bytes)
{
    gpu.fn->copy(&gpu, STREAM_COMPUTE, to, from, bytes);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
}

static int64_t row_of(struct tensor t)
{
    return t.rank == 1 ? t.size[0] : t.rank == 2 ? t.size[1] : t.size[1] * t.size[2];
}

static int64_t rows_of(struct tensor t)
{
    return t.rank == 1 ? 1 : t.size[0];
}

static bool is_output(const struct call *c, struct tensor t)
{
    for (int k = 0; k < c->outs; k++)
        if (c->out[k].data == t.data)
            return true;
    return false;
}

static uint16_t bits_of(enum dtype type, double x)
{
    uint16_t infinite = type == DTYPE_BF16 ? 0x7f80 : 0x7c00;
    if (isnan(x))
        return POISON;
    if (isinf(x) || (type == DTYPE_F16 && fabs(x) >= 65520))
        return x > 0 ? infinite : infinite | 0x8000;
    return narrow_bits(type, x);
}

/* Rounds the tensor's numbers on the host, and lays them out for the device. */
static void narrow(struct pair *p, enum dtype type)
{
    int64_t cols = row_of(p->host), rows = rows_of(p->host);
    int64_t stride = p->host.rank == 1 ? cols : cols + GAP;
    p->there.dtype = type;
    p->there.stride = p->host.rank == 1 ? p->host.stride : stride;
    p->bytes = (size_t)(rows * stride) * 2;
    uint16_t *bits = p->image = mem_new(p->bytes + 1, 1);
    for (int64_t i = 0; i < rows * stride; i++)
        bits[i] = POISON;
    for (int64_t i = 0; i < rows * cols; i++) {
        uint16_t u = bits_of(type, world_get(p->host, i));
        bits[i / cols * stride + i % cols] = u;
        if (u != POISON)
            world_set(p->host, i, narrow_value(type, u));
    }
}

static void plain(struct pair *p)
{
    int64_t stride = p->host.rank == 1 ? p->host.size[0] : p->host.stride;
    p->bytes = (size_t)(rows_of(p->host) * stride) * dtype_size(p->host.dtype);
    p->image = mem_new(p->bytes + 1, 1);
    if (p->bytes) /* after the last row there is no gap */
        memcpy(p->image, p->host.data,
               p->bytes - (size_t)(stride - row_of(p->host)) * dtype_size(p->host.dtype));
}

static struct tensor place(const struct call *c, struct tensor t, enum dtype type)
{
    for (int i = 0; i < pair_count; i++)
        if (pairs[i].host.data == t.data)
            return pairs[i].there;
    T_CHECK(pair_count < MOST);
    struct pair *p = &pairs[pair_count++];
    *p = (struct pair){.host = t, .there = t, .output = is_output(c, t)};
    if (type != t.dtype)
        narrow(p, type);
    else
        plain(p);
    p->there.data = slab_bytes(&memory, p->bytes);
    return p->there;
}

static bool in_world(const void *p)
{
    for (int i = 0; i < w.pieces; i++)
        if ((uintptr_t)p - (uintptr_t)w.piece[i].memory < w.piece[i].bytes)
            return true;
    return false;
}

/* Every tensor of the arguments goes to the device: those of the world are found by their address.
 */
static void place_some(const size_t *field, enum dtype type, struct call *c, char *args)
{
    for (int k = 0; field[k] != END; k++) {
        struct tensor t;
        memcpy(&t, args + field[k], sizeof(t));
        if (!tensor_none(t)) {
            t = place(c, t, type);
            memcpy(args + field[k], &t, sizeof(t));
        }
    }
}

static void place_all(const struct narrowed *op, struct call *c, char *args)
{
    slab_reset(&memory, 0);
    pair_count = 0;
    memcpy(args, &c->u, op->bytes);
    place_some(op->field, real, c, args);
    place_some(op->grads, grad, c, args);
    for (size_t at = 0; at + sizeof(struct tensor) <= op->bytes; at += sizeof(void *)) {
        struct tensor t;
        memcpy(&t, args + at, sizeof(t));
        if (in_world(t.data)) {
            t = place(c, t, t.dtype);
            memcpy(args + at, &t, sizeof(t));
        }
    }
}

static void run(const struct call *c, const char *args)
{
    for (int i = 0; i < pair_count; i++)
        send(pairs[i].there.data, pairs[i].image, pairs[i].bytes);
    ops_run(&ops, c->op, args);
}

static void *fetch(const struct pair *p)
{
    struct err e;
    void *x = mem_new(p->bytes + 1, 1);
    send(x, p->there.data, p->bytes);
    T_OK(dev_fault(&gpu, &e), &e);
    return x;
}

static bool is_narrow(const struct pair *p)
{
    return p->there.dtype == DTYPE_BF16 || p->there.dtype == DTYPE_F16;
}

/* ||have - ref|| within the bound of ||ref|| and of a tenth of as many ones; gaps untouched. */
static void check(const char *call, const struct pair *p)
{
    int64_t cols = row_of(p->host), rows = rows_of(p->host), n = rows * cols;
    int64_t stride = p->host.rank == 1 ? cols : p->there.stride;
    double off = 0, square = 0;
    /* gradients in bf16 are rounded twice: what is summed, and the sum */
    double bound = real == DTYPE_F16    ? bf16_bound / 8
                   : grad == DTYPE_BF16 ? bf16_bound * 2
                                        : bf16_bound;
    struct tensor have = p->there;
    have.data = p->first;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t *bits = p->first;
        double r = world_get(p->host, i);
        double h = is_narrow(p) ? narrow_value(p->there.dtype, bits[i / cols * stride + i % cols])
                                : world_get(have, i);
        if (!isfinite(r) || p->there.dtype == DTYPE_I32) {
            T_CHECK(isnan(r) ? isnan(h) : h == r);
            continue;
        }
        off += (h - r) * (h - r);
        square += r * r;
    }
    if (!(sqrt(off) <= bound * (sqrt(square) + 0.1 * sqrt((double)n))))
        t_fail(__FILE__, __LINE__, "%s: output %td is off by %.3g of %.3g", call, p - pairs,
               sqrt(off / (double)n), sqrt(square / (double)n));
    for (int64_t i = 0; i < rows && is_narrow(p); i++)
        for (int64_t k = cols; k < stride; k++)
            if (((const uint16_t *)p->first)[i * stride + k] != POISON)
                t_fail(__FILE__, __LINE__, "%s: row %lld of output %td is written past its end",
                       call, (long long)i, p - pairs);
}

static const struct narrowed *now;

static void compare(const struct twin *t, const int64_t *d, uint32_t bits)
{
    struct call c = {0};
    char name[200], args[sizeof(c.u)];
    /* of a few columns, those nearly equal would differ by no more than r's rounding */
    if (strcmp(t->name, "norm") == 0 && d[1] < 16)
        return;
    snprintf(name, sizeof(name), "%s bits %u, %s = %lld %lld %lld", t->name, bits, t->what,
             (long long)d[0], (long long)d[1], (long long)d[2]);
    world_clear(&w, bits);
    t->make(&w, &c, d, bits);
    place_all(now, &c, args);
    run(&c, args);
    for (int i = 0; i < pair_count; i++)
        pairs[i].first = fetch(&pairs[i]);
    run(&c, args);
    call_run(&w.ops, &c);
    for (int i = 0; i < pair_count; i++) {
        void *second = fetch(&pairs[i]);
        bool same = memcmp(second, pairs[i].first, pairs[i].bytes) == 0;
        free(second);
        if (!same)
            t_fail(__FILE__, __LINE__, "%s: output %d differs between two runs", name, i);
        if (pairs[i].output)
            check(name, &pairs[i]);
        free(pairs[i].first);
        free(pairs[i].image);
    }
}

static void open_all(void)
{
    struct err e;
    if (dev_cuda_open(&gpu, 0, &e))
        t_skip("%s", e.msg);
    slab_init(&workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&workspace, WORKSPACE);
    T_OK(slab_bind(&workspace, &gpu, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, DEVICE);
    T_OK(slab_bind(&memory, &gpu, &e), &e);
    T_OK(ops_cuda_open(&ops, &gpu, &workspace, &(struct ops_config){.real = DTYPE_F32}, &e), &e);
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
}

static void close_all(void)
{
    world_close(&w);
    ops_close(&ops);
    slab_release(&memory, &gpu);
    slab_release(&workspace, &gpu);
    dev_close(&gpu);
}

static void use(enum dtype type, enum dtype grads)
{
    real = type;
    grad = grads;
    ops_set_types(&ops, type, (struct ops_narrow){.grad = grads == DTYPE_BF16});
}

static int twin_index(const char *name)
{
    for (int k = 0; k < twin_count; k++)
        if (strcmp(twins[k].name, name) == 0)
            return k;
    t_fail(__FILE__, __LINE__, "no twin %s", name);
}

static const struct narrowed *op_named(const char *name)
{
    const struct narrowed *op = narrowed;
    while (strcmp(op->name, name) != 0)
        op++;
    return op;
}

static void drawn(const char *name, enum dtype type, enum dtype grads)
{
    open_all();
    use(type, grads);
    now = op_named(name);
    draw_calls(twin_index(name), compare);
    close_all();
}

#define DRAWN(name)                                                                                \
    static void name(void)                                                                         \
    {                                                                                              \
        drawn(#name, DTYPE_BF16, DTYPE_F32);                                                       \
        drawn(#name, DTYPE_F16, DTYPE_F32);                                                        \
    }

DRAWN(embed)
DRAWN(embed_bwd)
DRAWN(norm)
DRAWN(norm_bwd)
DRAWN(glu)
DRAWN(glu_bwd)
DRAWN(rope)
DRAWN(xent_stats)
DRAWN(xent_loss)
DRAWN(forward)
DRAWN(dgrad)
DRAWN(wgrad)
DRAWN(attention)
DRAWN(attention_bwd)
DRAWN(cap)
DRAWN(head_norm)
DRAWN(head_norm_bwd)
DRAWN(route)
DRAWN(route_bwd)
DRAWN(permute)
DRAWN(permute_bwd)
DRAWN(unpermute)
DRAWN(unpermute_bwd)
DRAWN(grouped)
DRAWN(grouped_bwd)
DRAWN(gate)
DRAWN(gate_bwd)

static void gradients_in_bf16(void)
{
    drawn("embed_bwd", DTYPE_BF16, DTYPE_BF16);
    drawn("norm_bwd", DTYPE_BF16, DTYPE_BF16);
    drawn("wgrad", DTYPE_BF16, DTYPE_BF16);
    drawn("head_norm_bwd", DTYPE_BF16, DTYPE_BF16);
    drawn("grouped_bwd", DTYPE_BF16, DTYPE_BF16);
}

static void model_sizes(void)
{
    static const struct {
        const char *name;
        uint32_t bits;
        int64_t d[TWIN_SIZES];
    } calls[] = {
        {"embed", 32, {3000, 768, 50257}},
        {"embed_bwd", 32, {3001, 192, 5000}},
        {"norm", 96, {2000, 768}},
        {"norm", 224, {900, 1600}},
        {"norm", 80, {500, 4096}},
        {"norm", 80, {300, 8192}},
        {"norm_bwd", 96, {3001, 768}},
        {"norm_bwd", 224, {901, 1600}},
        {"norm_bwd", 80, {500, 4096}},
        {"norm_bwd", 80, {300, 8192}},
        {"glu", 0, {500, 8192}},
        {"glu_bwd", 0, {500, 4096}},
        {"rope", 0, {2000, 64, 12}},
        {"xent_stats", 0, {100, 50304}},
        {"xent_loss", 32, {100, 50304}},
        {"wgrad", 16, {4096, 96, 80}},
        {"attention_bwd", 544, {1, 300, 1, 2, 256}},
        {"head_norm", 32, {900, 128, 12}},
        {"head_norm_bwd", 0, {900, 128, 12}},
        {"route", 16, {3000, 128, 8}},
        {"unpermute_bwd", 0, {300, 4096, 2}},
        {"grouped", 0, {1500, 264, 512, 8}},
        {"grouped", 64, {1500, 264, 512, 8}},
        {"grouped", 32, {700, 128, 1032, 3}},
        {"grouped_bwd", 16, {1500, 264, 328, 4}},
        {"grouped_bwd", 0, {2000, 136, 64, 2}},
    };
    open_all();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        use(i % 3 == 2 ? DTYPE_F16 : DTYPE_BF16, i % 3 == 1 ? DTYPE_BF16 : DTYPE_F32);
        now = op_named(calls[i].name);
        compare(&twins[twin_index(calls[i].name)], calls[i].d, calls[i].bits);
    }
    close_all();
}

/* Rows of logits that are read once for statistics and gradient. */
static void long_rows(void)
{
    static const int64_t d[][TWIN_SIZES] = {{100, 50301}, {40, 151933}};
    open_all();
    now = op_named("xent_loss");
    for (size_t i = 0; i < 4; i++) {
        use(i % 2 ? DTYPE_F16 : DTYPE_BF16, DTYPE_F32);
        compare(&twins[twin_index("xent_loss")], d[i / 2], i / 2 ? 305 : 353);
    }
    close_all();
}

T_MAIN(T_CASE(embed), T_CASE(embed_bwd), T_CASE(norm), T_CASE(norm_bwd), T_CASE(glu),
       T_CASE(glu_bwd), T_CASE(rope), T_CASE(xent_stats), T_CASE(xent_loss), T_CASE(forward),
       T_CASE(dgrad), T_CASE(wgrad), T_CASE(attention), T_CASE(attention_bwd), T_CASE(cap),
       T_CASE(head_norm), T_CASE(head_norm_bwd), T_CASE(route), T_CASE(route_bwd), T_CASE(permute),
       T_CASE(permute_bwd), T_CASE(unpermute), T_CASE(unpermute_bwd), T_CASE(grouped),
       T_CASE(grouped_bwd), T_CASE(gate), T_CASE(gate_bwd), T_CASE(gradients_in_bf16),
       T_CASE(model_sizes), T_CASE(long_rows))
