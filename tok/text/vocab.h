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
    struct string_ref *piece; /* by id, each NUL-terminated; p is NULL where there is none */
    size_t npieces, count;    /* the highest id + 1; number of pieces */
    struct string_map words;  /* pieces to ids */
};

void vocab_finish(struct tok_vocab *v);

/* Allocates for npieces ids and as many words. ERR_DATA above the limit. */
int vocab_room(struct tok_vocab *v, size_t npieces, size_t nwords, struct err *e);

/* ERR_DATA, naming the piece, if its id is taken. text[n] is NUL. */
int vocab_add(struct tok_vocab *v, const char *text, size_t n, int64_t id, struct err *e);

/* Call after the last piece; nothing is found before. ERR_DATA, naming it, for a duplicate. */
int vocab_index(struct tok_vocab *v, struct err *e);

/* The id, or -1. */
int32_t vocab_find(const struct tok_vocab *v, const char *text, size_t n);

#endif
