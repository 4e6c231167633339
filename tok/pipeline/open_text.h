/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_OPEN_TEXT_H
#define TOK_PIPELINE_OPEN_TEXT_H

/*
 * A text of any length without a known split point, in memory that does not grow with it: for
 * byte-level tokenizers whose pre-tokenizer is a scanner, or splits by patterns, and whose
 * normalizer is none, or a normal form. Pre-tokens go to the model as far as they are sure
 * (tok/pretok/scan_open.h, split_open.h), and one that does not end goes through a stream of merges
 * (tok/bpe/stream.h).
 *
 * Also for tokenizers that split raw text into segments, up to the last split point between any
 * characters. What follows it is kept, but for WordPiece and WordLevel: of a word that is unknown,
 * whatever follows, and of text that normalizes to nothing, the middle is removed.
 */

#include "tok/bpe/stream.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/pretok/scan_open.h"
#include "tok/pretok/split_open.h"

enum {
    ENOUGH = 1 << 16,   /* bytes that are worth looking at */
    LONG = 1 << 12,     /* bytes of a pre-token that is encoded before its end; more than a token */
    STREAMED = 1 << 16, /* bytes of a segment that goes to the stream */
    BEHIND = 8          /* bytes on either side of a position that may decide whether it splits */
};

struct pipe_open {
    struct buf raw;  /* the beginning of a character */
    struct buf text; /* `head` bytes that stand for the beginning of a pre-token (scan_shorten),
                        then what is not encoded yet */
    size_t head;
    size_t enough; /* bytes of `text` from which it is looked at again */
    struct scan_open scan;
    struct buf segment; /* of the pre-token that is open: its last segment. Of one that streams,
                           bytes from `done` on are not in the stream */
    size_t done, least; /* least: bytes from which it is looked at again */
    bool streaming, unfit;
    struct bpe_stream *stream;
    struct buf context;
    /* of patterns of no family: words that are encoded together, the last of which may be open */
    struct split_open *split;
    struct buf words;
    size_t nwords;
    bool feeding;      /* the last one is in `segment` */
    struct buf normal; /* normalized text in which added tokens are searched, */
    size_t seen_normal, enough_normal;
    /* of a text that is split into segments: */
    size_t seen;        /* bytes of `text` that were searched for added tokens */
    bool begun;         /* the text between added tokens is encoded in part, */
    bool later;         /* or all of it, or a token */
    size_t enough_word; /* bytes of a word that is unknown, whatever follows */
};

/* A call of pipe_encode_open. */
struct run {
    const struct pipe *p;
    struct pipe_work *w;
    struct pipe_open *o;
    struct tok_ids *ids;
    struct tok_tally *tally;
    struct err *e;
};

bool pipe_can_open(const struct pipe *p);
struct pipe_open *pipe_open_create(void);
void pipe_open_destroy(struct pipe_open *o); /* accepts NULL */

/* As encode_part of struct tok_engine: takes all n bytes. A failure ends the text. */
int pipe_encode_open(const void *state, void *scratch, const char *text, size_t n, bool last,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* ---- what open_text.c and open_split.c share ------------------------------------------------- */

/* Text in which added tokens are searched, from at.from on; what is between them goes to `gap`. */
struct between {
    const struct added *added;
    const char *text;
    size_t n;
    struct added_at at;
    int (*gap)(const struct run *r, const char *text, size_t n, bool ends, size_t *ret_used);
};

/* *ret_used: the bytes not needed again. */
int open_between(const struct run *r, struct between b, bool last, size_t *ret_used);

/* More bytes of the pre-token that is open; `end`: its last ones. */
int open_feed(const struct run *r, const char *text, size_t n, bool end);

/* Whole pre-tokens, with readable bytes after them. */
int open_words(const struct run *r, const char *text, const uint32_t *start, size_t n);

void open_make_room(struct pipe_work *w, size_t n); /* of starts of pre-tokens */
void open_drop(struct buf *b, size_t n);            /* its first n bytes */
size_t open_enough(size_t kept);                    /* bytes from which a text is looked at again */

/* open_split.c: as pipe_encode_open, of the text in r->o. */
int open_split_take(const struct run *r, bool last);

#endif
