/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_UNICODE_TABLES_H
#define TOK_UNICODE_TABLES_H

/*
 * The tables that generate.py writes; tok/unicode*.c look into them, nobody else. All are of two
 * levels: the code points in blocks of 128, equal blocks kept once.
 */

#include <stdint.h>

#include "tok/unicode.h"

/* The letter 'a' + category of code point c of version v is at
 * [uni_category_block[v][c >> UNI_SHIFT] << UNI_SHIFT | (c & UNI_MASK)]. */
extern const uint16_t uni_category_block[][UNI_BLOCKS];
extern const char uni_category_letter[];

#endif
