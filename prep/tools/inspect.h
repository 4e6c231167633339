/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_INSPECT_H
#define PREP_TOOLS_INSPECT_H

/*
 * `prep inspect`: the contents of a token shard, as text for people or as one JSON object. The
 * shard may come from any tool; its manifest, if any, is shown, and verified by a check.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "prep/tools/range.h"
#include "tok/tokenizer/tokenizer.h"

struct inspect_request {
    const char *prefix; /* with or without .bin or .idx */
    bool check;         /* every length, offset and id; the manifest's digests */
    bool json;
    const struct number_range *document; /* to show */
    size_t ndocuments;                   /* ranges */
    const struct tokenizer *tok;         /* decodes them, and bounds the ids; may be NULL */
    bool tokenizer_differs;              /* from the one of the manifest: a warning */
    int64_t vocab_size;                  /* bounds the ids without a tokenizer; 0: the manifest's */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes checked; may be NULL */
    void *arg;
};

/*
 * Appends the answer to `out`. ERR_DATA for inconsistent files, ERR_INTEGRITY for bytes that differ
 * from the manifest's.
 */
int inspect_run(const struct inspect_request *q, struct buf *out, struct err *e);

#endif
