/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/gemm/gemms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/tensor/cuda/dev_cuda.h"

/*
 * Timing: each proposal for SHORT seconds, then the FEW fastest, and always the first, ROUNDS times
 * in turn for LONG seconds each. The first stays unless another's median is faster by more than
 * what noise may be.
 */
enum { PROPOSALS = 8, FEW = 3, ROUNDS = 3, CALLS_MAX = 20000, EVENT_BEGIN = 12, EVENT_END = 13 };
static const double short_seconds = 0.01, long_seconds = 0.1, noise = 0.01;

struct gemm {
    struct lt_shape shape;
    const struct lt_plan *plan;
    enum ops_origin origin;
    double us, first_us; /* timed */
};

struct gemms {
    struct lt *lt;
    struct dev *dev;
    bool tune;
    struct ops_choice *given;
    size_t ngiven, n, room;
    struct gemm *at;
};

struct gemms *gemms_open(struct lt *l, struct dev *d, const struct ops_config *c)
{
    struct gemms *g = mem_new(1, sizeof(*g));
    *g = (struct gemms){.lt = l, .dev = d, .tune = c->tune, .ngiven = c->nchoices};
    g->given = mem_new(g->ngiven + 1, sizeof(*g->given));
    if (g->ngiven)
        memcpy(g->given, c->choices, g->ngiven * sizeof(*g->given));
    return g;
}

void gemms_close(struct gemms *g)
{
    if (!g)
        return;
    free(g->given);
    free(g->at);
    free(g);
}

bool gemms_find(const struct gemms *g, const struct lt_shape *s, const struct lt_plan **ret)
{
    for (size_t i = 0; i < g->n; i++)
        if (!memcmp(&g->at[i].shape, s, sizeof(*s))) {
            *ret = g->at[i].plan;
            return true;
        }
    return false;
}

static void keep(struct gemms *g, struct gemm x)
{
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 32;
        g->at = mem_grow(g->at, g->room, sizeof(*g->at));
    }
    g->at[g->n++] = x;
}

/* ---- texts ------------------------------------------------------------------------------- */

/* All that the library is told of the product. */
static void shape_text(const struct lt_shape *s, char *to, size_t size)
{
    static const char *const epilogues[] = {[LT_NONE] = "none",
                                            [LT_BIAS] = "bias",
                                            [LT_GELU] = "gelu",
                                            [LT_GELU_BWD] = "gelu_bwd",
                                            [LT_BGRAD] = "bgrad"};
    snprintf(to, size, "%lldx%lldx%lld_%lld_%lld_%lld_%lld_%s_%s_%s_%c%c%s%s_%d", (long long)s->m,
             (long long)s->n, (long long)s->k, (long long)s->lda, (long long)s->ldb,
             (long long)s->ldy, (long long)s->ld_aux, dtype_name(s->in), dtype_name(s->out),
             epilogues[s->epilogue], s->ta ? 'T' : 'N', s->tb ? 'T' : 'N',
             s->accumulate ? "_add" : "", s->tf32 ? "_tf32" : "", s->alignment);
}

/* The library's version, for which alone they hold, and its words. */
static void algorithm_text(const struct lt *l, struct lt_algorithm a, char *to, size_t size)
{
    int n = snprintf(to, size, "%s", lt_version(l));
    for (int i = 0; i < LT_WORDS; i++)
        n += snprintf(to + n, size - (size_t)n, "_%llx", (unsigned long long)a.word[i]);
}

static bool algorithm_of(const struct lt *l, const char *text, struct lt_algorithm *ret)
{
    size_t n = strlen(lt_version(l));
    if (strncmp(text, lt_version(l), n) != 0)
        return false;
    text += n;
    for (int i = 0; i < LT_WORDS; i++) {
        char *end;
        if (*text != '_')
            return false;
        ret->word[i] = strtoull(text + 1, &end, 16);
        if (end == text + 1)
            return false;
        text = end;
    }
    return !*text;
}

bool gemms_choice(const struct gemms *g, size_t i, struct ops_choice *ret)
{
    size_t k = 0;
    for (; k < g->n && (i || !g->at[k].plan); k++)
        i -= g->at[k].plan ? 1 : 0;
    if (k == g->n)
        return false;
    const struct gemm *x = &g->at[k];
    *ret = (struct ops_choice){.origin = x->origin, .us = x->us, .first_us = x->first_us};
    shape_text(&x->shape, ret->what, sizeof(ret->what));
    algorithm_text(g->lt, lt_algorithm(x->plan), ret->how, sizeof(ret->how));
    return true;
}

/* ---- deciding ---------------------------------------------------------------------------- */

/* Microseconds of a product, held for `seconds`. */
static double time_plan(struct gemms *g, const struct lt_plan *p, const struct gemms_call *c,
                        double seconds)
{
    double us = 0;
    for (int n = 1, turn = 0; turn < 2; turn++) {
        g->dev->fn->record(g->dev, STREAM_COMPUTE, EVENT_BEGIN);
        for (int i = 0; i < n; i++)
            lt_run(g->lt, p, c->y, c->a, c->b, c->bias, c->aux, c->workspace);
        g->dev->fn->record(g->dev, STREAM_COMPUTE, EVENT_END);
        us = dev_cuda_elapsed(g->dev, EVENT_BEGIN, EVENT_END) * 1e3 / n;
        double calls = seconds * 1e6 / (us > 0.1 ? us : 0.1);
        n = calls < 1 ? 1 : calls > CALLS_MAX ? CALLS_MAX : (int)calls;
    }
    return us;
}

struct proposal {
    const struct lt_plan *plan;
    double us[ROUNDS];
};

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int by_first(const void *a, const void *b)
{
    return by_number(((const struct proposal *)a)->us, ((const struct proposal *)b)->us);
}

static double median(struct proposal *p)
{
    qsort(p->us, ROUNDS, sizeof(p->us[0]), by_number);
    return p->us[ROUNDS / 2];
}

/* The fastest few of what the library proposes, the first proposal at place 0. */
static int find_few(struct gemms *g, const struct lt_shape *s, const struct gemms_call *c,
                    struct proposal *all)
{
    struct err e;
    int n = 0;
    while (n < PROPOSALS && !lt_prepare(g->lt, s, n, &all[n].plan, &e))
        n++;
    for (int i = 0; i < n; i++) {
        time_plan(g, all[i].plan, c, 0); /* the first call loads the kernel */
        all[i].us[0] = time_plan(g, all[i].plan, c, short_seconds);
    }
    if (n > 1)
        qsort(all + 1, (size_t)n - 1, sizeof(*all), by_first);
    return n < FEW + 1 ? n : FEW + 1;
}

static void find_fastest(struct gemms *g, const struct gemms_call *c, struct gemm *ret)
{
    struct proposal all[PROPOSALS];
    int n = find_few(g, &ret->shape, c, all), best = 0;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < n; i++)
            all[i].us[r] = time_plan(g, all[i].plan, c, long_seconds);
    if (!n)
        return;
    ret->first_us = ret->us = median(&all[0]);
    for (int i = 1; i < n; i++) {
        double us = median(&all[i]);
        if (us < ret->us * (best ? 1 : 1 - noise)) {
            ret->us = us;
            best = i;
        }
    }
    ret->plan = all[best].plan;
    ret->origin = OPS_TIMED;
}

/* The first choice that is given for the shape. */
static void take_given(struct gemms *g, struct gemm *x)
{
    struct ops_choice own;
    struct lt_algorithm a;
    struct err e;
    shape_text(&x->shape, own.what, sizeof(own.what));
    for (size_t i = 0; i < g->ngiven; i++)
        if (!strcmp(g->given[i].what, own.what)) {
            bool good = algorithm_of(g->lt, g->given[i].how, &a) &&
                        !lt_restore(g->lt, &x->shape, &a, &x->plan, &e);
            x->origin = good ? OPS_GIVEN : OPS_REFUSED;
            return;
        }
}

int gemms_decide(struct gemms *g, const struct lt_shape *s, const struct gemms_call *call,
                 const struct lt_plan **ret, struct err *e)
{
    struct gemm x = {.origin = OPS_FIRST};
    memcpy(&x.shape, s, sizeof(*s)); /* with what lies between its members, for memcmp */
    int code = lt_prepare(g->lt, s, 0, ret, e);
    if (!code)
        take_given(g, &x);
    if (!code && !x.plan && g->tune && call)
        find_fastest(g, call, &x);
    if (!code && !x.plan)
        x.plan = *ret;
    keep(g, x);
    *ret = x.plan;
    return code;
}
