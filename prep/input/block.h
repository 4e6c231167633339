/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_BLOCK_H
#define PREP_INPUT_BLOCK_H

/*
 * What travels down the line: a block of records on its way from bytes to tokens. Fill
 * makes the upper part, or says where in a file the text lies, which is then read by who works on
 * it; work makes the lower part, follow says where its ids go, store has them there, drain empties
 * it; then it starts anew with its memory kept. One thread at a time has it in hand.
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
    ITEM_TEXT,  /* documents of plain text in `text`, with what ends them */
    ITEM_ROWS,  /* texts in `text`, the lengths of each record's in `run` (PARQUET_NULL: none) */
    ITEM_LONG,  /* one long line in `large` */
    ITEM_IDS    /* documents of the framed stream in `ids`, one run for each of `run` */
};

/* The documents of one key: their tokens one behind the other, end of document included. */
struct column {
    struct tok_ids ids;
    struct buf packed; /* prep/sft/encode.h has its own instead */
    struct buf length; /* uint32_t, tokens of each document; 0: an empty one */
    /* uint32_t, if there are documents of several sequences: tokens of each, as many as add up to
     * its document's */
    struct buf sentence;
    struct buf run; /* struct shard_run, where the ids go */
    bool refused;   /* there is an id outside the vocabulary */
};

/* A record that is not good, or left out for its length. */
struct bad {
    uint64_t line; /* within the block, from 0 */
    size_t at, n;  /* where it lies in `text`; of no meaning for a long one */
    size_t why;    /* where its reason lies in the item's `why`, a NUL behind it */
    bool filtered; /* there is no reason, nor a place */
};

struct item {
    enum item_kind kind;
    size_t input;            /* which of the inputs */
    const char *unit;        /* what a record of it is called: "line", "record", "row" */
    bool last;               /* nothing follows in this input */
    uint64_t end;            /* where the block ends in that input: what source_seek takes */
    uint64_t consumed;       /* bytes of the inputs read so far, for progress */
    struct plain_file *file; /* held; NULL: the bytes do not lie in a file as they are */
    uint64_t unread;         /* so many bytes before `end` of it become the text */
    struct buf text;
    struct tok_ids ids;
    struct buf run;            /* uint64_t, ids of each document, or lengths of texts */
    struct long_record *large; /* owned */

    int code; /* what went wrong with the whole item, when it was filled or worked on */
    struct err err;

    uint64_t lines; /* in the block */
    uint64_t docs;
    uint64_t specials, eods, added; /* prep/encode/encoder.h */
    struct column *column;          /* one for each key */
    size_t ncolumns;
    struct buf bad; /* struct bad */
    struct buf why;
};

void item_init(struct item *it, size_t ncolumns);

/* Empty again. Memory is kept, but not more than an ordinary block needs. */
void item_reset(struct item *it);
void item_finish(struct item *it);

/* The worker's first step: all of the text is there, or why not is in it->code. */
void item_load(struct item *it);

/* A bad record: the line it stands in, its bytes (of `text`, or NULL) and the reason. */
void item_add_bad(struct item *it, uint64_t line, const char *p, size_t n, const char *why);

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
