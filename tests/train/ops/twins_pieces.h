/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_TWINS_PIECES_H
#define TESTS_TRAIN_OPS_TWINS_PIECES_H

/* What calls are made of, for twins.c and twins_attention.c. */

#include "tests/t.h"
#include "tests/train/ops/twins.h"

static inline struct tensor out(struct call *c, struct tensor t)
{
    T_CHECK(c->outs < CALL_OUTS);
    c->out[c->outs++] = t;
    return t;
}

/* For the last output: see struct limit. */
static inline void within(struct call *c, double relative, double absolute)
{
    c->limit[c->outs - 1] = (struct limit){true, relative, absolute};
}

static inline bool bit(uint32_t bits, int i)
{
    return bits >> i & 1;
}

static inline int64_t gap(uint32_t bits, int which)
{
    return bit(bits, which) ? 3 : 0;
}

static inline struct tensor poison_2d(struct world *w, int64_t rows, int64_t cols, int64_t between)
{
    return world_poisoned(w, DTYPE_F32, between, 2, (const int64_t[]){rows, cols});
}

static inline struct tensor poison_1d(struct world *w, int64_t n)
{
    return world_poisoned(w, DTYPE_F32, 0, 1, &n);
}

static inline struct tensor poison_3d(struct world *w, struct tensor like, int64_t between)
{
    return world_poisoned(w, DTYPE_F32, between, 3, like.size);
}

static inline struct tensor one(struct world *w, enum dtype d, double value)
{
    const int64_t n = 1;
    struct tensor t = world_poisoned(w, d, 0, 1, &n);
    world_set(t, 0, value);
    return t;
}

static inline struct dropout dropout(struct world *w, uint32_t bits, int which)
{
    struct dropout d = {
        .p = bit(bits, which) ? 0.3f : 0, .seed = 77 + bits, .sub = 3, .row0 = bits % 5};
    if (bits % 3 == 1)
        d.origin = world_ints(w, DROP_ORIGIN, (const int32_t[]){5, 6, 11, 1});
    return d;
}

#endif
