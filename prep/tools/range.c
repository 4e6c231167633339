/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/range.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* Digits at *s, which moves past them; `missing` if there are none. */
static bool take_number(const char **s, uint64_t missing, uint64_t *ret)
{
    *ret = missing;
    if (!isdigit((unsigned char)**s))
        return true;
    char *end;
    errno = 0;
    *ret = strtoull(*s, &end, 10);
    *s = end;
    return !errno && *ret < RANGE_OPEN;
}

int range_parse(const char *text, const char *option, struct number_range *ret, struct err *e)
{
    const char *s = text;
    bool good = take_number(&s, 0, &ret->first);
    ret->last = ret->first;
    if (good && *s == '-') {
        bool has_first = s > text;
        s++;
        good = (has_first || *s) && take_number(&s, RANGE_OPEN, &ret->last);
    }
    if (!good || *s || s == text)
        return err_set(e, ERR_USAGE,
                       "%s: '%s' is not a number or a range (7, 5-7, 5-, -7; counted from 0)",
                       option, text);
    if (ret->last < ret->first)
        return err_set(e, ERR_USAGE, "%s: the range %s ends before it begins", option, text);
    return 0;
}

int range_last(const struct number_range *r, uint64_t count, const char *what, const char *where,
               uint64_t *ret, struct err *e)
{
    uint64_t beyond = r->first >= count ? r->first : r->last;
    *ret = r->last == RANGE_OPEN ? count - 1 : r->last;
    if (beyond < count || (beyond == RANGE_OPEN && count))
        return 0;
    return err_set(e, ERR_USAGE,
                   "there is no %s %" PRIu64 ": %s has %" PRIu64 " %ss, counted from 0", what,
                   beyond, where, count, what);
}
