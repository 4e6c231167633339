/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_MASK_H
#define TOK_CHAT_MASK_H

/*
 * Which ids of a text are to be learnt, found by the ids of the strings that begin a question and
 * an answer: the rules of the collators that learn answers only (trl's
 * DataCollatorForCompletionOnlyLM, as llm-jp's programs use it).
 *
 * Without questions, everything up to and including the last answer's mark is masked. With them: R
 * are the ends of the answers' marks, H the beginnings of the questions'; if the first H is after
 * the first R, a 0 is put before them; the first pair masks [0, R), each later one [H, R); if there
 * are more H than R, everything from the last H on is masked. So text after an answer is learnt
 * with it, up to the next question. A text that lacks a mark is masked whole.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"

struct chat_marks {
    struct tok_ids answer, question; /* empty: none */
};

/*
 * Encodes the marks with `bare` (opened with no_template). Drops the first id of each, as that
 * collator does: SentencePiece puts the piece of a space in front. ERR_USAGE if none is left.
 * `question` may be NULL.
 */
int chat_marks_init(struct chat_marks *m, const struct tokenizer *bare, const char *answer,
                    const char *question, struct err *e);
void chat_marks_finish(struct chat_marks *m); /* also of a zeroed struct */

/*
 * mask[n]: 1 for the ids to be learnt. An id equal to `pad` (-1: none) is not learnt and matches no
 * mark. False: a mark is missing, and the mask is all 0.
 */
bool chat_mask(const struct chat_marks *m, const int32_t *id, size_t n, int64_t pad, char *mask);

#endif
