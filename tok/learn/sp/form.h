/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_FORM_H
#define TOK_LEARN_SP_FORM_H

/*
 * Which pieces SentencePiece's trainers may make, as valid.h says, piece by piece: what
 * matters of one is its form, and the form of two pieces joined follows from theirs, so that no
 * character is looked at again.
 */

#include "tok/learn/sp/valid.h"

struct learn_form {
    uint32_t length, marks; /* characters; those of them that are marks */
    bool first_mark, last_mark;
    bool alone;           /* has a character that goes with no other */
    bool never;           /* has one that is in no piece */
    bool mixed;           /* scripts that may not stand together */
    bool fixed;           /* a character has a script of its own */
    uint8_t begins, ends; /* the classes of the first and the last such */
};

struct learn_form learn_form_char(uint8_t class);
struct learn_form learn_form_join(const struct learn_form *a, const struct learn_form *b);
bool learn_form_good(const struct learn_valid *v, const struct learn_form *f);

#endif
