/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_SPEC_H
#define TRAIN_SPEC_SPEC_H

/*
 * What a model is, as plain values: enough to build its parameter table and run it, nothing about
 * batches, optimizers or ranks. It comes from options with Megatron's names, from a preset, from a
 * Hugging Face config.json, or from a checkpoint; spec_check judges it, whatever the source.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/format/json.h"
#include "train/layout/layout.h"

enum {
    SPEC_HEAD_MAX = 1 << 16, /* channels of a head */
    SPEC_LAYERS_MAX = 10000,
    SPEC_LONGROPE_MAX = 64 /* pairs of a head that are turned */
};
enum spec_norm { SPEC_LAYERNORM, SPEC_RMSNORM };
enum spec_act { SPEC_GELU_TANH, SPEC_GELU_ERF, SPEC_SWIGLU, SPEC_GEGLU_TANH, SPEC_GEGLU_ERF };
enum spec_position { SPEC_LEARNED, SPEC_ROPE };
enum spec_rope_scaling {
    SPEC_ROPE_PLAIN,
    SPEC_ROPE_LLAMA3,
    SPEC_ROPE_LONG,
    SPEC_ROPE_LINEAR,
    SPEC_ROPE_YARN,
    SPEC_ROPE_DYNAMIC
};

/* Layers that differ from the others: the bit l % 8 of byte l / 8. */
struct spec_layers {
    uint8_t bits[SPEC_LAYERS_MAX / 8];
};

/*
 * What the models of some programs have and those of others lack: bits of spec.features. Train runs
 * those that members of the spec describe (spec_can_run); a model with others is converted,
 * inspected and verified all the same.
 */
enum spec_feature {
    SPEC_QK_NORM = 1 << 0,           /* read from earlier checkpoints alone, as `qk_norm` */
    SPEC_EXPERTS = 1 << 1,           /* a mixture of experts */
    SPEC_PARALLEL_RESIDUAL = 1 << 2, /* likewise, as `parallel` */
    SPEC_POST_NORM = 1 << 3,         /* norms after attention and after the MLP */
    SPEC_ZERO_CENTERED = 1 << 4,     /* norm weights are stored less one */
    SPEC_SOFTCAP = 1 << 5,           /* logits of attention or of the head pass through tanh */
    SPEC_WINDOW = 1 << 6,            /* attention over a window of positions */
    SPEC_ROPE_OTHER = 1 << 7,        /* rotary scaling in layers with a window; of earlier
                                        imports also yarn and dynamic */
    SPEC_GATED_GELU = 1 << 8,        /* a gated MLP with GELU */
    SPEC_EMBED_SCALE = 1 << 9,       /* embeddings are multiplied by sqrt(hidden) */
    SPEC_QUERY_SCALE = 1 << 10,      /* queries are scaled by something else than their width */
    SPEC_PART_BIAS = 1 << 11,        /* biases on attention or on the MLP alone */
    SPEC_OTHER_ACT = 1 << 12,   /* an activation that enum spec_act lacks; `act` says nothing */
    SPEC_SCORE_LAYER = 1 << 13, /* scores of attention are divided by the layer's number, from 1 */
    SPEC_ROUTE_ONE = 1 << 14    /* one expert a token, with the weight 1 */
};

/*
 * LongRoPE (Ding et al. 2024), as Phi-3 has it: the wavelength of each pair that is turned is
 * multiplied by a factor of its own, by `far` in sequences longer than rope_old_length, otherwise
 * by `near`; cosines and sines are multiplied by `attention`. Factors of pairs that are not there
 * are 0.
 */
struct spec_longrope {
    double near[SPEC_LONGROPE_MAX], far[SPEC_LONGROPE_MAX], attention;
};

/*
 * YaRN (Peng et al. 2023): pairs that turn more than `fast` times in rope_old_length positions keep
 * their wavelength, those that turn less than `slow` times have it multiplied by rope_factor, those
 * between are mixed; cosines and sines are multiplied by `attention`. The first and the last pair
 * that are mixed are rounded to whole ones unless `exact`.
 */
struct spec_yarn {
    double fast, slow, attention;
    bool exact;
};

struct spec {
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn;
    int64_t vocab;         /* true size: ids are below it */
    int64_t padded_vocab;  /* rows of the embedding in memory: a multiple of 128 x TP */
    int64_t max_positions; /* rows of a learned position table; longest rotary position */
    enum spec_norm norm;
    enum spec_act act;
    enum spec_position position;
    enum spec_rope_scaling rope_scaling;
    double norm_eps;
    double rope_base, rope_percent;          /* percent: share of head_dim that is turned, 0 to 1 */
    double rope_factor, rope_low, rope_high; /* llama3 scaling: 8, 1, 4 */
    int64_t rope_old_length;                 /* 8192; of dynamic scaling (NTK), that beyond which
                                                the base grows with the length of the sequence */
    struct spec_longrope longrope;
    bool tied;             /* the head is the word embedding */
    bool bias;             /* on linear layers (and LayerNorm always has one) */
    bool qkv_bias;         /* on q, k, v alone (Qwen 2) */
    int64_t experts, topk; /* of a mixture of experts in each layer but `dense`, and those of a
                              token; 0: none */
    int64_t expert_ffn;    /* MLP channels of an expert */
    bool route_before; /* an expert's weight is its part of the softmax over all, not over topk */
    double balance_coeff, z_coeff; /* of the balancing and z losses; training only */
    bool qk_norm;                  /* RMS norm of each head of queries and keys, before rotary */
    bool zero_centered;            /* norms multiply by one more than their weight */
    bool post_norm;                /* norms after attention and after the MLP, before the stream */
    bool embed_scale;              /* embeddings times sqrt(hidden), rounded to their type */
    double score_cap, head_cap;    /* scores of attention, logits: cap tanh(x / cap); 0: x */
    double query_scalar;           /* scores are divided by its root; 0: head_dim */
    int64_t window; /* of a layer in `windowed`: a query sees so many keys, its own the last; 0: all
                       before it */
    struct spec_layers windowed;
    double rope_local_base; /* of layers in `windowed`, whose rotary positions are not scaled; 0: as
                               of all others */
    int64_t shared_ffn; /* channels of an expert that every token passes beside those; 0: none */
    bool shared_gate;   /* whose output is multiplied by a sigmoid of its own */
    struct spec_layers dense; /* layers without experts */
    bool parallel;            /* attention and MLP both read the block's input (GPT-NeoX) */
    struct spec_yarn yarn;
    unsigned features; /* bits of enum spec_feature */
    double init_std;   /* N(0, std); outputs of attention and MLP std / sqrt(2 layers) */
    double hidden_dropout, attention_dropout; /* training only */
};

/* ERR_USAGE names the first thing that cannot be: heads that do not divide, sizes of 0, ... */
int spec_check(const struct spec *s, struct err *e);

/*
 * Gives the members that this model does not use their usual values (rotary ones under learned
 * positions, scaling ones without scaling, a bias of q, k, v where all have one), so that equal
 * models are equal values. Whoever fills a spec by hand calls it last.
 */
void spec_settle(struct spec *s);

static inline bool spec_layers_has(const struct spec_layers *s, int64_t layer)
{
    return s->bits[layer / 8] >> layer % 8 & 1;
}

static inline void spec_layers_add(struct spec_layers *s, int64_t layer)
{
    s->bits[layer / 8] |= (uint8_t)(1 << layer % 8);
}

bool spec_layers_none(const struct spec_layers *s);

static inline bool spec_has_experts(const struct spec *s, int64_t layer)
{
    return s->experts && !spec_layers_has(&s->dense, layer);
}

/* What of the model decides which layouts it can have; lengths and micro-batches are left 0. */
struct layout_model spec_layout_model(const struct spec *s);

/* Whether the MLP has a gate beside what goes up. */
static inline bool spec_gated(const struct spec *s)
{
    return s->act == SPEC_SWIGLU || s->act == SPEC_GEGLU_TANH || s->act == SPEC_GEGLU_ERF;
}

/* Whether the layer has the rotary base of its own kind. */
static inline bool spec_rope_local(const struct spec *s, int64_t layer)
{
    return s->rope_local_base > 0 && spec_layers_has(&s->windowed, layer);
}

/* The window of a layer, counted from the model's first; 0: none. */
static inline int64_t spec_window(const struct spec *s, int64_t layer)
{
    return spec_layers_has(&s->windowed, layer) ? s->window : 0;
}

/* Whether rotary positions depend on the length of their sequence. */
static inline bool spec_rope_by_length(const struct spec *s)
{
    return s->rope_scaling == SPEC_ROPE_LONG || s->rope_scaling == SPEC_ROPE_DYNAMIC;
}

/* Channels of a head that are turned by rotary positions; even. */
int64_t spec_rotary(const struct spec *s);

/* Rounds vocab up to a multiple of divisible_by x tp. */
int64_t spec_pad_vocab(int64_t vocab, int64_t divisible_by, int tp);

/*
 * As a JSON object with the option names as keys, and back (for the checkpoint). Values come back
 * equal. A key that is missing has its usual value, so that a model from before a field was added
 * stays what it was; without its basic sizes there is no model. A key that is not known is
 * ERR_DATA.
 */
void spec_to_json(const struct spec *s, struct buf *out);

/*
 * The same for the model of a manifest with a list of the keys that a reader must know (ckpt.h,
 * ckpt_must_know): keys that it does not list and that are not known are ignored. NULL: none are.
 */
int spec_from_manifest(const struct json *o, const struct json *must_know, const char *name,
                       struct spec *ret, struct err *e);

/*
 * True when the two are different models; what differs is then appended to `out`, first a's
 * value, then b's. Padding, initial values and dropouts are not part of what a model is.
 */
bool spec_differ(const struct spec *a, const struct spec *b, struct buf *out);

/* Features in words, with commas between them. */
void spec_feature_words(unsigned bits, struct buf *out);

/* The features of the model that train lacks. */
unsigned spec_lacking(const struct spec *s);
/* ERR_USAGE names them; 0 when there are none. `name` is the file or checkpoint that the model
 * comes from. */
int spec_can_run(const struct spec *s, const char *name, struct err *e);

/*
 * Floating-point operations of one training step over `batch` sequences of `length`: the
 * published formula of core_v0.12.3 (causal half counted), for the throughput field of the log
 * line.
 */
double spec_step_flops(const struct spec *s, int64_t batch, int64_t length);

#endif
