/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_TIKTOKEN_H
#define TOK_FORMATS_TIKTOKEN_H

/* Shared by tiktoken.c and tekken.c. */

#include "tok/pipeline/pipeline.h"

enum { TIKTOKEN_BYTES = 256 /* bytes of a token */, TIKTOKEN_RANKS = 1 << 24 };

/* Bytes of a token in base64; -1: invalid, or too long. */
int tiktoken_bytes(const char *p, size_t n, uint8_t ret[TIKTOKEN_BYTES + 3]);

/* The byte alphabet. */
struct letters {
    char letter[256][2];
    uint8_t n[256];
};

void letters_init(struct letters *l);

/* Appends k bytes as letters and a NUL to s->text, which must have space. */
const char *letters_put(struct pipe_spec *s, const struct letters *l, const uint8_t *byte, int k,
                        uint32_t *ret_n);

/* Adds what follows the vocabulary: merges, pattern. ERR_DATA: a single byte is not a token. */
int tiktoken_pipeline(struct pipe_spec *s, const struct tok_options *o, const char *pattern,
                      struct err *e);

#endif
