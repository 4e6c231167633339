/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_TOKEN_BYTES_H
#define TOK_INSPECT_TOKEN_BYTES_H

/*
 * The bytes that each piece of a tokenizer stands for, whatever way its vocabulary spells them:
 * GPT-2's letters for bytes, SentencePiece's mark for a space and <0x41> for a byte, ## within a
 * word. A special token stands for its string, the unknown one for nothing.
 *
 * Immutable; the tokenizer is the caller's and outlives it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "tok/tokenizer/tokenizer.h"

enum surface_kind { SURFACE_LETTERS, SURFACE_MARKS, SURFACE_HASHES };

struct surface {
    enum surface_kind kind;
    struct buf text;
    size_t *start; /* of each id, and the end of the last */
    int64_t size;
};

void surface_init(struct surface *s, const struct tokenizer *t);
void surface_finish(struct surface *s);

static inline const char *surface_of(const struct surface *s, int32_t id, size_t *ret_n)
{
    *ret_n = s->start[id + 1] - s->start[id];
    return s->text.data + s->start[id];
}

#endif
