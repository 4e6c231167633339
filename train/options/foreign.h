/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_FOREIGN_H
#define TRAIN_OPTIONS_FOREIGN_H

/* Options of the trainers whose users' scripts `train run` takes: without effect, or rejected. */

#include "base/cli/opt.h"

extern const struct opt_foreign train_foreign[];

#endif
