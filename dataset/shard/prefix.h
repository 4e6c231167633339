/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_PREFIX_H
#define DATASET_SHARD_PREFIX_H

/* Resolves a user's PREFIX of token data: PREFIX.bin and PREFIX.idx, or PREFIX.pack. */

#include <stddef.h>

#include "base/core/err.h"

/*
 * *ret is the prefix in new memory: `given`, without the suffix of one of its files (PREFIX.bin).
 * Otherwise the error says what `given` is instead, and its hint what was probably meant, such as
 * given_text_document: ERR_IO for nothing or a folder, ERR_DATA for another file.
 */
int prefix_find(const char *given, char **ret, struct err *e);

/* The length of `given` without the suffix of a shard's file; no file is accessed. */
size_t prefix_length(const char *given);

#endif
