/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

/* Forms of ops that came later than the kernels of the GPU, which lack them. */

static const char *attention_form(const struct attention_args *a)
{
    return a->cap > 0 ? "soft caps" : NULL;
}

static const char *norm_form(bool less_one)
{
    return less_one ? "weights stored less one" : NULL;
}

static const char *embed_form(double scale)
{
    return scale != 0 ? "factor" : NULL;
}

static const char *glu_form(enum glu act)
{
    return act != GLU_SILU ? "GELU" : NULL;
}

const char *ops_host_form(enum op op, const void *args)
{
    switch (op) {
    case OP_EMBED:
        return embed_form(((const struct embed_args *)args)->scale);
    case OP_EMBED_BWD:
        return embed_form(((const struct embed_bwd_args *)args)->scale);
    case OP_NORM:
        return norm_form(((const struct norm_args *)args)->less_one);
    case OP_NORM_BWD:
        return norm_form(((const struct norm_bwd_args *)args)->less_one);
    case OP_GLU:
        return glu_form(((const struct glu_args *)args)->act);
    case OP_GLU_BWD:
        return glu_form(((const struct glu_bwd_args *)args)->act);
    case OP_ATTENTION:
        return attention_form(args);
    case OP_ATTENTION_BWD:
        return attention_form(&((const struct attention_bwd_args *)args)->fwd);
    case OP_XENT_LOSS:
        return ((const struct xent_loss_args *)args)->cap > 0 ? "soft caps" : NULL;
    default:
        return NULL;
    }
}
