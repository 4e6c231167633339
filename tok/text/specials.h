/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_SPECIALS_H
#define TOK_TEXT_SPECIALS_H

/*
 * The strings of special tokens, and where they occur in a text. Of several that begin at the same
 * position the one added first wins, as in Megatron-LM's wrapper. The strings are the caller's.
 * Immutable once filled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tok/text/byte_pair_search.h"
#include "tok/text/string_map.h"

struct special {
    const char *text;
    size_t length;
    int32_t id;
    bool always; /* the model matches it as a token in any case */
};

struct specials {
    struct special *item;
    size_t n, room;
    struct string_map place; /* in `item` */
    struct pair_find begin;  /* pairs that one of them begins with */
    size_t *length;          /* each length that occurs, once */
    size_t nlengths;
};

/* Ignores a string that was added before. */
void specials_add(struct specials *s, const char *text, int32_t id, bool always);
void specials_finish(struct specials *s);

/* The next one in text[from .. n), its position in *ret_at; NULL if there is none. */
const struct special *specials_find(const struct specials *s, const char *text, size_t n,
                                    size_t from, size_t *ret_at);

/* ERR_DATA: a special string at byte `at` of a text, under TOK_SPECIALS_ERROR. */
int special_refuse(const char *special, size_t at, struct err *e);

/*
 * Whether a string may span text + at, so that the text cannot be split there. `longest`: of them.
 */
bool specials_touch(const struct specials *s, size_t longest, const char *text, size_t at,
                    size_t n);

#endif
