/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_OPEN_TEXT_H
#define TOK_PIPELINE_OPEN_TEXT_H

/*
 * A text of any length without a known split point, in memory that does not grow with it: for BPE
 * models of bytes or characters. Where the pre-tokenizer is a scanner and nothing is normalized,
 * pre-tokens go to the model as far as they are sure (tok/pretok/scan_open.h). Else the text is
 * normalized (open_normalize.c) and split by patterns (split_open.h), or marked by Metaspace, while
 * it is read (open_split.c). A pre-token that does not end goes through a stream of merges
 * (tok/bpe/stream.h).
 *
 * Tokenizers that split raw text into segments are encoded up to the last split point between any
 * characters. If there is none for SWITCHED bytes, the rest is normalized while it is read, where
 * that is possible, or else kept, but for WordPiece and WordLevel: of a word that is unknown,
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
    SWITCHED =
        1 << 18, /* bytes without a split point after which a text is not looked at by words */
    BEHIND = 8   /* bytes on either side of a position that may decide whether it splits */
};

struct pipe_open {
    struct buf raw;                          /* the beginning of a character */
    struct buf whole;                        /* text in which added tokens are not searched yet */
    struct added_open *found, *found_normal; /* NULL: there are none in it */
    struct buf text; /* `head` bytes that stand for the beginning of a pre-token (scan_shorten),
                        then what is not encoded yet */
    size_t head;
    size_t enough; /* bytes of `text` from which it is looked at again */
    struct scan_open scan;
    struct buf segment; /* of the pre-token that is open: its last segment. Of one that streams,
                           bytes from `done` on are not in the stream */
    size_t done, least; /* least: bytes from which it is looked at again */
    bool streaming, unfit;
    bool inside;  /* ids of the pre-token that is open were made: it is no token as a whole */
    bool unknown; /* of the pre-token that streams: an unknown symbol is pending */
    struct bpe_stream *stream;
    struct buf context;
    /* of patterns of no family: words that are encoded together, the last of which may be open */
    struct split_open *split;
    struct buf words;
    size_t nwords;
    bool feeding; /* the last one is in `segment` */
    struct norm_open *norm;
    struct buf marked;   /* text with Metaspace's marks */
    bool switched;       /* a text of segments has none for long, and the rest is encoded as this */
    bool gap, cut, zero; /* text between raw added tokens is begun; it was split off there; */
    bool piece;          /* the same for added tokens in normalized text */
    /* of a text that is split into segments: */
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

/* Sets p->streams. */
bool pipe_can_open(struct pipe *p);
/* Sets p->keeps and p->keeps_most, of a text that is not encoded while it is read. */
void pipe_find_keeper(struct pipe *p);
void pipe_open_destroy(struct pipe_open *o); /* accepts NULL */

/* As encode_part of struct tok_engine: takes all n bytes. A failure ends the text. */
int pipe_encode_open(const void *state, void *scratch, const char *text, size_t n, bool last,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* The same for all of a text, by small parts. */
int pipe_encode_by_parts(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                         struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* ---- what open_text.c and open_split.c share ------------------------------------------------- */

/* More of a text; `last`: it ends there. */
struct open_part {
    const char *text;
    size_t n;
    bool last;
};

/* Takes more text between added tokens; `ends`: all of it. */
typedef int open_gap_put(const struct run *r, const char *text, size_t n, bool ends);

/* Searches added tokens, if `found` is not NULL: what is between them goes to `put`. */
int open_find(const struct run *r, struct added_open *found, struct open_part t, open_gap_put *put);

/* More bytes of the pre-token that is open; `end`: its last ones. */
int open_feed(const struct run *r, const char *text, size_t n, bool end);

/* Whole pre-tokens, with readable bytes after them. */
int open_words(const struct run *r, const char *text, const uint32_t *start, size_t n);

void open_make_room(struct pipe_work *w, size_t n); /* of starts of pre-tokens */
void open_drop(struct buf *b, size_t n);            /* its first n bytes */
/* The last start of a character up to text + at, which is read. */
size_t whole_chars(const char *text, size_t at);

/* open_normalize.c: the normalizer over a text that comes in parts; NULL if a step needs it whole.
 */
struct norm_open *norm_open_create(const struct pipe_spec *s);
void norm_open_destroy(struct norm_open *o); /* accepts NULL */

/* Before each text; `cut` as EDGE_CUT. */
void norm_open_begin(struct norm_open *o, bool cut);

/* Takes normalized text of whole characters. */
typedef int norm_open_sink(void *arg, const char *text, size_t n, bool last);

int norm_open_put(struct norm_open *o, struct pipe_work *w, struct open_part t,
                  norm_open_sink *sink, void *arg, struct err *e);

/* open_split.c: text between added tokens that are found in raw text (an open_gap_put). */
int open_split_take(const struct run *r, const char *text, size_t n, bool ends);

#endif
