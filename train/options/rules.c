/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/rules.h"

/* Epochs are of all the data, as in transformers, where validation has a set of its own; Megatron's
 * default split would keep back a thirtieth. */
static int set_split(struct opts *o, struct err *e)
{
    return opts_set_from(o, FROM_PRESET, "--num-train-epochs", "split", "100,0,0", e);
}

/* Its evaluations are of all validation data. */
static int set_validation(struct opts *o, struct err *e)
{
    bool given = opts_origin(o, "eval-iters") != FROM_DEFAULT;
    return given
               ? 0
               : opts_set_from(o, FROM_PRESET, "--num-train-epochs", "full-validation", "true", e);
}

/* transformers' Trainer divides the losses of an update by the number of its learnt tokens. */
static int set_objective(struct opts *o, const char *by, struct err *e)
{
    return opts_set_from(o, FROM_PRESET, by, "calculate-per-token-loss", "true", e);
}

int rules_apply(struct opts *o, struct err *e)
{
    const struct train_options *v = o->values;
    bool trains = o->verb == VERB_RUN || o->verb == VERB_PLAN, epochs = v->course.epochs > 0;
    int code = trains && epochs ? set_split(o, e) : 0;
    if (!code && trains && epochs)
        code = set_validation(o, e);
    if (!code && trains && (epochs || v->course.rules == LR_HF))
        code = set_objective(o, epochs ? "--num-train-epochs" : "--lr-rules hf", e);
    return code;
}
