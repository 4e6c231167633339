/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_LONG_RECORD_H
#define PREP_INPUT_LONG_RECORD_H

/*
 * A record too long to be held in memory (see LINES_LONG). Its line is validated as it comes by
 * (jscan); texts, and then packed tokens, wait in unnamed files beside the outputs. So memory stays
 * what it is for short records, apart from what the tokenizer needs for a long text.
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
    const char *output; /* the files lie beside it */
    bool keep_line;     /* the line itself is kept, for quarantine */
    bool fail;          /* a bad record ends the run: what is left of its line is not read */
    bool ids;           /* the columns of a Parquet file are lists of ids */
};

struct long_column {
    struct spill packed;   /* its tokens */
    struct spill sentence; /* uint32_t, tokens of each sequence; empty: it is one */
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
 * Reads the line whose beginning is in `b` to its end. A bad record gives ERR_DATA and *ret_bad:
 * the reason
 * ("byte N: ..."); any other failure is one of the input.
 */
int longrec_read(struct long_record *r, struct lines *l, struct buf *b, bool *ret_bad,
                 struct err *e);

#endif
