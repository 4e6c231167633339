/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_FORM_H
#define TOK_LEARN_SP_FORM_H

/*
 * Which pieces SentencePiece's trainers may make (valid.h), computed incrementally: a piece is
 * summarized by its form, and the form of two concatenated pieces follows from theirs, so that no
 * character is looked at again.
 */

#include "tok/learn/sp/valid.h"

struct learn_form {
    uint32_t length, marks; /* characters; those of them that are marks */
    bool first_mark, last_mark;
    bool alone;           /* has a character that combines with no other */
    bool never;           /* has one that may be in no piece */
    bool mixed;           /* has scripts that may not be combined */
    bool fixed;           /* a character has a script of its own */
    uint8_t begins, ends; /* the classes of the first and the last such character */
};

struct learn_form learn_form_char(uint8_t class);
struct learn_form learn_form_join(const struct learn_form *a, const struct learn_form *b);
bool learn_form_good(const struct learn_valid *v, const struct learn_form *f);

#endif
