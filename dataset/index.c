/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index.h"

#include <stdlib.h>

#include "dataset/maps.h"
#include "dataset/shard.h"

static int run_part(const struct index_request *q, const struct shard *s, enum part p,
                    struct index_part *ret, struct err *e)
{
    struct maps_spec spec = {.part = p,
                             .first = ret->first,
                             .end = ret->end,
                             .samples = q->samples[p],
                             .seq_length = q->seq_length,
                             .seed = q->seed,
                             .extra = 1};
    struct maps m;
    bool reused;
    struct maps_wish wish = {.save = true, .rebuild = q->rebuild};
    int code = maps_obtain(&spec, s, wish, &m, &reused, ret->why, e);
    if (code)
        return code;
    ret->state = reused ? INDEX_REUSED : INDEX_BUILT;
    ret->tokens = m.tokens;
    ret->epochs = m.epochs;
    ret->samples = m.nsample;
    ret->separate = m.separate;
    for (int f = 0; f < MAPS_FILES; f++)
        ret->path[f] = maps_path(&spec, q->prefix, (enum maps_file)f);
    maps_close(&m);
    return 0;
}

static int run_parts(const struct index_request *q, const struct split *split,
                     const struct shard *s, struct index_report *ret, struct err *e)
{
    int code = 0;
    ret->sequences = s->nseq;
    ret->documents = s->ndocs;
    for (int p = 0; p < PARTS && !code; p++) {
        struct index_part *part = &ret->part[p];
        if (!split_range(split, (enum part)p, s->nseq, &part->first, &part->end))
            continue;
        code = maps_tokens(s, part->first, part->end, &part->tokens, e);
        if (!part->tokens)
            part->state = INDEX_EMPTY;
        else if (!code && q->samples[p])
            code = run_part(q, s, (enum part)p, part, e);
    }
    return code;
}

int index_run(const struct index_request *q, struct index_report *ret, struct err *e)
{
    *ret = (struct index_report){0};
    if (!q->seq_length)
        return err_set(e, ERR_USAGE, "a sequence length of 0 makes no samples");
    struct split split;
    int code = split_parse(q->split, &split, e);
    if (code)
        return code;
    struct shard s;
    code = shard_open_idx(&s, q->prefix, e);
    if (code)
        return code;
    code = run_parts(q, &split, &s, ret, e);
    shard_close(&s);
    return code;
}

void index_report_finish(struct index_report *r)
{
    for (int p = 0; p < PARTS; p++)
        for (int f = 0; f < MAPS_FILES; f++)
            free(r->part[p].path[f]);
    *r = (struct index_report){0};
}
