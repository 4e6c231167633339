/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_OPEN_H
#define TOK_PRETOK_REGEX_OPEN_H

/*
 * The matches of a pattern (tok/pretok/regex.h) in a text that comes in parts, as regex_next finds
 * them in the whole: they, and the text between them, are passed on as soon as no later text can
 * change them, a long one in parts. What is kept is what a match that is not decided yet has read
 * beyond the shortest that it may become: a few characters for most patterns, all of a text for one
 * such as `a*b`, 48 MiB at most.
 */

#include "base/core/err.h"
#include "tok/pretok/regex.h"

struct regex_open;

enum {
    REGEX_OPEN_KEPT =
        48 << 20 /* bytes that are kept at most, unless regex_open_limit says otherwise */
};

/*
 * A pattern with references, atomic or possessive groups, assertions about more than one character
 * or more than a few thousand instructions is left to PCRE2, which says of a match whether further
 * text may change it. NULL if such a pattern has ^ at lines, or depends on where a search begins
 * (\G, \K). `r` must outlive it.
 */
struct regex_open *regex_open_create(const struct regex *r);
void regex_open_destroy(struct regex_open *o); /* accepts NULL */

/* Whether the text is read once, by a program: in time that grows with it, whatever it is. */
bool regex_open_is_program(struct regex_open *o);

/* Keeps `most` bytes at most. */
void regex_open_limit(struct regex_open *o, size_t most);

/* Empty matches are passed on, too; an empty text has none. */
void regex_open_pass_empty(struct regex_open *o);

/* Takes text[0 .. n) of a match, or of the text between two; `ends`: these are its last bytes, of
 * which there may be none. A failure ends the text. */
typedef int regex_open_span(void *arg, const char *text, size_t n, bool match, bool ends,
                            struct err *e);

/*
 * The next n bytes of a text, whole characters of valid UTF-8. `last`: they are the last ones;
 * the next call begins another text. ERR_DATA: too many steps for the text so far, or more
 * to keep than is allowed.
 */
int regex_open_put(struct regex_open *o, const char *text, size_t n, bool last,
                   regex_open_span *put, void *arg, struct err *e);

/* Drops a text. */
void regex_open_reset(struct regex_open *o);

/* Bytes read, read again and moved since the last call. */
uint64_t regex_open_take_work(struct regex_open *o);

#endif
