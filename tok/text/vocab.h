/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_VOCAB_H
#define TOK_TEXT_VOCAB_H

/* A vocabulary while a tokenizer is read: pieces by id, and the map from pieces to ids. The strings
 * are the caller's and outlive it. */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tok/text/string_map.h"

struct tok_vocab {
    const char *path;         /* for messages */
    struct string_ref *piece; /* by id, NUL after each; p is NULL where there is none */
    size_t npieces, count;    /* the highest id + 1; pieces that there are */
    struct string_map words;  /* pieces to ids */
};

void vocab_finish(struct tok_vocab *v);

/* Room for npieces ids and as many words. ERR_DATA when that is more than any vocabulary has. */
int vocab_room(struct tok_vocab *v, size_t npieces, size_t nwords, struct err *e);

/* ERR_DATA, naming the piece, when its id is there already. text[n] is NUL. */
int vocab_add(struct tok_vocab *v, const char *text, size_t n, int64_t id, struct err *e);

/* After the last piece; until then none is found. ERR_DATA, naming it, when one is there twice. */
int vocab_index(struct tok_vocab *v, struct err *e);

/* The id, -1 if there is none. */
int32_t vocab_find(const struct tok_vocab *v, const char *text, size_t n);

#endif
