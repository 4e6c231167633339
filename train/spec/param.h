/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_PARAM_H
#define TRAIN_SPEC_PARAM_H

/*
 * The parameter table. One row of a static table describes a kind of parameter
 * (train/spec/param.c); params_build expands it over the layers of a model and cuts it for one
 * rank. Sizes, offsets in the slabs, initial values, gradient groups, what the norm counts once,
 * decay and the checkpoint's entries all follow from it.
 *
 * In memory a parameter may be several global tensors stacked by rows (q, k, v; gate, up). A
 * checkpoint holds the global tensors, each under its one name, unfused and unpadded.
 */

#include <stdbool.h>
#include <stdint.h>

#include "train/layout/layout.h"
#include "train/spec/spec.h"

enum param_kind {
    PARAM_EMBED,       /* [padded vocab, C]        embed.weight */
    PARAM_POSITION,    /* [positions, C]           position.weight */
    PARAM_NORM1,       /* [C]                      layers.N.attn_norm.weight */
    PARAM_NORM1_B,     /* [C]                      layers.N.attn_norm.bias */
    PARAM_QKV,         /* [(H + 2K) D, C]          layers.N.attn.{q,k,v}.weight: rows of q, k, v */
    PARAM_QKV_B,       /* [(H + 2K) D]             layers.N.attn.{q,k,v}.bias */
    PARAM_Q_NORM,      /* [D]                      layers.N.attn.q_norm.weight: of each head */
    PARAM_K_NORM,      /* [D]                      layers.N.attn.k_norm.weight */
    PARAM_OUT,         /* [C, H D]                 layers.N.attn.out.weight */
    PARAM_OUT_B,       /* [C]                      layers.N.attn.out.bias */
    PARAM_POST1,       /* [C]                      layers.N.attn_post_norm.weight */
    PARAM_NORM2,       /* [C]                      layers.N.mlp_norm.weight */
    PARAM_NORM2_B,     /* [C]                      layers.N.mlp_norm.bias */
    PARAM_UP,          /* [F, C] or [2F, C]        layers.N.mlp.up.weight; mlp.{gate,up}.weight */
    PARAM_UP_B,        /* [F] or [2F] */
    PARAM_DOWN,        /* [C, F]                   layers.N.mlp.down.weight */
    PARAM_DOWN_B,      /* [C] */
    PARAM_POST2,       /* [C]                      layers.N.mlp_post_norm.weight */
    PARAM_ROUTER,      /* [E, C]                   layers.N.mlp.router.weight */
    PARAM_SHARED_UP,   /* [2S, C]                layers.N.mlp.shared.{gate,up}.weight */
    PARAM_SHARED_DOWN, /* [C, S]                 layers.N.mlp.shared.down.weight */
    PARAM_SHARED_GATE, /* [1, C]                 layers.N.mlp.shared_gate.weight */
    PARAM_EXPERT_UP,   /* [2F, C]               layers.N.mlp.experts.E.{gate,up}.weight */
    PARAM_EXPERT_DOWN, /* [C, F]                layers.N.mlp.experts.E.down.weight */
    PARAM_NORM,        /* [C]                      norm.weight: before the head */
    PARAM_NORM_B,      /* [C] */
    PARAM_HEAD,        /* [padded vocab, C]        head.weight; absent when tied */
    PARAM_KINDS
};

enum param_split { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLS }; /* over tensor-parallel ranks */
enum param_init { INIT_NORMAL, INIT_NORMAL_OUT, INIT_ONE, INIT_ZERO };

enum { PARAM_SOURCES = 3 }; /* most global tensors of one parameter */

/* One global tensor of which a parameter holds a part. */
struct param_source {
    char name[64];
    int rank;                   /* 1 or 2; sizes and boxes of rank 1 are [n, 1] */
    int64_t size[2];            /* of the whole tensor, unpadded */
    int64_t begin[2], count[2]; /* the box of it that this rank holds */
    int64_t row;                /* where the box begins in the parameter's rows */
    bool saves;  /* of all ranks that hold this box, this one writes it to a checkpoint */
    bool counts; /* of the tensor-parallel ranks and stages that hold it, this one counts its norm;
                    data-parallel ranks all do, as their gradients are sums by then */
    int shared;  /* TP ranks whose gradients of this box are parts of one sum: key/value
                  * heads that several ranks hold; otherwise 1 */
};

struct param {
    enum param_kind kind;
    int layer;       /* -1: not per layer */
    int expert;      /* -1: of no expert; those of a rank lie one after the other, at equal
                        distances */
    int rank;        /* 1 or 2 */
    int64_t size[2]; /* on this rank, padding included; rank 1: [n, 1] */
    int64_t count;   /* elements */
    int64_t offset;  /* elements from the start of the parameter slab; multiples of 64 */
    int sources;
    struct param_source source[PARAM_SOURCES];
    enum param_split split;
    unsigned summed; /* bit set of enum group: those over which its gradient is a sum of parts.
                        GROUP_TP: all of it, or of its sources those that are shared */
    bool tokens; /* summed over GROUP_TP, it is all of it: a rank's gradient is that of its tokens
                    (sequence parallelism), or of its part of the experts (a router) */
    enum param_init init;
    double std;
    bool decay;   /* weight decay: matrices yes, 1-D tensors no */
    bool trained; /* false: frozen */
};

/* Elements [begin, end) of the flat slab. */
struct param_run {
    int64_t begin, end;
};

struct params {
    struct param *at;
    int n;
    int64_t elements;   /* of the slab, with the gaps between parameters; under ZeRO a multiple of
                           64 x the ranks that share it out (GROUP_SHARD), and under ZeRO 2
                           and 3 so is the first element of each layer and of the head */
    int64_t experts;    /* where the experts' part of the slab begins, which has other ranks
                           with the same weights (GROUP_EDP): under ZeRO its length is a
                           multiple of 64 x these, and under ZeRO 2 and 3 so is where a layer's
                           begin in it; `elements` where there is none */
    int64_t parameters; /* true count of the whole model: unpadded, tied ones once */
    struct spec spec;
    struct param_run *counted; /* what this rank counts in the norm; gaps and padding, which are
                                  zeros, with it where that makes a run longer */
    int ncounted;
    int *experts_of; /* [layers] the first parameter of its experts, likewise */
    int *first_of;   /* [layers] the first parameter of a layer, -1: not on this rank */
};

/*
 * The share of `rank`: the layers of its stages (layout_stage), one chunk after the other. Owned by
 * the caller; params_finish frees. The spec has passed spec_check. ERR_USAGE when the layout cannot
 * cut the model (layout_check).
 */
int params_build(struct params *ret, const struct spec *spec, struct layout layout, int rank,
                 struct err *e);
void params_finish(struct params *p);

/*
 * The parameter of a kind and layer (-1 for those that are not per layer), of experts that of the
 * first one here; NULL if there is none.
 */
const struct param *params_find(const struct params *p, enum param_kind kind, int layer);

/* The stream of a global tensor's random numbers: a hash of its name, in every layout and version.
 */
uint32_t param_stream(const char *name);

/*
 * Initial values of rows begin .. begin + n - 1 of a parameter into `to` (on the host), a function
 * of (seed, global tensor's name, global index) alone, so the same on every layout, and for threads
 * that share a large one. Padding rows are 0. The elements of a parameter of rank 1 are its rows.
 */
void param_init_rows(const struct param *p, uint64_t seed, int64_t begin, int64_t n, float *to);

/* Parameters of the whole model: unpadded, tied ones once. */
int64_t spec_parameters(const struct spec *s);

#endif
