/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_KERNELS_H
#define TOK_CACHE_KERNELS_H

/*
 * The loops of this module that are written for several processors, as in tok/text/kernels.h.
 * tests/tok/test_kernels.c runs each entry against its twin.
 */

#include "base/core/simd.h"
#include "tok/cache/local_cache.h"
#include "tok/cache/packed_ids.h"

/* local_cache_find, also without a thread-local cache. Entries of misses in `ids` are undefined. */
typedef void local_find_fn(const struct local_cache *f, const char *text, const uint32_t *start,
                           size_t n, struct local_words *w);

/* ids_unpack. */
typedef size_t ids_unpack_fn(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);

struct cache_kernels {
    local_find_fn *local_find;
    ids_unpack_fn *ids_unpack;
};

extern const struct cache_kernels cache_kernels[SIMD_LEVELS];

local_find_fn local_cache_find_plain, local_cache_find_avx512;
ids_unpack_fn ids_unpack_plain, ids_unpack_avx512;

#endif
