/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_ZIN_H
#define BASE_IO_ZIN_H

/*
 * A byte stream read from a file or a descriptor, decompressed if its first bytes are those of zstd
 * (any number of frames, skippable ones too), gzip (members) or xz (streams). The file name does
 * not matter. A file that ends inside a frame, member or stream, or has garbage after one, is
 * ERR_DATA with the file and the compressed offset. Memory is bounded: zstd windows and xz
 * dictionaries above 128 MiB are rejected. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/core/hash.h"

struct zin;

/* "-" is standard input. */
int zin_open(const char *path, struct zin **ret, struct err *e);

/*
 * Before the first read: bzip2, lz4, zip and other archives are read as plain bytes; without it
 * they are ERR_DATA, with how to unpack them.
 */
void zin_take_any(struct zin *z);

/* Up to n bytes; *ret_n == 0 means the end. */
int zin_read(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e);

/*
 * Puts back the n <= ZIN_UNREAD bytes that were read last, for callers that inspect the beginning
 * before choosing how to read the stream. Once before the next read.
 */
enum { ZIN_UNREAD = 512 };
void zin_unread(struct zin *z, const void *p, size_t n);

/*
 * zin_hash, before the first read: computes the XXH3-128 of the file's bytes, before decompression.
 * zin_digest returns it once the end was read, "" before that or without zin_hash.
 */
void zin_hash(struct zin *z);
void zin_digest(const struct zin *z, char ret[XXH_TEXT]);

/* Continues at byte `at` of an uncompressed file that was partly read; there is no digest then. */
int zin_seek(struct zin *z, uint64_t at, struct err *e);

const char *zin_name(const struct zin *z);  /* path, or "standard input" */
uint64_t zin_consumed(const struct zin *z); /* bytes of the file read so far, for progress */
bool zin_compressed(const struct zin *z);   /* known after the first read */
uint64_t zin_size(const struct zin *z);     /* size of the file, 0 if unknown */
void zin_close(struct zin *z);

#endif
