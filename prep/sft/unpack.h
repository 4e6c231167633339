/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_UNPACK_H
#define PREP_SFT_UNPACK_H

/*
 * `prep unpack`: the sequences of a packed set as lines of JSON, with the keys of NeMo's packed
 * files:
 *
 *     {"input_ids":[...],"loss_mask":[0,1,...],"seq_start_id":[0,...]}
 *
 * seq_start_id is where each example begins. With a tokenizer "text" has the text of each. An entry
 * of loss_mask is for the token at that place, or as in NeMo for the next one, which is predicted
 * there; the last entry of an example is then 0.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "dataset/packed/packed.h"
#include "tok/tokenizer/tokenizer.h"

struct unpack {
    const struct packed *set;
    const struct tokenizer *tok; /* may be NULL */
    bool next;                   /* the loss mask is NeMo's */
    struct tok_work *work;
    struct packed_sequence seq;
};

void unpack_init(struct unpack *u, const struct packed *set, const struct tokenizer *tok,
                 bool next);
void unpack_finish(struct unpack *u);

/* Appends the line of sequence k. */
int unpack_line(struct unpack *u, uint64_t k, struct buf *out, struct err *e);

#endif
