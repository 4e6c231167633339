/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_BUILD_H
#define PREP_BUILD_BUILD_H

/*
 * `prep build`: documents in, token shards out; one shard PREFIX_KEY_LEVEL for each key of the
 * records. The bytes depend on the inputs and the tokenizer, not on the number of workers.
 * No file has its final name before all are complete.
 *
 * Memory: a fixed number of blocks for any input size, plus what the tokenizer needs.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "prep/encode/encoder.h"
#include "prep/input/source.h"
#include "tok/tokenizer/options.h"

struct build_counts {
    uint64_t documents, tokens;
    uint64_t bad;      /* records skipped or quarantined */
    uint64_t filtered; /* dropped for their length */
    uint64_t read;     /* bytes of the inputs */
    uint64_t specials; /* strings of special tokens treated as text */
    uint64_t eods;     /* end-of-document ids inside the documents */
};

struct build_request {
    const char *const *input; /* names or patterns, "-" for standard input */
    size_t ninputs;
    struct source_form form; /* of the inputs */
    const char *const *key;  /* of the records; for a framed stream it only names the output */
    size_t nkeys;
    const char *prefix;
    const char *level;               /* ends the names: "document" or "sentence" */
    const struct sentences *split;   /* NULL: each document is one sequence */
    const struct tokenizer *tok;     /* NULL only with `form.pretokenized` */
    const char *specials;            /* as the user spells it, for the manifest */
    const struct tok_choice *choice; /* of the tokenizer, likewise (tok_flags_choices) */
    size_t nchoices;
    int64_t vocab_size;     /* with `form.pretokenized` and no tokenizer: ids must be below it */
    enum shard_dtype dtype; /* 0: by the size of the vocabulary */
    bool append_eod, prepend_bos, overwrite;
    bool allow_empty;        /* no documents is not an error */
    unsigned shard, nshards; /* nshards > 0: only this share of the inputs (source_share) */
    int partitions;          /* 0, 1: none */
    bool sequential;         /* partitions are runs of documents instead of every P-th */
    struct filter filter;
    uint64_t shard_size; /* bytes of tokens per piece; 0: one piece */
    enum on_bad on_bad;
    int workers;          /* >= 1 */
    double sync_interval; /* seconds between journal entries; 0: after each block */

    const volatile sig_atomic_t *stop; /* not 0: stop soon, ERR_FAIL */
    /* On the caller's thread, several times a second. */
    void (*progress)(void *arg, const struct build_counts *c);
    /* A sentence about a skipped record; only the first BUILD_NOTES. */
    void (*note)(void *arg, const char *sentence);
    void *arg;
};

enum { BUILD_NOTES = 10, BUILD_PIECES = 100000 /* of --shard-size, at most */ };

struct build;

/*
 * Opens the inputs and checks the request: ERR_USAGE for existing outputs of other inputs, options
 * or tokenizer, for the remains of an interrupted run of other work, for an unknown end of document
 * that is needed, for a framed stream of another tokenizer. Writes nothing. The request and what it
 * points to must live until build_close.
 */
int build_open(const struct build_request *q, struct build **ret, struct err *e);

/*
 * What build_open found: nothing, an interrupted run of the same work (its counts are
 * build_counts), one that had only the renames left, or outputs of the same work. build_run
 * continues from there; for existing outputs it only reads the inputs, ERR_USAGE if they differ,
 * and writes nothing.
 */
enum build_state { BUILD_FRESH, BUILD_RESUMES, BUILD_FINISHED, BUILD_THERE };
enum build_state build_found(const struct build *b);

/* After a build_run that failed: whether the same request can resume. */
bool build_kept(const struct build *b);
bool build_has_pipe(const struct build *b); /* so it cannot resume */

/*
 * Found by build_open: the end of document (-1 if none is appended) and its string (may be NULL);
 * the size of all inputs in bytes (0 if unknown).
 */
int64_t build_eod(const struct build *b, const char **ret_piece);
uint64_t build_input_bytes(const struct build *b);

/* ERR_DATA for a bad record (file, line, reason) and for inputs without any document, ERR_IO for
 * failed reads and writes. */
int build_run(struct build *b, struct err *e);

const struct build_counts *build_counts(const struct build *b);
/* After build_run: whether bytes in build_counts.read are of compressed inputs. */
bool build_compressed(const struct build *b);

/*
 * PREFIX_KEY_document; with partitions also PREFIX_I_KEY_document; with a shard_size the pieces
 * instead, PREFIX_KEY_document_00000 and so on, known when the build is done. Valid until
 * build_close.
 */
size_t build_outputs(const struct build *b);
const char *build_output(const struct build *b, size_t i);
const char *build_bad_path(const struct build *b); /* the file of bad records */

void build_close(struct build *b);

#endif
