/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_COMPARE_H
#define TESTS_TRAIN_OPS_COMPARE_H

/* Which calls of the twins are compared, and how their outputs are. */

#include "tests/train/ops/twins.h"

/* Copies of a call's outputs, without the gaps. */
struct outcome {
    void *bytes[CALL_OUTS];
};

struct outcome outcome_save(const struct call *c);
/* Writes the copies over the call's outputs. */
void outcome_put_back(const struct call *c, const struct outcome *o);
void outcome_drop(struct outcome *o);

/* Fails the case unless each number of `have` is as near to `ref` as the call asks for. */
void outcome_near(const char *name, const struct call *c, const struct outcome *ref,
                  const struct outcome *have);

typedef void twin_compare(const struct twin *t, const int64_t *d, uint32_t bits);

/* The calls of twins[k]: of random sizes, and of sizes next to those of vectors and blocks. */
void draw_calls(int k, twin_compare *compare);

#endif
