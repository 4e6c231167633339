/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_OPTIONS_H
#define TRAIN_SPEC_OPTIONS_H

/*
 * How a program's user describes a model: options with the names, meanings and defaults of
 * Megatron-LM core_v0.12.3, presets, or `--hf-config PATH`.
 *
 * A program puts a `struct spec_flags` into its own struct of options, the rows into its table and
 * spec_presets into its presets:
 *
 *     static const struct opt table[] = {
 *         SPEC_FLAG_ROWS(struct run_options, model, VERB_RUN),
 *         ...
 *     opts_init(&o, &table, &values, argc, argv, e);
 *     spec_flags_note(&values.model, &o);
 *     spec_from_flags(&values.model, vocab, tp, &spec, e);
 *
 * Strings belong to the options of the program; nothing is owned here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/cli/opt.h"
#include "train/spec/families.h"
#include "train/spec/spec.h"

struct spec_flags {
    int64_t layers, hidden, ffn, heads, query_groups, kv_channels, max_positions;
    int64_t vocab_divisor; /* --make-vocab-size-divisible-by */
    int64_t kv_heads;      /* --num-key-value-heads; 0: as --group-query-attention says */
    bool gqa;              /* --group-query-attention */
    int position;          /* --position-embedding-type, an enum spec_position */
    bool rotary;           /* --use-rotary-position-embeddings */
    double rotary_base, rotary_percent;
    bool rope_scaling;         /* --use-rope-scaling: the way of Llama 3.1 */
    double rope_factor;        /* --rope-scaling-factor */
    double rope_linear;        /* --rotary-seq-len-interpolation-factor; 0: none */
    const char *window;        /* --window-size; NULL: none */
    const char *window_layers; /* --window-attn-skip-freq; NULL: all */
    int norm;                  /* --normalization, an enum spec_norm */
    double norm_eps;
    bool swiglu;
    bool gelu_tanh;     /* --bias-gelu-fusion */
    bool no_bias;       /* --disable-bias-linear */
    bool qkv_bias;      /* --add-qkv-bias */
    bool qk_norm;       /* --qk-layernorm */
    bool zero_centered; /* --apply-layernorm-1p */
    bool parallel;      /* --use-parallel-residual */
    bool untie;         /* --untie-embeddings-and-output-weights */
    double init_std;    /* --init-method-std */
    double attention_dropout, hidden_dropout;
    int64_t experts, topk, expert_ffn; /* --num-experts, --moe-router-topk, --moe-ffn-hidden-size */
    const char *moe_layers;            /* --moe-layer-freq; NULL: all */
    bool route_before;                 /* --moe-router-pre-softmax */
    int64_t shared_ffn;                /* --moe-shared-expert-intermediate-size */
    bool shared_gate;                  /* --moe-shared-expert-gate */
    int balancing;                     /* --moe-router-load-balancing-type: 1, none */
    bool no_position;                  /* --no-position-embedding: of a learned table */
    double balance_coeff, z_coeff;     /* --moe-aux-loss-coeff, --moe-z-loss-coeff */
    const char *hf_config;             /* --hf-config: a file, its folder, or the text itself */
    struct opt_list ignored_keys;      /* --ignore-config-key */
    uint64_t given;                    /* private: which of them somebody named (spec_flags_note) */
    bool preset_config;                /* private: hf_config is a preset's */
};

/* Bounds only keep out what is not a number of its kind; spec_check judges the model as a whole. */
#define SPEC_FLAG_ROWS(S, m, v)                                                                    \
    OPT_ROW(.name = "num-layers", .type = OPT_INT, .offset = offsetof(S, m.layers), .min = 1,      \
            .max = 1e4, .meta = "N", .group = "model", .verbs = v, .basic = true,                  \
            .resumed = RESUMED_EQUAL, .help = "transformer layers"),                               \
        OPT_ROW(.name = "hidden-size", .type = OPT_INT, .offset = offsetof(S, m.hidden), .min = 1, \
                .max = 1e6, .meta = "N", .group = "model", .verbs = v, .basic = true,              \
                .resumed = RESUMED_EQUAL, .help = "width of the model"),                           \
        OPT_ROW(.name = "ffn-hidden-size", .type = OPT_INT, .offset = offsetof(S, m.ffn),          \
                .unset = "4 x hidden size; with --swiglu 2/3 of that, rounded down to a multiple " \
                         "of 64",                                                                  \
                .min = 1, .max = 1e7, .meta = "N", .group = "model", .verbs = v,                   \
                .resumed = RESUMED_EQUAL, .help = "width of the MLP"),                             \
        OPT_ROW(.name = "num-attention-heads", .type = OPT_INT, .offset = offsetof(S, m.heads),    \
                .min = 1, .max = 1e5, .meta = "N", .group = "model", .verbs = v, .basic = true,    \
                .resumed = RESUMED_EQUAL, .help = "attention heads"),                              \
        OPT_ROW(.name = "group-query-attention", .type = OPT_SWITCH, .offset = offsetof(S, m.gqa), \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .help = "groups of heads share keys and values"),                                  \
        OPT_ROW(.name = "num-query-groups", .type = OPT_INT,                                       \
                .offset = offsetof(S, m.query_groups), .def = "1", .min = 1, .max = 1e5,           \
                .meta = "N", .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,               \
                .brief = "key/value heads with grouped queries",                                   \
                .help = "key/value heads with --group-query-attention"),                           \
        OPT_ROW(.name = "num-key-value-heads", .type = OPT_INT, .offset = offsetof(S, m.kv_heads), \
                .unset = "--num-query-groups", .max = 1e5, .meta = "N", .group = "model",          \
                .verbs = v, .resumed = RESUMED_EQUAL, .brief = "key/value heads",                  \
                .help = "key/value heads: --group-query-attention --num-query-groups N under "     \
                        "Megatron-DeepSpeed's name"),                                              \
        OPT_ROW(.name = "kv-channels", .type = OPT_INT, .offset = offsetof(S, m.kv_channels),      \
                .unset = "hidden size / heads", .min = 1, .max = 1e5, .meta = "N",                 \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .help = "width of a head"),                                                        \
        OPT_ROW(.name = "max-position-embeddings", .type = OPT_INT,                                \
                .offset = offsetof(S, m.max_positions), .min = 1, .max = 1e9, .meta = "N",         \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .help = "positions of the model"),                                                 \
        OPT_ROW(.name = "position-embedding-type", .type = OPT_CHOICE,                             \
                .offset = offsetof(S, m.position), .def = "learned_absolute",                      \
                .meta = "learned_absolute|rope", .group = "model", .verbs = v,                     \
                .resumed = RESUMED_EQUAL, .help = "how positions are encoded"),                    \
        OPT_ROW(.name = "use-rotary-position-embeddings", .type = OPT_SWITCH,                      \
                .offset = offsetof(S, m.rotary), .group = "model", .verbs = v,                     \
                .resumed = RESUMED_EQUAL, .help = "same as --position-embedding-type rope"),       \
        OPT_ROW(.name = "no-position-embedding", .type = OPT_SWITCH,                               \
                .offset = offsetof(S, m.no_position), .group = "model", .verbs = v,                \
                .resumed = RESUMED_EQUAL,                                                          \
                .brief = "no table of positions; with rotary ones alone",                          \
                .help = "no learned table of positions; expected with rotary ones, which have "    \
                        "none"),                                                                   \
        OPT_ROW(.name = "rotary-base", .type = OPT_REAL, .offset = offsetof(S, m.rotary_base),     \
                .def = "10000", .min = 1, .max = 1e12, .meta = "X", .group = "model", .verbs = v,  \
                .alias = "rotary-position-embeddings-theta",                                       \
                .needs =                                                                           \
                    "position-embedding-type=rope, use-rotary-position-embeddings, hf-config",     \
                .resumed = RESUMED_EQUAL, .help = "base of the rotary angles"),                    \
        OPT_ROW(.name = "rotary-percent", .type = OPT_REAL,                                        \
                .offset = offsetof(S, m.rotary_percent), .def = "1.0", .max = 1, .meta = "X",      \
                .group = "model", .verbs = v,                                                      \
                .needs =                                                                           \
                    "position-embedding-type=rope, use-rotary-position-embeddings, hf-config",     \
                .resumed = RESUMED_EQUAL, .help = "share of each head that is rotated"),           \
        OPT_ROW(.name = "use-rope-scaling", .type = OPT_SWITCH,                                    \
                .offset = offsetof(S, m.rope_scaling), .group = "model", .verbs = v,               \
                .needs =                                                                           \
                    "position-embedding-type=rope, use-rotary-position-embeddings, hf-config",     \
                .resumed = RESUMED_EQUAL, .help = "scale rotary angles as Llama 3.1 does"),        \
        OPT_ROW(.name = "rope-scaling-factor", .type = OPT_REAL,                                   \
                .offset = offsetof(S, m.rope_factor), .def = "8.0", .min = 1, .max = 1e6,          \
                .meta = "X", .group = "model", .verbs = v, .needs = "use-rope-scaling, hf-config", \
                .resumed = RESUMED_EQUAL, .help = "factor of --use-rope-scaling"),                 \
        OPT_ROW(.name = "rotary-seq-len-interpolation-factor", .type = OPT_REAL,                   \
                .offset = offsetof(S, m.rope_linear), .unset = "none", .max = 1e6, .meta = "X",    \
                .group = "model", .verbs = v,                                                      \
                .needs =                                                                           \
                    "position-embedding-type=rope, use-rotary-position-embeddings, hf-config",     \
                .resumed = RESUMED_EQUAL, .brief = "divide rotary angles by X",                    \
                .help = "divide rotary angles by X (linear scaling)"),                             \
        OPT_ROW(.name = "window-size", .type = OPT_TEXT, .offset = offsetof(S, m.window),          \
                .unset = "all before it", .meta = "LEFT,0", .group = "model", .verbs = v,          \
                .resumed = RESUMED_EQUAL, .brief = "a query sees itself and LEFT keys",            \
                .help = "attention over a window: a query sees itself and the LEFT positions "     \
                        "before it"),                                                              \
        OPT_ROW(.name = "window-attn-skip-freq", .type = OPT_TEXT,                                 \
                .offset = offsetof(S, m.window_layers), .unset = "none without", .meta = "N|LIST", \
                .group = "model", .verbs = v, .needs = "window-size, hf-config",                   \
                .resumed = RESUMED_EQUAL, .brief = "layers without a window",                      \
                .help = "layers without a window: every Nth, or the zeros of a list such as "      \
                        "([1]*5+[0])*4"),                                                          \
        OPT_ROW(.name = "normalization", .type = OPT_CHOICE, .offset = offsetof(S, m.norm),        \
                .def = "LayerNorm", .meta = "LayerNorm|RMSNorm", .group = "model", .verbs = v,     \
                .resumed = RESUMED_EQUAL, .help = "kind of normalization"),                        \
        OPT_ROW(.name = "norm-epsilon", .type = OPT_REAL, .offset = offsetof(S, m.norm_eps),       \
                .def = "1e-5", .max = 1, .meta = "X", .group = "model", .verbs = v,                \
                .alias = "layernorm-epsilon", .resumed = RESUMED_EQUAL,                            \
                .help = "epsilon of the norms"),                                                   \
        OPT_ROW(.name = "swiglu", .type = OPT_SWITCH, .offset = offsetof(S, m.swiglu),             \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .help = "gated MLP with SiLU instead of GELU"),                                    \
        OPT_ROW(.name = "bias-gelu-fusion", .type = OPT_SWITCH,                                    \
                .offset = offsetof(S, m.gelu_tanh), .def = "true", .group = "model", .verbs = v,   \
                .alias = "gelu-tanh", .needs = "!swiglu", .resumed = RESUMED_EQUAL,                \
                .brief = "GELU in its tanh form",                                                  \
                .help = "GELU in the tanh form that Megatron's fused kernel computes; "            \
                        "--no-bias-gelu-fusion selects the erf form"),                             \
        OPT_ROW(.name = "disable-bias-linear", .type = OPT_SWITCH,                                 \
                .offset = offsetof(S, m.no_bias), .group = "model", .verbs = v,                    \
                .resumed = RESUMED_EQUAL, .help = "linear layers without bias"),                   \
        OPT_ROW(.name = "add-qkv-bias", .type = OPT_SWITCH, .offset = offsetof(S, m.qkv_bias),     \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .brief = "bias on queries, keys and values",                                       \
                .help = "bias on queries, keys and values even with --disable-bias-linear"),       \
        OPT_ROW(.name = "qk-layernorm", .type = OPT_SWITCH, .offset = offsetof(S, m.qk_norm),      \
                .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                            \
                .brief = "norms on queries and keys",                                              \
                .help = "RMS norm of each head of queries and keys, before rotary positions; "     \
                        "needs --normalization RMSNorm"),                                          \
        OPT_ROW(.name = "apply-layernorm-1p", .type = OPT_SWITCH,                                  \
                .offset = offsetof(S, m.zero_centered), .group = "model", .verbs = v,              \
                .resumed = RESUMED_EQUAL, .brief = "norms multiply by 1 + weight",                 \
                .help = "norms multiply by one more than their weight; needs --normalization "     \
                        "RMSNorm"),                                                                \
        OPT_ROW(.name = "use-parallel-residual", .type = OPT_SWITCH,                               \
                .offset = offsetof(S, m.parallel), .group = "model", .verbs = v,                   \
                .resumed = RESUMED_EQUAL, .brief = "attention and MLP side by side",               \
                .help = "attention and MLP both read the block's input, and their outputs are "    \
                        "added to it (GPT-NeoX)"),                                                 \
        OPT_ROW(.name = "untie-embeddings-and-output-weights", .type = OPT_SWITCH,                 \
                .offset = offsetof(S, m.untie), .group = "model", .verbs = v,                      \
                .resumed = RESUMED_EQUAL, .help = "output head with its own matrix"),              \
        OPT_ROW(.name = "init-method-std", .type = OPT_REAL, .offset = offsetof(S, m.init_std),    \
                .def = "0.02", .max = 100, .meta = "X", .group = "model", .verbs = v,              \
                .resumed = RESUMED_FREE, .help = "standard deviation of initial weights"),         \
        OPT_ROW(.name = "attention-dropout", .type = OPT_REAL,                                     \
                .offset = offsetof(S, m.attention_dropout), .def = "0.1", .max = 1, .meta = "X",   \
                .group = "model", .verbs = v, .resumed = RESUMED_WARNED,                           \
                .help = "dropout of attention weights"),                                           \
        OPT_ROW(.name = "hidden-dropout", .type = OPT_REAL,                                        \
                .offset = offsetof(S, m.hidden_dropout), .def = "0.1", .max = 1, .meta = "X",      \
                .group = "model", .verbs = v, .resumed = RESUMED_WARNED,                           \
                .help = "dropout of hidden values"),                                               \
        OPT_ROW(.name = "make-vocab-size-divisible-by", .type = OPT_INT,                           \
                .offset = offsetof(S, m.vocab_divisor), .def = "128", .min = 1, .max = 1e6,        \
                .meta = "N", .group = "model", .verbs = v, .resumed = RESUMED_FREE,                \
                .brief = "embedding rows are padded to a multiple",                                \
                .help = "embedding rows are padded to a multiple of this times the "               \
                        "tensor-parallel size"),                                                   \
        OPT_ROW(.name = "num-experts", .type = OPT_INT, .offset = offsetof(S, m.experts),          \
                .min = 1, .max = 65536, .meta = "N", .group = "experts", .verbs = v,               \
                .single = "Megatron-DeepSpeed's list has a number for each of its "                \
                          "mixture-of-experts layers; here all have as many experts",              \
                .resumed = RESUMED_EQUAL, .brief = "experts in place of each layer's MLP",         \
                .help = "experts in place of each layer's MLP; each token goes to those that a "   \
                        "router chooses, and none is dropped"),                                    \
        OPT_ROW(.name = "moe-layer-freq", .type = OPT_TEXT, .offset = offsetof(S, m.moe_layers),   \
                .unset = "all layers", .meta = "N|LIST", .group = "experts", .verbs = v,           \
                .needs = "num-experts, hf-config", .resumed = RESUMED_EQUAL,                       \
                .brief = "layers with experts",                                                    \
                .help = "layers with experts: the first of each N, or the ones of a list such as " \
                        "([0]+[1]*3)*4; the others have an MLP of --ffn-hidden-size"),             \
        OPT_ROW(.name = "moe-router-topk", .type = OPT_INT, .offset = offsetof(S, m.topk),         \
                .def = "2", .min = 1, .max = 65536, .meta = "N", .group = "experts", .verbs = v,   \
                .needs = "num-experts, hf-config", .resumed = RESUMED_EQUAL,                       \
                .help = "experts of each token"),                                                  \
        OPT_ROW(.name = "moe-ffn-hidden-size", .type = OPT_INT,                                    \
                .offset = offsetof(S, m.expert_ffn), .unset = "--ffn-hidden-size", .min = 1,       \
                .max = 1e7, .meta = "N", .group = "experts", .verbs = v,                           \
                .needs = "num-experts, hf-config", .resumed = RESUMED_EQUAL,                       \
                .help = "width of an expert"),                                                     \
        OPT_ROW(.name = "moe-router-pre-softmax", .type = OPT_SWITCH,                              \
                .offset = offsetof(S, m.route_before), .group = "experts", .verbs = v,             \
                .needs = "num-experts, hf-config", .resumed = RESUMED_EQUAL,                       \
                .brief = "softmax over all experts, then top-k",                                   \
                .help = "weights of a token's experts from the softmax over all experts; without " \
                        "it over the chosen ones, so that they sum to 1"),                         \
        OPT_ROW(.name = "moe-shared-expert-intermediate-size", .type = OPT_INT,                    \
                .offset = offsetof(S, m.shared_ffn), .unset = "no shared expert", .min = 0,        \
                .max = 1e7, .meta = "N", .group = "experts", .verbs = v,                           \
                .needs = "num-experts, hf-config", .resumed = RESUMED_EQUAL,                       \
                .brief = "width of a shared expert",                                               \
                .help = "width of an expert that every token passes, besides its own"),            \
        OPT_ROW(.name = "moe-shared-expert-gate", .type = OPT_SWITCH,                              \
                .offset = offsetof(S, m.shared_gate), .group = "experts", .verbs = v,              \
                .needs = "moe-shared-expert-intermediate-size, hf-config",                         \
                .resumed = RESUMED_EQUAL, .brief = "sigmoid gate of the shared expert",            \
                .help = "the shared expert's output is multiplied by a sigmoid of its own"),       \
        OPT_ROW(.name = "moe-router-load-balancing-type", .type = OPT_CHOICE,                      \
                .offset = offsetof(S, m.balancing), .def = "aux_loss", .meta = "aux_loss|none",    \
                .group = "experts", .verbs = v, .needs = "num-experts, hf-config",                 \
                .resumed = RESUMED_WARNED, .brief = "how the experts' load is balanced",           \
                .help = "how the load of experts is balanced: by the loss that "                   \
                        "--moe-aux-loss-coeff weighs, or not at all"),                             \
        OPT_ROW(.name = "moe-aux-loss-coeff", .type = OPT_REAL,                                    \
                .offset = offsetof(S, m.balance_coeff), .def = "0", .max = 1e6, .meta = "X",       \
                .group = "experts", .verbs = v, .needs = "num-experts, hf-config",                 \
                .resumed = RESUMED_WARNED, .brief = "coefficient of the balancing loss",           \
                .help = "coefficient of the balancing loss of each layer and micro-batch; 1e-2 "   \
                        "is usual"),                                                               \
        OPT_ROW(.name = "moe-z-loss-coeff", .type = OPT_REAL, .offset = offsetof(S, m.z_coeff),    \
                .def = "0", .max = 1e6, .meta = "X", .group = "experts", .verbs = v,               \
                .needs = "num-experts, hf-config", .resumed = RESUMED_WARNED,                      \
                .brief = "coefficient of the router's z loss",                                     \
                .help = "coefficient of the z loss, the mean square of the log of the sum of "     \
                        "exponentials of the router's logits; 1e-3 is usual"),                     \
        OPT_ROW(.name = "hf-config", .type = OPT_TEXT, .offset = offsetof(S, m.hf_config),         \
                .meta = "PATH", .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,            \
                .local = true, .brief = "take the model from a config.json",                       \
                .help =                                                                            \
                    "take the model from a Hugging Face config.json: the file, the folder "        \
                    "that has it, or its text, which begins with a brace (" HF_FAMILY_WORDS ")")

/* For whoever opens a model of Hugging Face, also without options of the model. */
#define SPEC_IGNORE_ROW(S, m, v)                                                                   \
    OPT_ROW(.name = "ignore-config-key", .type = OPT_LIST, .offset = offsetof(S, m.ignored_keys),  \
            .meta = "KEY", .group = "model", .verbs = v, .resumed = RESUMED_EQUAL,                 \
            .brief = "pass over this key of a config.json",                                        \
            .help = "pass over this key of a Hugging Face config.json, which weft does not "       \
                    "know or has no model for")

/*
 * Notes which of the options were named by a preset, a file or a flag. It matters beside
 * --hf-config only: there an option of the model's shape must agree with the file, and init std and
 * dropouts, once named, win over it. Without the call the file alone decides.
 */
void spec_flags_note(struct spec_flags *f, struct opts *o);

/*
 * With --hf-config: gives the options that nobody named the values of that file, so that
 * --print-config and the run's own configuration show the model that is built. After
 * spec_flags_note. The error is that of spec_from_flags.
 */
int spec_flags_fill(const struct spec_flags *f, struct opts *o, struct err *e);

/*
 * The model that the flags describe, checked. `vocab` is the tokenizer's true size; 0 (not known)
 * is possible with --hf-config only, whose own vocabulary, which must not be smaller, counts.
 * ERR_USAGE names the option.
 */
int spec_from_flags(const struct spec_flags *f, int64_t vocab, int tp, struct spec *ret,
                    struct err *e);

/*
 * The same for a model that is known already, that of a checkpoint, say: *s with the options that
 * may differ from it and its padding. ERR_USAGE for an option of the shape that has another value,
 * for a vocabulary that is too large and for a model that train cannot run.
 */
int spec_from_model(const struct spec_flags *f, const char *name, int64_t vocab, int tp,
                    struct spec *s, struct err *e);

/* Whether the options describe a model at all: its sizes, or --hf-config. */
bool spec_flags_shaped(const struct spec_flags *f);

/* The value of --hf-config if that is a configuration itself, which begins with a brace, as presets
 * have it; else NULL. */
const char *spec_flags_text(const struct spec_flags *f);

/* The config.json that --hf-config names, in fresh memory; NULL if it names none. */
char *spec_flags_config(const struct spec_flags *f);

/* Shapes by name, as values of these options; ended by a NULL name. */
extern const struct opt_preset spec_presets[];

#endif
