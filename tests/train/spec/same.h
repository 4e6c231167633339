/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_SPEC_SAME_H
#define TESTS_TRAIN_SPEC_SAME_H

#include "train/spec/param.h"

/* The same parameter of another rank's table or another model's. */
static inline const struct param *params_same(const struct params *p, const struct param *as)
{
    const struct param *q = params_find(p, as->kind, as->layer);
    while (q && q->expert != as->expert)
        q = q + 1 < p->at + p->n && q[1].kind == as->kind && q[1].layer == as->layer ? q + 1 : NULL;
    return q;
}

#endif
