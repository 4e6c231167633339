/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_ENCODER_H
#define PREP_ENCODE_ENCODER_H

/*
 * A worker's part: a block of records becomes tokens. Records are parsed (base/format/jsonl), their
 * texts encoded (tok), ids checked, the end of document appended to documents that are not empty. A
 * record goes into all columns or none.
 *
 * The plan is shared and immutable; an encoder belongs to one thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/shard/shard.h"
#include "prep/encode/filter.h"
#include "prep/input/block.h"
#include "prep/sentence/sentences.h"
#include "prep/input/text_in.h"
#include "tok/tokenizer/tokenizer.h"

enum on_bad { BAD_FAIL, BAD_SKIP, BAD_QUARANTINE };

struct encode_plan {
    const struct tokenizer *tok; /* NULL: the records have ids */
    bool ids;                    /* the values are arrays of ids, not texts */
    /* texts are split into sentences, which are encoded separately */
    const struct sentences *split;
    struct text_form text;  /* of documents of plain text */
    const char *const *key; /* of JSONL; one column each */
    size_t nkeys;
    int64_t vocab_size;
    enum shard_dtype dtype;
    bool prepend_bos; /* puts `bos` before each non-empty document that does not begin with it */
    int32_t bos;
    int32_t eod;       /* appended to each non-empty document; -1: none */
    int32_t known_eod; /* what ends a document, appended or not; -1: none */
    struct filter filter;
    enum on_bad on_bad; /* BAD_FAIL: what follows a bad record is skipped */
    /* bytes of the long records under way that are encoded: item.under_way of all; or NULL */
    atomic_uint_least64_t *under_way;
};

struct encoder;

struct encoder *encoder_create(const struct encode_plan *p);
void encoder_destroy(struct encoder *c);

/*
 * Fills the item's outputs. Errors are in it->code or it->bad. it->specials: strings of special
 * tokens met in texts and encoded as text; it->added: known_eod ids added around documents;
 * it->eods: those inside the documents of a long record (of others they are counted when stored).
 */
void encoder_run(struct encoder *c, struct item *it);

#endif
