/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_CPU_H
#define TRAIN_OPS_CPU_CPU_H

/* The host's fillings of the ops table. Each overwrites the entries that it has. */

#include "train/ops/ops.h"

void ref32_fill_table(struct ops *o);
void ref64_fill_table(struct ops *o);

#endif
