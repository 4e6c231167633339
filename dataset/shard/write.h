/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_WRITE_H
#define DATASET_SHARD_WRITE_H

/*
 * Streaming writer of PREFIX.bin, PREFIX.idx and PREFIX.manifest.json, byte for byte as
 * Megatron-LM's builder writes the first two. Memory is constant: sequence lengths wait in a
 * file beside the output (4 bytes each, documents without tokens 4 more).
 *
 * All lies in a temporary folder until shard_writer_commit (commit.h): whenever the writer is
 * killed, a reader finds the old shard or the new one, whole, and what is left over is removed by
 * the next writer of the same prefix. A writer of shard_writer_resume leaves its files where they
 * are instead, and another process goes on from the last mark that is on the disk.
 *
 * One thread at a time, but for what shard_run says.
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
    uint64_t open_seq;  /* sequences of the document that is being written */
    uint64_t part;      /* tokens of the sequence that is being written by parts */
    struct buf run;     /* of the sequence that is being added */
    bool prepared;
};

/*
 * Private: one word of the lengths' file is the length of a sequence, this bit set on the last of
 * its document. Written sequences are never empty, so the bare bit is free to stand for an empty
 * document.
 */
#define SHARD_LAST (UINT32_C(1) << 31)

int shard_too_many(const struct shard_writer *w, struct err *e); /* private: sequences */

/* On failure nothing is left behind and `w` may be forgotten. */
int shard_writer_open(struct shard_writer *w, const char *prefix, int64_t vocab_size,
                      struct err *e);

/* All that a writer has taken, at the end of a document. */
struct shard_mark {
    uint64_t bin_bytes, length_bytes;
    uint64_t sequences, documents, tokens;
    char bin_xxh[XXH_TEXT]; /* of those bytes */
};

/*
 * Goes on where `mark` was made (zeroed: at the beginning). The new files lie in `folder`, which is
 * the shard's alone and is made, the lengths in the file `lengths`. All that lies behind the mark
 * is cut off; what lies before it is read again, and ERR_INTEGRITY says that it changed. On failure
 * the files are left as they are.
 */
struct shard_place {
    const char *folder, *lengths;
};
int shard_writer_resume(struct shard_writer *w, const char *prefix, enum shard_dtype dtype,
                        int64_t vocab_size, const struct shard_place *at,
                        const struct shard_mark *mark, struct err *e);

/* At the end of a document: what was taken so far is on the disk, and *ret says how much that is.
 */
int shard_writer_mark(struct shard_writer *w, struct shard_mark *ret, struct err *e);

/* All that was taken is in its files. */
int shard_writer_flush(struct shard_writer *w, struct err *e);

/*
 * Appends the next `documents` documents of a writer that was just flushed, from where `from` says,
 * which is moved on (zeroed: its beginning). They have the same token type.
 */
struct shard_cursor {
    uint64_t bin, length; /* bytes */
};
int shard_writer_copy(struct shard_writer *w, const struct shard_writer *source,
                      struct shard_cursor *from, uint64_t documents, struct err *e);

/*
 * How many documents of a flushed writer, from `from` on (which is moved on), have `most` bytes of
 * tokens together; at least one, if there is one.
 */
int shard_writer_fit(const struct shard_writer *source, struct shard_cursor *from, uint64_t most,
                     uint64_t *ret_documents, struct err *e);

/* Closes it and leaves its files for shard_writer_resume. */
void shard_writer_leave(struct shard_writer *w);

/*
 * Appends one sequence of n tokens to the current document. n = 0 appends nothing: Megatron's tool
 * drops empty sequences. More than 2^31 - 1 tokens, or more than that many sequences, is ERR_DATA.
 */
int shard_writer_add(struct shard_writer *w, const int32_t *id, size_t n, struct err *e);

/* The same for ids already packed by shard_pack with the writer's dtype. */
int shard_writer_put(struct shard_writer *w, const void *packed, size_t n, struct err *e);

/*
 * The same in steps, so that other threads narrow the ids, straight to where they wait for the
 * disk. In the order of the file shard_writer_place says where tokens go, ahead as far as it likes;
 * any thread stores ids there with shard_runs_store; in the same order the lengths are told, by
 * shard_writer_sequence or _documents, and shard_runs_take has the tokens in the file. The thread
 * that has the places may be another one than the writer's; but all of them are taken when tokens
 * come in any other way, and whoever closes the writer need not care for them.
 */
struct shard_run {
    struct shard_writer *w;
    unsigned char *to;
    size_t n; /* tokens */
};

/* Appends the runs that n tokens make, one behind the other, to `runs`. */
void shard_writer_place(struct shard_writer *w, size_t n, struct buf *runs);

/* The ids of n runs, one behind the other, and those of `watch` counted. False: there is one
 * outside the vocabulary. */
bool shard_runs_store(const struct shard_run *run, size_t n, const int32_t *id,
                      struct shard_watch *watch);
int shard_runs_take(const struct shard_run *run, size_t n, struct err *e);

/* A sequence of n tokens, as shard_writer_add has it. */
int shard_writer_sequence(struct shard_writer *w, size_t n, struct err *e);

/* n documents at once, of one sequence each, or none where the length is 0. */
int shard_writer_documents(struct shard_writer *w, const uint32_t *length, size_t n, struct err *e);

/* The next sequence has these ids: ERR_DATA if there is one outside the vocabulary. */
int shard_writer_judge(const struct shard_writer *w, const int32_t *id, size_t n, struct err *e);

/* After open or resume: the tokens are written by a thread of its own. */
int shard_writer_async(struct shard_writer *w, struct err *e);

/*
 * The first n packed tokens of a sequence that is too long to be held at once; the next
 * shard_writer_put (of any n, also 0) brings the last ones.
 */
int shard_writer_part(struct shard_writer *w, const void *packed, size_t n, struct err *e);

/* Ends the current document; without a sequence since the last end it is an empty one. */
int shard_writer_end_document(struct shard_writer *w, struct err *e);

/*
 * Writes the .idx and the manifest, still under temporary names: all that can fill a disk is done
 * then, so that several shards can be committed together. `m` (may be NULL: no manifest) carries
 * what only the caller knows; documents, sequences, tokens, dtype, sizes and hashes are filled in
 * here. A document still open is a bug.
 */
int shard_writer_prepare(struct shard_writer *w, struct manifest *m, struct err *e);

/*
 * After prepare: all gets its final name. An old manifest goes if there is no new one. Closes the
 * writer either way.
 */
int shard_writer_commit(struct shard_writer *w, struct err *e);

/* Prepare and commit. Closes the writer either way; on failure nothing new is left. */
int shard_writer_finish(struct shard_writer *w, struct manifest *m, struct err *e);

/* Removes what was written; for any state, also zeroed and finished ones. */
void shard_writer_abort(struct shard_writer *w);

#endif
