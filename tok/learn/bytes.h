/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_BYTES_H
#define TOK_LEARN_BYTES_H

/*
 * Cuts texts into the words of a byte-level model, for learn_count: a `learn_split` whose argument
 * is a struct learn_bytes. Bytes that are no UTF-8 count as U+FFFD, and are counted.
 */

#include "tok/pretok/families.h"
#include "tok/learn/count.h"

struct learn_bytes;

/* ERR_USAGE: no pattern, or one that needs PCRE2 where that is not built in. */
int learn_bytes_create(const struct pretok_family *f, int threads, struct learn_bytes **ret,
                       struct err *e);
void learn_bytes_destroy(struct learn_bytes *b);
learn_split learn_bytes_split;

/* A pattern may take too many steps: what the first such text gave. */
int learn_bytes_status(const struct learn_bytes *b, struct err *e);
uint64_t learn_bytes_invalid(const struct learn_bytes *b);

#endif
