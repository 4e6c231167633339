/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TOKENIZER_TOKENIZER_WORK_H
#define TOK_TOKENIZER_TOKENIZER_WORK_H

/* Shared by the files of this module alone. */

#include "tok/core/engine.h"
#include "tok/text/utf8_stream.h"
#include "tok/tokenizer/tokenizer.h"

/* A part of a text that is encoded by itself. */
struct tok_part {
    size_t end;           /* in the text */
    struct tok_ids found; /* its ids, or what is known of them without the sum */
    bool done;            /* `found` is complete */
};

struct tokenizer {
    struct tok_engine engine;
    struct tok_info info;
    bool strict; /* invalid UTF-8 is an error */
    char *path;
};

struct tok_work {
    const struct tokenizer *t;
    void *scratch;
    struct tok_tally tally;
    uint64_t steps;       /* bytes of texts in parts searched for split points, or moved */
    struct strict strict; /* of a text in parts */
    bool begun;           /* inside a text in parts */
    bool open;            /* without split points: its rest goes to encode_open */
    struct buf rest;      /* its bytes that are not encoded yet */
    uint64_t rest_at;     /* their offset in the text */

    /* of a text for several threads (parallel.c) */
    size_t failed;         /* the first part in which this thread failed */
    int code;              /* of that failure, or 0 */
    struct err err;        /* why */
    struct tok_part *part; /* of the first thread: all parts */
    size_t part_cap;
    struct tok_ids *spare; /* also: memory for `found` of parts, same capacity */
    size_t nspare;
    size_t enough;   /* bytes of `rest` from which a split point is searched */
    int32_t last_id; /* of the text so far, -1 before the first id */
    float sum;       /* after the text so far */
};

/* Passes the buffered text to encode_open, to which the rest of the text will go. */
int tok_encode_open(const struct tokenizer *t, struct tok_work *w, bool last, struct tok_ids *ids,
                    struct err *e);

enum { TOK_OPEN = 1 << 18 }; /* bytes without a split point that are buffered */

/* The last split point of text that begins at one; 0: none. */
size_t tok_last_cut(const struct tokenizer *t, const char *text, size_t n);

/* ERR_DATA if n bytes without a split point are more than the engine keeps; `at`: where they are in
 * the text. */
int tok_check_kept(const struct tokenizer *t, uint64_t at, size_t n, struct err *e);

/* ERR_DATA if the tokenizer is strict and the bytes are not UTF-8. */
int tok_check_part(const struct tokenizer *t, struct strict *s, const char *text, size_t n,
                   bool last, struct err *e);

#endif
