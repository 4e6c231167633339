/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_CACHE_H
#define TOK_CACHE_CACHE_H

/*
 * What words of a text were encoded to, kept by their bytes: a word that was met before costs a few
 * nanoseconds, any other goes to the model. "Word" is whatever the caller cuts a text into, if only
 * the ids of a word depend on nothing but its bytes.
 *
 * A word of up to 9 bytes has an entry of sixteen bytes with two to four ids in it, one of up to
 * 15 bytes one of twice as many; longer words, and more ids, lie in arenas. All of this is a table
 * (table.h) that threads share, whose memory stays below its bound. Each thread has a cache of
 * its own before it: the words met last, and what it needs while it encodes.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/core/engine.h"
#include "tok/cache/packed_ids.h"

struct word_cache;
struct word_table;

enum { WORD_CACHE_BYTES = 96 << 20, WORD_LIST = 256 };

/* Words of one text: text[at[i] .. at[i] + n[i]). */
struct word_list {
    const char *text;
    size_t count;
    uint32_t at[WORD_LIST], n[WORD_LIST];
    size_t end[WORD_LIST]; /* ids->n behind the ids of each */
};

/*
 * Appends the ids of the words of a list, one after another, and fills `end`; together they may
 * be faster than one by one. What it appends when it fails is dropped with the text.
 */
typedef int word_miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                      struct err *e);

/* `bytes`: the bound; small ones are raised to 512 KiB. It is destroyed after all its caches. */
struct word_table *word_table_create(size_t bytes);
void word_table_destroy(struct word_table *t);

/* `bits`: see ids_form_for, and the same for all caches of a table; larger ids than go into it are
 * slower. */
struct word_cache *word_cache_create(struct word_table *t, enum ids_form bits);
void word_cache_destroy(struct word_cache *c);

/*
 * Appends the ids of the words text[start[i] .. start[i + 1]), i < n; what is not cached `miss`
 * encodes. 64 bytes behind text[start[n]] must be readable. A failure of `miss` is returned, and
 * ids->n is as it was. `miss` may not come back to this table, nor wait for who uses it.
 */
int word_cache_encode(struct word_cache *c, const char *text, const uint32_t *start, size_t n,
                      word_miss *miss, const void *state, void *scratch, struct tok_ids *ids,
                      struct err *e);

/* The way of processors without AVX-512, for tests. */
void word_cache_plain(struct word_cache *c);

/* Words that went to the model, in all. */
uint64_t word_cache_misses(const struct word_cache *c);

#endif
