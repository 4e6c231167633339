/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_RAW_WRITER_H
#define DATASET_SHARD_RAW_WRITER_H

/*
 * The files of a shard written from known bytes, to merge or repair shards. For sequences of ids
 * use write.h. Everything is in a temporary folder until raw_writer_finish, which commits it
 * (commit.h): a reader finds the old shard or the new one, whenever the writer is killed.
 *
 *
 * One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/io/file.h"
#include "dataset/shard/manifest.h"

struct xxh;

struct raw_writer {
    struct outfile bin, idx, manifest;
    struct xxh *bin_hash, *idx_hash;
    char *prefix, *folder; /* owned */
    bool with_bin;
};

/* Without `with_bin` an existing .bin is kept. On failure nothing is left. */
int raw_writer_open(struct raw_writer *w, const char *prefix, bool with_bin, struct err *e);

int raw_writer_bin(struct raw_writer *w, const void *p, size_t n, struct err *e);
int raw_writer_idx(struct raw_writer *w, const void *p, size_t n, struct err *e);

/* The header of an .idx: 34 bytes. */
int raw_writer_head(struct raw_writer *w, enum shard_dtype t, uint64_t nseq, uint64_t ndocs,
                    struct err *e);

/*
 * Commits the files under their names. Sizes and digests of what was written are stored in `m`
 * (NULL: no manifest); those of a kept .bin are the caller's to set. Closes the writer either way;
 * on failure nothing new is left.
 */
int raw_writer_finish(struct raw_writer *w, struct manifest *m, struct err *e);

/* In any state, also zeroed and finished. */
void raw_writer_abort(struct raw_writer *w);

#endif
