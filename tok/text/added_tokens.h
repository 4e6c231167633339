/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_ADDED_TOKENS_H
#define TOK_TEXT_ADDED_TOKENS_H

/*
 * Finds added tokens in a text: the longest of the leftmost matches, then the token's own
 * conditions (not inside a word, white space at its ends included). Immutable; building and
 * searching take linear time for any strings and any text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct added;

struct added_token {
    const char *text; /* what is searched; kept by the caller while added_create runs */
    size_t length;
    int32_t id;
    bool special, single_word, lstrip, rstrip;
};

enum {
    ADDED_MAX = 4096,     /* bytes of one token */
    ADDED_BYTES = 1 << 24 /* bytes of all tokens */
};

/* ERR_DATA for an empty, overlong or duplicate string, or too many; `path` begins the message. */
int added_create(const char *path, const struct added_token *token, size_t n, struct added **ret,
                 struct err *e);
void added_destroy(struct added *a);

struct added_block;

/* State of a search, zeroed at the start but for what the caller knows. added_end frees what it
 * owns, which is nothing after added_next has returned false. */
struct added_at {
    size_t from; /* the search resumes here */
    size_t done; /* text before it belongs to an earlier match */
    size_t start, end;
    const struct added_token *token; /* the match; its text is not kept */
    bool open;                       /* the text goes on: `from` becomes the first position where
                                        a token may begin that more text would decide */
    bool word;                       /* a character before the text is part of a word */
    size_t walked;                   /* steps of the search so far */
    size_t space, space_end;         /* the run of white space seen last */
    struct added_block *block;
};

void added_end(struct added_at *at);

/*
 * The next token in text[0 .. n), valid UTF-8; false if there is none. With skip_special, special
 * tokens stay text: *ret_skipped counts them (their bytes are not searched again).
 */
bool added_next(const struct added *a, const char *text, size_t n, bool skip_special,
                struct added_at *at, uint64_t *ret_skipped);

/* Whether a token that begins before text + at could end there or later, whatever follows. */
bool added_spans(const struct added *a, const char *text, size_t at);

/* Whether text[0 .. n) may be split at `at`, below n, whatever follows: the tokens of both sides
 * are those of the whole. */
bool added_parts(const struct added *a, const char *text, size_t at, size_t n);

/* ---- a text that comes in parts --------------------------------------------------------------
 *
 * The same tokens. What is kept is the beginning of a token, and white space that a token with
 * `lstrip` may take (tok/unicode/space_run.h).
 */

struct added_open;

/* Keeps at most so many bytes of white space. */
struct added_open *added_open_create(const struct added *a, bool skip_special, size_t spaces);
void added_open_destroy(struct added_open *o); /* accepts NULL */
void added_open_reset(struct added_open *o);   /* drops a text */

/* Takes text between tokens; `ends`: it ends there, and `token` follows, NULL at the end of the
 * text. Parts may be empty. */
typedef int added_open_sink(void *arg, const char *text, size_t n, bool ends,
                            const struct added_token *token, struct err *e);

/* More of the text, whole characters of valid UTF-8; after the `last` of them the next text begins.
 * A failure ends the text; ERR_DATA: more than 12 MiB of mixed white space before a token with
 * `lstrip` would be kept. */
int added_open_put(struct added_open *o, const char *text, size_t n, bool last,
                   added_open_sink *sink, void *arg, struct err *e);

/* Since the last call: bytes looked at, and special tokens that stayed text. */
uint64_t added_open_take_work(struct added_open *o, uint64_t *ret_skipped);

#endif
