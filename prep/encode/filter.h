/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_FILTER_H
#define PREP_ENCODE_FILTER_H

/* Filters records by the length of their texts: any text out of bounds drops the whole record. */

#include <stdbool.h>
#include <stdint.h>

struct filter {
    uint64_t min_bytes, max_bytes;   /* of a text; maximum 0: unlimited */
    uint64_t min_tokens, max_tokens; /* not counting beginning and end of document */
};

/* Returned for a dropped record; not a code of base/core/err.h. */
enum { FILTERED = -1 };

static inline bool filter_bytes(const struct filter *f, uint64_t n)
{
    return n >= f->min_bytes && (!f->max_bytes || n <= f->max_bytes);
}

static inline bool filter_tokens(const struct filter *f, uint64_t n)
{
    return n >= f->min_tokens && (!f->max_tokens || n <= f->max_tokens);
}

#endif
