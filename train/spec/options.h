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

#include "base/err.h"
#include "base/opt.h"
#include "train/spec/spec.h"

struct spec_flags {
    int64_t layers, hidden, ffn, heads, query_groups, kv_channels, max_positions;
    int64_t vocab_divisor;  /* --make-vocab-size-divisible-by */
    bool gqa;               /* --group-query-attention */
    int position;           /* --position-embedding-type, an enum spec_position */
    bool rotary;            /* --use-rotary-position-embeddings */
    double rotary_base, rotary_percent;
    bool rope_scaling;      /* --use-rope-scaling: the way of Llama 3.1 */
    double rope_factor;     /* --rope-scaling-factor */
    int norm;               /* --normalization, an enum spec_norm */
    double norm_eps;
    bool swiglu;
    bool gelu_tanh;         /* --bias-gelu-fusion */
    bool no_bias;           /* --disable-bias-linear */
    bool qkv_bias;          /* --add-qkv-bias */
    bool untie;             /* --untie-embeddings-and-output-weights */
    double init_std;        /* --init-method-std */
    double attention_dropout, hidden_dropout;
    const char *hf_config;  /* --hf-config */
    uint64_t given;         /* private: which of them somebody named (spec_flags_note) */
};

#define SPEC_FLAG_ROW(S, member, verbset, nm, ty, field, dflt, metatext, low, high, isbasic, text) \
    OPT_ROW(S, nm, ty, member.field, dflt, metatext, "model", verbset, low, high, isbasic, text)

/* Bounds only keep out what is no number of its kind; spec_check judges the model as a whole. */
#define SPEC_FLAG_ROWS(S, m, v)                                                                    \
    SPEC_FLAG_ROW(S, m, v, "num-layers", OPT_INT, layers, NULL, "N", 0, 1e5, true,                 \
                  "transformer layers"),                                                           \
        SPEC_FLAG_ROW(S, m, v, "hidden-size", OPT_INT, hidden, NULL, "N", 0, 1e6, true,            \
                      "width of the model"),                                                       \
        SPEC_FLAG_ROW(S, m, v, "ffn-hidden-size", OPT_INT, ffn, NULL, "N", 0, 1e7, false,          \
                      "width inside the MLP (4 x hidden size; with --swiglu 2/3 of that, down to " \
                      "a multiple of 64)"),                                                        \
        SPEC_FLAG_ROW(S, m, v, "num-attention-heads", OPT_INT, heads, NULL, "N", 0, 1e5, true,     \
                      "attention heads"),                                                          \
        SPEC_FLAG_ROW(S, m, v, "group-query-attention", OPT_SWITCH, gqa, NULL, NULL, 0, 0, false,  \
                      "heads share keys and values, by groups"),                                   \
        SPEC_FLAG_ROW(S, m, v, "num-query-groups", OPT_INT, query_groups, "1", "N", 1, 1e5, false, \
                      "key/value heads under --group-query-attention"),                            \
        SPEC_FLAG_ROW(S, m, v, "kv-channels", OPT_INT, kv_channels, NULL, "N", 0, 1e5, false,      \
                      "width of a head (hidden size / heads)"),                                    \
        SPEC_FLAG_ROW(S, m, v, "max-position-embeddings", OPT_INT, max_positions, NULL, "N", 0,    \
                      1e9, true, "positions that the model has"),                                  \
        SPEC_FLAG_ROW(S, m, v, "position-embedding-type", OPT_CHOICE, position,                    \
                      "learned_absolute", "learned_absolute|rope", 0, 0, false,                    \
                      "how the model knows positions"),                                            \
        SPEC_FLAG_ROW(S, m, v, "use-rotary-position-embeddings", OPT_SWITCH, rotary, NULL, NULL,   \
                      0, 0, false, "old name of --position-embedding-type rope"),                  \
        SPEC_FLAG_ROW(S, m, v, "rotary-base", OPT_REAL, rotary_base, "10000", "X", 1, 1e12, false, \
                      "base of the rotary angles"),                                                \
        SPEC_FLAG_ROW(S, m, v, "rotary-percent", OPT_REAL, rotary_percent, "1.0", "X", 0, 1,       \
                      false, "share of each head that is turned"),                                 \
        SPEC_FLAG_ROW(S, m, v, "use-rope-scaling", OPT_SWITCH, rope_scaling, NULL, NULL, 0, 0,     \
                      false, "stretch the rotary angles as Llama 3.1 does"),                       \
        SPEC_FLAG_ROW(S, m, v, "rope-scaling-factor", OPT_REAL, rope_factor, "8.0", "X", 1, 1e6,   \
                      false, "factor of --use-rope-scaling"),                                      \
        SPEC_FLAG_ROW(S, m, v, "normalization", OPT_CHOICE, norm, "LayerNorm",                     \
                      "LayerNorm|RMSNorm", 0, 0, false, "kind of norm"),                           \
        {.name = "norm-epsilon", .type = OPT_REAL, .offset = offsetof(S, m.norm_eps),              \
         .def = "1e-5", .meta = "X", .section = "model", .help = "epsilon of the norms",           \
         .verbs = v, .alias = "layernorm-epsilon", .min = 0, .max = 1},                            \
        SPEC_FLAG_ROW(S, m, v, "swiglu", OPT_SWITCH, swiglu, NULL, NULL, 0, 0, false,              \
                      "gated MLP with SiLU instead of GELU"),                                      \
        {.name = "bias-gelu-fusion", .type = OPT_SWITCH, .offset = offsetof(S, m.gelu_tanh),       \
         .def = "true", .section = "model",                                                        \
         .help = "GELU in the tanh form, which Megatron's fused kernel computes; "                 \
                 "--no-bias-gelu-fusion is the erf form",                                          \
         .verbs = v, .alias = "gelu-tanh"},                                                        \
        SPEC_FLAG_ROW(S, m, v, "disable-bias-linear", OPT_SWITCH, no_bias, NULL, NULL, 0, 0,       \
                      false, "linear layers without bias"),                                        \
        SPEC_FLAG_ROW(S, m, v, "add-qkv-bias", OPT_SWITCH, qkv_bias, NULL, NULL, 0, 0, false,      \
                      "bias on queries, keys and values all the same"),                            \
        SPEC_FLAG_ROW(S, m, v, "untie-embeddings-and-output-weights", OPT_SWITCH, untie, NULL,     \
                      NULL, 0, 0, false, "the head has a matrix of its own"),                      \
        SPEC_FLAG_ROW(S, m, v, "init-method-std", OPT_REAL, init_std, "0.02", "X", 0, 100, false,  \
                      "standard deviation of initial weights"),                                    \
        SPEC_FLAG_ROW(S, m, v, "attention-dropout", OPT_REAL, attention_dropout, "0.1", "X", 0, 1, \
                      false, "share of attention weights dropped while training"),                 \
        SPEC_FLAG_ROW(S, m, v, "hidden-dropout", OPT_REAL, hidden_dropout, "0.1", "X", 0, 1,       \
                      false, "share of hidden values dropped while training"),                     \
        SPEC_FLAG_ROW(S, m, v, "make-vocab-size-divisible-by", OPT_INT, vocab_divisor, "128", "N", \
                      1, 1e6, false,                                                               \
                      "rows of the embedding are padded to a multiple of this times TP"),          \
        SPEC_FLAG_ROW(S, m, v, "hf-config", OPT_TEXT, hf_config, NULL, "PATH", 0, 0, true,         \
                      "take the model from a Hugging Face config.json (gpt2, llama, mistral, "     \
                      "qwen2)")

/*
 * Notes which of the options were named by a preset, a file or a flag. It matters beside
 * --hf-config only: there an option of the model's shape must agree with the file, and init std and
 * dropouts, once named, win over it. Without the call the file alone decides.
 */
void spec_flags_note(struct spec_flags *f, const struct opts *o);

/*
 * The model that the flags describe, checked. `vocab` is the tokenizer's true size; 0 (not known)
 * is possible with --hf-config only, whose own vocabulary, which must not be smaller, counts.
 * ERR_USAGE names the option.
 */
int spec_from_flags(const struct spec_flags *f, int64_t vocab, int tp, struct spec *ret,
                    struct err *e);

/* Shapes by name, as values of these options; ended by a NULL name. */
extern const struct opt_preset spec_presets[];

#endif
