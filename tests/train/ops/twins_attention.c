/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/train/ops/twins_pieces.h"

/* ---- attention: sequences T K H/K D queries -------------------------------------------------- */

/*
 * Sequences of up to T keys, the first of all T. Every key has its query, or the last `queries` of
 * them if that is not 0. Odd sequences of a ragged call are shorter, and rows of keys lie between
 * the sequences that belong to none.
 */
static void make_rows(struct world *w, struct attention_args *a, const int64_t *d, bool ragged)
{
    int32_t q_start[65] = {0}, k_start[64], k_len[64], at = 0;
    int64_t n = d[0] < 64 ? d[0] : 64;
    for (int64_t s = 0; s < n; s++) {
        int64_t keys = ragged && s % 2 ? 1 + (d[1] * 5 + s * 7) % d[1] : d[1];
        int64_t queries = d[5] && d[5] < keys ? d[5] : keys;
        at += ragged ? 1 : 0;
        k_start[s] = at;
        k_len[s] = (int32_t)keys;
        at += (int32_t)keys;
        q_start[s + 1] = q_start[s] + (int32_t)queries;
    }
    a->q_start = world_ints(w, n + 1, q_start);
    a->k_start = world_ints(w, n, k_start);
    a->k_len = world_ints(w, n, k_len);
    a->max_len = d[1] + (ragged ? 2 : 0);
}

static void attention_inputs(struct world *w, struct attention_args *a, const int64_t *d,
                             uint32_t bits)
{
    make_rows(w, a, d, bit(bits, 4));
    int64_t last = a->k_len.size[0] - 1, heads = d[2] * d[3];
    int64_t n = ((const int32_t *)a->q_start.data)[last + 1];
    int64_t nk = ((const int32_t *)a->k_start.data)[last] + ((const int32_t *)a->k_len.data)[last] +
                 (bit(bits, 4) ? 2 : 0);
    a->q = world_3d(w, 1, n, heads, d[4], gap(bits, 0));
    a->k = world_3d(w, 1, nk, d[2], d[4], gap(bits, 1));
    a->v = world_3d(w, 1, nk, d[2], d[4], gap(bits, 2));
    a->window = bit(bits, 5) ? 1 + d[1] / 3 : 0;
    a->scale = 1 / sqrtf((float)d[4]);
    a->drop = dropout(w, bits, 6);
    a->cap = bit(bits, 9) ? 1.5f : 0;
    if (bit(bits, 8)) {
        a->head0 = 3;
        a->all_heads = heads + 4;
    }
}

void make_attention(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct attention_args *a = &c->u.attention;
    c->op = OP_ATTENTION;
    c->tolerance = 1e-5;
    attention_inputs(w, a, d, bits);
    a->o = out(c, poison_3d(w, a->q, gap(bits, 3)));
    if (!bit(bits, 7))
        a->lse = out(c, poison_2d(w, a->q.size[1], a->q.size[0], gap(bits, 3)));
}

void make_attention_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct attention_bwd_args *b = &c->u.attention_bwd;
    struct attention_args *a = &b->fwd;
    c->op = OP_ATTENTION_BWD;
    c->tolerance = 2e-5;
    c->floor = 0.1; /* a query that sees one key has no slope but what rounding leaves */
    attention_inputs(w, a, d, bits);
    a->o = poison_3d(w, a->q, gap(bits, 3));
    a->lse = poison_2d(w, a->q.size[1], a->q.size[0], gap(bits, 3));
    op_attention(&w->ops, a);
    b->dout = world_3d(w, 1, a->q.size[0], a->q.size[1], d[4], gap(bits, 2));
    b->dq = out(c, poison_3d(w, a->q, gap(bits, 1)));
    b->dk = out(c, poison_3d(w, a->k, gap(bits, 0)));
    b->dv = out(c, poison_3d(w, a->k, gap(bits, 3)));
}
