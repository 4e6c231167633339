/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/maps_plan.h"

#include <inttypes.h>
#include <math.h>

#include "base/core/bytes.h"

int maps_tokens(const struct shard *s, uint64_t first, uint64_t end, uint64_t *ret, struct err *e)
{
    BUG_ON(first > end || end > s->nseq, "sequences %" PRIu64 "..%" PRIu64 " of %" PRIu64, first,
           end, s->nseq);
    uint64_t sum = 0;
    int code = shard_touch(s, e);
    if (code)
        return code;
    for (uint64_t i = first; i < end; i++) {
        int32_t n = shard_length(s, i);
        if (n < 0)
            return err_set(e, ERR_DATA, "%s: sequence %" PRIu64 " has %" PRId32 " tokens",
                           s->idx.path, i, n);
        sum += (uint64_t)n;
    }
    *ret = sum;
    return map_check(&s->idx, e);
}

int maps_tokens_between(const struct shard *s, uint64_t first, uint64_t end, uint64_t *ret,
                        struct err *e)
{
    BUG_ON(first > end || end > s->nseq, "sequences %" PRIu64 "..%" PRIu64 " of %" PRIu64, first,
           end, s->nseq);
    int64_t from = 0, to = 0;
    int code = shard_begins(s, first, &from, e);
    if (!code)
        code = shard_begins(s, end, &to, e);
    if (code)
        return code;
    if (from < 0 || to < from || (to - from) % s->width)
        return err_set(e, ERR_DATA,
                       "%s: sequence %" PRIu64 " begins at byte %" PRId64 "; %" PRIu64
                       " at %" PRId64,
                       s->idx.path, first, from, end, to);
    *ret = (uint64_t)(to - from) / s->width;
    return 0;
}

static int too_large(const struct maps_spec *q, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "%" PRIu64 " %s samples of %" PRIu32 " tokens are more than can be counted",
                   q->samples, part_name(q->part), q->seq_length);
}

/* A last epoch of which less than 80 % is used is shuffled by itself. */
static void plan_separate(const struct maps_spec *q, struct maps_plan *p)
{
    uint64_t length = q->seq_length;
    p->split = ((p->epochs - 1) * p->tokens - q->extra) / length;
    int64_t last = (int64_t)(q->samples - p->split);
    uint64_t whole = (p->tokens - q->extra) / length;
    p->separate = !q->all_mixed && last < (int64_t)(0.80 * (double)whole);
}

int maps_plan_make(const struct maps_spec *q, const char *name, uint64_t tokens,
                   struct maps_plan *ret, struct err *e)
{
    uint64_t need, total;
    BUG_ON(!q->seq_length || q->extra > 1, "seq_length %" PRIu32 ", extra %" PRIu32, q->seq_length,
           q->extra);
    *ret = (struct maps_plan){.nseq = q->end - q->first, .tokens = tokens, .epochs = 1};
    if (!ret->tokens && (!q->one_epoch || q->keep_last))
        return err_set(e, ERR_USAGE,
                       "%s: the %s share, sequences %" PRIu64 " to %" PRIu64 ", has no tokens",
                       name, part_name(q->part), q->first, q->end);
    if (!q->one_epoch) {
        if (!checked_mul(q->samples, q->seq_length, &need) || !checked_add(need, q->extra, &need) ||
            !checked_add(need, ret->tokens, &total) || total > INT64_MAX)
            return too_large(q, e);
        ret->epochs = need > ret->tokens ? (need - 1) / ret->tokens + 1 : 1;
    }
    if (ret->epochs > 1)
        plan_separate(q, ret);
    if (!checked_mul(ret->epochs, ret->nseq, &ret->ndoc) || ret->ndoc > INT64_MAX / 16)
        return too_large(q, e);
    uint64_t used = ret->tokens ? ret->epochs * ret->tokens - q->extra : 0;
    ret->nsample = used / q->seq_length;
    if (q->keep_last)
        ret->nsample = (uint64_t)ceilf((float)(int64_t)used / (float)q->seq_length);
    return 0;
}
