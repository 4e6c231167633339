/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/t.h"
#include "tests/train/ops/twins.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct tensor out(struct call *c, struct tensor t, double relative, double absolute)
{
    T_CHECK(c->outs < CALL_OUTS);
    if (relative >= 0)
        c->limit[c->outs] = (struct limit){true, relative, absolute};
    c->out[c->outs++] = t;
    return t;
}

/* Within c->tolerance. */
static struct tensor near_out(struct call *c, struct tensor t)
{
    return out(c, t, -1, 0);
}

static bool bit(uint32_t bits, int i)
{
    return bits >> i & 1;
}

static int64_t gap(uint32_t bits, int which)
{
    return bit(bits, which) ? 3 : 0;
}

static struct tensor poison_2d(struct world *w, enum dtype d, int64_t rows, int64_t cols,
                               int64_t between)
{
    return world_poisoned(w, d, between, 2, (const int64_t[]){rows, cols});
}

static struct tensor poison_1d(struct world *w, enum dtype d, int64_t n)
{
    return world_poisoned(w, d, 0, 1, &n);
}

static struct tensor poison_3d(struct world *w, struct tensor like, int64_t between)
{
    return world_poisoned(w, DTYPE_F32, between, 3, like.size);
}

static void set_ints(struct tensor t, int64_t i, int64_t value)
{
    world_set(t, i, (double)value);
}

/* Of a product of two rows of random numbers: what is summed may cancel. */
static double product_error(int64_t width)
{
    return 2e-6 * sqrt((double)width);
}

/* ---- glu: n F; rope: n D H ------------------------------------------------------------------- */

static enum glu glu_of(uint32_t bits)
{
    return bit(bits, 6) ? bit(bits, 7) ? GLU_GELU_ERF : GLU_GELU_TANH : GLU_SILU;
}

/* Far below 0 GELU has no digits but those of its argument. */
static double glu_floor(uint32_t bits)
{
    return glu_of(bits) == GLU_SILU ? 0 : 20;
}

void make_glu(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    c->op = OP_GLU;
    c->u.glu.act = glu_of(bits);
    c->tolerance = 2e-6;
    c->floor = glu_floor(bits);
    c->u.glu.y = near_out(c, poison_2d(w, DTYPE_F32, d[0], d[1], gap(bits, 0)));
    c->u.glu.x = world_2d(w, bit(bits, 5) ? 20 : 3, d[0], 2 * d[1], gap(bits, 1));
}

void make_glu_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct glu_bwd_args *a = &c->u.glu_bwd;
    c->op = OP_GLU_BWD;
    a->act = glu_of(bits);
    c->tolerance = 2e-6;
    c->floor = glu_floor(bits);
    a->x = world_2d(w, bit(bits, 5) ? 20 : 3, d[0], 2 * d[1], gap(bits, 1));
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->dx =
        near_out(c, bit(bits, 4) ? a->x : poison_2d(w, DTYPE_F32, d[0], 2 * d[1], gap(bits, 2)));
}

void make_rope(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct rope_args *a = &c->u.rope;
    int64_t dim = d[1] < 2 ? 2 : d[1];
    c->op = OP_ROPE;
    c->tolerance = 1e-6;
    a->x = near_out(c, world_3d(w, 1, d[0], d[2], dim, gap(bits, 0)));
    a->rotary = bit(bits, 5) ? (dim + 2) / 4 * 2 : dim / 2 * 2;
    a->cos = world_2d(w, 1, 11, a->rotary / 2, gap(bits, 1));
    a->sin = world_2d(w, 1, 11, a->rotary / 2, gap(bits, 2));
    a->position = world_ids(w, d[0], 11);
    a->backward = bit(bits, 4);
}

/* ---- caps of logits: n V; norms of heads: n D H ------------------------------------------------
 */

void make_cap(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    c->op = OP_CAP;
    c->tolerance = 2e-6;
    c->u.cap.cap = bit(bits, 4) ? 30 : 2;
    c->u.cap.x = near_out(c, world_2d(w, 4, d[0], d[1], gap(bits, 0)));
}

void make_head_norm(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct head_norm_args *a = &c->u.head_norm;
    c->op = OP_HEAD_NORM;
    c->tolerance = 4e-6;
    a->eps = 1e-5f;
    a->less_one = bit(bits, 4);
    a->x = near_out(c, world_3d(w, 1, d[0], d[2], d[1], gap(bits, 0)));
    a->w = world_1d(w, 1, d[1]);
    if (bit(bits, 5)) {
        a->pre = near_out(c, poison_3d(w, a->x, gap(bits, 1)));
        a->rstd = near_out(c, poison_2d(w, DTYPE_F32, d[0], d[2], gap(bits, 2)));
    }
}

void make_head_norm_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct head_norm_bwd_args *a = &c->u.head_norm_bwd;
    c->op = OP_HEAD_NORM_BWD;
    c->tolerance = 1e-5;
    a->less_one = bit(bits, 4);
    a->dx = near_out(c, world_3d(w, 1, d[0], d[2], d[1], gap(bits, 0)));
    a->pre = world_3d(w, 1, d[0], d[2], d[1], gap(bits, 1));
    a->rstd = world_2d(w, 1, d[0], d[2], gap(bits, 2));
    a->w = world_1d(w, 1, d[1]);
    a->dw = out(c, world_1d(w, 1, d[1]), 1e-5, product_error(d[0] * d[2]));
}

/* ---- the router: n E k -------------------------------------------------------------------------
 */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Logits; with ties if bit 5 is set. */
static struct tensor router_logits(struct world *w, int64_t n, int64_t E, uint32_t bits)
{
    struct tensor t = world_2d(w, 3, n, E, gap(bits, 0));
    for (int64_t i = 0; i < n * E && bit(bits, 5); i++)
        world_set(t, i, nearbyint(world_get(t, i)));
    return t;
}

void make_route(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct route_args *a = &c->u.route;
    int64_t n = d[0], E = d[1], k = least(d[2], E);
    c->op = OP_ROUTE;
    c->tolerance = 4e-6;
    a->normalize = bit(bits, 4);
    a->logits = router_logits(w, n, E, bits);
    a->prob = near_out(c, poison_2d(w, DTYPE_F32, n, E, gap(bits, 1)));
    a->lse = near_out(c, poison_1d(w, DTYPE_F32, n));
    a->weight = near_out(c, poison_2d(w, DTYPE_F32, n, k, gap(bits, 2)));
    a->choice = out(c, poison_2d(w, DTYPE_I32, n, k, gap(bits, 3)), 0, 0);
    a->slot = out(c, poison_2d(w, DTYPE_I32, n, k, gap(bits, 0)), 0, 0);
    a->count = out(c, poison_1d(w, DTYPE_I32, E), 0, 0);
    if (bit(bits, 6))
        a->start = out(c, poison_1d(w, DTYPE_I32, E + 1), 0, 0);
}

/* A routing as the host's table has it. */
static struct route_args routed(struct world *w, int64_t n, int64_t E, int64_t k, uint32_t bits)
{
    struct call c = {0};
    make_route(w, &c, (const int64_t[]){n, E, k}, bits);
    op_route(&w->ops, &c.u.route);
    return c.u.route;
}

void make_route_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct route_bwd_args *a = &c->u.route_bwd;
    int64_t n = d[0], E = d[1], k = least(d[2], E);
    struct route_args r = routed(w, n, E, k, bits);
    c->op = OP_ROUTE_BWD;
    c->tolerance = 1e-5;
    c->floor = 0.01; /* of one expert all gradients are nothing but rounding */
    *a = (struct route_bwd_args){.dweight = world_2d(w, 1, n, k, gap(bits, 1)),
                                 .prob = r.prob,
                                 .lse = r.lse,
                                 .weight = r.weight,
                                 .choice = r.choice,
                                 .total = world_ids(w, E, 90),
                                 .normalize = r.normalize,
                                 .balance = bit(bits, 6) ? 0.01 : 0,
                                 .z = bit(bits, 7) ? 0.2 : 0};
    if (bit(bits, 3)) {
        a->scale = world_poisoned(w, DTYPE_F64, 0, 1, (const int64_t[]){1});
        world_set(a->scale, 0, 3);
    }
    a->dlogits = near_out(c, poison_2d(w, DTYPE_F32, n, E, gap(bits, 2)));
}

void make_route_loss(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct route_loss_args *a = &c->u.route_loss;
    struct route_args r = routed(w, d[0], d[1], 1, bits);
    const int64_t two = 2;
    c->op = OP_ROUTE_LOSS;
    a->prob = r.prob;
    a->lse = r.lse;
    a->total = world_ids(w, d[1], 90);
    a->balance = 0.3;
    a->z = 0.2;
    a->sums = out(c, world_poisoned(w, DTYPE_F64, 0, 1, &two), 1e-12, 1e-12);
    world_set(a->sums, 0, 1.5);
    world_set(a->sums, 1, -0.5);
}

/* ---- rows of tokens and of slots: n C k --------------------------------------------------------
 */

/* Some one-to-one map of pairs to slots. */
static struct tensor slots(struct world *w, int64_t n, int64_t k, uint32_t bits)
{
    struct tensor t = poison_2d(w, DTYPE_I32, n, k, gap(bits, 3));
    int64_t pairs = n * k, step = 1;
    for (int64_t i = 1; i < pairs; i++) { /* the largest below a third that has no common factor */
        int64_t x = pairs, y = i;
        while (y) {
            int64_t rest = x % y;
            x = y;
            y = rest;
        }
        step = x == 1 && i <= pairs / 3 ? i : step;
    }
    for (int64_t i = 0; i < pairs; i++)
        set_ints(t, i, (i * step + bits) % pairs);
    return t;
}

void make_permute(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct permute_args *a = &c->u.permute;
    c->op = OP_PERMUTE;
    a->slot = slots(w, d[0], d[2], bits);
    a->x = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->to = out(c, poison_2d(w, DTYPE_F32, d[0] * d[2], d[1], gap(bits, 1)), 0, 0);
}

void make_permute_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct permute_bwd_args *a = &c->u.permute_bwd;
    c->op = OP_PERMUTE_BWD;
    c->tolerance = 1e-6;
    a->slot = slots(w, d[0], d[2], bits);
    a->dto = world_2d(w, 1, d[0] * d[2], d[1], gap(bits, 0));
    a->dx = near_out(c, poison_2d(w, DTYPE_F32, d[0], d[1], gap(bits, 1)));
}

void make_unpermute(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct unpermute_args *a = &c->u.unpermute;
    c->op = OP_UNPERMUTE;
    c->tolerance = 1e-6;
    a->slot = slots(w, d[0], d[2], bits);
    a->weight = world_2d(w, 1, d[0], d[2], gap(bits, 2));
    a->from = world_2d(w, 1, d[0] * d[2], d[1], gap(bits, 0));
    a->y = near_out(c, poison_2d(w, DTYPE_F32, d[0], d[1], gap(bits, 1)));
}

void make_unpermute_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct unpermute_bwd_args *a = &c->u.unpermute_bwd;
    c->op = OP_UNPERMUTE_BWD;
    c->tolerance = 1e-5;
    a->slot = slots(w, d[0], d[2], bits);
    a->weight = world_2d(w, 1, d[0], d[2], gap(bits, 2));
    a->from = world_2d(w, 1, d[0] * d[2], d[1], gap(bits, 0));
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 1));
    a->dfrom = near_out(c, poison_2d(w, DTYPE_F32, d[0] * d[2], d[1], gap(bits, 3)));
    a->dweight =
        out(c, poison_2d(w, DTYPE_F32, d[0], d[2], gap(bits, 3)), 1e-5, product_error(d[1]));
}

/* ---- products of groups: n O I E ---------------------------------------------------------------
 */

enum { GROUPS = 128 };

/* Where the groups begin, one or two for each of E matrices; some are empty, and up to two rows
 * are left over. */
static struct tensor groups(struct world *w, int64_t n, int64_t E, uint32_t bits)
{
    int32_t start[GROUPS + 1] = {0};
    int64_t number = E * (bit(bits, 4) ? 2 : 1), used = n > 2 ? n - bits % 3 : n;
    T_CHECK(number <= GROUPS);
    for (int64_t g = 1; g <= number; g++) {
        int64_t even = used * g / number;
        start[g] = (int32_t)(bit(bits, 5) && g % 3 == 1 && g < number ? start[g - 1] : even);
    }
    return world_ints(w, number + 1, start);
}

void make_grouped(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct grouped_args *a = &c->u.grouped;
    c->op = OP_GROUPED;
    a->backward = bit(bits, 6);
    int64_t in = a->backward ? d[1] : d[2], to = a->backward ? d[2] : d[1];
    a->start = groups(w, d[0], d[3], bits);
    a->x = world_2d(w, 1, d[0], in, gap(bits, 0));
    a->w =
        world_random(w, 1 / sqrt((double)in), gap(bits, 1), 3, (const int64_t[]){d[3], d[1], d[2]});
    a->y = poison_2d(w, DTYPE_F32, d[0], to, gap(bits, 2));
    out(c, a->y, 1e-5, 1e-5); /* rows of no group stay poisoned */
}

void make_grouped_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct grouped_bwd_args *a = &c->u.grouped_bwd;
    c->op = OP_GROUPED_BWD;
    c->tolerance = 1e-5;
    a->start = groups(w, d[0], d[3], bits);
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->x = world_2d(w, 1, d[0], d[2], gap(bits, 1));
    a->dw = near_out(c, world_random(w, 1, gap(bits, 2), 3, (const int64_t[]){d[3], d[1], d[2]}));
}

/* ---- the gate of a shared expert: n F ----------------------------------------------------------
 */

void make_gate(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct gate_args *a = &c->u.gate;
    c->op = OP_GATE;
    c->tolerance = 2e-6;
    a->x = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->logit = world_2d(w, bit(bits, 4) ? 20 : 2, d[0], 1, gap(bits, 1));
    a->y = near_out(c, poison_2d(w, DTYPE_F32, d[0], d[1], gap(bits, 2)));
}

void make_gate_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct gate_bwd_args *a = &c->u.gate_bwd;
    c->op = OP_GATE_BWD;
    c->tolerance = 1e-5;
    a->x = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->logit = world_2d(w, bit(bits, 4) ? 20 : 2, d[0], 1, gap(bits, 1));
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 2));
    a->dx = near_out(c, bit(bits, 5) ? a->dy : poison_2d(w, DTYPE_F32, d[0], d[1], gap(bits, 3)));
    a->dlogit = out(c, poison_2d(w, DTYPE_F32, d[0], 1, gap(bits, 3)), 1e-5, product_error(d[1]));
}
