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

/* State of a search, zeroed at the start. added_end frees what it owns, which is nothing after
 * added_next has returned false. */
struct added_at {
    size_t from; /* the search resumes here */
    size_t done; /* text before it belongs to an earlier match */
    size_t start, end;
    const struct added_token *token; /* the match; its text is not kept */
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

/* The last position in text[from + 1 .. n) that begins a character and before which no token is
 * under way; `from` if there is none. Adds the bytes it looked at to *steps. Not for tokens with
 * conditions of their own. */
size_t added_border(const struct added *a, const char *text, size_t from, size_t n,
                    uint64_t *steps);

#endif
