/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_ZBLOCK_H
#define BASE_IO_ZBLOCK_H

/*
 * Compression by blocks: each becomes a whole zstd frame, gzip member or xz stream, and such blocks
 * concatenated are a file of that kind, which base/io/zin and the usual programs read. So
 * blocks may be compressed by any number of threads. The same bytes give the same block.
 */

#include <stddef.h>

#include "base/core/buf.h"

enum zblock { ZBLOCK_PLAIN, ZBLOCK_ZSTD, ZBLOCK_GZIP, ZBLOCK_XZ };

/* By the file name: .zst, .gz, .xz; anything else is plain. */
enum zblock zblock_of(const char *name);

/* Appends n bytes, compressed. */
void zblock_add(enum zblock kind, const void *p, size_t n, struct buf *out);

#endif
