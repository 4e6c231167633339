/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_ENGINE_H
#define TOK_ENGINE_H

/*
 * What an engine fills in to become a tokenizer. Only files of this room include it. `state` is the
 * engine's immutable vocabulary, `scratch` what one thread needs while encoding. tok.c does
 * what all engines share: digest, end of document, special strings, counting.
 */

#include "tok/tok.h"

struct tok_engine {
    void *state;
    void *(*scratch_create)(const void *state);             /* may be NULL */
    void (*scratch_destroy)(void *scratch);
    int (*encode)(const void *state, void *scratch, const char *text, size_t n,
                  struct tok_ids *ids, struct err *e);
    int (*decode)(const void *state, void *scratch, const int32_t *id, size_t n, struct buf *text,
                  struct err *e);
    const char *(*piece)(const void *state, int64_t id);    /* id is inside the vocabulary */
    int64_t (*find)(const void *state, const char *piece);  /* -1: none */
    void (*destroy)(void *state);
};

#endif
