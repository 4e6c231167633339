/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_CHOICE_H
#define TRAIN_OPTIM_CHOICE_H

/* The optimizers that --optimizer chooses among: a row for each, and what is its own of one. */

#include <stdbool.h>

#include "train/optim/muon.h"
#include "train/optim/sai.h"

/*
 * The option's value, its rules, their array: of ONE it has one rule, of TWO a second one without
 * momentum, which keeps less.
 */
#define OPTIMIZERS(ONE, TWO)                                                                       \
    ONE(ADAM, "adam", ADAM, adam_rules)                                                            \
    TWO(SGD, "sgd", SGD, sgd_rules)                                                                \
    TWO(SGD_SAI, "sgd-sai", SAI, sai_rules)                                                        \
    ONE(MUON, "muon", MUON, muon_rules)

#define OPTIMIZER_HELP                                                                             \
    "optimizer; adam is AdamW; sgd has --sgd-momentum and keeps one number for each weight, as "   \
    "does sgd-sai, whose steps are scaled for each tensor by its first gradients; muon makes the " \
    "steps of matrices orthogonal, and is AdamW for embeddings, the head and vectors"

/* The options of each, in the order of help. */
#define OPTIMIZER_ROWS(S, m, v, i) SAI_ROWS(S, m, v, i), MUON_ROWS(S, m, v, i)

/* And their values. */
struct optim_tuning {
    struct sai_settings sai;
    struct muon_settings muon;
};

#define OPTIMIZER_VALUE(value, name, kind, rules) OPTIMIZER_##value,
enum optimizer { OPTIMIZERS(OPTIMIZER_VALUE, OPTIMIZER_VALUE) };
#undef OPTIMIZER_VALUE

/* plain: without momentum, which needs no state. */
#define OPTIM_ONE(value, name, kind, rules) OPTIM_##kind,
#define OPTIM_TWO(value, name, kind, rules) OPTIM_##kind, OPTIM_##kind##_PLAIN,
enum optim_kind { OPTIMIZERS(OPTIM_ONE, OPTIM_TWO) OPTIM_KINDS };
#undef OPTIM_ONE
#undef OPTIM_TWO

/* "adam|sgd|...": in the order of the enum */
#define OPTIMIZER_NAME(value, name, kind, rules) "|" name
#define OPTIMIZER_NAMES (&(OPTIMIZERS(OPTIMIZER_NAME, OPTIMIZER_NAME))[1])

static inline enum optim_kind optimizer_kind(enum optimizer o, bool momentum)
{
#define OPTIMIZER_ONE(value, name, kind, rules) [OPTIMIZER_##value] = {OPTIM_##kind, OPTIM_##kind},
#define OPTIMIZER_TWO(value, name, kind, rules)                                                    \
    [OPTIMIZER_##value] = {OPTIM_##kind##_PLAIN, OPTIM_##kind},
    static const enum optim_kind kind[][2] = {OPTIMIZERS(OPTIMIZER_ONE, OPTIMIZER_TWO)};
#undef OPTIMIZER_ONE
#undef OPTIMIZER_TWO
    return kind[o][momentum];
}

#endif
