/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_TWINS_H
#define TESTS_TRAIN_OPS_TWINS_H

/*
 * Calls of every op, made from a few sizes and some bits that choose among its forms. The same
 * calls compare the fast entries with their plain twins (test_twins.c) and measure them
 * (bench_twins.c).
 */

#include "tests/train/ops/world.h"
#include "train/ops/experts.h"
#include "train/ops/head_norm.h"

enum { CALL_OUTS = 7, TWIN_SIZES = 6, TWIN_BENCHES = 16, TWIN_BITS = 11 };

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
        struct cap_args cap;
        struct head_norm_args head_norm;
        struct head_norm_bwd_args head_norm_bwd;
        struct route_args route;
        struct route_bwd_args route_bwd;
        struct route_loss_args route_loss;
        struct permute_args permute;
        struct permute_bwd_args permute_bwd;
        struct unpermute_args unpermute;
        struct unpermute_bwd_args unpermute_bwd;
        struct grouped_args grouped;
        struct grouped_bwd_args grouped_bwd;
        struct gate_args gate;
        struct gate_bwd_args gate_bwd;
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
    bool apart;            /* test_twins leaves out what has tests of its own on the host */
};

extern const struct twin twins[];
extern const int twin_count;

/* Calls of attention (twins_attention.c); a part of twins[]. */
void make_attention(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_attention_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);

/* Calls of the ops that some families of models have (twins_families.c); a part of twins[]. */
void make_glu(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_glu_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_rope(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_cap(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_head_norm(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_head_norm_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_route(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_route_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_route_loss(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_permute(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_permute_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_unpermute(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_unpermute_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_grouped(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_grouped_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_gate(struct world *w, struct call *c, const int64_t *d, uint32_t bits);
void make_gate_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits);

/* Through op_NAME, with its checks. */
void call_run(struct ops *o, const struct call *c);

#endif
