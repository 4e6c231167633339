/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_WORD_FRONT_H
#define TOK_WORD_FRONT_H

/*
 * Before word_cache.c's table of all words: the short words of few ids met last, each at the one
 * place its hash names, few enough for the processor's second cache, so that eight are looked up at
 * a time and none is fetched ahead. A processor without AVX-512 has none: nothing is kept.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/word_table.h"

struct word_front {
    struct entry *at; /* NULL: there is none */
    unsigned bits;    /* 1 << bits entries */
};

/* At most `bytes`, and no more than pays. */
void word_front_init(struct word_front *f, size_t bytes);
void word_front_finish(struct word_front *f);
size_t word_front_bytes(const struct word_front *f);

/*
 * The words text[start[i] .. start[i + 1]), i < n: at[i] is the entry of a word that is here, and
 * other[0 .. return value) the words that are not, ascending. Both have room for n + 8 words; 16
 * bytes behind the text are readable.
 */
size_t word_front_find(const struct word_front *f, const char *text, const uint32_t *start,
                       size_t n, const struct entry **at, uint32_t *other);

/* Keeps a word of up to SHORT bytes and INLINE ids, in place of another. */
void word_front_keep(struct word_front *f, const struct entry *x);

#endif
