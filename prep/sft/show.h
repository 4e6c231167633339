/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_SHOW_H
#define PREP_SFT_SHOW_H

/*
 * An example for people: its tokens, which of them are learnt, and which are special.
 *
 * Plain, a line for each token: '+' if it is learnt, else '-'; '*' if it is special; id; text in
 * JSON's spelling. In colour, running text: learnt tokens are green, others grey, special ones
 * reversed; a bar stands between two tokens, and characters that a terminal would obey are spelled
 * as JSON does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"

struct sft_shown {
    uint64_t number;
    const int32_t *id;          /* [n] */
    const unsigned char *learn; /* [n]: not 0 for ids that are learnt */
    size_t n;
};

/* Appends the example. */
int sft_show(const struct tokenizer *tok, const struct sft_shown *x, bool colour, struct buf *out,
             struct err *e);

#endif
