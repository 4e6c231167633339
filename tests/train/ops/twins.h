/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_TWINS_H
#define TESTS_TRAIN_OPS_TWINS_H

/*
 * Calls of every op, made from a few sizes and some bits that choose among its forms. The same
 * calls compare the fast entries with their plain twins (test_twins.c) and measure them
 * (bench_twins.c).
 */

#include "tests/train/ops/world.h"

enum { CALL_OUTS = 6, TWIN_SIZES = 6, TWIN_BENCHES = 16, TWIN_BITS = 11 };

struct call {
    enum op op;
    union {
        struct embed_args embed;
        struct embed_bwd_args embed_bwd;
        struct norm_args norm;
        struct norm_bwd_args norm_bwd;
        struct matmul_args matmul;
        struct glu_args glu;
        struct glu_bwd_args glu_bwd;
        struct rope_args rope;
        struct attention_args attention;
        struct attention_bwd_args attention_bwd;
        struct xent_stats_args xent_stats;
        struct xent_loss_args xent_loss;
        struct adamw_args adamw;
        struct sgd_args sgd;
        struct sumsq_args sumsq;
        struct fill_args fill;
        struct copy_args copy;
    } u;
    int outs;
    struct tensor out[CALL_OUTS]; /* what the call writes */
    double tolerance, floor;      /* of |fast - ref| / (|ref| + root mean square of ref + floor) */
    struct limit {
        bool own; /* of this output, instead: |fast - ref| <= relative |ref| + absolute */
        double relative, absolute;
    } limit[CALL_OUTS];
};

struct twin {
    const char *name;
    /*
     * d: the sizes named by `what`. Bits 0 to 3: gaps between rows; the others, up to TWIN_BITS,
     * are the op's.
     */
    void (*make)(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
    const char *what;         /* "n C": meaning of the sizes */
    int64_t most[TWIN_SIZES]; /* when drawn at random; 0 behind the last */
    bool edges;               /* also the sizes round vectors' and blocks' own, and no rows */
    struct {
        uint32_t bits;
        int64_t d[TWIN_SIZES];
    } bench[TWIN_BENCHES]; /* ends with a first size of 0 */
};

extern const struct twin twins[];
extern const int twin_count;

/* Through op_NAME, with its checks. */
void call_run(struct ops *o, const struct call *c);

#endif
