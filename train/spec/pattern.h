/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_PATTERN_H
#define TRAIN_SPEC_PATTERN_H

/*
 * How an option of Megatron-LM chooses layers (--moe-layer-freq, --window-attn-skip-freq): a number
 * N, or a Python expression for a list with a 0 or 1 for each layer, made of lists, +, products
 * with numbers and parentheses: ([1]*3+[0])*4.
 */

#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/spec/spec.h"

/*
 * *ret_every: the number N, or 0 and in *ret the layers whose value is 1. ERR_USAGE for a text that
 * is neither, for other values and for a list that is not as long as there are layers; `option` is
 * named.
 */
int pattern_read(const char *option, const char *text, int64_t layers, int64_t *ret_every,
                 struct spec_layers *ret, struct err *e);

/* A list without an expression: [1, 0]. */
void pattern_write(const struct spec_layers *p, int64_t layers, struct buf *out);

/*
 * The window of --window-size LEFT,RIGHT, in keys with the query's own; 0: none. ERR_USAGE for what
 * is not two numbers, and for a RIGHT that is neither 0 nor -1, as no query sees what follows it.
 */
int pattern_window(const char *text, int64_t *ret, struct err *e);

#endif
