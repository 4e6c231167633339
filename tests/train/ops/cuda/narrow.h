/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_CUDA_NARROW_H
#define TESTS_TRAIN_OPS_CUDA_NARROW_H

/* BF16 and F16 on the host, a number at a time. */

#include <stdint.h>

#include "train/tensor/tensor.h"

double narrow_value(enum dtype type, uint16_t u);
/* The nearest, ties to even; x is no larger than the type holds. */
uint16_t narrow_bits(enum dtype type, double x);

#endif
