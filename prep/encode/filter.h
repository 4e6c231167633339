/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_FILTER_H
#define PREP_ENCODE_FILTER_H

/* Records left out by the length of their texts: any text outside of the limits leaves out all of
 * its record. */

#include <stdbool.h>
#include <stdint.h>

struct filter {
    uint64_t min_bytes, max_bytes;   /* of a text; a maximum of 0 is none */
    uint64_t min_tokens, max_tokens; /* without those round it: beginning and end of document */
};

/* What a function that takes a record returns when it is left out; no code of base/core/err.h. */
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
