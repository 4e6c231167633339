/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_JOURNAL_H
#define PREP_BUILD_JOURNAL_H

/*
 * State of an interrupted `prep build`: the folder DIR/.NAME.build for the prefix DIR/NAME. It has
 * the shards being written, and `journal.json`, which describes the work and the position up to
 * which everything is on disk. The process that uses the folder locks it; a dead one's is free.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/err.h"
#include "dataset/shard/manifest.h"
#include "dataset/shard/write.h"
#include "prep/build/build.h"

struct build_journal {
    bool finished;        /* all shards are complete; only the renames remain */
    struct manifest work; /* tokenizer, options, inputs and what was read of them */
    const int64_t *mtime; /* of the inputs, ns; work.ninputs of them */
    size_t input;         /* the next block is in this input, */
    uint64_t end;         /* at this place (source_seek), */
    uint64_t line;        /* after this many records of it */
    uint64_t records;     /* of all inputs before the block */
    struct build_counts counts;
    uint64_t notes;     /* bad records reported */
    uint64_t bad_bytes; /* of the side file of bad records */
    const struct shard_mark *shard;
    size_t nshards;
    const uint64_t *pieces; /* --shard-size, finished: of each key; npieces of them */
    size_t npieces;

    struct arena arena; /* of one that was read */
};

/* Creates the folder if missing. ERR_USAGE if a living process uses it. *ret_lock: a descriptor. */
int build_journal_lock(const char *folder, const char *prefix, int *ret_lock, struct err *e);

/* Atomic: afterwards this journal or the previous one is on disk. */
int build_journal_write(const char *folder, const struct build_journal *j, struct err *e);

/* *ret_found false if there is none. */
int build_journal_read(const char *folder, struct build_journal *ret, bool *ret_found,
                       struct err *e);
void build_journal_close(struct build_journal *j);

#endif
