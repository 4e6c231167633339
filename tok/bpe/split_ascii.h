/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_ASCII_H
#define TOK_BPE_SPLIT_ASCII_H

/* Places between two bytes of ASCII that a table has a bit for, sixty-four at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Appends to start[*k ..) the places of text[at .. n), behind at least one byte, where cut[left]
 * [right / 8] has the bit right % 8; returns the place up to which all were found: a byte above
 * ASCII, or one that is not `plain` (NULL: all are), lies within 64 bytes of it, or n does, or the
 * processor is none for it. There is room for n + 16 places.
 */
size_t cut_ascii(const unsigned char cut[128][16], const bool plain[128], const char *text,
                 size_t at, size_t n, uint32_t *start, size_t *k);

#endif
