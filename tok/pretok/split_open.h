/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SPLIT_OPEN_H
#define TOK_PRETOK_SPLIT_OPEN_H

/*
 * The steps of a pre-tokenizer over a text that comes in parts: each splits or rewrites the pieces
 * that the one before it makes. Pieces are passed on as soon as no later text can change them, a
 * long one in parts. Without a step the text is one piece.
 */

#include "base/core/err.h"
#include "tok/pretok/regex.h"

/* What becomes of matches. */
enum pre_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS
};

struct split_open;

struct split_open *split_open_create(void);
void split_open_destroy(struct split_open *s); /* accepts NULL */

/* Each of these adds a step; false if it needs the whole text, or there are too many. */

/* The matches of a pattern (tok/pretok/regex_open.h); `invert`: the text between them instead. */
bool split_open_add(struct split_open *s, const struct regex *r, bool invert, enum pre_behavior b);

/* Each pattern added keeps `most` bytes at most (regex_open_limit). */
void split_open_limit(struct split_open *s, size_t most);

/* Each character that passes the test is a match. `arg` must outlive it. */
typedef bool split_open_test(const void *arg, uint32_t c);
bool split_open_add_chars(struct split_open *s, split_open_test *test, const void *arg,
                          enum pre_behavior b);

/* Runs of characters of one kind. Those of kind 0 are dropped, or with `carried` belong to the run
 * before them, if there is one. */
typedef int split_open_kind(uint32_t c);
bool split_open_add_runs(struct split_open *s, split_open_kind *kind, bool carried);

/* Pieces of so many characters. */
bool split_open_add_lengths(struct split_open *s, size_t chars);

/* Spaces become the mark, a character of n bytes; with `always` a piece that does not begin with
 * one gets it. With `split` a piece begins at each mark. */
struct split_marks {
    const char *mark;
    size_t n;
    bool always, split;
};
bool split_open_add_marks(struct split_open *s, struct split_marks m);

/* A space before each piece that does not begin with one. */
bool split_open_add_space(struct split_open *s);

/* Each byte becomes what `put` writes to dst, up to 4 bytes. */
typedef size_t split_open_letter(char *dst, uint8_t byte);
bool split_open_add_letters(struct split_open *s, split_open_letter *put);

/* Takes text[0 .. n) of a piece; `ends`: the piece ends there. */
typedef int split_open_piece(void *arg, const char *text, size_t n, bool ends, struct err *e);

/* As regex_open_put. */
int split_open_put(struct split_open *s, const char *text, size_t n, bool last,
                   split_open_piece *put, void *arg, struct err *e);
void split_open_reset(struct split_open *s);
uint64_t split_open_take_work(struct split_open *s);

#endif
