/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_JOURNAL_H
#define PREP_BUILD_JOURNAL_H

/*
 * What an interrupted `prep build` left: the folder DIR/.NAME.build for the prefix DIR/NAME. In it
 * lie the shards being written, and `journal.json`, which says of what work they are and where it
 * stood when all before that was on the disk. A process that holds the folder locks it; a dead
 * one's is free.
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
    bool finished;        /* all shards are whole, and get their names */
    struct manifest work; /* what is made: tokenizer, options, inputs and what was taken of them */
    const int64_t *mtime; /* of the inputs, ns; work.ninputs of them */
    size_t input;         /* the next block lies in this input, */
    uint64_t end;         /* there (source_seek), */
    uint64_t line;        /* behind so many records of it */
    uint64_t records;     /* of all inputs before the block */
    struct build_counts counts;
    uint64_t notes;     /* bad records told */
    uint64_t bad_bytes; /* of the side file of bad records */
    const struct shard_mark *shard;
    size_t nshards;
    const uint64_t *pieces; /* --shard-size, finished: of each key; npieces of them */
    size_t npieces;

    struct arena arena; /* of one that was read */
};

/* Makes the folder if it is missing. ERR_USAGE if a living process has it. *ret_lock: a descriptor.
 */
int build_journal_lock(const char *folder, const char *prefix, int *ret_lock, struct err *e);

/* It is on the disk, or the one before still is. */
int build_journal_write(const char *folder, const struct build_journal *j, struct err *e);

/* *ret_found false if there is none. */
int build_journal_read(const char *folder, struct build_journal *ret, bool *ret_found,
                       struct err *e);
void build_journal_close(struct build_journal *j);

#endif
