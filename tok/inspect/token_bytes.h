/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_TOKEN_BYTES_H
#define TOK_INSPECT_TOKEN_BYTES_H

/*
 * The bytes that each piece of a tokenizer stands for, however its vocabulary spells them: GPT-2's
 * byte letters, SentencePiece's mark for a space and <0x41> for a byte, ## inside a word. A special
 * token stands for its string, the unknown one for nothing.
 *
 * Immutable; the tokenizer is the caller's and outlives it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "tok/formats/table.h"
#include "tok/tokenizer/tokenizer.h"

struct token_bytes {
    enum format_spelling kind; /* never SPELLING_ANY */
    struct buf text;
    size_t *start; /* of each id, and the end of the last */
    int64_t size;
};

void token_bytes_init(struct token_bytes *s, const struct tokenizer *t);
void token_bytes_finish(struct token_bytes *s);

static inline const char *token_bytes_of(const struct token_bytes *s, int32_t id, size_t *ret_n)
{
    *ret_n = s->start[id + 1] - s->start[id];
    return s->text.data + s->start[id];
}

#endif
