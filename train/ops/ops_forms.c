/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

/* Forms of ops that came later than the kernels of the GPU, which lack them. */

static const char *attention_form(const struct attention_args *a)
{
    return tensor_none(a->ahead) ? NULL : "parts of the keys (context parallelism)";
}

const char *ops_host_form(enum op op, const void *args)
{
    if (op == OP_ATTENTION)
        return attention_form(args);
    if (op == OP_ATTENTION_BWD)
        return attention_form(&((const struct attention_bwd_args *)args)->fwd);
    return NULL;
}
