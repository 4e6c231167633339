/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_LONG_RECORD_H
#define PREP_INPUT_LONG_RECORD_H

/*
 * A record too long for memory (see LINES_LONG). Its line is validated as it is read (jscan);
 * texts, and then packed tokens, go into unnamed files beside the outputs, where the tokenizer may
 * put its own. So memory is the same as for short records, except for what it keeps.
 *
 * One thread at a time: it is read, encoded, copied.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/format/jscan.h"
#include "prep/input/lines.h"
#include "base/io/spill.h"

struct long_plan {
    const char *const *key;
    size_t nkeys;
    const char *output; /* the files are beside it */
    bool keep_line;     /* the line itself is kept, for quarantine */
    bool fail;          /* a bad record ends the run: the rest of its line is not read */
    bool ids;           /* the columns of a Parquet file are lists of ids */
    size_t growth;      /* tok_growth: texts may become so many times as long; 0: 1 */
};

struct long_column {
    struct spill packed;   /* its tokens */
    struct spill sentence; /* uint32_t, tokens of each sequence; empty: one sequence */
    uint64_t tokens;
};

struct long_record {
    struct jscan scan;
    struct spill line;          /* if kept */
    bool fail;                  /* as planned */
    struct long_column *column; /* one for each key */
    size_t ncolumns;
};

/* On failure nothing is open. */
int longrec_create(const struct long_plan *p, struct long_record **ret, struct err *e);
void longrec_destroy(struct long_record *r); /* takes NULL */

/*
 * Reads to its end the line whose beginning is in `b`. For a bad record ERR_DATA and *ret_bad, with
 * the reason ("byte N: ..."); any other failure is one of the input.
 */
int longrec_read(struct long_record *r, struct lines *l, struct buf *b, bool *ret_bad,
                 struct err *e);

#endif
