/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_STREAM_FRAMED_STREAM_H
#define TOK_STREAM_FRAMED_STREAM_H

/*
 * The framed document stream between `tok encode --format docs` and `prep build --pretokenized`:
 * a header (vocabulary size, digest, id width, eod id, type and file of the tokenizer), then one
 * record for each document: its ids, without any end-of-document token. Bytes: tok/FORMAT.md.
 * Documents may be empty. The end is a record of its own that counts documents and ids, so that a
 * truncated stream is detected.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/io/zin.h"

enum { DOCSTREAM_TYPE = 64, DOCSTREAM_PATH = 4096 }; /* NUL included */

struct docstream_header {
    uint64_t vocab_size;
    int64_t eod;               /* -1: none */
    uint32_t width;            /* bytes of an id: 2 or 4 */
    char digest[SHA_TEXT];     /* of the tokenizer */
    char type[DOCSTREAM_TYPE]; /* "HuggingFaceTokenizer"; "" if unknown */
    char path[DOCSTREAM_PATH]; /* the tokenizer's file, as given; "" if there is none */
};

/* Writer: appends bytes to `out`; the caller passes them on. */
void docstream_put_header(struct buf *out, const struct docstream_header *h);
/* A document is its number of ids, then the ids in parts. */
void docstream_put_count(struct buf *out, uint64_t n);
void docstream_put_ids(struct buf *out, const struct docstream_header *h, const int32_t *id,
                       size_t n);
void docstream_put_end(struct buf *out, uint64_t docs, uint64_t ids);

/* Reader over a stream that may itself be compressed; the reader does not own `in`. */
struct docstream {
    struct zin *in;
    struct docstream_header header;
    struct buf buf;     /* private */
    bool ended;         /* private */
    uint64_t offset;    /* of the next byte, for messages */
    uint64_t docs, ids; /* so far */
    uint64_t left;      /* ids of the current document that docstream_part has not returned yet */
};

int docstream_open(struct docstream *d, struct zin *in, struct err *e);

/* *ret_id is valid until the next call; *ret_more false at the end. Ids are checked against
 * vocab_size. */
int docstream_next(struct docstream *d, const int32_t **ret_id, size_t *ret_n, bool *ret_more,
                   struct err *e);

/*
 * The same in parts, so that a long document need not be in memory whole: it has *ret_n ids, which
 * docstream_part then returns, at most DOCSTREAM_PART per call; all of them must be taken.
 */
enum { DOCSTREAM_PART = 1 << 18 };
int docstream_begin(struct docstream *d, uint64_t *ret_n, bool *ret_more, struct err *e);
int docstream_part(struct docstream *d, const int32_t **ret_id, size_t *ret_n, struct err *e);

void docstream_close(struct docstream *d);

#endif
