/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_POINT4_H
#define TOK_BPE_SPLIT_POINT4_H

/*
 * Split points between characters of three bytes, by four of them: split_point.h tests whether any
 * token has the two characters adjacent, this whether one has them with their neighbours here, or
 * begins or ends with them. So a token that would span the position also occurs in this text.
 *
 * A hashed bitmap: a collision loses a split point but never changes an id. Filled once, then only
 * read, by any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_point4 {
    uint64_t *word; /* two for each pair; bits by the characters around it */
    int shift;      /* 32 - log2 of the number of words */
};

/* `bytes`: the total length of all tokens. */
void split_point4_init(struct split_point4 *t, size_t bytes);
/* Adds a token, valid UTF-8. */
void split_point4_add(struct split_point4 *t, const char *token, size_t n);
void split_point4_finish(struct split_point4 *t);

/*
 * Split points in text[at .. n), where the two characters before `at` and all that follow are of
 * three bytes each and in `plain`, a bitmap over code points. Appends them to start[*k ..). Returns
 * the position, a start of a character, up to which all were found: before the last two such
 * characters, and some 48 bytes before n. 64 bytes after n must be readable, and `start` needs
 * space for sixteen more positions.
 */
size_t split_point4_find(const struct split_point4 *t, const uint64_t *plain, const char *text,
                         size_t at, size_t n, uint32_t *start, size_t *k);

#endif
