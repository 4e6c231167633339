/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/ops/cuda/sdpa.h"

enum { FEWEST_TOKENS = 64, TILE = 128, SLACK = 1 << 20, ALIGN = 256, OLDEST = 80 };

static const int64_t most_bytes = (int64_t)4 << 30; /* of a part that cannot be cut further */

/* A shape that was prepared, and a plan for its parts; NULL: cuDNN does not take it. */
struct attend_plan {
    struct attend_plan *next;
    struct sdpa_shape whole;
    struct attend_parts part;
    struct sdpa_plan *plan;
    char why[256]; /* there is none */
};

struct attend {
    struct dev *dev;
    struct sdpa *sdpa; /* NULL: none */
    struct attend_plan *plans;
    char name[64], why[256];
};

struct attend *attend_open(struct dev *d, const char *library_path)
{
    struct attend *a = mem_new(1, sizeof(*a));
    struct err e = {0};
    *a = (struct attend){.dev = d, .name = "own"};
    if (sdpa_open(&a->sdpa, d, library_path, NULL, &e)) {
        snprintf(a->why, sizeof(a->why), "%s", e.msg);
        a->sdpa = NULL;
    } else {
        snprintf(a->name, sizeof(a->name), "cuDNN %s", sdpa_version(a->sdpa));
    }
    return a;
}

void attend_close(struct attend *a)
{
    while (a && a->plans) {
        struct attend_plan *p = a->plans;
        a->plans = p->next;
        if (p->plan)
            sdpa_plan_free(a->sdpa, p->plan);
        free(p);
    }
    if (a && a->sdpa)
        sdpa_close(a->sdpa);
    free(a);
}

const char *attend_name(const struct attend *a)
{
    return a->name;
}

const char *attend_why(const struct attend *a)
{
    return a->why;
}

/* ---- parts -------------------------------------------------------------------------------------
 */

static bool wide(struct tensor t)
{
    return dtype_size(t.dtype) == 2 && (uintptr_t)t.data % 16 == 0 && t.stride % 8 == 0;
}

/* The largest divisor of n that is at most `most`, and at least 1. */
static int64_t divisor(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n;
    while (d > 1 && n % d)
        d--;
    return d > 1 ? d : 1;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Bytes that the backward of one head in one sequence takes: shares of dq by key in one order, or
 * one fp32 sum. */
static int64_t head_bytes(const struct attention_args *a, int64_t length)
{
    return a->any_order ? length * a->q.size[2] * (int64_t)sizeof(float) : length * length * 2;
}

static int64_t length_of(const struct attention_args *a)
{
    return (a->max_len + TILE - 1) / TILE * TILE;
}

const char *attend_lacks(const struct dev_desc *d, const struct attention_args *a)
{
    int64_t dim = a->q.size[2], each = a->q.size[1] / a->k.size[1];
    bool whole = tensor_none(a->lse) || a->lse.stride == a->q.size[0];
    if (dtype_size(a->q.dtype) != 2)
        return "fp32";
    if (!a->even || !a->k_len.size[0])
        return "rows of any length";
    if (a->drop.p > 0)
        return "dropout";
    if (dim % 8)
        return "heads that are no multiple of 8";
    if (dim > 256)
        return "heads wider than 256";
    if (d->capability < OLDEST)
        return "GPU older than compute capability 8.0";
    if (a->max_len < FEWEST_TOKENS)
        return "sequences below 64 tokens";
    if (!wide(a->q) || !wide(a->k) || !wide(a->v) || !wide(a->o) || !whole)
        return "rows that do not begin at multiples of 16 bytes";
    if (each * head_bytes(a, length_of(a)) > most_bytes)
        return "sequences so long but with --no-deterministic";
    return NULL;
}

bool attend_cut(const struct dev_desc *d, const struct attention_args *a, struct attend_parts *ret)
{
    int64_t groups = a->k.size[1], each = a->q.size[1] / groups; /* heads of a group */
    if (attend_lacks(d, a))
        return false;
    int64_t length = length_of(a), head = head_bytes(a, length), one = each * head;
    ret->sequences = divisor(a->k_len.size[0], attend_bytes / (one * groups));
    ret->groups = one * groups <= attend_bytes ? groups : divisor(groups, attend_bytes / one);
    int64_t part = ret->sequences * ret->groups * each; /* heads */
    int64_t bytes = aligned(part * a->max_len * (int64_t)sizeof(float)) + part * head;
    if (each > 1) /* gradients of keys and values for every query head */
        bytes += 2 * part * length * a->q.size[2] * 2;
    ret->bytes = (size_t)bytes + SLACK;
    return true;
}

static struct sdpa_shape shape_of(const struct attention_args *a)
{
    struct sdpa_shape s;
    memset(&s, 0, sizeof(s)); /* with what lies between its members, for memcmp */
    s.batch = a->k_len.size[0];
    s.tokens = a->max_len;
    s.heads = a->q.size[1];
    s.groups = a->k.size[1];
    s.dim = a->q.size[2];
    s.stride.q = s.stride.dq = a->q.stride;
    s.stride.k = s.stride.dk = a->k.stride;
    s.stride.v = s.stride.dv = a->v.stride;
    s.stride.o = s.stride.dout = a->o.stride;
    s.type = a->q.dtype;
    s.scale = a->scale;
    s.cap = a->cap;
    s.window = a->window < a->max_len ? a->window : 0; /* else every key is in it */
    s.causal = true;
    s.deterministic = !a->any_order;
    s.backward = !tensor_none(a->lse);
    return s;
}

static struct attend_plan *find_shape(const struct attend *a, const struct sdpa_shape *s)
{
    struct attend_plan *p = a->plans;
    while (p && memcmp(&p->whole, s, sizeof(*s)) != 0)
        p = p->next;
    return p;
}

/* A plan that was made for both directions serves a forward without statistics, too. */
static struct attend_plan *find(const struct attend *a, const struct attention_args *args)
{
    if (!args->even || args->drop.p > 0 || !a->plans)
        return NULL;
    struct sdpa_shape s = shape_of(args);
    struct attend_plan *p = find_shape(a, &s);
    if (!p && !s.backward) {
        s.backward = true;
        p = find_shape(a, &s);
    }
    return p;
}

/* True: the plan was made, and takes the workspace that it is given. */
static bool planned(struct attend *a, const struct sdpa_shape *s, struct attend_plan *p)
{
    struct err e;
    if (sdpa_prepare(a->sdpa, s, &p->plan, &e)) {
        snprintf(p->why, sizeof(p->why), "%s", e.msg);
        return false;
    }
    if (sdpa_workspace(p->plan) <= p->part.bytes)
        return true;
    snprintf(p->why, sizeof(p->why), "it asks for %zu bytes of workspace, expected at most %zu",
             sdpa_workspace(p->plan), p->part.bytes);
    sdpa_plan_free(a->sdpa, p->plan);
    p->plan = NULL;
    return false;
}

bool attend_prepare(struct attend *a, const struct attention_args *args, const char **ret_why)
{
    struct attend_parts part;
    *ret_why = a->why;
    if (!a->sdpa || !attend_cut(&a->dev->desc, args, &part))
        return false;
    struct attend_plan *p = find(a, args);
    if (p) {
        *ret_why = p->why;
        return p->plan;
    }
    p = mem_new(1, sizeof(*p));
    *p = (struct attend_plan){.next = a->plans, .part = part};
    struct sdpa_shape s = shape_of(args);
    memcpy(&p->whole, &s, sizeof(s));
    s.batch = part.sequences;
    s.heads = s.heads / s.groups * part.groups;
    s.groups = part.groups;
    a->plans = p;
    *ret_why = p->why;
    return planned(a, &s, p);
}

/* ---- running -----------------------------------------------------------------------------------
 */

/* Row `row`, head `head`. */
static void *at(struct tensor t, int64_t row, int64_t head)
{
    return (uint16_t *)t.data + row * t.stride + head * t.size[2];
}

/* The part that begins with sequence s and group g, the number-th of all. Each part has its own
 * lse, one after the other. */
static struct sdpa_tensors part_of(const struct attend_plan *p, const struct attention_args *a,
                                   int64_t number)
{
    int64_t across = p->whole.groups / p->part.groups, each = p->whole.heads / p->whole.groups;
    int64_t row = number / across * p->part.sequences * p->whole.tokens;
    int64_t group = number % across * p->part.groups;
    int64_t queries = p->part.sequences * p->part.groups * each * p->whole.tokens;
    return (struct sdpa_tensors){.q = at(a->q, row, group * each),
                                 .k = at(a->k, row, group),
                                 .v = at(a->v, row, group),
                                 .o = at(a->o, row, group * each),
                                 .lse = (float *)a->lse.data + number * queries};
}

static int64_t parts(const struct attend_plan *p)
{
    return p->whole.batch / p->part.sequences * (p->whole.groups / p->part.groups);
}

bool attend_forward(struct attend *a, const struct attention_args *args, void *workspace)
{
    const struct attend_plan *p = find(a, args);
    if (!p || !p->plan)
        return false;
    for (int64_t i = 0; i < parts(p); i++) {
        struct sdpa_tensors t = part_of(p, args, i);
        char *ws = workspace;
        if (tensor_none(args->lse)) { /* of no use to anyone, but written */
            t.lse = workspace;
            ws += aligned(p->part.sequences * p->part.groups * (p->whole.heads / p->whole.groups) *
                          p->whole.tokens * (int64_t)sizeof(float));
        }
        sdpa_forward(a->sdpa, p->plan, &t, ws);
    }
    return true;
}

bool attend_backward(struct attend *a, const struct attention_bwd_args *args, void *workspace)
{
    const struct attend_plan *p = find(a, &args->fwd);
    if (!p || !p->plan)
        return false;
    struct attention_args gradients = args->fwd; /* where those of q, k, v and o are */
    gradients.q = args->dq;
    gradients.k = args->dk;
    gradients.v = args->dv;
    gradients.o = args->dout;
    for (int64_t i = 0; i < parts(p); i++) {
        struct sdpa_tensors t = part_of(p, &args->fwd, i), d = part_of(p, &gradients, i);
        t.dq = (void *)d.q;
        t.dk = (void *)d.k;
        t.dv = (void *)d.v;
        t.dout = d.o;
        sdpa_backward(a->sdpa, p->plan, &t, workspace);
    }
    return true;
}
