/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_LOCAL_CACHE_H
#define TOK_CACHE_LOCAL_CACHE_H

/*
 * A thread-local cache in front of the shared table: recent small words, direct-mapped by hash and
 * small enough for the L2 cache, so that eight are looked up at a time without prefetching. Without
 * AVX-512 it is empty and caches nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/cache/packed_ids.h"
#include "tok/cache/small_table.h"

enum { WINDOW = 1024 /* words per window */ };

struct local_cache {
    struct small *at;  /* NULL: disabled */
    int bits;          /* 1 << bits entries */
    struct small none; /* takes the writes of words that are not to be cached, to avoid a branch */
};

/* The words of a window. */
struct local_words {
    _Alignas(64) uint64_t ids[WINDOW + 8]; /* of hits */
    uint64_t hash[WINDOW + 8];
    uint64_t key[WINDOW + 8];   /* of small words, else 0 */
    uint32_t other[WINDOW + 8]; /* misses, ascending */
    size_t others;
};

/* Uses at most `bytes`, and no more than is useful. */
void local_cache_init(struct local_cache *f, size_t bytes);
void local_cache_finish(struct local_cache *f);
size_t local_cache_bytes(const struct local_cache *f);

/* Looks up the words text[start[i] .. start[i + 1]), i < n <= WINDOW; 16 bytes after the text must
 * be readable. */
void local_cache_find(const struct local_cache *f, const char *text, const uint32_t *start,
                      size_t n, struct local_words *w);

/* Replaces the entry of this hash by a word if `keep`. The cache must exist (at is not NULL). */
static inline void local_cache_keep(struct local_cache *f, uint64_t hash, struct small word,
                                    bool keep)
{
    *(keep ? &f->at[hash >> (64 - f->bits)] : &f->none) = word;
}

#endif
