/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/twins.h"

/* Those of twins_families.c. */
static void run_family(struct ops *o, const struct call *c)
{
    switch (c->op) {
    case OP_CAP:
        op_cap(o, &c->u.cap);
        break;
    case OP_HEAD_NORM:
        op_head_norm(o, &c->u.head_norm);
        break;
    case OP_HEAD_NORM_BWD:
        op_head_norm_bwd(o, &c->u.head_norm_bwd);
        break;
    case OP_ROUTE:
        op_route(o, &c->u.route);
        break;
    case OP_ROUTE_BWD:
        op_route_bwd(o, &c->u.route_bwd);
        break;
    case OP_ROUTE_LOSS:
        op_route_loss(o, &c->u.route_loss);
        break;
    case OP_PERMUTE:
        op_permute(o, &c->u.permute);
        break;
    case OP_PERMUTE_BWD:
        op_permute_bwd(o, &c->u.permute_bwd);
        break;
    case OP_UNPERMUTE:
        op_unpermute(o, &c->u.unpermute);
        break;
    case OP_UNPERMUTE_BWD:
        op_unpermute_bwd(o, &c->u.unpermute_bwd);
        break;
    case OP_GROUPED:
        op_grouped(o, &c->u.grouped);
        break;
    case OP_GROUPED_BWD:
        op_grouped_bwd(o, &c->u.grouped_bwd);
        break;
    case OP_GATE:
        op_gate(o, &c->u.gate);
        break;
    case OP_GATE_BWD:
        op_gate_bwd(o, &c->u.gate_bwd);
        break;
    default:
        BUG("no twin of op %s", op_name(c->op));
    }
}

void call_run(struct ops *o, const struct call *c)
{
    switch (c->op) {
    case OP_EMBED:
        op_embed(o, &c->u.embed);
        break;
    case OP_EMBED_BWD:
        op_embed_bwd(o, &c->u.embed_bwd);
        break;
    case OP_NORM:
        op_norm(o, &c->u.norm);
        break;
    case OP_NORM_BWD:
        op_norm_bwd(o, &c->u.norm_bwd);
        break;
    case OP_MATMUL:
        op_matmul(o, &c->u.matmul);
        break;
    case OP_GLU:
        op_glu(o, &c->u.glu);
        break;
    case OP_GLU_BWD:
        op_glu_bwd(o, &c->u.glu_bwd);
        break;
    case OP_ROPE:
        op_rope(o, &c->u.rope);
        break;
    case OP_ATTENTION:
        op_attention(o, &c->u.attention);
        break;
    case OP_ATTENTION_BWD:
        op_attention_bwd(o, &c->u.attention_bwd);
        break;
    case OP_XENT_STATS:
        op_xent_stats(o, &c->u.xent_stats);
        break;
    case OP_XENT_LOSS:
        op_xent_loss(o, &c->u.xent_loss);
        break;
    case OP_ADAMW:
        op_adamw(o, &c->u.adamw);
        break;
    case OP_SGD:
        op_sgd(o, &c->u.sgd);
        break;
    case OP_SUMSQ:
        op_sumsq(o, &c->u.sumsq);
        break;
    case OP_FILL:
        op_fill(o, &c->u.fill);
        break;
    case OP_COPY:
        op_copy(o, &c->u.copy);
        break;
    default:
        run_family(o, c);
    }
}
