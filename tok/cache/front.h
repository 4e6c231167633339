/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_FRONT_H
#define TOK_CACHE_FRONT_H

/*
 * Before cache.c's table of all words: the small words met last, each at the one place its
 * hash names, few enough for the processor's second cache, so that eight are looked up at a time
 * and none is fetched ahead. A processor without AVX-512 has none: nothing is kept.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/cache/packed_ids.h"
#include "tok/cache/small_table.h"

enum { WINDOW = 1024 /* words at a time */ };

struct word_front {
    struct small *at;  /* NULL: there is none */
    int bits;          /* 1 << bits entries */
    struct small none; /* where words go that are not kept */
};

/* The words of a window. */
struct front_words {
    _Alignas(64) uint64_t ids[WINDOW + 8]; /* of those that are here */
    uint64_t hash[WINDOW + 8];
    uint64_t key[WINDOW + 8];   /* of small ones, else 0 */
    uint32_t other[WINDOW + 8]; /* those that are not here, ascending */
    size_t others;
};

/* At most `bytes`, and no more than pays; but some. */
void word_front_init(struct word_front *f, size_t bytes);
void word_front_finish(struct word_front *f);
size_t word_front_bytes(const struct word_front *f);

/* Looks up the words text[start[i] .. start[i + 1]), i < n <= WINDOW; 16 bytes behind the text are
 * readable. */
void word_front_find(const struct word_front *f, const char *text, const uint32_t *start, size_t n,
                     struct front_words *w);

/* Keeps a word of this hash in place of another, or does not. There is a front. */
static inline void word_front_keep(struct word_front *f, uint64_t hash, struct small word,
                                   bool keep)
{
    *(keep ? &f->at[hash >> (64 - f->bits)] : &f->none) = word;
}

#endif
