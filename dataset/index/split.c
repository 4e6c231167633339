/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"

const char *part_name(enum part p)
{
    static const char *const name[PARTS] = {"train", "valid", "test"};
    return name[p];
}

static int split_bad(const char *text, const char *why, struct err *e)
{
    err_set(e, ERR_USAGE, "split '%s': %s", text, why);
    return err_hint(e, "write one to three shares, such as 969,30,1");
}

/* Digits with at most one dot among them; moves *s past them. */
static bool share(const char **s, double *ret)
{
    size_t digits = strspn(*s, ".0123456789");
    const char *dot = memchr(*s, '.', digits);
    if (!digits || digits > 64 || (dot && memchr(dot + 1, '.', digits - (size_t)(dot + 1 - *s))))
        return false;
    char number[65] = {0}, *end;
    memcpy(number, *s, digits);
    *ret = strtod(number, &end);
    *s += digits;
    return end == number + digits;
}

int split_parse(const char *text, struct split *ret, struct err *e)
{
    double w[PARTS] = {0};
    const char *s = text;
    for (int n = 0;; n++) {
        s += strspn(s, " ");
        if (n == PARTS)
            return split_bad(text, "more than three shares", e);
        if (!share(&s, &w[n]))
            return split_bad(text, "each share is a number without sign or exponent", e);
        s += strspn(s, " ");
        if (!*s)
            break;
        if (*s != ',' && *s != '/')
            return split_bad(text, "shares are separated by ',' or '/'", e);
        s++;
    }
    double sum = w[0] + w[1] + w[2];
    if (!(sum > 0))
        return split_bad(text, "the shares add up to 0", e);
    ret->bound[0] = 0;
    for (int i = 0; i < PARTS; i++) {
        ret->share[i] = w[i] / sum;
        ret->bound[i + 1] = ret->bound[i] + ret->share[i];
    }
    return 0;
}

bool split_range(const struct split *s, enum part p, uint64_t nseq, uint64_t *ret_first,
                 uint64_t *ret_end)
{
    if (s->bound[p + 1] <= s->bound[p])
        return false;
    /* the default rounding mode: half to even; the sum of shares may end slightly above 1 */
    double first = nearbyint(s->bound[p] * (double)nseq);
    double end = nearbyint(s->bound[p + 1] * (double)nseq);
    *ret_first = (uint64_t)first < nseq ? (uint64_t)first : nseq;
    *ret_end = (uint64_t)end < nseq ? (uint64_t)end : nseq;
    return true;
}

/* Whether all parts with a share have sequences. */
static bool none_is_empty(const struct split *s, uint64_t nseq)
{
    for (int p = 0; p < PARTS; p++) {
        uint64_t first, end, from, to;
        if (s->share[p] == 0)
            continue;
        if (!split_range(s, (enum part)p, nseq, &first, &end) || first == end ||
            !split_range_old(s, (enum part)p, nseq, &from, &to))
            return false;
    }
    return true;
}

bool split_suggest(const struct split *s, uint64_t nseq, char ret[16])
{
    static const int small[] = {1, 2, 5, 10, 20, 30};
    for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++) {
        struct split t;
        int valid = s->share[PART_VALID] > 0 ? small[i] : 0;
        int test = s->share[PART_TEST] > 0 ? small[i] : 0;
        snprintf(ret, 16, "%d,%d,%d", 100 - valid - test, valid, test);
        if (!split_parse(ret, &t, NULL) && none_is_empty(&t, nseq))
            return true;
    }
    return false;
}

bool split_range_old(const struct split *s, enum part p, uint64_t nseq, uint64_t *ret_first,
                     uint64_t *ret_end)
{
    int64_t bound[PARTS + 1] = {0};
    for (int i = 0; i < PARTS; i++)
        bound[i + 1] = bound[i] + (int64_t)nearbyint(s->share[i] * (double)nseq);
    int64_t more = bound[PARTS] - (int64_t)nseq;
    for (int i = 1; i <= PARTS; i++)
        bound[i] -= more;
    if (bound[p] < 0 || bound[p + 1] <= bound[p])
        return false;
    *ret_first = (uint64_t)bound[p];
    *ret_end = (uint64_t)bound[p + 1];
    return true;
}
