/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_LINES_H
#define PREP_INPUT_LINES_H

/*
 * Splits a byte stream into blocks of whole lines, of about LINES_BLOCK bytes each. A line longer
 * than LINES_LONG is returned in pieces instead, so that memory is bounded for any input. A byte
 * order mark at the start is dropped; the last line may lack its newline. Any other separator may
 * replace the newline; separators are found from the left, without overlap. A JSON array is turned
 * into lines while it is read (jsonarray.h).
 *
 * One thread at a time; the zin belongs to the caller.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/io/zin.h"
#include "prep/input/jsonarray.h"

enum {
    LINES_BLOCK = 128 << 10, /* bytes of a block, more if one line is longer */
    LINES_LONG = 4 << 20,    /* a longer line is returned in pieces */
    LINES_SEPARATOR = 256
};

/* Of these sizes, that of texts which may become `growth` times as long (0: 1). */
static inline size_t lines_share(size_t bytes, size_t growth)
{
    return growth > 1 ? bytes / growth : bytes;
}

struct lines {
    struct zin *in;
    size_t growth;        /* for lines_share; set after lines_init... */
    bool plain, is_array; /* text of any kind; a JSON array */
    const char *sep;      /* what ends a line: nsep bytes */
    size_t nsep;
    struct jsonarray array;
    bool met;         /* the last long line had its separator */
    struct buf carry; /* bytes read after the last block */
    uint64_t taken;   /* bytes read in all */
    bool started, ended;
};

enum lines_kind {
    LINES_END,
    LINES_WHOLE, /* whole lines, each with its newline, except perhaps the last of the stream */
    LINES_PIECE  /* the beginning of a long line: lines_more gives the rest */
};

void lines_init(struct lines *l, struct zin *in); /* of JSONL */
void lines_init_array(struct lines *l, struct zin *in);

/* Of text; `sep`, of at most LINES_SEPARATOR bytes, must outlive `l`. */
void lines_init_text(struct lines *l, struct zin *in, const char *sep, size_t nsep);
void lines_finish(struct lines *l);

/*
 * Replaces the contents of `b` by the next block, with `padding` readable bytes after it.
 * *ret_last: the stream is known to end after this block; white space at the end of a JSON stream
 * always comes with such a block.
 */
int lines_next(struct lines *l, struct buf *b, size_t padding, enum lines_kind *ret_kind,
               bool *ret_last, struct err *e);

/* After LINES_PIECE: the next piece of the line, without its newline; *ret_end is true for the last
 * one (which may be empty). */
int lines_more(struct lines *l, struct buf *b, bool *ret_end, struct err *e);

/* Bytes of the stream up to the end of the last block, or of the last long line. */
uint64_t lines_at(const struct lines *l);

/* Before the first block: skips `n` bytes, a result of lines_at. ERR_DATA if there are fewer. */
int lines_skip(struct lines *l, uint64_t n, struct err *e);

/*
 * In an uncompressed file that was partly read: the long line that begins at byte `at`. Its first
 * piece, as after LINES_PIECE. ERR_IO if it is not long.
 */
int lines_long(struct lines *l, uint64_t at, struct buf *b, struct err *e);

/* The separator of nsep bytes that ends the line at p, or `end`. */
const char *sep_find(const char *p, const char *end, const char *sep, size_t nsep);

/* The newline that ends the line at p, or `end`. */
const char *line_end(const char *p, const char *end);

#endif
