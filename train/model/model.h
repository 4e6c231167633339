/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_MODEL_H
#define TRAIN_MODEL_MODEL_H

/*
 * The model: embedding, blocks, head; forward, backward and decoding, written once against the ops
 * and comm tables. A `struct model` owns no memory: weights, gradients and activations are cut from
 * slabs that the engine binds, by the same calls that measured them.
 *
 * Shapes, one legend for the module: n tokens of a micro-batch (under context parallelism those of
 * this rank, train/layout/context.h), s rows of the residual stream on
 * this rank (n, or under sequence parallelism n / TP), C hidden, H query heads and K key/value
 * heads of dimension D on this rank, Q = (H + 2K) D, F feed-forward on this rank, V ids of the true
 * vocabulary on this rank.
 *
 * The residual stream is never written by a sub-layer: an output `sub` waits, without its bias,
 * until the next norm adds it (bias, dropout, residual, norm: one pass). So a block is two norms,
 * four products and an attention.
 */

#include "base/core/arena.h"
#include "train/comm/comm.h"
#include "train/layout/context.h"
#include "train/layout/layout.h"
#include "train/model/experts.h"
#include "train/ops/ops.h"
#include "train/ops/values.h"
#include "train/spec/param.h"

struct layer_weights {
    struct tensor norm1, norm1_b, qkv, qkv_b, q_norm, k_norm, out, out_b;
    struct tensor post1, post2; /* norms of what attention and MLP give */
    struct tensor norm2, norm2_b, up, up_b, down, down_b;
    struct tensor shared_up, shared_down, shared_gate; /* [2S,C] [C,S] [1,C]: a shared expert */
    struct tensor router, expert_up, expert_down; /* [E,C] [e,2F,C] [e,C,F]: the e of this rank */
};

/* Views of a stage's parameters, or of their gradients, in one flat slab. */
struct weights {
    struct tensor embed, position, norm, norm_b, head; /* head is embed when tied */
    struct layer_weights *layer;                       /* of the stage, counted from its first */
};

/* `flat` holds parameter i from element place[i] on, or its offset if `place` is NULL. Owns only
 * the array of layers. */
void weights_bind(struct weights *w, const struct params *p, struct stage stage, struct tensor flat,
                  const int64_t *place);
void weights_finish(struct weights *w);

/* One layer's activations, kept from forward to backward. */
struct layer_acts {
    struct tensor r1, y1, mean1, rstd1; /* [s,C] [s,C] [s] [s]: residual, norm before attention */
    struct tensor qkv, lse, att;        /* [n,Q] [H,n] [n,HD] */
    struct tensor q_pre, k_pre;         /* [n,HD] [n,KD]: before QK norm */
    struct tensor q_rstd, k_rstd;       /* [n,H] [n,K] */
    struct tensor r2, y2, mean2, rstd2; /* before the MLP */
    struct tensor out1, out2;           /* [s,C]: of attention and MLP, before norms of their own */
    struct tensor out_rstd1, out_rstd2; /* [s] */
    struct tensor pre, h;               /* [n,F] or [n,2F] before the activation; [n,F] behind it */
    struct tensor kept; /* of a group's first layer that is recomputed: this rank's part of r1 */
    struct expert_acts experts;                       /* in the place of these */
    struct tensor shared_pre, shared_h, shared_logit; /* [n,2S] [n,S] [n,1] (shared.h) */
};

struct acts {
    struct layer_acts *layer;
    struct layer_acts *shared;      /* sets of recomputed layers (recompute.h), or attention's */
    struct tensor x, sub;           /* [s,C] embedding's output; sub-layer output that waits */
    struct tensor r, y, mean, rstd; /* final norm */
    /* [s,C] gradients of the stream, of sub, of a norm's output; training only */
    struct tensor dr, dsub, dy;
    struct tensor local_cos, local_sin; /* of layers with a rotary base of their own, likewise */
    struct tensor cos, sin; /* [positions, rotary / 2], F32 values in the table's real type */
    /* the micro-batch on the device */
    struct tensor id, position, label, mask, q_start, k_start, k_len;
    /* F64 [3 merged]: struct micro_values (ops/values.h) of each micro-batch in a pass; of the
     * first one where dropout's masks begin */
    struct tensor micro, origin;
    struct tensor context; /* I32: ragged rows of calls of attention (context.h) */
    struct tensor row;     /* I32 [n] numbers of the rows; none without context parallelism */
    int64_t *traded;       /* [cp] n each: rows of an all-to-all; likewise */
    struct tensor loss;    /* [n] */
    struct tensor *cache_k, *cache_v; /* per layer [capacity, KD]; decoding only */
};

enum model_use { MODEL_TRAIN, MODEL_EVAL, MODEL_DECODE };

/* What of a layer is computed again before its backward: attention's core; all of each layer, in
 * groups of `layers` that keep their first one's input; that of the first `layers` of a stage. */
enum recompute_kind { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK };

struct recompute {
    enum recompute_kind kind;
    int layers;
    bool distribute; /* a tensor-parallel rank keeps its part of an input */
};

/*
 * The units of a model, in the order of the forward pass: 0, the embedding with positions; 1 +
 * layer; layers + 1, the final norm with the head. Who shares out weights or gradients, or sends
 * gradients as soon as they are there, is told when a pass comes to a unit (train/zero/zero.h).
 */
enum { UNIT_EMBED = 0, UNIT_NONE = -1 };

struct model_units {
    /* The weights of a unit are read next, those of `ahead` soon (UNIT_NONE: none). */
    void (*use)(void *arg, int unit, int ahead);
    /* The unit's gradients are added to next. */
    void (*add)(void *arg, int unit);
    /* The micro-batch that is in the backward pass has added all that it adds. */
    void (*done)(void *arg, int unit);
    void *arg;
};

struct model {
    struct stage stage; /* layers that it has: `l` below counts from the first of them */
    int least_layers,
        most_layers; /* of any stage that this model may be: activations are cut for them */
    const struct params *params;
    const struct spec *spec;
    struct ops *ops;
    struct comm *comm;
    struct weights w, g;
    struct acts a;
    enum model_use use;
    int64_t tokens;    /* n that activations are cut for */
    int64_t sequences; /* most sequences in a micro-batch */
    int64_t stretches; /* most sequences of a micro-batch cut at ends of documents; 0: not cut */
    int64_t positions; /* longest sequence; capacity of the cache when decoding */
    bool any_order;    /* attention's backward may add in any order */
    bool frozen; /* the embedding's row of frozen_id gets no gradient where tokens are looked up */
    int64_t frozen_id;
    double noise;   /* alpha of NEFTune's noise on embeddings, in training alone; 0: none */
    int64_t merged; /* micro-batches in a pass, one after the other; 0: 1 */
    int64_t heads, kv_heads, ffn; /* on this rank */
    bool sequence;                /* sequence parallelism */
    struct recompute recompute;   /* when training */
    struct model_units units;     /* functions may be NULL */
    struct context context;       /* context parallelism; cp 1: none */
    const struct layout *layout;
    /* of a mixture of experts: F64 [2], sums of the balancing and z losses of all layers and
     * micro-batches, without their coefficients */
    struct tensor route_sums;
    /* room for experts' rows, by an even share, 1 or more; 0: EXPERT_FACTOR */
    double expert_factor;
    int64_t crowded; /* passes of layers in this step, forward, whose experts had no room for all
                        rows at once */
    int most_rounds; /* of any pass */
    struct tensor values; /* F64 [STEP_VALUES], of the step (ops/values.h); training only */
    struct arena *host;   /* of its counts, which are made once and stay until the rank is closed */
    const struct layer_acts *held; /* the first layer of the group whose activations lie in the
                                    * shared sets, of one place; NULL: of none */
    const struct layer_acts *held_input; /* likewise, of a stage's input that is shared out */
};

enum { MICRO_DOUBLES = sizeof(struct micro_values) / sizeof(double) };

static inline int64_t model_merged(const struct model *m)
{
    return m->merged ? m->merged : 1;
}

static inline int unit_of_layer(const struct model *m, int l)
{
    return m->stage.first + l + 1;
}

static inline int unit_head(const struct model *m)
{
    return (int)m->spec->layers + 1;
}

static inline void unit_use(const struct model *m, int unit, int ahead)
{
    if (m->units.use)
        m->units.use(m->units.arg, unit, ahead);
}

static inline void unit_add(const struct model *m, int unit)
{
    if (m->units.add)
        m->units.add(m->units.arg, unit);
}

static inline void unit_done(const struct model *m, int unit)
{
    if (m->units.done)
        m->units.done(m->units.arg, unit);
}

/*
 * Cuts activations for micro-batches of `sequences` x `length` tokens; MODEL_DECODE: up to `length`
 * tokens at once and a cache for `length` positions; MODEL_EVAL keeps one layer's activations for
 * all. Called twice, as slabs are.
 */
void model_take_acts(struct model *m, struct slab *activations, enum model_use use,
                     int64_t sequences, int64_t length);

/*
 * Where several micro-batches are in flight, a further set of what a forward pass keeps for its
 * backward, to take the place of m->a; what is used within a pass is that of m->a. Zeroed before
 * the first call; model_place_finish frees.
 */
void model_take_place(struct model *m, struct slab *activations, struct acts *ret);
void model_place_finish(struct acts *a);

/* Makes `a` a place whose micro-batch (ids, positions, labels, sequences) is that of `from`. */
void model_share_batch(struct acts *a, const struct acts *from);
void model_finish(struct model *m);

/* Fills cos and sin through the device, for sequences of `length` (spec_rope_by_length): after
 * binding, and when decoding begins a text of another length. */
void model_fill_tables(struct model *m, int64_t length);

/* What a pass works on: the first `n` tokens of the micro-batch in acts.id ... */
struct model_pass {
    int64_t n, sequences, max_len;
    int64_t parts; /* ragged rows of a call in acts.context */
    bool train;    /* dropout on */
    bool even;     /* every sequence has max_len tokens, one after the other */
    int64_t past;  /* decoding: positions already in the cache */
    bool again;    /* a recomputation: nobody needs the output of the layer `last` */
    int last;
};

/*
 * Between the stream and the products that are cut (stream.c). gather: all rows of `part`, once the
 * ticket is waited for, in workspace or `part` itself. partial: where a product puts its partial
 * sums, workspace or `sum` itself; reduce: their sum over the group, this rank's rows of it.
 */
int64_t stream_count(const struct model *m, int64_t n);
struct tensor stream_rows(const struct model *m, const struct model_pass *p, struct tensor t);
struct tensor stream_gather(struct model *m, struct tensor part, struct comm_ticket *ret);
struct tensor stream_partial(struct model *m, struct tensor sum);
struct comm_ticket stream_reduce(struct model *m, struct tensor sum, struct tensor partial);
/* Gives the dropout of the stream's rows here their global numbers. */
void stream_number(const struct model *m, const struct model_pass *p, struct dropout *d);

/* Ids of the vocabulary whose rows of the embedding and head are on this rank. */
struct vocab_part {
    int64_t first, count;
};
struct vocab_part model_vocab(const struct model *m);

/*
 * The stage's layers, which may be none. What goes in is the micro-batch, or in a later stage of a
 * pipeline the residual stream in acts.x. What comes out is the final norm in acts.y, or in an
 * earlier stage than the last one the stream in model_output.
 */
void model_forward(struct model *m, const struct model_pass *p);
struct tensor model_output(const struct model *m);

/*
 * Loss of the pass from acts.y, label and mask: adds the sum of masked losses to total (F64 [1])
 * and leaves each token's in acts.loss. With train, also gradients of the head, and of y into
 * acts.dy; d objective / d (sum of losses) is scale times the loss scale of `values` by
 * the divisor of the micro-batch in acts.micro.
 */
void model_loss(struct model *m, const struct model_pass *p, struct tensor total, double scale);

/* From acts.dy, in an earlier stage from the stream's gradient in acts.dr, down to the embedding,
 * in a later stage to acts.dr; adds to the gradients. */
void model_backward(struct model *m, const struct model_pass *p);

/* Logits [rows, V] of the hidden states' rows begin .. begin + rows - 1, for generation. */
void model_logits(struct model *m, int64_t begin, int64_t rows, struct tensor logits);

/* One block (block.c). Forward reads the stream x and what waits in sub (none for the first). */
void block_forward(struct model *m, const struct model_pass *p, int l, struct tensor x,
                   struct tensor sub, struct tensor sub_bias);
void block_backward(struct model *m, const struct model_pass *p, int l, bool first,
                    struct tensor below_bias);

/* Dropout of a place: the mask is a function of layer, place and global row. */
enum drop_place { DROP_EMBED, DROP_ATTENTION, DROP_OUT, DROP_MLP };
struct dropout model_dropout(const struct model *m, const struct model_pass *p,
                             enum drop_place place, int layer);

/* Views of a packed row [n,Q] as heads. */
struct qkv_heads {
    struct tensor q, k, v; /* [n,H,D] [n,K,D] [n,K,D] */
    struct tensor qk;      /* [n,H + K,D]: q and k, which lie side by side */
};
struct qkv_heads model_heads(const struct model *m, struct tensor qkv);

#endif
