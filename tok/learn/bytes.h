/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_BYTES_H
#define TOK_LEARN_BYTES_H

/*
 * Splits texts into the words of a byte-level model, for learn_count: a `learn_split` whose
 * argument is a struct learn_bytes. Invalid UTF-8 becomes U+FFFD, and its bytes are counted.
 */

#include "tok/pretok/families.h"
#include "tok/learn/count.h"

struct learn_bytes;

/* ERR_USAGE: an invalid pattern, or one that needs PCRE2 in a build without it. */
int learn_bytes_create(const struct pretok_family *f, int threads, struct learn_bytes **ret,
                       struct err *e);
void learn_bytes_destroy(struct learn_bytes *b);
learn_split learn_bytes_split;

/* The first failure of a pattern that took too many steps, or 0. */
int learn_bytes_status(const struct learn_bytes *b, struct err *e);
uint64_t learn_bytes_invalid(const struct learn_bytes *b);

#endif
