/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_PRECISION_H
#define TRAIN_ENGINE_PRECISION_H

/*
 * Options that say which types a run computes in and keeps, and how its loss is scaled: rows of
 * `train`'s table, and what follows from them. Names, meanings and defaults are Megatron-LM
 * core_v0.12.3's, but that moments may be bf16, and DeepSpeed's rule of the scale.
 */

#include <stddef.h>

#include "base/cli/opt.h"
#include "train/ops/ops.h"
#include "train/optim/scale.h"

struct precision_flags {
    bool bf16, fp16, tf32, grads_bf16, aware, stochastic, consecutive;
    int main_grads, main_params, exp_avg, exp_avg_sq; /* fp32, bf16, fp16, fp8 */
    double static_scale, first, least;                /* static: 0: not given */
    int64_t window, hysteresis;
    int rule; /* enum scale_rule */
};

#define PRECISION_TYPE_ROW(S, m, v, n, field, what, more)                                          \
    OPT_ROW(.name = n, .type = OPT_CHOICE, .offset = offsetof(S, m.field), .def = "fp32",          \
            .meta = "fp32|bf16|fp16|fp8", .group = "machine", .verbs = v,                          \
            .needs = "use-precision-aware-optimizer", .resumed = RESUMED_WARNED,                   \
            .brief = "type of " what,                                                              \
            .help = "type of " what more ": fp32 or bf16; fp16 and fp8 are refused")

#define PRECISION_FLAG_ROWS(S, m, v)                                                               \
    OPT_ROW(.name = "bf16", .type = OPT_SWITCH, .offset = offsetof(S, m.bf16), .group = "machine", \
            .verbs = v, .resumed = RESUMED_WARNED, .brief = "compute in bf16",                     \
            .help = "weights and activations in bf16, with fp32 master weights, moments and "      \
                    "gradients; the CPU computes in fp32 and rounds each result"),                 \
        OPT_ROW(.name = "fp16", .type = OPT_SWITCH, .offset = offsetof(S, m.fp16),                 \
                .group = "machine", .verbs = v, .resumed = RESUMED_WARNED,                         \
                .brief = "compute in fp16",                                                        \
                .help = "weights and activations in fp16, with fp32 master weights, moments and "  \
                        "gradients, and a dynamic loss scale; the CPU computes in fp32 and "       \
                        "rounds each result"),                                                     \
        OPT_ROW(.name = "tf32", .type = OPT_SWITCH, .offset = offsetof(S, m.tf32),                 \
                .group = "machine", .verbs = v, .resumed = RESUMED_WARNED,                         \
                .brief = "matrix products of fp32 in TF32",                                        \
                .help = "on a GPU, matrix products of an fp32 run in TF32: faster by tensor "      \
                        "cores, with 10 bits of mantissa instead of 23; attention, norms and "     \
                        "the optimizer stay in fp32. No effect with --bf16 and --fp16, or on "     \
                        "the CPU"),                                                                \
        OPT_ROW(.name = "loss-scale", .type = OPT_REAL, .offset = offsetof(S, m.static_scale),     \
                .unset = "dynamic with --fp16, else 1", .min = 1, .max = 1e18, .meta = "X",        \
                .group = "machine", .verbs = v, .resumed = RESUMED_WARNED,                         \
                .brief = "fixed scale of the loss",                                                \
                .help = "the loss is multiplied by X before the backward pass, and gradients are " \
                        "divided by it afterwards"),                                               \
        OPT_ROW(.name = "initial-loss-scale", .type = OPT_REAL, .offset = offsetof(S, m.first),    \
                .def = "4294967296", .min = 1, .max = 1e18, .meta = "X", .group = "machine",       \
                .verbs = v, .needs = "fp16", .resumed = RESUMED_FREE,                              \
                .help = "first value of the dynamic loss scale"),                                  \
        OPT_ROW(.name = "min-loss-scale", .alias = "min-scale", .type = OPT_REAL,                  \
                .offset = offsetof(S, m.least), .def = "1", .min = 1, .max = 1e18, .meta = "X",    \
                .group = "machine", .verbs = v, .needs = "fp16", .resumed = RESUMED_WARNED,        \
                .help = "least value of the dynamic loss scale"),                                  \
        OPT_ROW(.name = "loss-scale-window", .type = OPT_INT, .offset = offsetof(S, m.window),     \
                .def = "1000", .min = 1, .max = 1e18, .meta = "N", .group = "machine", .verbs = v, \
                .needs = "fp16", .resumed = RESUMED_WARNED,                                        \
                .brief = "good steps before the scale is doubled",                                 \
                .help = "steps without an overflow after which the loss scale is doubled"),        \
        OPT_ROW(.name = "hysteresis", .type = OPT_INT, .offset = offsetof(S, m.hysteresis),        \
                .def = "2", .min = 1, .max = 1e9, .meta = "N", .group = "machine", .verbs = v,     \
                .needs = "fp16", .resumed = RESUMED_WARNED,                                        \
                .brief = "overflow that first halves the loss scale",                              \
                .help = "the loss scale is halved from the Nth overflow on; a raise of the scale " \
                        "starts the count anew"),                                                  \
        OPT_ROW(.name = "loss-scale-rule", .type = OPT_CHOICE, .offset = offsetof(S, m.rule),      \
                .def = "megatron", .meta = "megatron|deepspeed", .group = "machine", .verbs = v,   \
                .needs = "fp16", .resumed = RESUMED_WARNED,                                        \
                .brief = "whose rule of the loss scale",                                           \
                .help = "rule of the dynamic loss scale: deepspeed ends the run on an overflow "   \
                        "at the least scale"),                                                     \
        OPT_ROW(.name = "loss-scale-consecutive-hysteresis", .type = OPT_SWITCH,                   \
                .offset = offsetof(S, m.consecutive), .group = "machine", .verbs = v,              \
                .needs = "loss-scale-rule=deepspeed", .resumed = RESUMED_WARNED,                   \
                .brief = "good steps refill --hysteresis",                                         \
                .help = "every step without an overflow starts the count of --hysteresis anew"),   \
        OPT_ROW(.name = "grad-reduce-in-bf16", .type = OPT_SWITCH,                                 \
                .offset = offsetof(S, m.grads_bf16), .group = "machine", .verbs = v,               \
                .needs = "bf16", .resumed = RESUMED_WARNED, .brief = "gradients in bf16",          \
                .help = "gradients are kept, added up over micro-batches and reduced in bf16"),    \
        OPT_ROW(.name = "use-precision-aware-optimizer", .type = OPT_SWITCH,                       \
                .offset = offsetof(S, m.aware), .group = "machine", .verbs = v,                    \
                .resumed = RESUMED_WARNED, .brief = "let the optimizer's types be chosen",         \
                .help = "the types of what the optimizer keeps are those of --exp-avg-dtype, "     \
                        "--exp-avg-sq-dtype, --main-params-dtype and --main-grads-dtype"),         \
        PRECISION_TYPE_ROW(S, m, v, "main-grads-dtype", main_grads, "gradients", ""),              \
        PRECISION_TYPE_ROW(S, m, v, "main-params-dtype", main_params, "master weights",            \
                           ", and of the momentum of other optimizers than adam"),                 \
        PRECISION_TYPE_ROW(S, m, v, "exp-avg-dtype", exp_avg, "Adam's first moments", ""),         \
        PRECISION_TYPE_ROW(S, m, v, "exp-avg-sq-dtype", exp_avg_sq, "Adam's second moments", ""),  \
        OPT_ROW(.name = "stochastic-rounding", .type = OPT_SWITCH,                                 \
                .offset = offsetof(S, m.stochastic), .group = "machine", .verbs = v,               \
                .needs = "use-precision-aware-optimizer; "                                         \
                         "main-params-dtype=bf16, exp-avg-dtype=bf16, exp-avg-sq-dtype=bf16",      \
                .resumed = RESUMED_WARNED, .brief = "round what is kept in bf16 at random",        \
                .help =                                                                            \
                    "master weights and moments that are kept in bf16 are rounded up or down at "  \
                    "random, so that their mean is the exact number and small updates add up, "    \
                    "instead of to the nearest. The choice follows from --seed, the step and the " \
                    "element, in every layout")

struct precision {
    enum dtype real;
    struct ops_narrow narrow;
    bool round; /* stochastically, what is kept in bf16 */
    struct loss_scale scale;
};

/* ERR_USAGE names the options that do not fit. `adam`: the optimizer. */
int precision_of(const struct precision_flags *f, bool adam, struct precision *ret, struct err *e);

#endif
