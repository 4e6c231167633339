/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/blocks.h"
#include "train/ops/experts.h"
#include "train/ops/head_norm.h"
#include "train/ops/values.h"
#include "train/ops/ops.h"

static double ops_cost_count(struct tensor t)
{
    return tensor_none(t) ? 0 : (double)tensor_count(t);
}

static double bytes(struct tensor t)
{
    return tensor_none(t) ? 0 : (double)tensor_bytes(t);
}

/* Rows of a table that n lookups touch at most. */
static double rows_touched(struct tensor table, struct tensor y)
{
    if (tensor_none(table))
        return 0;
    int64_t rows = table.size[0] < y.size[0] ? table.size[0] : y.size[0];
    return (double)rows * (double)table.size[1] * (double)dtype_size(table.dtype);
}

static struct op_cost cost_embed(const struct embed_args *a)
{
    double drop = a->drop.p > 0 ? 1 : 0, pos = tensor_none(a->pos) ? 0 : 1;
    double noise = a->noise > 0 ? 1 : 0;
    return (struct op_cost){ops_cost_count(a->y) * (drop + pos + noise),
                            bytes(a->y) + bytes(a->id) + bytes(a->position) +
                                rows_touched(a->tok, a->y) + rows_touched(a->pos, a->y)};
}

static struct op_cost cost_embed_bwd(const struct embed_bwd_args *a)
{
    double drop = a->drop.p > 0 ? 1 : 0;
    double adds = (tensor_none(a->dtok) ? 0 : 1) + (tensor_none(a->dpos) ? 0 : 1);
    return (struct op_cost){ops_cost_count(a->dy) * (drop + adds),
                            bytes(a->dy) + bytes(a->id) + bytes(a->position) +
                                2 * rows_touched(a->dtok, a->dy) +
                                2 * rows_touched(a->dpos, a->dy)};
}

static struct op_cost cost_norm(const struct norm_args *a)
{
    double each = a->kind == NORM_LAYER ? 8 : 4;
    if (!tensor_none(a->a))
        each += 1 + (tensor_none(a->bias) ? 0 : 1) + (a->drop.p > 0 ? 1 : 0);
    return (struct op_cost){each * ops_cost_count(a->y),
                            bytes(a->y) + bytes(a->x) + bytes(a->a) + bytes(a->r) + bytes(a->mean) +
                                bytes(a->rstd) + bytes(a->w) + bytes(a->b) + bytes(a->bias)};
}

static struct op_cost cost_norm_bwd(const struct norm_bwd_args *a)
{
    double each = (a->kind == NORM_LAYER ? 14 : 10) + (a->drop.p > 0 ? 1 : 0) +
                  (tensor_none(a->dbias) ? 0 : 1);
    double da = a->da.data == a->dr.data ? 0 : bytes(a->da);
    return (struct op_cost){each * ops_cost_count(a->dy),
                            bytes(a->dy) + 2 * bytes(a->dr) + bytes(a->r) + da + bytes(a->mean) +
                                bytes(a->rstd) + bytes(a->w) + 2 * bytes(a->dw) + 2 * bytes(a->db) +
                                2 * bytes(a->dbias)};
}

static struct op_cost cost_matmul(const struct matmul_args *a)
{
    double k = (double)a->a.size[a->ta ? 0 : 1], each = 2 * k;
    each += tensor_none(a->bias) ? 0 : 1;
    each += a->act == ACT_NONE ? 0 : a->act_bwd ? 14 : 9;
    return (struct op_cost){each * ops_cost_count(a->y) +
                                (tensor_none(a->dbias) ? 0 : ops_cost_count(a->a)),
                            bytes(a->a) + bytes(a->b) + (a->accumulate ? 2 : 1) * bytes(a->y) +
                                bytes(a->bias) + bytes(a->pre) + 2 * bytes(a->dbias)};
}

/* The mean over the queries of a sequence, the last of which sees max_len keys or the window. */
static double keys_seen(const struct attention_args *a)
{
    double n = (double)a->q.size[0], s = (double)a->k_len.size[0], window = (double)a->window;
    double each = s > 0 ? n / s : 0, most = (double)a->max_len, least = most - each + 1;
    double seen = (most + least) / 2;
    if (a->seen > 0) {
        seen = window > 0 && window < a->seen ? window : a->seen;
    } else if (window > 0 && window <= least) {
        seen = window;
    } else if (window > 0 && window < most) {
        double below = window - least;
        seen = (below * (least + window - 1) / 2 + (each - below) * window) / each;
    }
    return seen < 1 ? 1 : seen;
}

static struct op_cost cost_attention(const struct attention_args *a)
{
    double pairs = (double)a->q.size[0] * (double)a->q.size[1] * keys_seen(a);
    return (struct op_cost){pairs * (4 * (double)a->q.size[2] + (a->cap > 0 ? 6 : 3)),
                            bytes(a->q) + bytes(a->k) + bytes(a->v) + bytes(a->o) + bytes(a->lse)};
}

/* Five products of the forward's size against its two. */
static struct op_cost cost_attention_bwd(const struct attention_bwd_args *a)
{
    struct op_cost f = cost_attention(&a->fwd);
    return (struct op_cost){2.5 * f.flops,
                            f.bytes + bytes(a->dout) + bytes(a->dq) + bytes(a->dk) + bytes(a->dv)};
}

static struct op_cost cost_merge(const struct merge_args *a)
{
    return (struct op_cost){3 * ops_cost_count(a->o) + 5 * ops_cost_count(a->lse),
                            2 * bytes(a->o) + 2 * bytes(a->lse) + bytes(a->part_o) +
                                bytes(a->part_lse)};
}

static struct op_cost cost_xent_loss(const struct xent_loss_args *a)
{
    double rows = bytes(a->label) + bytes(a->max) + bytes(a->sum) + bytes(a->target) +
                  bytes(a->mask) + bytes(a->loss);
    double grad = a->grad ? 1 : 0, stats = a->alone ? 1 : 0, reads = a->grad || a->alone ? 1 : 0;
    return (struct op_cost){4 * ops_cost_count(a->loss) +
                                (grad + stats) * 4 * ops_cost_count(a->logits),
                            rows + (reads + grad) * bytes(a->logits)};
}

static struct op_cost cost_glu_bwd(const struct glu_bwd_args *a)
{
    return (struct op_cost){(a->act == GLU_SILU ? 10 : 18) * ops_cost_count(a->dy),
                            bytes(a->dy) + bytes(a->x) + bytes(a->dx)};
}

static struct op_cost cost_rope(const struct rope_args *a)
{
    double turned = (double)(a->x.size[0] * a->x.size[1] * a->rotary);
    return (struct op_cost){3 * turned, 2 * turned * (double)dtype_size(a->x.dtype) +
                                            bytes(a->position) + rows_touched(a->cos, a->x) +
                                            rows_touched(a->sin, a->x)};
}

static struct op_cost cost_xent_stats(const struct xent_stats_args *a)
{
    return (struct op_cost){(a->max_given ? 3 : 4) * ops_cost_count(a->logits),
                            bytes(a->logits) + bytes(a->label) + bytes(a->max) + bytes(a->sum) +
                                bytes(a->target)};
}

static struct op_cost cost_sgd(const struct sgd_args *a)
{
    double numbers = ops_cost_count(a->p), m = tensor_none(a->m) ? 0 : 1;
    return (struct op_cost){(5 + 2 * m) * numbers,
                            2 * (bytes(a->p) + m * bytes(a->m)) + bytes(a->g) + bytes(a->copy)};
}

static struct op_cost further_cost(enum op op, const void *args)
{
    if (op >= OP_MOMENTS)
        return blocks_cost(op, args);
    return op < OP_HEAD_NORM ? experts_cost(op, args) : head_norm_cost(op, args);
}

static struct op_cost cost_glu(const struct glu_args *a)
{
    return (struct op_cost){(a->act == GLU_SILU ? 5 : 9) * ops_cost_count(a->y),
                            bytes(a->y) + bytes(a->x)};
}

static struct op_cost cost_cap(const struct cap_args *a)
{
    return (struct op_cost){3 * ops_cost_count(a->x), 2 * bytes(a->x)};
}

struct op_cost op_cost(enum op op, const void *args)
{
    switch (op) {
    case OP_EMBED:
        return cost_embed(args);
    case OP_EMBED_BWD:
        return cost_embed_bwd(args);
    case OP_NORM:
        return cost_norm(args);
    case OP_NORM_BWD:
        return cost_norm_bwd(args);
    case OP_MATMUL:
        return cost_matmul(args);
    case OP_GLU:
        return cost_glu(args);
    case OP_GLU_BWD:
        return cost_glu_bwd(args);
    case OP_ROPE:
        return cost_rope(args);
    case OP_ATTENTION:
        return cost_attention(args);
    case OP_ATTENTION_BWD:
        return cost_attention_bwd(args);
    case OP_MERGE:
        return cost_merge(args);
    case OP_XENT_STATS:
        return cost_xent_stats(args);
    case OP_XENT_LOSS:
        return cost_xent_loss(args);
    case OP_ADAMW: {
        const struct adamw_args *a = args;
        return (struct op_cost){16 * ops_cost_count(a->p),
                                2 * (bytes(a->p) + bytes(a->m) + bytes(a->v)) + bytes(a->g) +
                                    bytes(a->copy)};
    }
    case OP_SGD:
        return cost_sgd(args);
    case OP_SUMSQ: {
        const struct sumsq_args *a = args;
        return (struct op_cost){2 * ops_cost_count(a->x), bytes(a->x)};
    }
    case OP_CLIP:
        return (struct op_cost){3, 28};
    case OP_SELECT:
        return (struct op_cost){0, 2 * bytes(((const struct select_args *)args)->y)};
    case OP_CAP:
        return cost_cap(args);
    case OP_FILL:
        return (struct op_cost){0, bytes(((const struct fill_args *)args)->y)};
    case OP_COPY: {
        const struct copy_args *a = args;
        return (struct op_cost){a->accumulate ? ops_cost_count(a->y) : 0,
                                (a->accumulate ? 3 : 2) * bytes(a->y)};
    }
    case OP_COUNT:
        break;
    default:
        return further_cost(op, args);
    }
    BUG("op %d", (int)op);
}
