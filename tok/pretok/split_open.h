/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SPLIT_OPEN_H
#define TOK_PRETOK_SPLIT_OPEN_H

/* Splits of a text that comes in parts, by patterns one after the other: each splits what the one
 * before it makes (tok/pretok/regex_open.h). Without a pattern the text is one piece. */

#include "base/core/err.h"
#include "tok/pretok/regex.h"

struct split_open;

struct split_open *split_open_create(void);
void split_open_destroy(struct split_open *s); /* accepts NULL */

/* Another pattern, and whether its matches and the text between them are kept. False if it needs
 * the whole text. */
bool split_open_add(struct split_open *s, const struct regex *r, bool matches, bool between);

/* Takes text[0 .. n) of a piece; `ends`: the piece ends there. */
typedef int split_open_piece(void *arg, const char *text, size_t n, bool ends, struct err *e);

/* As regex_open_put. */
int split_open_put(struct split_open *s, const char *text, size_t n, bool last,
                   split_open_piece *put, void *arg, struct err *e);
void split_open_reset(struct split_open *s);
uint64_t split_open_take_work(struct split_open *s);

#endif
