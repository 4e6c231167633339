/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_BLOCK_H
#define PREP_INPUT_BLOCK_H

/*
 * A block of records on its way through the pipeline, from bytes to tokens. Fill sets the upper
 * part, or where in a file the text is, which the worker then reads; work sets the lower part,
 * follow reserves places for its ids, store puts them there, drain empties it; then it is reused
 * with its memory. One thread at a time owns it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "prep/input/long_record.h"
#include "prep/input/plain_file.h"
#include "tok/tokenizer/tokenizer.h"

enum item_kind {
    ITEM_LINES, /* whole lines of JSONL in `text` */
    ITEM_TEXT,  /* documents of plain text in `text`, with their separators */
    ITEM_ROWS,  /* texts in `text`, their lengths in `run` (PARQUET_NULL: none) */
    ITEM_LONG,  /* one long line in `large` */
    ITEM_IDS    /* documents of the framed stream in `ids`, one run for each of `run` */
};

/* The documents of one key: their tokens concatenated, end of document included. */
struct column {
    struct tok_ids ids;
    struct buf packed; /* used by prep/sft/encode.h instead of ids */
    struct buf length; /* uint32_t, tokens of each document; 0: empty */
    /* uint32_t, if there are documents of several sequences: tokens of each sequence, in order */
    struct buf sentence;
    struct buf run; /* struct shard_run, where the ids go */
    bool refused;   /* an id is outside the vocabulary */
};

/* A bad record, or one dropped for its length. */
struct bad {
    uint64_t line;      /* within the block, from 0 */
    size_t at, n;       /* where it is in `text`; unused for a long record */
    size_t why;         /* where its reason is in the item's `why`, NUL-terminated */
    enum err_kind kind; /* of that reason */
    bool filtered;      /* dropped for its length: no reason, no place */
};

struct item {
    enum item_kind kind;
    size_t input;            /* which of the inputs */
    const char *unit;        /* what its records are called: "line", "record", "row" */
    bool last;               /* the last block of this input */
    uint64_t end;            /* end of the block in that input, for source_seek */
    uint64_t consumed;       /* bytes of the inputs read so far, for progress */
    struct plain_file *file; /* a reference; NULL: not read from a plain file */
    uint64_t unread;         /* bytes before `end` that become the text */
    struct buf text;
    struct tok_ids ids;
    struct buf run;            /* uint64_t, ids of each document, or lengths of texts */
    struct long_record *large; /* owned */

    int code; /* failure of the whole item in fill or work */
    struct err err;

    uint64_t lines; /* in the block */
    uint64_t docs;
    uint64_t under_way;             /* bytes of a long record that were encoded, for progress */
    uint64_t specials, eods, added; /* prep/encode/encoder.h */
    struct column *column;          /* one per key */
    size_t ncolumns;
    struct buf bad; /* struct bad */
    struct buf why;
};

void item_init(struct item *it, size_t ncolumns);

/* Empties it. Keeps memory, but no more than an ordinary block needs. */
void item_reset(struct item *it);
void item_finish(struct item *it);

/* The worker's first step: loads the text, or sets it->code. */
void item_load(struct item *it);

/* Adds a bad record: its line, its bytes (in `text`, or NULL) and the reason. */
void item_add_bad(struct item *it, uint64_t line, const char *p, size_t n, const struct err *why);

void item_add_filtered(struct item *it, uint64_t line);

static inline size_t item_bads(const struct item *it)
{
    return it->bad.len / sizeof(struct bad);
}

static inline const struct bad *item_bad(const struct item *it, size_t i)
{
    return (const struct bad *)(const void *)it->bad.data + i;
}

#endif
