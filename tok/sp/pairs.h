/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_PAIRS_H
#define TOK_SP_PAIRS_H

/* The pairs of merge.c, and what both files need. */

#include "tok/sp/merge.h"

/* Fills s->bpe, s->plain, s->alike and s->halves; needs the symbols. */
void sp_pairs_make(struct sp_merge *s);

/* UINT32_MAX: a character that is in no piece. */
static inline uint32_t sp_symbol_of(const struct sp_merge *s, const char *p, size_t n)
{
    if (n == 1 && (unsigned char)*p < 128)
        return s->ascii[(unsigned char)*p];
    int32_t id = string_map_find(&s->chars, p, n);
    return id < 0 ? UINT32_MAX : (uint32_t)id;
}

/* May it take part in a merge, and be the result of one? */
static inline bool sp_is_joined(const struct sp_piece *p)
{
    return p->type == SP_NORMAL || p->type == SP_UNUSED;
}

#endif
