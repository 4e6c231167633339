/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_FOLD_H
#define TOK_PRETOK_REGEX_FOLD_H

/*
 * Full case folding: where case is ignored, Oniguruma lets one letter match several, U+00DF ss, and
 * several match one. PCRE2 does not; so patterns in which that may happen are found and refused.
 * The foldings are those of status F in Unicode's CaseFolding.txt, and U+0130.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/unicode/charset.h"

enum { FOLD_MOST = 3 }; /* letters that one matches */

/* The last letters of a string in a pattern, and where each begins. */
struct fold_run {
    uint32_t c[FOLD_MOST];
    size_t at[FOLD_MOST];
    size_t n;
};

void fold_add(struct fold_run *r, uint32_t c, size_t at);

/* Does a letter match several? */
bool fold_is_several(uint32_t c);

/* Do the last letters match one? *ret_at: the first of them. */
bool fold_ends(const struct fold_run *r, size_t *ret_at);

/*
 * What follows a class: nothing that may fail, so that what it matched first is kept; or it may
 * match any number of times; or neither.
 */
enum fold_after { FOLD_ONCE, FOLD_REPEATED, FOLD_KEPT };

/* Does a class that is not negated match several letters of one of its own, and is that another
 * match than those of its letters one by one? */
bool fold_class(const struct charset *set, enum fold_after after);

#endif
