/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_CPU_H
#define TRAIN_OPS_CPU_CPU_H

/* The host's backends of the ops table. Each overwrites the entries that it implements. */

#include "train/ops/ops.h"

void ref32_fill_table(struct ops *o);
void ref64_fill_table(struct ops *o);

/* By the width of their vectors: what every machine has, AVX2 with FMA, AVX-512. */
void vec128_fill_table(struct ops *o);
void vec256_fill_table(struct ops *o);
void vec512_fill_table(struct ops *o);

#endif
