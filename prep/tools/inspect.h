/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_INSPECT_H
#define PREP_TOOLS_INSPECT_H

/*
 * `prep inspect`: what a token shard holds, as text for people or as one JSON object. The shard may
 * be anyone's; a manifest beside it is shown and, when checking, held against it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "prep/tools/range.h"
#include "tok/tokenizer/tokenizer.h"

struct inspect_request {
    const char *prefix; /* with or without .bin or .idx behind it */
    bool check;         /* every length, offset and id; the manifest's digests */
    bool json;
    const struct number_range *document; /* to be shown */
    size_t ndocuments;                   /* ranges */
    const struct tokenizer *tok;         /* decodes them, and bounds the ids; may be NULL */
    int64_t vocab_size; /* bounds the ids where no tokenizer is named; 0: the manifest's */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes checked; may be NULL */
    void *arg;
};

/*
 * Appends the answer to `out`. ERR_DATA for files that do not hold together, ERR_INTEGRITY for
 * bytes that are not the manifest's.
 */
int inspect_run(const struct inspect_request *q, struct buf *out, struct err *e);

#endif
