/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_PIECE_H
#define TESTS_TOK_PIECE_H

#include "tests/t.h"
#include "tok/tokenizer/tokenizer.h"

/* The piece of an id is a literal, which may contain NUL. */
#define T_PIECE(t, id, literal)                                                                    \
    do {                                                                                           \
        size_t length_;                                                                            \
        const char *piece_ = tok_piece(t, id, &length_);                                           \
        T_EQ(length_, sizeof(literal) - 1);                                                        \
        T_MEM(piece_, literal, sizeof(literal));                                                   \
    } while (0)

#endif
