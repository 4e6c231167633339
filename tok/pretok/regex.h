/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_H
#define TOK_PRETOK_REGEX_H

/*
 * A pattern of a tokenizer file: a literal string, one of the known families of tok/pretok/scan.h,
 * or any other regular expression, which PCRE2 runs if the build has it. Files are written for
 * Oniguruma, whose classes are those of Unicode 16.0 and whose syntax differs in places;
 * regex_spell translates them to PCRE2.
 *
 * A pattern is immutable and shared by threads; a struct regex_work belongs to one. Matching has
 * limits, so that a pattern that explodes is an error and not a hang, unless it has a program
 * (regex_prog.h), which then takes over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/pretok/scan.h"

struct regex;
struct regex_work;

/* The engine that a pattern was written for: Oniguruma by tokenizer.json, Rust's fancy-regex by
 * tiktoken. */
enum regex_dialect { REGEX_ONIGURUMA, REGEX_RUST };

struct regex *regex_literal(const char *text, size_t n);

/* ERR_DATA: an invalid pattern, or one that this build cannot run; `where` begins the message. */
int regex_compile(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                  struct regex **ret, struct err *e);

/* The same for regex_next, which does not use families. */
int regex_compile_search(const char *where, const char *pattern, size_t n, struct regex **ret,
                         struct err *e);
void regex_destroy(struct regex *r);

/*
 * Translates the pattern to PCRE2, with properties spelled out. ERR_DATA if it has no counterpart.
 */
int regex_spell(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                struct buf *out, struct err *e);

const char *regex_text(const struct regex *r);

/* The pattern, a literal or family too, in PCRE2's syntax; *ret_lines: ^ and $ match at lines. */
int regex_respell(const struct regex *r, struct buf *out, bool *ret_lines, struct err *e);

/* The string to search for, NULL if the pattern is not a literal. */
const char *regex_literal_text(const struct regex *r, size_t *ret_n);

/* The family that splits as the pattern does, SCAN_NONE if there is none. */
enum scan_family regex_family(const struct regex *r);

struct regex_work *regex_work_create(void);
void regex_work_destroy(struct regex_work *w);

/* Begins another text: the steps of all its searches are limited in proportion to what of it has
 * been searched. */
void regex_work_begin(struct regex_work *w);

/* State of a search, zeroed at the beginning. */
struct regex_at {
    size_t from, start, end; /* the match is text[start .. end) */
    bool matched;            /* there was one before */
};

/*
 * The next match in n bytes of valid UTF-8; *ret_found: there is one. A match may be empty, but
 * not at the end of the one before. Not for patterns of a family.
 */
int regex_next(const struct regex *r, struct regex_work *w, const char *text, size_t n,
               struct regex_at *at, bool *ret_found, struct err *e);

/*
 * The same in a text of which more will come (tok/pretok/regex_open.h): a match counts if no
 * further text can change it. NULL: a literal, a pattern of a family, or one that depends on where
 * a search begins. `r` need not outlive it; it belongs to one thread.
 */
struct regex_part;

struct regex_part *regex_part_create(const struct regex *r);
/* Whether regex_part_create surely makes one, as far as the spelling of the pattern shows. */
bool regex_has_parts(const struct regex *r);
void regex_part_destroy(struct regex_part *p); /* accepts NULL */

/* Bytes before the beginning of a search that may decide a match. */
size_t regex_part_behind(const struct regex_part *p);

/* Drops the steps of the text before. */
void regex_part_begin(struct regex_part *p);

/* n bytes of a text, after `before` others; `last`: there are no more. */
struct regex_text {
    const char *text;
    size_t n;
    uint64_t before;
    bool last;
};

/*
 * The first match in t.text[at->from .. t.n). Without one at->from becomes the first position where
 * one may begin that more text decides: t.n, if there is none.
 */
int regex_part_find(struct regex_part *p, struct regex_text t, struct regex_at *at, bool *ret_found,
                    struct err *e);

#endif
