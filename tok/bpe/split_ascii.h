/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_ASCII_H
#define TOK_BPE_SPLIT_ASCII_H

/* Positions between two ASCII bytes whose pair has a bit in a table, 64 bytes at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Appends to start[*k ..) the positions in text[at .. n), at > 0, at which cut[left][right / 8] has
 * the bit right % 8. Returns the position up to which all were found: within 64 bytes of it is a
 * byte above ASCII, or one that is not `plain` (NULL: all are), or n; or the processor lacks
 * AVX-512. `start` must have room for n + 16 positions.
 */
size_t cut_ascii(const unsigned char cut[128][16], const bool plain[128], const char *text,
                 size_t at, size_t n, uint32_t *start, size_t *k);

#endif
