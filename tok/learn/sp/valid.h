/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_VALID_H
#define TOK_LEARN_SP_VALID_H

/*
 * Which strings may become pieces of a SentencePiece model, by the options of spm_train 0.2.2:
 * their length, where marks of white space may be, which scripts and digits may be combined. A
 * character matters only by its class.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tok/learn/sp/library_trainer.h"

enum {
    LEARN_NEVER,     /* in no piece: U+2585, white space other than the mark, NUL */
    LEARN_MARK,      /* U+2581 */
    LEARN_DIGIT,     /* not combined with other characters */
    LEARN_ANY,       /* combines with every script */
    LEARN_INHERITED, /* has the script of what precedes it */
    LEARN_SCRIPT     /* and above: a script */
};

struct learn_valid {
    bool split_scripts, split_numbers, split_digits, split_words;
    bool mark_behind, only_marks; /* a mark ends a word; pieces of marks only are allowed */
    uint32_t longest;             /* characters */
};

void learn_valid_init(struct learn_valid *v, const struct sp_train_options *o);
uint8_t learn_valid_class(const struct learn_valid *v, uint32_t c);

/* Whether characters of these classes are a piece. */
bool learn_valid(const struct learn_valid *v, const uint8_t *kind, uint32_t n);

/* Whether some piece may have these two adjacent; false is certain. */
bool learn_valid_joins(const struct learn_valid *v, uint8_t a, uint8_t b);

#endif
