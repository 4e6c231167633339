/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_BYTES_H
#define TOK_LEARN_BYTES_H

/*
 * Cuts texts into the words of a byte-level model, for learn_count: a `learn_split` whose argument
 * is a struct learn_bytes. Bytes that are no UTF-8 count as U+FFFD, and are counted.
 */

#include "tok/learn_count.h"
#include "tok/learn_out.h"

struct learn_bytes;

struct learn_bytes *learn_bytes_create(const struct learn_family *family, int threads);
void learn_bytes_destroy(struct learn_bytes *b);
learn_split learn_bytes_split;
uint64_t learn_bytes_invalid(const struct learn_bytes *b);

#endif
