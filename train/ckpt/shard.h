/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_SHARD_H
#define TRAIN_CKPT_SHARD_H

/*
 * The tensor files of one rank (thread or process) of a checkpoint that is being written. A rank
 *
 *     ckpt_shard_create(folder, &options, &s);     folder: ckpt_writer_folder of rank 0's writer
 *     ckpt_shard_add(s, ...)                       plans each of its boxes: names and shapes
 *     ckpt_shard_begin(s, e)                       every offset is known now; files and headers
 *     ckpt_shard_write(s, ...)                     any ranges, in any order, by any threads
 *     ckpt_shard_end(s, &fragment, e)              syncs; what the manifest is to say of it
 *     ckpt_shard_destroy(s)
 *
 * and hands the fragment (bytes, for a message to rank 0) to ckpt_add. Digests and fingerprints are
 * taken from the memory that is written; nothing is read back, and nothing is buffered.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/tensor/box.h"

struct ckpt_shard;

struct ckpt_shard_options {
    int rank;               /* 0 to 99999; no two shards of a checkpoint have the same */
    uint64_t max_file_size; /* bytes of data in a file; 0: CKPT_FILE_SIZE. A row is never cut */
};

#define CKPT_FILE_SIZE UINT64_C(5000000000)

/* Nothing is written yet. */
void ckpt_shard_create(const char *folder, const struct ckpt_shard_options *o,
                       struct ckpt_shard **ret);

/*
 * Plans a box of a global tensor of rank 1 or 2. Returns the number of this entry: 0, 1, 2 and so
 * on. Names, groups and boxes are the caller's own and must be valid (BUG); that all ranks together
 * cover each tensor once is checked by ckpt_commit.
 */
size_t ckpt_shard_add(struct ckpt_shard *s, const char *group, const char *name, int rank,
                      const int64_t *size, enum dtype dtype, struct box box);

/* What was planned: how many entries, and entry i. */
size_t ckpt_shard_entries(const struct ckpt_shard *s);
void ckpt_shard_entry(const struct ckpt_shard *s, size_t i, const char **ret_name,
                      enum dtype *ret_dtype, struct box *ret_box);

/* Makes the files and writes their headers. ERR_IO. */
int ckpt_shard_begin(struct ckpt_shard *s, struct err *e);

/* The entries in file order: if order does not matter otherwise, writing in this one is fastest.
 * Lives as long as the shard. */
const size_t *ckpt_shard_order(const struct ckpt_shard *s, size_t *ret_n);

/*
 * Bytes [at, at + n) of an entry, counted over the elements of its box row by row; both are
 * multiples of the element's size. Each byte is written exactly once (BUG at ckpt_shard_end where
 * some were not). Any threads at once. After a failure (ERR_IO, with file and bytes) all fail.
 */
int ckpt_shard_write(struct ckpt_shard *s, size_t entry, uint64_t at, const void *p, size_t n,
                     struct err *e);

/* Where a byte of an entry lies in its file: memory that lies so in its pages is written fastest
 * (base/io/ranges.h, OUTFILE_PAGE). */
uint64_t ckpt_shard_place(const struct ckpt_shard *s, size_t entry, uint64_t at);

/*
 * In a folder that is continued (ckpt_writer_resume): the bytes that stand there, false where they
 * cannot be read; and that they stay: counts as ckpt_shard_write, and nothing is written.
 */
bool ckpt_shard_read(const struct ckpt_shard *s, size_t entry, uint64_t at, void *p, size_t n);
void ckpt_shard_keep(struct ckpt_shard *s, size_t entry, uint64_t at, const void *p, size_t n);

/* All entries from memory, mem[i] that of entry i in its type, by `threads` threads (0: one for
 * each processor). */
int ckpt_shard_write_all(struct ckpt_shard *s, const struct box_mem *mem, int threads,
                         struct err *e);

/* Syncs and closes the files, and appends the fragment. */
int ckpt_shard_end(struct ckpt_shard *s, struct buf *fragment, struct err *e);

/* Takes NULL. The files of one that did not end are removed with the writer's folder. */
void ckpt_shard_destroy(struct ckpt_shard *s);

#endif
