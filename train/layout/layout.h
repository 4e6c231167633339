/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAYOUT_LAYOUT_H
#define TRAIN_LAYOUT_LAYOUT_H

/*
 * A layout: the mesh and what else decides how a run is split. layout_check decides whether a model
 * can be trained with it. The rules are Megatron-LM core_v0.12.3's, except that query groups may be
 * fewer than tensor-parallel ranks, and that ZeRO 2 and 3 with pipeline stages are rejected, as by
 * DeepSpeed.
 */

#include <stddef.h>
#include <stdint.h>

#include "train/layout/context.h"
#include "train/layout/mesh.h"

enum { ZERO_MAX = 3 };

struct layout {
    struct mesh mesh;
    bool sequence; /* sequence parallel: tokens are split over the tensor-parallel ranks, too */
    int chunks;    /* stages that a pipeline rank holds; above 1: interleaved */
    int zero;      /* 0 to ZERO_MAX: what data-parallel ranks share out */
    enum context_comm context;           /* of all layers */
    const enum context_comm *context_of; /* [layers] of each, the caller's; NULL: `context` */
    const int64_t *layers; /* of each stage, pp x chunks in stage order, as balance_layers
                            * (train/schedule) shares them out: the caller's; NULL: equally many */
};

/* Consecutive layers of a model, with the embedding before them and the head after them. */
struct stage {
    int first, layers;
    bool embed, head;
};

/* How the keys of a layer, by its number in the model, reach the queries. */
enum context_comm layout_context(const struct layout *l, int layer);

/* One stage on each pipeline rank, no sequence parallelism, ZeRO 0. */
struct layout layout_plain(struct mesh m);

/* What the pipeline rank `pp` holds as its chunk number `chunk`: of pp x chunks stages, stage
 * chunk * pp's size + pp. */
struct stage layout_stage(struct layout l, int64_t layers, int pp, int chunk);

/* What of a model and a batch decides which layouts it can have. */
struct layout_model {
    int64_t layers, heads, kv_heads, ffn;
    int64_t padded_vocab; /* 0: rounded up to suit any layout; else it must divide by tp */
    int64_t experts;      /* 0: dense */
    int64_t expert_ffn;   /* MLP channels of an expert; not read where dense */
    int64_t seq_length;   /* 0: of no concern, as of a converter */
    int64_t micros;       /* micro-batches of a step and rank; 0: of no concern */
};

/* ERR_USAGE names the rule and the values that break it. */
int layout_check(const struct layout_model *m, const struct layout *l, int world, struct err *e);

#endif
