/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_REGEX_PROG_H
#define TOK_PRETOK_REGEX_PROG_H

/*
 * A pattern as a list of instructions for a simulation that reads the text once, a character at a
 * time, and keeps all ways to match in order of preference (Pike's algorithm). It exists for
 * patterns without references, atomic groups, possessive groups and assertions about more than one
 * character; which characters an item of the pattern matches is left to PCRE2. Immutable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

enum { PROG_ATOMS = 63, PROG_STEPS = 4096 };

enum prog_kind {
    PROG_CHAR,  /* an atom matches the next character: go to x after it */
    PROG_SPLIT, /* x, else y */
    PROG_TEST,  /* `test` holds: go to x */
    PROG_MATCH
};

enum prog_test {
    TEST_AHEAD,  /* an atom matches the next character */
    TEST_BEHIND, /* ... the character before */
    TEST_NOT_AHEAD,
    TEST_NOT_BEHIND,
    TEST_TEXT_BEGINS,
    TEST_TEXT_ENDS,
    TEST_LINE_BEGINS,
    TEST_LINE_ENDS
};

struct prog_step {
    enum prog_kind kind;
    enum prog_test test;
    int atom, x, y;
};

struct regex_prog {
    struct prog_step *step;
    int nsteps, entry;
    int natoms;
    void *atom[PROG_ATOMS]; /* pcre2_code, each of which matches one character */
};

/* `spelled`: what regex_spell makes of a pattern; `lines`: ^ and $ match at lines. NULL: the
 * pattern has no such program. */
struct regex_prog *regex_prog_create(const char *spelled, size_t n, bool lines);
void regex_prog_destroy(struct regex_prog *g); /* accepts NULL */

#endif
