/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_FINGERPRINT_H
#define TRAIN_TENSOR_FINGERPRINT_H

/*
 * A 128-bit sum over bytes and their places, against accidents (train/ckpt/FORMAT.md, "Sums"). It
 * commutes: the sum of a whole is the sum of its ranges, whatever their cut and order, so several
 * threads take it while they write or read, and a tensor has the same sum in every format and
 * layout. A tensor's bytes are its elements row by row, little-endian, the first at place 0; a
 * file's place is its offset.
 *
 * A range of zeros adds nothing, so lengths are compared beside sums. A change within one aligned
 * word of 8 bytes always changes the sum; any other change does except with probability 2^-64.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "train/tensor/box.h"

struct fingerprint {
    uint64_t low, high;
};

enum { FINGERPRINT_TEXT = 33 };

/* Adds the n bytes at p, whose first one has the place `at`. */
void fingerprint_add(struct fingerprint *f, uint64_t at, const void *p, size_t n);

/* Adds one sum to another. */
void fingerprint_join(struct fingerprint *f, struct fingerprint other);

/* Adds a box of a tensor of `columns` columns (1 for rank 1). */
void fingerprint_add_box(struct fingerprint *f, int64_t columns, struct box_mem m);

bool fingerprint_equal(struct fingerprint a, struct fingerprint b);

/* 32 lower-case hexadecimal digits, the high half first. */
void fingerprint_text(struct fingerprint f, char ret[FINGERPRINT_TEXT]);
/* False when the text is anything else. */
bool fingerprint_parse(const char *text, struct fingerprint *ret);

#endif
