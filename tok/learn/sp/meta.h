/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_META_H
#define TOK_LEARN_SP_META_H

/*
 * The pieces of a SentencePiece model that are not learnt (unknown, control, user-defined, bytes)
 * with their ids, and the lists of symbols from options and files, as spm_train of 0.2.2 parses and
 * places them.
 */

#include "base/core/arena.h"
#include "base/core/err.h"
#include "tok/sp/model.h"
#include "tok/learn/sp/library_trainer.h"

struct learn_meta_piece {
    const char *text; /* NUL-terminated */
    size_t length;
    enum sp_piece_type type;
    int64_t id;
};

struct learn_texts {
    const char **text;
    size_t n;
};

/* Appends a comma-separated list; double quotes protect a comma, and are doubled inside quotes. */
void learn_texts_add(struct arena *a, struct learn_texts *l, const char *list);

struct learn_meta {
    struct arena arena;
    struct learn_meta_piece *piece; /* by ascending id */
    size_t n;
    struct learn_texts control, user; /* as given */
    const char *required_chars;       /* never NULL */
};

/* Fills `m`, which the caller finishes in any case. */
int learn_meta_init(struct learn_meta *m, const struct sp_train_options *o, struct err *e);
void learn_meta_finish(struct learn_meta *m);

#endif
