/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_POINT4_H
#define TOK_BPE_SPLIT_POINT4_H

/*
 * Cuts between characters of three bytes, by four of them: split_point.h asks whether any token has
 * the two at a place side by side, this whether one has them with what stands around them here, or
 * begins or ends with them. So a token that would reach across the place is one of this text.
 *
 * A hashed bitmap: a collision costs a cut, never an id. Filled once, then only read, by any number
 * of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_point4 {
    uint64_t *word; /* two of each pair; bits by the characters around it */
    int shift;      /* 32 - log2 of the number of words */
};

/* `bytes`: the length of all tokens together. */
void split_point4_init(struct split_point4 *t, size_t bytes);
/* A token that is UTF-8. */
void split_point4_add(struct split_point4 *t, const char *token, size_t n);
void split_point4_finish(struct split_point4 *t);

/*
 * Cuts in text[at .. n): two characters before `at` and those that follow are of three bytes each
 * and in `plain`, which has a bit for each code point. They are appended to start[*k ..). Returns
 * the place, where a character begins, up to which all were found: before the last two such
 * characters, and some 48 bytes before n. 64 bytes behind n are readable, and sixteen more places
 * at `start`.
 */
size_t split_point4_find(const struct split_point4 *t, const uint64_t *plain, const char *text,
                         size_t at, size_t n, uint32_t *start, size_t *k);

#endif
