/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_BUILD_H
#define PREP_BUILD_BUILD_H

/*
 * `prep build`: documents in, token shards out; one shard PREFIX_KEY_LEVEL for each key of the
 * records. The bytes depend on the inputs and the tokenizer, not on the number of workers.
 * Nothing stands under a final name before all of it is there.
 *
 * Memory: a fixed number of blocks whatever the size of the input, plus what the tokenizer needs.
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
    uint64_t filtered; /* left out for their length */
    uint64_t read;     /* bytes of the inputs */
    uint64_t specials; /* strings of special tokens taken as text */
    uint64_t eods;     /* end-of-document ids that the documents themselves bring */
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
    const char *specials;            /* the choice as the user spells it, for the manifest */
    const struct tok_choice *choice; /* of the tokenizer, likewise (tok_flags_choices) */
    size_t nchoices;
    int64_t vocab_size;     /* with `form.pretokenized` and without a tokenizer: ids are below it */
    enum shard_dtype dtype; /* 0: by the size of the vocabulary */
    bool append_eod, prepend_bos, overwrite;
    bool allow_empty;        /* no document at all is not an error */
    unsigned shard, nshards; /* nshards > 0: only this share of the inputs (source_share) */
    int partitions;          /* 0, 1: none */
    bool sequential;         /* runs of documents, not every so manieth */
    struct filter filter;
    uint64_t shard_size; /* bytes of tokens of a piece; 0: one piece */
    enum on_bad on_bad;
    int workers;          /* >= 1 */
    double sync_interval; /* seconds after which what was done is made safe; 0: behind each block */

    const volatile sig_atomic_t *stop; /* not 0: stop as soon as may be, ERR_FAIL */
    /* On the caller's thread, several times a second. */
    void (*progress)(void *arg, const struct build_counts *c);
    /* A whole sentence about a record that was left out; the first BUILD_NOTES of them. */
    void (*note)(void *arg, const char *sentence);
    void *arg;
};

enum { BUILD_NOTES = 10, BUILD_PIECES = 100000 /* of --shard-size, at most */ };

struct build;

/*
 * Opens the inputs and judges what was asked: ERR_USAGE for outputs that are there already and do
 * not come from the same inputs, options and tokenizer, for what an interrupted run of other work
 * left, for an end of document that is wanted and not known, for a framed stream of another
 * tokenizer. Nothing is written. The request and what it points to must live until build_close.
 */
int build_open(const struct build_request *q, struct build **ret, struct err *e);

/*
 * What build_open found: nothing, an interrupted run of the same work (whose counts are
 * build_counts), one that had only the names to give, or outputs of the same work. Then build_run
 * goes on there; for the last it reads the inputs to see that they are the same, which is ERR_USAGE
 * if they are not, and writes nothing.
 */
enum build_state { BUILD_FRESH, BUILD_RESUMES, BUILD_FINISHED, BUILD_THERE };
enum build_state build_found(const struct build *b);

/* After a build_run that failed: the same request goes on where it stopped. */
bool build_kept(const struct build *b);
bool build_has_pipe(const struct build *b); /* so that it can never be kept */

/*
 * What build_open found out: the end of document (-1 if none is appended) and its string (may be
 * NULL), all inputs' bytes (0: not known).
 */
int64_t build_eod(const struct build *b, const char **ret_piece);
uint64_t build_input_bytes(const struct build *b);

/* ERR_DATA for a bad record (file, line, reason) and for inputs without any document, ERR_IO for
 * what cannot be read or written. */
int build_run(struct build *b, struct err *e);

const struct build_counts *build_counts(const struct build *b);

/*
 * PREFIX_KEY_document; with partitions also those, PREFIX_I_KEY_document; with a shard_size the
 * pieces instead, PREFIX_KEY_document_00000 and so on, known when the build is done. They live as
 * long as the build.
 */
size_t build_outputs(const struct build *b);
const char *build_output(const struct build *b, size_t i);
const char *build_bad_path(const struct build *b); /* the side file of bad records */

void build_close(struct build *b);

#endif
