/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_UNICODE_SPACE_RUN_H
#define TOK_UNICODE_SPACE_RUN_H

/*
 * White space that is withheld until the text after it is known. One character repeated takes a
 * few bytes, however often.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

/* Zeroed: empty. */
struct space_run {
    struct buf kept; /* characters, some with the number of their repetitions */
    uint32_t last;   /* the last character, */
    uint64_t again;  /* which is repeated so many times more */
};

void space_run_finish(struct space_run *s);
void space_run_reset(struct space_run *s);

/* Appends text[0 .. n), valid UTF-8 that is white space. */
void space_run_add(struct space_run *s, const char *text, size_t n);

/* The next part of it, of some thousand bytes, or *ret_n = 0: after the last one it is empty.
 * `at` is zeroed at first. Nothing may be appended in between. */
struct space_run_at {
    size_t at;
    uint64_t again;
    size_t before, length; /* the character that is repeated */
    char part[4096];
};

const char *space_run_take(struct space_run *s, struct space_run_at *at, size_t *ret_n);

#endif
