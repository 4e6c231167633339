/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/blocks.h"

/* Forms of ops that came later than the kernels of the GPU, which lack them. */

static const char *attention_form(const struct attention_args *a)
{
    return tensor_none(a->ahead) ? NULL : "parts of the keys (context parallelism)";
}

static const char *rounding_form(struct rounding r)
{
    return tensor_none(r.runs) ? NULL : "stochastic rounding";
}

const char *ops_host_form(enum op op, const void *args)
{
    if (op == OP_ATTENTION)
        return attention_form(args);
    if (op == OP_ATTENTION_BWD)
        return attention_form(&((const struct attention_bwd_args *)args)->fwd);
    if (op == OP_ADAMW)
        return rounding_form(((const struct adamw_args *)args)->round);
    if (op == OP_SGD)
        return rounding_form(((const struct sgd_args *)args)->round);
    if (op == OP_MOMENTUM)
        return rounding_form(((const struct momentum_args *)args)->round);
    if (op == OP_DECAYED)
        return rounding_form(((const struct decayed_args *)args)->round);
    return NULL;
}
