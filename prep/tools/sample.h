/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_SAMPLE_H
#define PREP_TOOLS_SAMPLE_H

/*
 * `prep inspect --samples`: samples of a run's order exactly as the trainer sees them, made by the
 * functions that it calls (dataset/sample/blend_set.h, dataset/sample/batch.h): tokens, labels,
 * loss mask, positions, the segments that do not attend to each other, and where each sample comes
 * from. Packed sets (dataset/sample/packed_feed.h) as well.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "dataset/sample/options.h"
#include "prep/tools/range.h"
#include "tok/tokenizer/tokenizer.h"

struct sample_request {
    const struct data_flags *data;
    const char *prefix; /* one dataset, instead of those; NULL: none */
    const char *split;  /* NULL: with a list per part */
    uint32_t seq_length, seed;
    uint64_t samples; /* of the part, the run's; SAMPLES_ALL: every sample once */
    enum part part;
    const struct number_range *sample; /* to show: places in the order */
    size_t n;                          /* ranges */
    bool eod_mask_loss, reset_position_ids, reset_attention_mask;
    const struct tokenizer *tok; /* decodes, bounds the ids, has the end of document; may be NULL */
    bool tokenizer_differs;      /* from the one of the manifest: a warning */
    bool json;
};

/* Appends the answer to `out`. Writes no index files. */
int sample_run(const struct sample_request *q, struct buf *out, struct err *e);

#endif
