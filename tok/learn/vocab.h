/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_VOCAB_H
#define TOK_LEARN_VOCAB_H

/*
 * A growing vocabulary: strings by id, ids by string, and the merges that made them. Owns its
 * strings. One thread.
 */

#include "base/core/arena.h"
#include "tok/learn/merge.h"
#include "tok/text/string_map.h"

struct learn_piece {
    const char *text; /* UTF-8, NUL-terminated */
    size_t length;
};

struct learn_vocab {
    struct learn_piece *piece; /* by id */
    size_t n, cap;
    struct string_map map;
    struct arena arena;
    struct learn_pair *merge; /* in the order made; a pair may recur */
    size_t nmerges, merge_cap;
    size_t lost; /* characters that occur in the text and got no symbol (limit_alphabet) */
};

void learn_vocab_init(struct learn_vocab *v);
void learn_vocab_finish(struct learn_vocab *v);
int32_t learn_vocab_find(const struct learn_vocab *v, const char *text, size_t n); /* or -1 */
/* The id of a string, which may be new. */
uint32_t learn_vocab_add(struct learn_vocab *v, const char *text, size_t n);
void learn_vocab_merge(struct learn_vocab *v, struct learn_pair p);

/* Of merges of the same pair, keeps only the last, as a map from pairs to ranks would. */
void learn_vocab_settle(struct learn_vocab *v);

#endif
