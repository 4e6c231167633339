/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_SPECIAL_H
#define TOK_CHAT_SPECIAL_H

/* Special tokens by their strings: those that a published template may write. */

#include <stddef.h>
#include <stdint.h>

struct chat_special {
    const char *name; /* in a template of form.c, not terminated; else the string */
    size_t n;
    int32_t id; /* -1: inserts nothing */
    const char *piece;
};

struct special_set {
    struct chat_special *item; /* by the first byte; of one, the longest first */
    size_t n, cap;
    size_t first[257]; /* where those of a byte begin */
};

/* A string is added once; special_set_sort comes after the last. */
void special_set_add(struct special_set *s, const char *piece, size_t n, int32_t id);
void special_set_sort(struct special_set *s);
void special_set_finish(struct special_set *s);

/* The longest token that p[0 .. n) begins with; NULL: none. */
const struct chat_special *special_at(const struct special_set *s, const char *p, size_t n);

#endif
