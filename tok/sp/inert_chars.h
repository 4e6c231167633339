/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_INERT_CHARS_H
#define TOK_SP_INERT_CHARS_H

/*
 * Characters that SentencePiece's normalizer leaves alone (a space stays a space) as long as only
 * such characters follow: no user-defined piece begins with one, no rule matches one alone, and no
 * rule has one after its first character. A run of them is normalized byte by byte, and no rule
 * spans any position inside it.
 *
 * Immutable after sp_plain_init and shared by threads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tok/sp/normalize.h"

enum { SP_PLAIN_CHARS = 0x110000 };

struct sp_plain {
    uint64_t *bits; /* by code point */
    /* characters that no rule has after its first: no rule spans the position before one */
    uint64_t *apart;
    bool ascii[128];
};

void sp_plain_init(struct sp_plain *p, const struct sp_norm *norm);
void sp_plain_finish(struct sp_plain *p);

static inline bool sp_is_plain(const struct sp_plain *p, uint32_t c)
{
    return p->bits[c / 64] >> (c % 64) & 1;
}

static inline bool sp_is_apart(const struct sp_plain *p, uint32_t c)
{
    return p->apart[c / 64] >> (c % 64) & 1;
}

#endif
