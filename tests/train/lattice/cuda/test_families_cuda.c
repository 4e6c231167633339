/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each family of the lattice on a GPU against the CPU's single rank: in fp32 losses, norms,
 * gradients and weights of three steps, in 16 bits the gradients of the first step against fp32 on
 * the same rounded weights. A tensor agrees by the angle between the two and the ratio of their
 * norms; one whose norm is below `small` of that of all, by the norm of the difference. Weights of
 * heads' norms are a dozen numbers, each a sum that nearly cancels: in models of this size the
 * host's own gradients in 16 bits are further off. So a tensor also agrees that is at most `noise`
 * times as far from fp32 as the host in its type. Without a GPU the cases are skipped.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/ops/experts.h"
#include "train/tensor/box.h"
#include "train/tensor/cuda/dev_cuda.h"

static const struct rank_backends gpu = {.name = "cuda",
                                         .describe_device = dev_cuda_describe,
                                         .open_device = dev_cuda_start,
                                         .init_ops = ops_cuda_open};

/* A family that the GPU's table refuses is skipped. */
static void must_run(const char *name, const char *why)
{
    if (strstr(why, "cannot run this model"))
        t_skip("%s", why);
    t_fail(__FILE__, __LINE__, "%s: %s", name, why);
}

static void need_gpu(void)
{
    struct err e;
    struct dev d;
    if (dev_cuda_open(&d, 0, &e))
        t_skip("%s", e.msg);
    dev_close(&d);
}

/* ---- fp32 ---------------------------------------------------------------------------------- */

/* INIT: of models with windows. With the usual weights fp32's own roundings, as double shows them
 * on the host, are more than what is allowed. */
enum { MICROS = 4, INIT = 6 };

static void steps_equal(struct cell c)
{
    struct cell_single single = {0};
    char why[512], name[128];
    c.layout = layout_plain(mesh_single());
    c.real = DTYPE_F32;
    c.optimizer = OPTIM_SGD_PLAIN;
    c.steps = CELL_STEPS;
    c.micros = MICROS;
    c.init = c.spec.window ? INIT : CELL_INIT;
    cell_name(&c, name, sizeof(name));
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    c.backends = &gpu;
    if (cell_run(&c, &single, 1e-5, why, sizeof(why)))
        must_run(name, why);
    cell_single_finish(&single);
}

static void all_steps_equal(struct spec spec)
{
    need_gpu();
    steps_equal((struct cell){.spec = spec});
    steps_equal((struct cell){.spec = spec, .documents = true});
    spec.hidden_dropout = spec.attention_dropout = 0.2;
    steps_equal((struct cell){.spec = spec});
}

/* ---- a mixture's choices: those of the first run are taken by the second -------------------- */

enum { CALLS = 64, PAIRS = 16384 };

static struct {
    int calls, at;
    int32_t *choice[CALLS]; /* [n,k] */
} routes;

static void record(struct ops *o, enum op op, const void *args)
{
    ops_run(o, op, args);
    if (op != OP_ROUTE)
        return;
    const struct tensor choice = ((const struct route_args *)args)->choice;
    T_CHECK(routes.calls < CALLS);
    int32_t *to = mem_new((size_t)tensor_count(choice), sizeof(*to));
    for (int64_t i = 0; i < choice.size[0]; i++)
        memcpy(to + i * choice.size[1], (const int32_t *)choice.data + i * choice.stride,
               (size_t)choice.size[1] * sizeof(*to));
    routes.choice[routes.calls++] = to;
}

static void to_device(struct dev *d, struct tensor to, const void *from)
{
    T_CHECK(tensor_contiguous(to));
    d->fn->copy(d, STREAM_COMPUTE, to.data, from, tensor_bytes(to));
    d->fn->sync(d, STREAM_COMPUTE);
}

/* Weights, slots and counts that follow from a choice; as ref_experts.c defines them. */
static void take_choice(struct ops *o, const struct route_args *a, const int32_t *choice)
{
    int64_t n = a->prob.size[0], E = a->prob.size[1], k = a->choice.size[1];
    static float weight[PAIRS], prob[8 * PAIRS];
    static int32_t slot[PAIRS];
    int32_t count[64] = {0}, next[64] = {0}, start[65] = {0};
    T_CHECK(E <= 64 && n * k <= PAIRS && n * E <= 8 * PAIRS && tensor_contiguous(a->prob));
    o->dev->fn->copy(o->dev, STREAM_COMPUTE, prob, a->prob.data, tensor_bytes(a->prob));
    o->dev->fn->sync(o->dev, STREAM_COMPUTE);
    for (int64_t p = 0; p < n * k; p++)
        count[choice[p]]++;
    for (int64_t e = 0; e < E; e++)
        next[e] = start[e] = e ? start[e - 1] + count[e - 1] : 0;
    start[E] = (int32_t)(n * k);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t p = i * k; p < (i + 1) * k; p++) {
            weight[p] = prob[i * E + choice[p]];
            sum += weight[p];
            slot[p] = next[choice[p]]++;
        }
        for (int64_t p = i * k; p < (i + 1) * k && a->normalize; p++)
            weight[p] /= sum;
    }
    to_device(o->dev, a->choice, choice);
    to_device(o->dev, a->weight, weight);
    to_device(o->dev, a->slot, slot);
    to_device(o->dev, a->count, count);
    to_device(o->dev, a->start, start);
}

static void replay(struct ops *o, enum op op, const void *args)
{
    ops_run(o, op, args);
    if (op != OP_ROUTE)
        return;
    T_CHECK(routes.at < routes.calls);
    take_choice(o, args, routes.choice[routes.at++]);
}

static void forget_routes(void)
{
    while (routes.calls)
        free(routes.choice[--routes.calls]);
    routes.at = 0;
}

/* ---- bf16 ---------------------------------------------------------------------------------- */

enum { ROWS = 64, SCALE = 1024 };
static const double cosine = 0.999, ratio = 0.01, small = 1e-3, noise = 3;

/* Gradients of the first step. */
struct first_step {
    enum dtype type;           /* of 16 bits */
    struct cell_single single; /* of the host in fp32 */
    double *narrow;            /* of the host in `type` */
};

static void begin_there(void *arg, struct rank *r)
{
    (void)arg;
    r->ops.call = replay;
    r->graphs.on = false; /* replay copies from the host's memory */
}

/* The CPU has the weights that the GPU's are rounded to. */
static void begin_here(void *arg, struct rank *r)
{
    struct tensor t = rank_master(r);
    enum dtype type = ((const struct first_step *)arg)->type;
    void *bits = mem_new((size_t)t.size[0], dtype_size(type));
    box_cast(bits, type, t.data, t.dtype, t.size[0]);
    box_cast(t.data, t.dtype, bits, type, t.size[0]);
    free(bits);
    rank_spread_master(r);
    r->ops.call = record;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double distance(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Without the scale of the loss. */
static double *unscaled(const struct rank *r, const struct cell_numbers *grads)
{
    double *g = mem_new((size_t)r->params.elements, sizeof(*g));
    for (int64_t i = 0; i < r->params.elements; i++)
        g[i] = grads->at[i] / SCALE;
    return g;
}

static void keep_narrow(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    ((struct first_step *)arg)->narrow = unscaled(r, grads);
}

/* How far g is from w, in parts of what is allowed. */
static double share(const double *w, const double *g, int64_t n, double all)
{
    double ww = sqrt(dot(w, w, n)), gg = sqrt(dot(g, g, n));
    double angle = 1 - dot(w, g, n) / (ww * gg);
    return ww > small * all ? fmax(angle / (1 - cosine), fabs(gg / ww - 1) / ratio)
                            : distance(w, g, n) / (small * all);
}

static void judge(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    const struct first_step *f = arg;
    const struct params *ps = &r->params;
    const double *want = f->single.grads.at;
    double all = sqrt(dot(want, want, ps->elements)), most = 0, *have = unscaled(r, grads);
    T_NEAR(*r->host_norm, f->single.printed.norm[0], ratio * f->single.printed.norm[0]);
    for (int i = 0; i < ps->n; i++) {
        const struct param *p = &ps->at[i];
        const double *w = want + p->offset, *g = have + p->offset;
        double off = distance(w, g, p->count), host = distance(w, f->narrow + p->offset, p->count);
        double part = share(w, g, p->count, all);
        most = part < 1 ? fmax(most, part) : most;
        if (part < 1)
            continue;
        printf("# %s is %.2f of what is allowed; %g off, the host in %s %g\n", p->source[0].name,
               part, off, dtype_name(f->type), host);
        if (!(off <= noise * host))
            t_fail(__FILE__, __LINE__, "%s is %g off in %s, the host %g", p->source[0].name, off,
                   dtype_name(f->type), host);
    }
    printf("# %s: the others at most %.2f of what is allowed\n", dtype_name(f->type), most);
    free(have);
}

/* Sizes that the tensor cores take: heads and rows of multiples of 16 bytes. */
static struct spec widened(struct spec s)
{
    s.hidden = 96;
    s.head_dim = s.rope_scaling == SPEC_ROPE_LONG ? 8 : 16;
    s.init_std = 0.05;
    return s;
}

static void run_first_step(struct cell *c)
{
    char why[512], name[128];
    routes.at = 0;
    cell_name(c, name, sizeof(name));
    if (cell_run(c, NULL, 0, why, sizeof(why)))
        must_run(name, why);
}

static void gradients_near(struct cell c, enum dtype type)
{
    struct first_step f = {.type = type};
    char why[512];
    c.layout = layout_plain(mesh_single());
    c.real = DTYPE_F32;
    c.steps = 1;
    c.rows = ROWS;
    c.micros = 2;
    c.begin = begin_here;
    c.arg = &f;
    if (cell_run_single(&c, &f.single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    c.real = type;
    c.scale.first = SCALE;
    c.begin = begin_there;
    c.judge = keep_narrow;
    run_first_step(&c);
    c.backends = &gpu;
    c.judge = judge;
    run_first_step(&c);
    free(f.narrow);
    cell_single_finish(&f.single);
    forget_routes();
}

static void all_gradients_near(struct spec spec, enum dtype type)
{
    need_gpu();
    spec = widened(spec);
    gradients_near((struct cell){.spec = spec, .documents = true}, type);
    spec.hidden_dropout = spec.attention_dropout = 0.2;
    gradients_near((struct cell){.spec = spec}, type);
}

#define FAMILY(name)                                                                               \
    static void name(void)                                                                         \
    {                                                                                              \
        all_steps_equal(cell_##name());                                                            \
    }                                                                                              \
    static void name##_bf16(void)                                                                  \
    {                                                                                              \
        all_gradients_near(cell_##name(), DTYPE_BF16);                                             \
    }                                                                                              \
    static void name##_fp16(void)                                                                  \
    {                                                                                              \
        all_gradients_near(cell_##name(), DTYPE_F16);                                              \
    }
#define FAMILY_CASES(name) T_CASE(name), T_CASE(name##_bf16), T_CASE(name##_fp16)

FAMILY(gpt)
FAMILY(llama)
FAMILY(qwen3)
FAMILY(mistral)
FAMILY(neox)
FAMILY(phi3)
FAMILY(gemma2)
FAMILY(gemma3)
FAMILY(mixtral)
FAMILY(qwen_moe)
FAMILY(qwen3_moe)

T_MAIN(FAMILY_CASES(gpt), FAMILY_CASES(llama), FAMILY_CASES(qwen3), FAMILY_CASES(mistral),
       FAMILY_CASES(neox), FAMILY_CASES(phi3), FAMILY_CASES(gemma2), FAMILY_CASES(gemma3),
       FAMILY_CASES(mixtral), FAMILY_CASES(qwen_moe), FAMILY_CASES(qwen3_moe))
