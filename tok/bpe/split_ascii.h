/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_ASCII_H
#define TOK_BPE_SPLIT_ASCII_H

/* Positions between two ASCII bytes whose pair is in a table, 64 bytes at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Appends to start[*k ..) the positions in text[at .. n), at > 0, at which cut[left][right / 8] has
 * the bit right % 8. Returns the position up to which all were found: at most 64 bytes before n, a
 * byte above ASCII, or a byte that is not `plain` (NULL: all are); or `at` without AVX-512.
 * `start` must have space for n + 16 positions.
 */
size_t cut_ascii(const unsigned char cut[128][16], const bool plain[128], const char *text,
                 size_t at, size_t n, uint32_t *start, size_t *k);

/* The same for eight bytes from `at` on, if they and the byte before are ASCII; false, with nothing
 * appended, where one is not `plain`. */
static inline bool split_ascii_eight(const unsigned char cut[128][16], const bool plain[128],
                                     const unsigned char *p, size_t at, uint32_t *start, size_t *k)
{
    bool all = true;
    size_t found = *k;
    for (size_t i = at; i < at + 8; i++) {
        unsigned char a = p[i - 1], b = p[i];
        all &= !plain || plain[b];
        start[found] = (uint32_t)i;
        found += cut[a][b >> 3] >> (b & 7) & 1;
    }
    *k = all ? found : *k;
    return all;
}

#endif
