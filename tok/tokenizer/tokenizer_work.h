/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TOKENIZER_TOKENIZER_WORK_H
#define TOK_TOKENIZER_TOKENIZER_WORK_H

/* What tokenizer.c and parallel.c share. No other file includes it. */

#include "tok/core/engine.h"
#include "tok/text/utf8_stream.h"
#include "tok/tokenizer/tokenizer.h"

/* A part of a text that is encoded by itself. */
struct tok_part {
    size_t end;           /* in the text */
    struct tok_ids found; /* its ids, or what can be told before the sum is known; */
    bool done;            /* all of it is there */
};

struct tokenizer {
    struct tok_engine engine;
    struct tok_info info;
    bool strict; /* bytes that are no UTF-8 are an error */
    char *path;
};

struct tok_work {
    const struct tokenizer *t;
    void *scratch;
    struct tok_tally tally;
    struct strict strict; /* of a text in parts */
    bool begun;           /* a text in parts is under way */
    struct buf rest;      /* of it: not yet encoded */
    uint64_t rest_at;     /* where it begins in the text */

    /* of a text for several threads (parallel.c) */
    size_t failed;         /* the first part that this thread failed with */
    int code;              /* not 0: it did */
    struct err err;        /* why */
    struct tok_part *part; /* of the first thread: all parts */
    size_t part_cap;
    struct tok_ids *spare; /* of it, too: memory for what is found of parts; as much room */
    size_t nspare;
    size_t enough;   /* bytes that are worth a look for a cut */
    int32_t last_id; /* of the text so far, -1 before the first */
    float sum;       /* of the text so far */
};

/* ERR_DATA if the tokenizer is strict and the bytes are no UTF-8. */
int tok_check_part(const struct tokenizer *t, struct strict *s, const char *text, size_t n,
                   bool last, struct err *e);

#endif
