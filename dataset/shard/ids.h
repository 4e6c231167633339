/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_IDS_H
#define DATASET_SHARD_IDS_H

/* Token ids of a .bin, widened and checked against a limit. Pure functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataset/shard/shard.h"

/*
 * n ids of type t at p, which need not be aligned, into ret[n]. True if all are in 0 .. limit - 1;
 * limit is at most SHARD_ANY_ID.
 */
bool ids_widen(enum shard_dtype t, const unsigned char *p, uint64_t n, int64_t limit, int32_t *ret);

/* How many of id[0..n) are `which`. */
uint64_t ids_count(const int32_t *id, size_t n, int32_t which);

#endif
