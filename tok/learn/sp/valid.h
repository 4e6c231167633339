/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_VALID_H
#define TOK_LEARN_SP_VALID_H

/*
 * Which strings may become pieces of a SentencePiece model, by the options of spm_train 0.2.2: how
 * long, where a mark of white space may stand, which scripts and digits go together. What matters
 * of a character is its class.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tok/learn/sp/library_trainer.h"

enum {
    LEARN_NEVER,     /* in no piece: U+2585, white space that is no mark, NUL */
    LEARN_MARK,      /* U+2581 */
    LEARN_DIGIT,     /* in no piece with others */
    LEARN_ANY,       /* goes with every script */
    LEARN_INHERITED, /* has the script of what stands before it */
    LEARN_SCRIPT     /* and above: a script */
};

struct learn_valid {
    bool split_scripts, split_numbers, split_digits, split_words;
    bool mark_behind, only_marks; /* a mark ends a word; pieces of marks only */
    uint32_t longest;             /* characters */
};

void learn_valid_init(struct learn_valid *v, const struct sp_train_options *o);
uint8_t learn_valid_class(const struct learn_valid *v, uint32_t c);

/* Whether characters of these classes are a piece. */
bool learn_valid(const struct learn_valid *v, const uint8_t *kind, uint32_t n);

/* Whether some piece may have these two side by side; false is certain. */
bool learn_valid_joins(const struct learn_valid *v, uint8_t a, uint8_t b);

#endif
