/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_CHARSMAP_H
#define TOK_TEXT_CHARSMAP_H

/*
 * The rules of a SentencePiece normalizer, which a tokenizer.json may hold too: size of the trie,
 * trie (a double array as in darts-clone), replacement strings. ERR_DATA unless looking up any text
 * stays inside the rules. `name` begins the message, `offset` is that of the rules in the file.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

int sp_check_charsmap(const char *name, uint64_t offset, const unsigned char *p, size_t n,
                      struct err *e);

#endif
