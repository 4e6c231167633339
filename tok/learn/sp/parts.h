/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_PARTS_H
#define TOK_LEARN_SP_PARTS_H

/*
 * Words split where no piece can span the position (learn_valid_joins), with equal parts counted
 * once: the input of a merge engine. Parts of one character are left out. Parts are in order of
 * first occurrence, so that a trainer that depends on the order of words is not affected; the same
 * for any number of threads.
 */

#include "base/thread/pool.h"
#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/valid.h"

struct learn_part {
    uint64_t at; /* its first symbol in `ch` */
    uint64_t count;
    uint32_t n; /* symbols */
};

struct learn_parts {
    struct learn_part *part;
    size_t n;
    uint64_t symbols; /* of all */
};

/* A symbol that is in no part. */
#define LEARN_NO_SYMBOL 0xffffffffu

/*
 * Code points in `s` become symbols: `symbol` by code point, `class` (of valid.h) by symbol. The
 * caller frees `part`; positions in it are those of s->ch.
 */
void learn_parts_cut(struct pool *pool, const struct learn_valid *v, const uint32_t *symbol,
                     const uint8_t *class, struct learn_sentences *s, struct learn_parts *ret);

#endif
