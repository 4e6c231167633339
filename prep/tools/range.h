/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_RANGE_H
#define PREP_TOOLS_RANGE_H

/* Ranges of numbers as users write them: documents or samples, counted from 0. */

#include <stdint.h>

#include "base/core/err.h"

#define RANGE_OPEN UINT64_MAX /* as `last`: to the end */

struct number_range {
    uint64_t first, last; /* both included */
};

/*
 * "7" is one number, "5-7" three, "5-" all from 5, "-7" those from 0 to 7. `option` begins the
 * sentence of a refusal (ERR_USAGE), as "--documents".
 */
int range_parse(const char *text, const char *option, struct number_range *ret, struct err *e);

/*
 * The last number of `r` where there are `count`; ERR_USAGE where the range leaves them, in a
 * sentence with `what` (as "document") and `where` (what has `count` of them).
 */
int range_last(const struct number_range *r, uint64_t count, const char *what, const char *where,
               uint64_t *ret, struct err *e);

#endif
