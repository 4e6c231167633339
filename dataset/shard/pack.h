/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_PACK_H
#define DATASET_SHARD_PACK_H

/*
 * Token ids narrowed to the type of a .bin, and checked against the vocabulary. Pure functions; in
 * all of them `t` is the type of the .bin, and vocab_size <= 0 accepts what fits the type.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/shard/shard.h"

/* Megatron's rule: u16 iff vocab_size < 65500, else (also if unknown, <= 0) i32. */
enum shard_dtype shard_dtype_for(int64_t vocab_size);

/*
 * Narrows n ids. An id outside [0, vocab_size) is ERR_DATA naming id and position. ret: n * width
 * bytes.
 */
int shard_pack(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n, void *ret,
               struct err *e);

/* Counts the occurrences of `id`. */
struct shard_watch {
    int32_t id; /* -1: none */
    uint64_t n;
};

/* The same, counting one id; false instead of the error. */
bool shard_pack_watched(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n,
                        struct shard_watch *watch, void *ret);

/* How many ids precede the first that is out of range. */
size_t shard_pack_good(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n);

/* The error for ids that were rejected. */
int shard_pack_refused(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n,
                       struct err *e);

#endif
