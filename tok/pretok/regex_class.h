/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_CLASS_H
#define TOK_PRETOK_REGEX_CLASS_H

/*
 * Classes of characters in a pattern: [..] with ranges, POSIX names, classes within classes and &&;
 * properties; \d \s \w \h. What regex_spell.c and regex_class.c share. Both read pattern.p from
 * pattern.i on and append to pattern.out; ERR_DATA for what Oniguruma has not, or PCRE2 cannot say.
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
    size_t classes; /* how many there were: each may take kilobytes */
    bool folds;     /* case is ignored somewhere */
};

int pattern_refuse(const struct pattern *s, size_t at, const char *what);

/* Behind '['. */
int pattern_class(struct pattern *s);

/* Behind a backslash: whether a set is named, and it, its letter `c` read. */
bool pattern_is_set(const struct pattern *s);
int pattern_set(struct pattern *s, char c);

/* \b, or \B: where a word character meets another. */
int pattern_edge(struct pattern *s, bool negated);

/* The code point that an escape stands for, behind the backslash: \n, \x41, \u00e9, \101, \cA and
 * others; a letter without a meaning is itself. */
int pattern_code(struct pattern *s, uint32_t *ret);

#endif
