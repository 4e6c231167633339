/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_RAW_WRITER_H
#define DATASET_SHARD_RAW_WRITER_H

/*
 * The files of a shard written from bytes that are known already: for who joins or mends shards.
 * Who has sequences of ids takes write.h. All lies in a temporary folder until pair_finish,
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

struct pair_writer {
    struct outfile bin, idx, manifest;
    struct xxh *bin_hash, *idx_hash;
    char *prefix, *folder; /* owned */
    bool with_bin;
};

/* Without a .bin the one that stands stays as it is. On failure nothing is left behind. */
int pair_open(struct pair_writer *w, const char *prefix, bool with_bin, struct err *e);

int pair_bin(struct pair_writer *w, const void *p, size_t n, struct err *e);
int pair_idx(struct pair_writer *w, const void *p, size_t n, struct err *e);

/* The head of an .idx: 34 bytes. */
int pair_head(struct pair_writer *w, enum shard_dtype t, uint64_t nseq, uint64_t ndocs,
              struct err *e);

/*
 * All gets its final name. Sizes and digests of what was written are filled into `m` (NULL: no
 * manifest); those of a .bin that stays are the caller's. Closes the writer either way; on failure
 * nothing new is left.
 */
int pair_finish(struct pair_writer *w, struct manifest *m, struct err *e);

/* For any state, also zeroed and finished ones. */
void pair_abort(struct pair_writer *w);

#endif
