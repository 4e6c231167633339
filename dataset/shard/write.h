/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_WRITE_H
#define DATASET_SHARD_WRITE_H

/*
 * Streaming writer of PREFIX.bin, PREFIX.idx and PREFIX.manifest.json, byte for byte as
 * Megatron-LM's builder writes the first two. Memory is constant: sequence lengths go to a
 * temporary file beside the output first (4 bytes each, documents without tokens 4 more).
 *
 * Everything is in a temporary folder until shard_writer_commit (commit.h): whenever the writer is
 * killed, a reader finds the old shard or the new one, whole, and the next writer of the same
 * prefix removes the rest. A writer of shard_writer_resume leaves its files instead, and another
 * process resumes from the last mark on disk.
 *
 * One thread at a time, except as described at shard_run.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/io/file.h"
#include "base/io/spill.h"
#include "dataset/shard/manifest.h"
#include "dataset/shard/shard.h"
#include "dataset/shard/pack.h"

struct xxh;

struct shard_writer {
    struct outfile bin, idx, manifest;
    struct xxh *bin_hash, *idx_hash;
    char *prefix; /* owned */
    char *folder; /* of the temporaries; owned */
    int64_t vocab_size;
    enum shard_dtype dtype;
    uint32_t width;
    uint64_t nseq, ndocs, ntokens;
    /* private */
    struct spill lengths;
    char *lengths_path; /* NULL: an unnamed file; owned */
    uint32_t held;      /* length of the last sequence, while its document is open; 0: none */
    uint64_t open_seq;  /* sequences of the open document */
    uint64_t part;      /* tokens of the sequence that is written in parts */
    bool prepared;
};

/*
 * Private: a word of the lengths' file is the length of a sequence, with this bit set on the last
 * of its document. Written sequences are never empty, so the bare bit stands for an empty document.
 */
#define SHARD_LAST (UINT32_C(1) << 31)

int shard_too_many(const struct shard_writer *w, struct err *e); /* private: sequences */

/* On failure nothing is left, and `w` needs no clean-up. */
int shard_writer_open(struct shard_writer *w, const char *prefix, int64_t vocab_size,
                      struct err *e);

/* The state of a writer at the end of a document. */
struct shard_mark {
    uint64_t bin_bytes, length_bytes;
    uint64_t sequences, documents, tokens;
    char bin_xxh[XXH_TEXT]; /* of those bytes */
};

/*
 * Resumes at `mark` (zeroed: at the beginning). The new files are in `folder`, which belongs to
 * this shard and is created, the lengths in the file `lengths`. What follows the mark is truncated;
 * what precedes it is read again, and ERR_INTEGRITY if it changed. On failure the files are left as
 * they are.
 */
struct shard_place {
    const char *folder, *lengths;
};
int shard_writer_resume(struct shard_writer *w, const char *prefix, enum shard_dtype dtype,
                        int64_t vocab_size, const struct shard_place *at,
                        const struct shard_mark *mark, struct err *e);

/* At the end of a document: syncs everything so far to disk; *ret is the state that is there. */
int shard_writer_mark(struct shard_writer *w, struct shard_mark *ret, struct err *e);

/* Writes out all buffers. */
int shard_writer_flush(struct shard_writer *w, struct err *e);

/*
 * Appends the next `documents` documents of a writer that was just flushed, from `from` on, which
 * is advanced (zeroed: its beginning). Both have the same token type.
 */
struct shard_cursor {
    uint64_t bin, length; /* bytes */
};
int shard_writer_copy(struct shard_writer *w, const struct shard_writer *source,
                      struct shard_cursor *from, uint64_t documents, struct err *e);

/*
 * How many documents of a flushed writer, from `from` on (which is advanced), have at most `most`
 * bytes of tokens together; at least one, if there is one.
 */
int shard_writer_fit(const struct shard_writer *source, struct shard_cursor *from, uint64_t most,
                     uint64_t *ret_documents, struct err *e);

/* Closes it and leaves its files for shard_writer_resume. */
void shard_writer_leave(struct shard_writer *w);

/*
 * Appends one sequence of n tokens, packed with the writer's dtype (shard_pack), to the current
 * document. n = 0 appends nothing: Megatron's tool drops empty sequences. More than 2^31 - 1
 * tokens, or more than that many sequences, is ERR_DATA.
 */
int shard_writer_put(struct shard_writer *w, const void *packed, size_t n, struct err *e);

/*
 * The same in steps, so that other threads can narrow the ids, straight into the output buffers. In
 * file order shard_writer_place reserves places for tokens, any number ahead; any thread stores ids
 * there with shard_runs_store; in the same order the lengths are given to shard_writer_sequence or
 * _documents, and shard_runs_take passes the tokens on to the file. The reserving thread may be
 * another than the writer's. All places must be taken before tokens are added in any other way, but
 * not before the writer is closed.
 */
struct shard_run {
    struct shard_writer *w;
    unsigned char *to;
    size_t n; /* tokens */
};

/* Reserves space for n tokens and appends its runs, in order, to `runs`. */
void shard_writer_place(struct shard_writer *w, size_t n, struct buf *runs);

/* Stores the ids of n runs, in order, and counts those of `watch`. False if one is outside the
 * vocabulary. */
bool shard_runs_store(const struct shard_run *run, size_t n, const int32_t *id,
                      struct shard_watch *watch);
int shard_runs_take(const struct shard_run *run, size_t n, struct err *e);

/* A sequence of n tokens, as by shard_writer_put. */
int shard_writer_sequence(struct shard_writer *w, size_t n, struct err *e);

/* n documents at once, of one sequence each, or of none if the length is 0. */
int shard_writer_documents(struct shard_writer *w, const uint32_t *length, size_t n, struct err *e);

/* ERR_DATA if one of these ids, of the next sequence, is outside the vocabulary. */
int shard_writer_check(const struct shard_writer *w, const int32_t *id, size_t n, struct err *e);

/* After open or resume: the tokens are written by a separate thread. */
int shard_writer_async(struct shard_writer *w, struct err *e);

/*
 * The first n packed tokens of a sequence that is too long for memory; the next shard_writer_put
 * (of any n, also 0) adds the last ones.
 */
int shard_writer_part(struct shard_writer *w, const void *packed, size_t n, struct err *e);

/* Ends the current document; it is empty if there was no sequence. */
int shard_writer_end_document(struct shard_writer *w, struct err *e);

/*
 * Writes the .idx and the manifest, still under temporary names: a full disk shows now, so that
 * several shards can be committed together. `m` (may be NULL: no manifest) has what only the caller
 * knows; documents, sequences, tokens, dtype, sizes and hashes are set here. An open document is a
 * bug.
 */
int shard_writer_prepare(struct shard_writer *w, struct manifest *m, struct err *e);

/*
 * After prepare: commits the files under their names. An old manifest is removed if there is no new
 * one. Closes the writer either way.
 */
int shard_writer_commit(struct shard_writer *w, struct err *e);

/* Prepare and commit. Closes the writer either way; on failure nothing new is left. */
int shard_writer_finish(struct shard_writer *w, struct manifest *m, struct err *e);

/* Removes what was written; in any state, also zeroed and finished. */
void shard_writer_abort(struct shard_writer *w);

#endif
