/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_RAW_WRITER_H
#define DATASET_SHARD_RAW_WRITER_H

/*
 * The files of a shard written from bytes that are known already: for who joins or mends shards.
 * Who has sequences of ids takes write.h. All lies in a temporary folder until raw_writer_finish,
 * which commits it (commit.h): a reader finds the old shard or the new one, whenever the writer is
 * killed.
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

/* Without a .bin the one that stands stays as it is. On failure nothing is left behind. */
int raw_writer_open(struct raw_writer *w, const char *prefix, bool with_bin, struct err *e);

int raw_writer_bin(struct raw_writer *w, const void *p, size_t n, struct err *e);
int raw_writer_idx(struct raw_writer *w, const void *p, size_t n, struct err *e);

/* The head of an .idx: 34 bytes. */
int raw_writer_head(struct raw_writer *w, enum shard_dtype t, uint64_t nseq, uint64_t ndocs,
                    struct err *e);

/*
 * All gets its final name. Sizes and digests of what was written are filled into `m` (NULL: no
 * manifest); those of a .bin that stays are the caller's. Closes the writer either way; on failure
 * nothing new is left.
 */
int raw_writer_finish(struct raw_writer *w, struct manifest *m, struct err *e);

/* For any state, also zeroed and finished ones. */
void raw_writer_abort(struct raw_writer *w);

#endif
