/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_ENCODER_INTERNAL_H
#define PREP_ENCODE_ENCODER_INTERNAL_H

/* Shared by encoder.c (blocks), record.c (one record into columns) and record_long.c. */

#include "base/format/jsonl.h"
#include "prep/encode/encoder.h"

struct encoder {
    const struct encode_plan *plan;
    struct jsonl *json;
    struct jsonl_value *value; /* of the current record, one per key */
    struct tok_work *work;
    struct punkt_work split;
    uint64_t added; /* known_eod ids around the documents of the block */

    /* of a long record */
    struct tok_ids ids;
    struct buf piece, packed;
    uint64_t eods;
    uint64_t tokens; /* of a text so far, without those around it */
};

/* ---- record.c ------------------------------------------------------------------------------- */

/* ERR_DATA unless column k can have a value of that kind. n: bytes of a text, or number of ids; an
 * empty array may be one of texts. */
int encoder_check(const struct encode_plan *p, size_t k, enum jsonl_kind kind, uint64_t n,
                  struct err *e);

/*
 * Appends c->value to the item's columns. ERR_DATA: the record is bad. Nothing of a bad or FILTERED
 * record is kept.
 */
int encoder_put_values(struct encoder *c, struct item *it, struct err *e);

/* The end of a column. */
struct encoder_place {
    size_t ids, sentence;
};

/* Makes the column's ids after `from` a document, with beginning and end of document. */
int encoder_put_document(struct encoder *c, struct column *col, struct encoder_place from,
                         struct err *e);

/* Puts the beginning of text before the document that begins at `from`. */
bool encoder_put_bos(struct encoder *c, struct tok_ids *ids, size_t from);
void encoder_put_eod(struct encoder *c, struct tok_ids *ids);

/* Appends the ids of a record; the first of them is number `place` of its array. */
int encoder_take_ids(const struct encode_plan *p, const int64_t *from, size_t n, uint64_t place,
                     struct tok_ids *ret, struct err *e);

/* Ids up to the end of a list, or n. */
size_t encoder_list_length(const int64_t *id, size_t n);

/* ---- record_long.c -------------------------------------------------------------------------- */

/* An ITEM_LONG. */
void encoder_run_long(struct encoder *c, struct item *it);

#endif
