/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/rounding.h"

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/ops/values.h"

static struct number_run run_of(const struct param *q, const struct param_source *s)
{
    struct number_run r = {.begin = q->offset + s->row * q->size[1],
                           .index = s->begin[0] * s->size[1] + s->begin[1],
                           .width = s->count[1],
                           .stride = s->size[1],
                           .stream = param_stream(s->name)};
    BUG_ON(s->count[1] != q->size[1], "%s: %lld columns of %lld", s->name, (long long)s->count[1],
           (long long)q->size[1]);
    if (FAULT("round_columns"))
        r.stride = r.width;
    return r;
}

int rounding_runs(const struct params *p, struct number_run **ret)
{
    int n = 0;
    *ret = mem_new((size_t)p->n * PARAM_SOURCES + 1, sizeof(**ret));
    (*ret)[n++] = (struct number_run){.width = 1, .stride = 1};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->at[i].sources; k++) {
            const struct param_source *s = &p->at[i].source[k];
            if (s->count[0] > 0 && s->count[1] > 0)
                (*ret)[n++] = run_of(&p->at[i], s);
        }
    return n;
}

struct rounding rounding_from(const struct optim *o, int64_t first)
{
    if (!o->rounds)
        return (struct rounding){0};
    return (struct rounding){.runs = o->runs,
                             .number = step_value(o->values, STEP_NUMBER),
                             .seed = o->seed,
                             .first = FAULT("round_first") ? 0 : first};
}
