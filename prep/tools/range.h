/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_RANGE_H
#define PREP_TOOLS_RANGE_H

/* Ranges of numbers on the command line: documents or samples, counted from 0. */

#include <stdint.h>

#include "base/core/err.h"

#define RANGE_OPEN UINT64_MAX /* as `last`: to the end */

struct number_range {
    uint64_t first, last; /* both included */
};

/*
 * "7" is one number, "5-7" three, "5-" all from 5, "-7" those from 0 to 7. ERR_USAGE; the message
 * begins with `option`, "--documents".
 */
int range_parse(const char *text, const char *option, struct number_range *ret, struct err *e);

/*
 * The last number of `r` when there are `count`; ERR_USAGE if the range exceeds them, with `what`
 * ("document") and `where` (what has `count` of them) in the message.
 */
int range_last(const struct number_range *r, uint64_t count, const char *what, const char *where,
               uint64_t *ret, struct err *e);

#endif
