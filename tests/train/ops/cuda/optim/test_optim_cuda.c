/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The optimizers' kernels in every combination of types against the host's table of the same types,
 * which computes in fp32 and rounds once. All tensors of a call lie in one image, of which only the
 * outputs may change, the same in a second run. Without a GPU every case is skipped.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tests/t.h"
#include "tests/train/ops/cuda/narrow.h"
#include "train/ops/blocks.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/ops/rounding.h"
#include "train/ops/values.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { IMAGE = 16 << 20, WORKSPACE = 64 << 20, MOST = 8, POISON = 0xff };

static const int64_t lengths[] = {1, 3, 4, 1027, 100001};

/* One of the two machines: its table, and where its image begins. */
struct side {
    struct dev dev;
    struct slab workspace, memory;
    struct ops ops;
};

static struct side gpu, cpu;
static bool stochastic; /* how calls round what they keep in BF16 */

/* An image that is filled on the host; outputs are those of a call. */
static struct {
    char *bytes;
    size_t used;
    struct {
        size_t at;
        struct tensor t;
        double absolute; /* tolerance of F32, beside a few units in the last place */
    } out[MOST];
    int outs;
} image;

static void open_side(struct side *s, bool there, const struct ops_config *c)
{
    struct err e;
    if (there && dev_cuda_open(&s->dev, 0, &e))
        t_skip("%s", e.msg);
    if (!there)
        T_OK(dev_host_start(&s->dev, 0, 1, &e), &e);
    enum place place = PLACE_DEVICE;
    slab_init(&s->workspace, "workspace", place);
    slab_bytes(&s->workspace, WORKSPACE);
    T_OK(slab_bind(&s->workspace, &s->dev, &e), &e);
    slab_init(&s->memory, "memory", place);
    slab_bytes(&s->memory, IMAGE);
    T_OK(slab_bind(&s->memory, &s->dev, &e), &e);
    struct ops_config wanted = *c;
    wanted.kernels = there ? NULL : "ref"; /* which computes in double */
    T_OK((there ? ops_cuda_open : ops_cpu_open)(&s->ops, &s->dev, &s->workspace, &wanted, &e), &e);
}

static void close_side(struct side *s)
{
    ops_close(&s->ops);
    slab_release(&s->memory, &s->dev);
    slab_release(&s->workspace, &s->dev);
    dev_close(&s->dev);
}

/* Of the image, what is in use and some poison. */
static size_t extent(void)
{
    return image.used + 1024;
}

static void begin(void)
{
    if (!image.bytes)
        image.bytes = mem_new(IMAGE, 1);
    memset(image.bytes, POISON, image.used ? extent() : IMAGE);
    image.used = 0;
    image.outs = 0;
}

static double drawn(uint64_t stream, int64_t i)
{
    struct rng4 r = rng_block(stream, RNG_TEST, 0, (uint64_t)i / 4);
    return (double)r.v[i % 4] / 0x1p31 - 1;
}

static void set_number(struct tensor t, int64_t i, double x)
{
    if (t.dtype == DTYPE_F32)
        ((float *)t.data)[i] = (float)x;
    else if (t.dtype == DTYPE_F64)
        ((double *)t.data)[i] = x;
    else if (t.dtype == DTYPE_I32)
        ((int32_t *)t.data)[i] = (int32_t)x;
    else
        ((uint16_t *)t.data)[i] = narrow_bits(t.dtype, x);
}

static double number(struct tensor t, int64_t i)
{
    if (t.dtype == DTYPE_F32)
        return (double)((const float *)t.data)[i];
    if (t.dtype == DTYPE_F64)
        return ((const double *)t.data)[i];
    if (t.dtype == DTYPE_I32)
        return ((const int32_t *)t.data)[i];
    return narrow_value(t.dtype, ((const uint16_t *)t.data)[i]);
}

/* Numbers up to `scale`, poison if that is 0; `shift` elements past an aligned address. Its data
 * is the place in the image. */
static struct tensor put(enum dtype d, int64_t n, int shift, double scale)
{
    size_t at = (image.used + 255) / 256 * 256 + (size_t)shift * dtype_size(d);
    struct tensor t = tensor_1d(image.bytes + at, d, n);
    T_CHECK(at + tensor_bytes(t) + 1024 < IMAGE);
    for (int64_t i = 0; i < n && scale > 0; i++)
        set_number(t, i, scale * drawn(at, i));
    image.used = at + tensor_bytes(t);
    return t;
}

static struct tensor values(struct step_values v)
{
    struct tensor t = put(DTYPE_F64, STEP_VALUES, 0, 0);
    memcpy(t.data, &v, sizeof(v));
    return t;
}

/* The n elements from `first` on lie in three tensors: one whose indices are no multiples of 8,
 * some columns of a second, all of a third. */
static struct rounding rounding(int64_t n, uint32_t bits)
{
    int64_t first = bits & 1 ? 64 : 0;
    const struct number_run run[] = {
        {.index = 5, .width = 1 << 20, .stride = 1 << 20, .stream = 11},
        {.begin = first + n / 5, .index = 30, .width = 37, .stride = 100, .stream = 12},
        {.begin = first + n / 5 * 2, .width = n + 1, .stride = n + 1, .stream = 13}};
    const int64_t size[] = {3, RUN_INTS};
    struct rounding r = {.seed = 77 | (uint64_t)bits << 40, .first = first};
    if (!stochastic)
        return (struct rounding){0};
    struct tensor t = put(DTYPE_I32, size[0] * size[1], 0, 0);
    memcpy(t.data, run, sizeof(run));
    r.runs = tensor_nd(t.data, DTYPE_I32, 2, size);
    r.number = put(DTYPE_F64, 1, 0, 0);
    set_number(r.number, 0, 1 + bits);
    return r;
}

static struct tensor out(struct tensor t, double absolute)
{
    T_CHECK(image.outs < MOST);
    image.out[image.outs].at = (size_t)((char *)t.data - image.bytes);
    image.out[image.outs].absolute = absolute;
    image.out[image.outs++].t = t;
    return t;
}

/* ---- running and comparing --------------------------------------------------------------------
 */

union args {
    char byte[512];
    struct adamw_args adamw;
    struct sgd_args sgd;
    struct sumsq_args sumsq;
    struct moments_args moments;
    struct gsnr_args gsnr;
    struct momentum_args momentum;
    struct decayed_args decayed;
    struct combine_args combine;
    struct unit_args unit;
};

/* Addresses in the image become those in a machine's memory. The arguments hold no others. */
static union args moved_args(struct side *s, const union args *a)
{
    union args m = *a;
    for (size_t i = 0; i + sizeof(void *) <= sizeof(m); i += sizeof(void *)) {
        char *p;
        memcpy(&p, m.byte + i, sizeof(p));
        if ((uintptr_t)p - (uintptr_t)image.bytes < IMAGE) {
            p = (char *)s->memory.base + (p - image.bytes);
            memcpy(m.byte + i, &p, sizeof(p));
        }
    }
    return m;
}

static void call(struct ops *o, enum op op, const union args *a)
{
    switch (op) {
    case OP_ADAMW:
        op_adamw(o, &a->adamw);
        break;
    case OP_SGD:
        op_sgd(o, &a->sgd);
        break;
    case OP_SUMSQ:
        op_sumsq(o, &a->sumsq);
        break;
    case OP_MOMENTS:
        op_moments(o, &a->moments);
        break;
    case OP_GSNR:
        op_gsnr(o, &a->gsnr);
        break;
    case OP_MOMENTUM:
        op_momentum(o, &a->momentum);
        break;
    case OP_DECAYED:
        op_decayed(o, &a->decayed);
        break;
    case OP_COMBINE:
        op_combine(o, &a->combine);
        break;
    default:
        op_unit(o, &a->unit);
    }
}

static void *run(struct side *s, enum op op, const union args *a)
{
    struct err e;
    char *ret = mem_new(extent(), 1);
    union args m = moved_args(s, a);
    s->dev.fn->copy(&s->dev, STREAM_COMPUTE, s->memory.base, image.bytes, extent());
    call(&s->ops, op, &m);
    s->dev.fn->copy(&s->dev, STREAM_COMPUTE, ret, s->memory.base, extent());
    s->dev.fn->sync(&s->dev, STREAM_COMPUTE);
    T_OK(dev_fault(&s->dev, &e), &e);
    return ret;
}

/* Types of 16 bits: the nearest of two sums that differ by rounding, which is seldom another. */
static void near(const char *name, int k, const char *have, const char *ref)
{
    struct tensor x = image.out[k].t, y = x;
    int64_t n = tensor_count(x), others = 0;
    bool wide = dtype_size(x.dtype) > 2;
    double unit = x.dtype == DTYPE_BF16  ? 0x1p-7
                  : x.dtype == DTYPE_F16 ? 0x1p-10
                  : x.dtype == DTYPE_F32 ? 5e-7
                                         : 1e-12;
    x.data = (char *)have + image.out[k].at;
    y.data = (char *)ref + image.out[k].at;
    for (int64_t i = 0; i < n; i++) {
        double a = number(x, i), b = number(y, i);
        others += a != b;
        if (!(fabs(a - b) <= unit * fabs(b) + (wide ? image.out[k].absolute : 1e-7)))
            t_fail(__FILE__, __LINE__, "%s: output %d [%lld] is %.9g, on the host %.9g", name, k,
                   (long long)i, a, b);
    }
    if (!wide && others > 2 + n / 50)
        t_fail(__FILE__, __LINE__, "%s: %lld of %lld numbers of output %d are others", name,
               (long long)others, (long long)n, k);
}

static void compare(const char *name, enum op op, const union args *a)
{
    char *have = run(&gpu, op, a), *again = run(&gpu, op, a), *ref = run(&cpu, op, a);
    T_MEM(have, again, extent());
    for (int k = 0; k < image.outs; k++) {
        near(name, k, have, ref);
        memcpy(have + image.out[k].at, image.bytes + image.out[k].at, tensor_bytes(image.out[k].t));
    }
    if (memcmp(have, image.bytes, extent()) != 0)
        t_fail(__FILE__, __LINE__, "%s: memory beside the outputs is written", name);
    free(have);
    free(again);
    free(ref);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static void adamw(int64_t n, uint32_t bits)
{
    const struct ops *o = &gpu.ops;
    int shift = bits & 1;
    char name[128];
    snprintf(name, sizeof(name), "adamw n %lld, %s %s %s %s %s, bits %u", (long long)n,
             dtype_name(o->real), dtype_name(o->grad), dtype_name(o->master),
             dtype_name(o->moment[0]), dtype_name(o->moment[1]), bits);
    begin();
    union args a = {.adamw = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}};
    a.adamw.values =
        values(step_values_make(3e-4, 0.1, bits & 8 ? 12345 : 1 + bits % 3, 0.9, 0.999));
    a.adamw.p = out(put(o->master, n, shift, 0.02), 2e-9);
    a.adamw.g = put(o->grad, n, bits & 2 ? shift : 0, 1e-3);
    a.adamw.m = out(put(o->moment[0], n, shift, 1e-3), 1e-10);
    a.adamw.v = out(put(o->moment[1], n, shift, 1e-4), 1e-30);
    for (int64_t i = 0; i < n; i++)
        set_number(a.adamw.v, i, fabs(number(a.adamw.v, i)) + 1e-6);
    if (o->real != o->master)
        a.adamw.copy = out(put(o->real, n, shift, 0), 0);
    a.adamw.round = rounding(n, bits);
    if (bits & 4) {
        a.adamw.factor = put(DTYPE_F64, 1, 0, 1);
        set_number(a.adamw.factor, 0, 0.37);
        a.adamw.skip = put(DTYPE_I32, 1, 0, 1);
        set_number(a.adamw.skip, 0, 0);
    }
    compare(name, OP_ADAMW, &a);
}

/* Nothing may change. */
static void skipped(void)
{
    const struct ops *o = &gpu.ops;
    begin();
    union args a = {.adamw = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}};
    a.adamw.values = values(step_values_make(1, 0, 1, 0.9, 0.999));
    a.adamw.p = put(o->master, 1027, 0, 1);
    a.adamw.g = put(o->grad, 1027, 0, 1);
    a.adamw.m = put(o->moment[0], 1027, 0, 1);
    a.adamw.v = put(o->moment[1], 1027, 0, 1);
    a.adamw.skip = put(DTYPE_I32, 1, 0, 1);
    set_number(a.adamw.skip, 0, 1);
    char *have = run(&gpu, OP_ADAMW, &a);
    T_MEM(have, image.bytes, extent());
    free(have);
}

static void sgd(int64_t n, uint32_t bits)
{
    const struct ops *o = &gpu.ops;
    char name[128];
    snprintf(name, sizeof(name), "sgd n %lld, %s %s %s, bits %u", (long long)n, dtype_name(o->real),
             dtype_name(o->grad), dtype_name(o->master), bits);
    begin();
    union args a = {.sgd = {.momentum = 0.9}};
    a.sgd.values = values(step_values_make(3e-2, bits & 4 ? 0.1 : 0, 1, 0, 0));
    a.sgd.p = out(put(o->master, n, bits & 1, 0.02), 2e-9);
    a.sgd.g = put(o->grad, n, bits & 1, 1e-3);
    if (bits & 2)
        a.sgd.m = out(put(o->master, n, bits & 1, 1e-3), 1e-9);
    a.sgd.round = rounding(n, bits);
    if (o->real != o->master)
        a.sgd.copy = out(put(o->real, n, bits & 1, 0), 0);
    compare(name, OP_SGD, &a);
}

static void sumsq(int64_t n, uint32_t bits)
{
    begin();
    union args a;
    memset(&a, 0, sizeof(a));
    a.sumsq.total = out(put(DTYPE_F64, 1, 0, 1), 0);
    a.sumsq.x = put(gpu.ops.grad, n, bits & 1, 3);
    compare("sumsq", OP_SUMSQ, &a);
}

/* ---- of SGD-SaI and Muon ----------------------------------------------------------------------
 */

static struct tensor one(enum dtype d, double value)
{
    struct tensor t = put(d, 1, 0, 0);
    set_number(t, 0, value);
    return t;
}

static union args none(void)
{
    union args a;
    memset(&a, 0, sizeof(a));
    return a;
}

/* The sums of a part of a block, then deviations from a mean that is another's. */
static void moments(int64_t n, uint32_t bits)
{
    bool second = bits & 2;
    begin();
    union args a = none();
    a.moments.count = one(DTYPE_F64, second ? 7 : 3);
    a.moments.sum = one(DTYPE_F64, 0.5);
    if (second)
        a.moments.deviations = out(one(DTYPE_F64, 2), 1e-9);
    else
        out(a.moments.count, 0), out(a.moments.sum, 1e-9);
    a.moments.x = put(gpu.ops.grad, n, bits & 1, 3);
    compare(second ? "deviations" : "moments", OP_MOMENTS, &a);
}

static void gsnr(int64_t n, uint32_t bits)
{
    begin();
    union args a = none();
    a.gsnr.y = put(DTYPE_F64, n, 0, 0);
    if (!(bits & 2))
        out(a.gsnr.y, 1e-12);
    a.gsnr.count = put(DTYPE_F64, n, 0, 1);
    a.gsnr.sum = put(DTYPE_F64, n, 0, 10);
    a.gsnr.deviations = put(DTYPE_F64, n, 0, 5);
    for (int64_t i = 0; i < n; i++) {
        set_number(a.gsnr.count, i, i % 4 == 3 ? 0 : i % 4 == 2 ? 1 : 100);
        set_number(a.gsnr.deviations, i, i % 4 > 1 ? 0 : fabs(number(a.gsnr.deviations, i)));
        if (i % 4 == 3)
            set_number(a.gsnr.sum, i, 0);
    }
    a.gsnr.factor = one(DTYPE_F64, 0.37);
    a.gsnr.skip = one(DTYPE_I32, bits & 2 ? 1 : 0);
    a.gsnr.eps = 1e-8;
    a.gsnr.max = bits & 1;
    compare("gsnr", OP_GSNR, &a);
}

static void momentum(int64_t n, uint32_t bits)
{
    const struct ops *o = &gpu.ops;
    begin();
    union args a = none();
    a.momentum.momentum = 0.95;
    a.momentum.nesterov = bits & 2;
    a.momentum.g = put(o->grad, n, bits & 1, 1e-3);
    if (bits & 4)
        a.momentum.m = out(put(o->master, n, bits & 1, 1e-3), 1e-9);
    a.momentum.y = bits & 4 && !(bits & 2) && bits & 8 ? a.momentum.m
                                                       : out(put(o->master, n, bits & 1, 0), 1e-9);
    a.momentum.round = rounding(n, bits);
    a.momentum.factor = one(DTYPE_F64, 0.37);
    a.momentum.skip = one(DTYPE_I32, 0);
    if (bits & 8)
        a.momentum.number = one(DTYPE_F64, n % 2 ? 1 : 5);
    compare("momentum", OP_MOMENTUM, &a);
}

static void decayed(int64_t n, uint32_t bits)
{
    const struct ops *o = &gpu.ops;
    begin();
    union args a = none();
    a.decayed.scale = 0.2;
    a.decayed.decays = bits & 2;
    a.decayed.values = values(step_values_make(3e-4, 0.1, 1, 0, 0));
    a.decayed.p = out(put(o->master, n, bits & 1, 0.02), 2e-9);
    a.decayed.x = put(o->master, n, bits & 1, 1);
    a.decayed.round = rounding(n, bits);
    a.decayed.skip = one(DTYPE_I32, bits & 8 ? 1 : 0);
    if (bits & 4)
        a.decayed.gsnr = one(DTYPE_F64, 3.5);
    compare("decayed", OP_DECAYED, &a);
}

static void combine(int64_t n, uint32_t bits)
{
    begin();
    union args a = none();
    a.combine.s = 3.4445;
    a.combine.t = -4.775;
    a.combine.y = out(put(gpu.ops.master, n, bits & 1, 1), 1e-6);
    a.combine.x = put(gpu.ops.master, n, bits & 1, 1);
    compare("combine", OP_COMBINE, &a);
}

static void unit(int64_t n, uint32_t bits)
{
    begin();
    union args a = none();
    a.unit.x = out(put(gpu.ops.master, n, bits & 1, bits & 2 ? 1e-9 : 2), 0);
    compare("unit", OP_UNIT, &a);
}

static void block_calls(const struct ops_config *c)
{
    open_side(&gpu, true, c);
    open_side(&cpu, false, c);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (uint32_t bits = 0; bits < 16; bits++) {
            momentum(lengths[i], bits);
            decayed(lengths[i], bits);
            if (bits < 4) {
                moments(lengths[i], bits);
                unit(lengths[i], bits);
                gsnr(1 + lengths[i] % 1000, bits);
            }
            if (bits < 2)
                combine(lengths[i], bits);
        }
    close_side(&gpu);
    close_side(&cpu);
}

static void blocks(void)
{
    block_calls(&(struct ops_config){.real = DTYPE_F32});
    block_calls(&(struct ops_config){.real = DTYPE_F16});
    block_calls(&(struct ops_config){.real = DTYPE_BF16, .narrow = {.grad = true}});
}

static void all_calls(const struct ops_config *c)
{
    open_side(&gpu, true, c);
    open_side(&cpu, false, c);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (uint32_t bits = 0;
             bits<(lengths[i] > 5000 ? 8 : 16); bits += lengths[i]> 5000 ? 3 : 1) {
            adamw(lengths[i], bits);
            if (bits < 8)
                sgd(lengths[i], bits);
            if (bits < 2)
                sumsq(lengths[i], bits);
        }
    skipped();
    close_side(&gpu);
    close_side(&cpu);
}

static void each_moment(enum dtype real, bool grad, bool master)
{
    for (int i = 0; i < 4; i++)
        all_calls(&(struct ops_config){
            .real = real, .narrow = {.grad = grad, .master = master, .moment = {i & 1, i & 2}}});
}

static void fp32(void)
{
    each_moment(DTYPE_F32, false, false);
}

static void fp16(void)
{
    each_moment(DTYPE_F16, false, false);
}

static void bf16(void)
{
    for (int i = 0; i < 4; i++)
        each_moment(DTYPE_BF16, i & 1, i & 2);
}

/* The host's random bits: other ones would move a third of the numbers. */
static void at_random(void)
{
    stochastic = true;
    for (int i = 0; i < 4; i++)
        all_calls(&(struct ops_config){
            .real = DTYPE_BF16,
            .narrow = {.grad = i & 1, .master = i != 3, .moment = {i != 1, i != 2}}});
    all_calls(&(struct ops_config){.real = DTYPE_F16, .narrow = {.moment = {true, true}}});
    block_calls(&(struct ops_config){.real = DTYPE_BF16, .narrow = {.master = true}});
    stochastic = false;
}

T_MAIN(T_CASE(fp32), T_CASE(fp16), T_CASE(bf16), T_CASE(blocks), T_CASE(at_random))
