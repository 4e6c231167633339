/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_CACHE_H
#define TOK_CACHE_CACHE_H

/*
 * Caches the ids of words by their bytes: a hit costs a few nanoseconds, a miss goes to the model.
 * A word is a pre-token, or whatever else the caller splits a text into, as long as its ids depend
 * on nothing but its bytes.
 *
 * A word of up to 9 bytes has an entry of 16 bytes with two to four ids in it, one of up to 15
 * bytes an entry of twice that size; longer words, and words of more ids, are in arenas. All of
 * this is a table (table.h) that threads share and whose memory is bounded. Each thread has a small
 * cache of its own in front of it, for recent words, and its scratch memory.
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
    size_t end[WORD_LIST]; /* ids->n after the ids of each */
};

/*
 * Encodes the words of a list that missed: appends their ids in order and fills `end`. A list may
 * be faster than one word at a time. What it appended before it failed is dropped with the text.
 */
typedef int word_miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                      struct err *e);

/* `bytes`: the bound, at least 512 KiB. Destroy the table after all its caches. */
struct word_table *word_table_create(size_t bytes);
void word_table_destroy(struct word_table *t);

/* `bits`: from ids_form_for, the same for all caches of a table; ids that do not fit are slower. */
struct word_cache *word_cache_create(struct word_table *t, enum ids_form bits);
void word_cache_destroy(struct word_cache *c);

/*
 * Appends the ids of the words text[start[i] .. start[i + 1]), i < n; `miss` encodes those that are
 * not cached. 64 bytes after text[start[n]] must be readable. If `miss` fails, its code is returned
 * and ids->n is unchanged. `miss` must not use this table, nor wait for a thread that does.
 */
int word_cache_encode(struct word_cache *c, const char *text, const uint32_t *start, size_t n,
                      word_miss *miss, const void *state, void *scratch, struct tok_ids *ids,
                      struct err *e);

/* Uses the code for processors without AVX-512 from now on; for tests. */
void word_cache_plain(struct word_cache *c);

/* How many words went to the model so far. */
uint64_t word_cache_misses(const struct word_cache *c);

#endif
