/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_MANIFEST_H
#define DATASET_SHARD_MANIFEST_H

/*
 * PREFIX.manifest.json: the provenance of a shard. Which tokenizer (type, digest, vocabulary size,
 * end of document), which inputs, how many documents, tokens and bad records, with which options,
 * by which version. Shards of other tools have none; the rest of this module works without it.
 *
 * Strings of a manifest to be written belong to the caller; those of one that was read live until
 * manifest_close.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "dataset/shard/shard.h"

struct manifest_input {
    const char *path;
    uint64_t bytes;     /* of the file as stored, compressed or not; 0 for a pipe */
    uint64_t documents; /* taken from it */
    char xxh[XXH_TEXT]; /* XXH3-128 of the stored file; "" if unknown */
};

struct manifest_option {
    const char *name, *value;
};

struct manifest_count {
    const char *name;
    uint64_t n;
};

struct manifest {
    const char *weft_version;
    /* tokenizer */
    const char *tokenizer_type; /* "SentencePieceTokenizer" */
    const char *tokenizer_path; /* may be NULL */
    char digest[SHA_TEXT];      /* "" if unknown: ids came without a tokenizer */
    const char *meaning;        /* what it does (tok/core/types.h); NULL if unknown */
    int64_t vocab_size;         /* unpadded; 0 if unknown */
    int64_t eod;                /* -1: none */
    const char *eod_piece;      /* may be NULL */
    bool append_eod;
    /* counts; the writer fills those of the shard */
    uint64_t documents, sequences, tokens;
    uint64_t bad_records;                /* skipped or quarantined */
    uint64_t filtered_records;           /* dropped for their length; written if not 0 */
    uint64_t piece, pieces;              /* piece `piece`, from 0, of `pieces`; 0: not split */
    const struct manifest_count *counts; /* more, of this kind of data only; not read */
    size_t ncounts;
    enum shard_dtype dtype;
    uint64_t bin_bytes, idx_bytes;
    char bin_xxh[XXH_TEXT], idx_xxh[XXH_TEXT]; /* XXH3-128 of the whole files */
    /* provenance */
    const struct manifest_input *inputs;
    size_t ninputs;
    const struct manifest_option *options; /* those that change the bytes */
    size_t noptions;

    struct arena arena; /* of a manifest that was read */
};

/* PREFIX.manifest.json in new memory. */
char *manifest_path(const char *prefix);

/* The file's text, appended to `ret`. */
void manifest_text(const struct manifest *m, struct buf *b);

/* Writes the text to an open file and syncs it. */
int manifest_write(const struct manifest *m, struct outfile *f, struct err *e);

/* *ret_found false (and 0) if there is none. Malformed: ERR_DATA. */
int manifest_read(const char *prefix, struct manifest *ret, bool *ret_found, struct err *e);

/* The same from an object in another file; `path` names that file in messages. */
int manifest_from(const struct json *root, const char *path, struct manifest *ret, struct err *e);
void manifest_close(struct manifest *m);

/* ERR_DATA unless sizes, dtype and counts equal those of the open shard. */
int manifest_fits_shard(const struct manifest *m, const struct shard *s, struct err *e);

/* ERR_INTEGRITY unless both files have the manifest's XXH3-128. Reads both completely. */
int manifest_verify(const struct manifest *m, const struct shard *s, struct err *e);

/*
 * Whether both describe the same work: tokenizer, token type, options and inputs (their number,
 * sizes and digests, but not their names; what is unknown on either side is not compared).
 * ERR_USAGE names the first difference and begins with `who`.
 */
int manifest_same_work(const struct manifest *was, const struct manifest *now, const char *who,
                       struct err *e);

/* A tokenizer, as far as it is known: NULL, "" and 0 stand for what is not. */
struct manifest_tokenizer {
    const char *path, *digest, *meaning;
    int64_t vocab_size;
};

struct manifest_tokenizer manifest_tokenizer(const struct manifest *m);

/* True if nothing is known in which they differ: the files are equal, or they do the same. */
bool manifest_same_tokenizer(const struct manifest_tokenizer *a,
                             const struct manifest_tokenizer *b);

/* Appends what two meanings differ in: "size (32000, 32001), tokens, merges". */
void manifest_put_differences(struct buf *b, const char *was, const char *is);

/*
 * ERR_USAGE, naming both tokenizers by file and digest and what they differ in, unless they are the
 * same (manifest_same_tokenizer) and of one size. `who` has the other one: "the command line".
 */
int manifest_compare(const struct manifest *m, const char *prefix, const char *who,
                     const struct manifest_tokenizer *theirs, struct err *e);

/* What the caller makes of manifest_compare's code: with `goes_on` (--tokenizer-differs) another
 * tokenizer is a warning. */
int manifest_judge(bool goes_on, int code, struct err *e);

#endif
