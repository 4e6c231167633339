/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_VOCABULARY_ROWS_H
#define CONVERT_VOCABULARY_ROWS_H

/* --rows PATH.rows: a vocabulary that changes, and its tokenizer PATH. */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"
#include "train/ckpt/ckpt.h"
#include "convert/hf/hf_rows.h"

struct vocab_rows {
    struct hf_rows hf;
    struct tokenizer *tokenizer;
    char *file; /* its path */
};

/* ERR_USAGE for another name than PATH.rows or without PATH. The caller finishes *ret. */
int vocab_rows_open(struct vocab_rows *ret, const char *path, struct err *e);
void vocab_rows_finish(struct vocab_rows *r);

/* ERR_USAGE: the checkpoint's vocabulary is not the one that the map begins with, or is the new one
 * already. */
int vocab_rows_fit(const struct vocab_rows *r, const struct ckpt *c, struct err *e);

/* What a checkpoint says of the tokenizer. */
void vocab_rows_meta(const struct vocab_rows *r, struct ckpt_meta *m);

/* For the identity of a conversion. */
int vocab_rows_identity(const struct vocab_rows *r, struct buf *b, struct err *e);

#endif
