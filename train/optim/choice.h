/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_CHOICE_H
#define TRAIN_OPTIM_CHOICE_H

/* The optimizers that --optimizer chooses among. */

#include <stdbool.h>

#include "train/optim/optim.h"

/* X(OPTIMIZER_..., the option's value, its rule, its rule without momentum) */
#define OPTIMIZERS(X)                                                                              \
    X(ADAM, "adam", OPTIM_ADAM, OPTIM_ADAM)                                                        \
    X(SGD, "sgd", OPTIM_SGD, OPTIM_SGD_PLAIN)                                                      \
    X(SGD_SAI, "sgd-sai", OPTIM_SAI, OPTIM_SAI_PLAIN)                                              \
    X(MUON, "muon", OPTIM_MUON, OPTIM_MUON)

#define OPTIMIZER_VALUE(value, name, rule, plain) OPTIMIZER_##value,
enum optimizer { OPTIMIZERS(OPTIMIZER_VALUE) };
#undef OPTIMIZER_VALUE

/* "adam|sgd|...": in the order of the enum */
#define OPTIMIZER_NAME(value, name, rule, plain) "|" name
#define OPTIMIZER_NAMES (&(OPTIMIZERS(OPTIMIZER_NAME))[1])

static inline enum optim_kind optimizer_kind(enum optimizer o, bool momentum)
{
#define OPTIMIZER_KINDS(value, name, rule, plain) [OPTIMIZER_##value] = {plain, rule},
    static const enum optim_kind kind[][2] = {OPTIMIZERS(OPTIMIZER_KINDS)};
#undef OPTIMIZER_KINDS
    return kind[o][momentum];
}

#endif
