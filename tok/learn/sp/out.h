/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_OUT_H
#define TOK_LEARN_SP_OUT_H

/*
 * Learnt pieces as a SentencePiece .model: the fields that the library's trainer writes for the
 * same options, without `input` and `model_prefix`. sp_train_write writes the files.
 */

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/learn/sp/sp.h"

struct learn_scored {
    const char *text;
    size_t length;
    float score;
};

/* In the order of their ids, without special pieces. */
struct learn_scores {
    struct arena arena; /* of the texts, if the caller uses it */
    struct learn_scored *piece;
    size_t n, cap;
};

void learn_scores_add(struct learn_scores *s, const char *text, size_t n, float score);
void learn_scores_finish(struct learn_scores *s);

/* ERR_USAGE if --vocab_size is too small for the characters and symbols that must be in the
 * vocabulary; else *ret_room pieces may be learnt besides them. */
int learn_sp_room(const struct sp_train_options *o, const struct learn_meta *m,
                  const struct learn_sp *s, uint64_t *ret_room, struct err *e);

/* ERR_USAGE if there are fewer pieces than --vocab_size under a hard limit, or one occurs twice. */
int learn_sp_model(const struct sp_train_options *o, const struct learn_meta *m,
                   const struct learn_rules *r, const char *input_format,
                   const struct learn_scores *s, struct buf *model, struct err *e);

#endif
