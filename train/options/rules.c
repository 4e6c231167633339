/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/rules.h"

/* Epochs are of all the data, as in transformers, where validation has a set of its own; Megatron's
 * default split would keep back a thirtieth. */
static int set_by_epochs(struct opts *o, struct err *e)
{
    return opts_set_from(o, FROM_PRESET, "--num-train-epochs", "split", "100,0,0", e);
}

int rules_apply(struct opts *o, struct err *e)
{
    const struct train_options *v = o->values;
    bool trains = o->verb == VERB_RUN || o->verb == VERB_PLAN;
    return trains && v->course.epochs > 0 ? set_by_epochs(o, e) : 0;
}
