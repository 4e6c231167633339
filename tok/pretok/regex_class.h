/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_CLASS_H
#define TOK_PRETOK_REGEX_CLASS_H

/*
 * Classes of characters in a pattern: [..] with ranges, POSIX names, nested classes and &&;
 * properties; \d \s \w \h. Shared by regex_spell.c and regex_class.c, which read pattern.p from
 * pattern.i on and append to pattern.out; ERR_DATA for what Oniguruma lacks, or PCRE2 cannot do.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/unicode/charset.h"
#include "tok/pretok/regex.h"

struct pattern {
    const char *where, *p;
    size_t n, i;
    struct buf *out;
    struct err *e;
    enum regex_dialect dialect;
    size_t classes; /* number of classes so far: each may take kilobytes */
    bool folds;     /* case is folded somewhere */
    bool folding;   /* ... and here, as Oniguruma folds it (regex_fold.h) */
    bool outermost; /* outside of groups */
};

#define PATTERN_FOLDING "case folding between one letter and several"
int pattern_refuse(const struct pattern *s, size_t at, const char *what);

/* After '['. */
int pattern_class(struct pattern *s);

/* After a backslash: whether a set is named there, and the set, after its letter `c`. */
bool pattern_is_set(const struct pattern *s);
int pattern_set(struct pattern *s, char c);

/* \b, or \B: where a word character meets another character. */
int pattern_edge(struct pattern *s, bool negated);

/* After a backslash: the code point of an escape, \n, \x41, \u00e9, \101, \cA and others; a letter
 * without a meaning is itself. */
int pattern_code(struct pattern *s, uint32_t *ret);

#endif
