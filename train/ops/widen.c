/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/widen.h"

#include <string.h>

#include "base/core/fault.h"
#include "train/ops/blocks.h"
#include "train/ops/experts.h"
#include "train/ops/head_norm.h"
#include "train/ops/rounding.h"
#include "train/ops/values.h"
#include "train/tensor/box.h"

/* ---- the floating tensors of each op --------------------------------------------------------- */

enum way {
    NONE,
    IN = 1,
    OUT = 2, /* every element is written */
    BOTH = 3
};
enum { FIELDS = 12, ARGS_MAX = 2048, GRAIN = 1 << 14, PIECE = 1 << 20 };

struct field {
    size_t at; /* of a struct tensor in the args */
    enum way way;
    uint32_t rounded; /* by the struct rounding of the args: 1 + which (rounding.h); 0: it is not */
};

struct widen_row {
    size_t size; /* of the args */
    struct field field[FIELDS];
};

#define ROW(op) .size = sizeof(struct op##_args), .field
#define F(op, name, way)                                                                           \
    {                                                                                              \
        offsetof(struct op##_args, name), way, 0                                                   \
    }
#define ROUNDED(op, name, which)                                                                   \
    {                                                                                              \
        offsetof(struct op##_args, name), BOTH, 1 + (which)                                        \
    }

/* A tensor that an op writes in part only is BOTH: the rest keeps its value. */
static const struct widen_row rows[OP_COUNT] = {
    [OP_EMBED] = {ROW(embed) = {F(embed, y, OUT), F(embed, tok, IN), F(embed, pos, IN)}},
    [OP_EMBED_BWD] = {ROW(embed_bwd) = {F(embed_bwd, dy, IN), F(embed_bwd, dtok, BOTH),
                                        F(embed_bwd, dpos, BOTH)}},
    [OP_NORM] = {ROW(norm) = {F(norm, y, OUT), F(norm, r, OUT), F(norm, x, IN), F(norm, a, IN),
                              F(norm, bias, IN), F(norm, w, IN), F(norm, b, IN)}},
    [OP_NORM_BWD] = {ROW(norm_bwd) = {F(norm_bwd, dr, BOTH), F(norm_bwd, dy, IN),
                                      F(norm_bwd, r, IN), F(norm_bwd, w, IN), F(norm_bwd, dw, BOTH),
                                      F(norm_bwd, db, BOTH), F(norm_bwd, da, OUT),
                                      F(norm_bwd, dbias, BOTH)}},
    [OP_HEAD_NORM] = {ROW(head_norm) = {F(head_norm, x, BOTH), F(head_norm, pre, OUT),
                                        F(head_norm, w, IN)}},
    [OP_HEAD_NORM_BWD] = {ROW(head_norm_bwd) = {F(head_norm_bwd, dx, BOTH),
                                                F(head_norm_bwd, pre, IN), F(head_norm_bwd, w, IN),
                                                F(head_norm_bwd, dw, BOTH)}},
    [OP_MATMUL] = {ROW(matmul) = {F(matmul, y, BOTH), F(matmul, a, IN), F(matmul, b, IN),
                                  F(matmul, bias, IN), F(matmul, pre, BOTH),
                                  F(matmul, dbias, BOTH)}},
    [OP_GLU] = {ROW(glu) = {F(glu, y, OUT), F(glu, x, IN)}},
    [OP_GLU_BWD] = {ROW(glu_bwd) = {F(glu_bwd, dx, OUT), F(glu_bwd, dy, IN), F(glu_bwd, x, IN)}},
    [OP_ROPE] = {ROW(rope) = {F(rope, x, BOTH)}},
    [OP_ATTENTION] = {ROW(attention) = {F(attention, o, OUT), F(attention, q, IN),
                                        F(attention, k, IN), F(attention, v, IN)}},
    [OP_ATTENTION_BWD] =
        {ROW(attention_bwd) = {F(attention_bwd, fwd.o, IN), F(attention_bwd, fwd.q, IN),
                               F(attention_bwd, fwd.k, IN), F(attention_bwd, fwd.v, IN),
                               F(attention_bwd, dout, IN), F(attention_bwd, dq, OUT),
                               F(attention_bwd, dk, OUT), F(attention_bwd, dv, OUT)}},
    [OP_MERGE] = {ROW(merge) = {F(merge, o, BOTH), F(merge, part_o, IN)}},
    [OP_XENT_STATS] = {ROW(xent_stats) = {F(xent_stats, logits, IN)}},
    [OP_XENT_LOSS] = {ROW(xent_loss) = {F(xent_loss, logits, BOTH)}},
    [OP_ADAMW] = {ROW(adamw) = {ROUNDED(adamw, p, ROUND_WEIGHT), ROUNDED(adamw, m, ROUND_MOMENT),
                                ROUNDED(adamw, v, ROUND_MOMENT + 1), F(adamw, g, IN)}},
    [OP_SGD] = {ROW(sgd) = {ROUNDED(sgd, p, ROUND_WEIGHT), ROUNDED(sgd, m, ROUND_MOMENT),
                            F(sgd, g, IN)}},
    [OP_SUMSQ] = {ROW(sumsq) = {F(sumsq, x, IN)}},
    [OP_CLIP] = {ROW(clip) = {{0}}},
    [OP_MOMENTS] = {ROW(moments) = {F(moments, x, IN)}},
    [OP_GSNR] = {ROW(gsnr) = {{0}}},
    /* m after y, whose memory it may be */
    [OP_MOMENTUM] = {ROW(momentum) = {F(momentum, y, OUT), ROUNDED(momentum, m, ROUND_MOMENT),
                                      F(momentum, g, IN)}},
    [OP_DECAYED] = {ROW(decayed) = {ROUNDED(decayed, p, ROUND_WEIGHT), F(decayed, x, IN)}},
    [OP_COMBINE] = {ROW(combine) = {F(combine, y, BOTH), F(combine, x, IN)}},
    [OP_SELECT] = {ROW(select) = {{0}}},
    [OP_UNIT] = {ROW(unit) = {F(unit, x, BOTH)}},
    [OP_CAP] = {ROW(cap) = {F(cap, x, BOTH)}},
    [OP_GATE] = {ROW(gate) = {F(gate, y, OUT), F(gate, x, IN), F(gate, logit, IN)}},
    [OP_GATE_BWD] = {ROW(gate_bwd) = {F(gate_bwd, dx, OUT), F(gate_bwd, dlogit, OUT),
                                      F(gate_bwd, dy, IN), F(gate_bwd, x, IN),
                                      F(gate_bwd, logit, IN)}},
    [OP_ROUTE] = {ROW(route) = {F(route, logits, IN)}},
    [OP_ROUTE_BWD] = {ROW(route_bwd) = {F(route_bwd, dlogits, OUT)}},
    [OP_ROUTE_LOSS] = {ROW(route_loss) = {{0}}},
    [OP_PERMUTE] = {ROW(permute) = {F(permute, to, OUT), F(permute, x, IN)}},
    [OP_PERMUTE_BWD] = {ROW(permute_bwd) = {F(permute_bwd, dx, OUT), F(permute_bwd, dto, IN)}},
    [OP_UNPERMUTE] = {ROW(unpermute) = {F(unpermute, y, OUT), F(unpermute, from, IN)}},
    [OP_UNPERMUTE_BWD] = {ROW(unpermute_bwd) = {F(unpermute_bwd, dfrom, OUT),
                                                F(unpermute_bwd, dy, IN),
                                                F(unpermute_bwd, from, IN)}},
    [OP_GROUPED] = {ROW(grouped) = {F(grouped, y, BOTH), F(grouped, x, IN), F(grouped, w, IN)}},
    [OP_GROUPED_BWD] = {ROW(grouped_bwd) = {F(grouped_bwd, dw, BOTH), F(grouped_bwd, dy, IN),
                                            F(grouped_bwd, x, IN)}},
};

/* Args as they are handed to the entry. */
union args {
    char byte[ARGS_MAX];
    struct adamw_args adamw;
    struct sgd_args sgd;
    struct sumsq_args sumsq;
    struct momentum_args momentum;
    struct decayed_args decayed;
};

static struct tensor *tensor_at(union args *a, size_t at)
{
    return (struct tensor *)(void *)(a->byte + at);
}

static bool is_narrow(struct tensor t)
{
    return !tensor_none(t) && dtype_is_narrow(t.dtype);
}

/* What a call does with a field, where its flags decide. */
static enum way way_of(enum op op, const void *args, const struct field *f)
{
    if (op == OP_MATMUL && f->at == offsetof(struct matmul_args, y))
        return ((const struct matmul_args *)args)->accumulate ? BOTH : OUT;
    if (op == OP_MATMUL && f->at == offsetof(struct matmul_args, pre))
        return ((const struct matmul_args *)args)->act_bwd ? IN : OUT;
    if (op == OP_XENT_LOSS)
        return ((const struct xent_loss_args *)args)->grad ? BOTH : IN;
    return f->way;
}

static struct rounding rounding_of(enum op op, const union args *a)
{
    return op == OP_ADAMW      ? a->adamw.round
           : op == OP_SGD      ? a->sgd.round
           : op == OP_MOMENTUM ? a->momentum.round
           : op == OP_DECAYED  ? a->decayed.round
                               : (struct rounding){0};
}

/* ---- casts over the host's threads ----------------------------------------------------------- */

struct cast_job {
    struct tensor to, from;
    bool add;  /* to += from */
    bool gaps; /* one row of `width` at a time, else `each` elements anywhere */
    int64_t rows, width, each;
    struct rounding round; /* with runs: stochastically; of tensors without gaps */
    uint64_t key;
};

static char *element(struct tensor t, int64_t i)
{
    return (char *)t.data + (size_t)i * dtype_size(t.dtype);
}

/* Faults store what a conversion may not: the value cut off instead of rounded. */
static void cut_off(char *to, enum dtype type, const char *from, int64_t n)
{
    for (int64_t i = 0; i < n && type == DTYPE_BF16; i++)
        memcpy(to + 2 * i, from + 4 * i + 2, 2);
}

/* Elements `begin` to `end` of the tensor, all in one run or not. */
static void cast_rounded(const struct cast_job *j, int64_t begin, int64_t end)
{
    const struct number_run *run = j->round.runs.data;
    int64_t n = j->round.runs.size[0], place = j->round.first + begin, k = run_find(run, n, place);
    uint64_t e = 0, block = UINT64_MAX;
    uint16_t *to = j->to.data;
    struct rng4 random = {{0}};
    for (int64_t i = begin; i < end; i++, place++) {
        if (k + 1 < n && run[k + 1].begin <= place) {
            k = run_find(run, n, place);
            block = UINT64_MAX;
        }
        e = run_index(&run[k], place);
        if (e / 8 != block)
            random = round_block(j->key, run[k].stream, e);
        block = e / 8;
        to[i] = round_bf16(((const float *)j->from.data)[i], round_bits(random, e));
    }
}

static void cast_run(const struct cast_job *j, char *to, const char *from, int64_t n)
{
    enum { RUN = 512 };
    float sum[RUN], x[RUN];
    bool narrows = j->from.dtype == DTYPE_F32 && is_narrow(j->to);
    if (!j->add) {
        box_cast(to, j->to.dtype, from, j->from.dtype, n);
        if (narrows && FAULT("round_store"))
            cut_off(to, j->to.dtype, from, n);
        return;
    }
    size_t to_size = dtype_size(j->to.dtype), from_size = dtype_size(j->from.dtype);
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t k = n - i < RUN ? n - i : RUN;
        box_cast(sum, DTYPE_F32, to + (size_t)i * to_size, j->to.dtype, k);
        box_cast(x, DTYPE_F32, from + (size_t)i * from_size, j->from.dtype, k);
        for (int64_t l = 0; l < k; l++)
            sum[l] += x[l];
        box_cast(to + (size_t)i * to_size, j->to.dtype, sum, DTYPE_F32, k);
    }
}

static void cast_task(void *arg, int task, int thread)
{
    const struct cast_job *j = arg;
    int64_t begin = task * j->each, end = begin + j->each < j->rows ? begin + j->each : j->rows;
    (void)thread;
    if (!tensor_none(j->round.runs))
        cast_rounded(j, begin, end);
    else if (!j->gaps)
        cast_run(j, element(j->to, begin), element(j->from, begin), end - begin);
    for (int64_t i = begin; i < end && j->gaps; i++)
        cast_run(j, element(j->to, i * j->to.stride), element(j->from, i * j->from.stride),
                 j->width);
}

/* Tensors of one shape. Without gaps they are cut anywhere, as rows of one element. */
static void cast(struct ops *o, struct tensor to, struct tensor from, bool add)
{
    int64_t n = tensor_count(to);
    struct cast_job j = {.to = to, .from = from, .add = add, .rows = n, .each = GRAIN};
    if (!n)
        return;
    j.gaps = !tensor_contiguous(to) || !tensor_contiguous(from);
    if (j.gaps) {
        j.rows = to.size[0];
        j.width = n / j.rows;
        j.each = j.width < GRAIN ? GRAIN / j.width : 1;
    }
    pool_run(o->dev->pool, (int)((j.rows + j.each - 1) / j.each), cast_task, &j);
}

/* The same stochastically, where the args say so and the type has it. */
static void cast_out(struct ops *o, struct tensor to, struct tensor from, struct rounding r,
                     uint32_t rounded)
{
    int64_t n = tensor_count(to);
    if (!n || !rounded || tensor_none(r.runs) || to.dtype != DTYPE_BF16) {
        cast(o, to, from, false);
        return;
    }
    double step = FAULT("round_step") ? 1 : *(const double *)r.number.data;
    uint32_t which = FAULT("round_which") ? ROUND_WEIGHT : rounded - 1;
    struct cast_job j = {.to = to,
                         .from = from,
                         .rows = n,
                         .each = GRAIN,
                         .round = r,
                         .key = round_key(r.seed, which, (uint64_t)step)};
    pool_run(o->dev->pool, (int)((n + GRAIN - 1) / GRAIN), cast_task, &j);
}

/* ---- one call of an entry -------------------------------------------------------------------- */

static void run_entry(struct ops *o, enum op op, const void *args, bool live)
{
    const struct op_entry *entry = &o->entry[op];
    size_t mark = slab_mark(o->workspace);
    size_t bytes = entry->scratch ? entry->scratch(&o->dev->desc, args) : 0;
    void *scratch = bytes ? slab_bytes(o->workspace, bytes) : NULL;
    if (live)
        entry->run(o, args, scratch);
    slab_reset(o->workspace, mark);
}

static void run_wide(struct ops *o, enum op op, union args *a, bool live)
{
    const struct widen_row *r = &rows[op];
    struct tensor narrow[FIELDS] = {{0}};
    enum way way[FIELDS];
    size_t mark = slab_mark(o->workspace);
    for (int i = 0; i < FIELDS; i++)
        way[i] = r->field[i].way ? way_of(op, a, &r->field[i]) : NONE;
    for (int i = 0; i < FIELDS; i++) {
        struct tensor *t = tensor_at(a, r->field[i].at);
        if (!way[i] || !is_narrow(*t)) {
            way[i] = NONE;
            continue;
        }
        narrow[i] = *t;
        *t = slab_take(o->workspace, DTYPE_F32, t->rank, t->size);
        if (live && way[i] & IN)
            cast(o, *t, narrow[i], false);
    }
    run_entry(o, op, a, live);
    for (int i = 0; i < FIELDS && live; i++)
        if (way[i] & OUT)
            cast_out(o, narrow[i], *tensor_at(a, r->field[i].at), rounding_of(op, a),
                     r->field[i].rounded);
    slab_reset(o->workspace, mark);
}

/* ---- ops over flat ranges: piece by piece, and the copy of the weights ----------------------- */

static struct tensor piece_of(struct tensor t, int64_t begin, int64_t n)
{
    return tensor_none(t) ? t : tensor_rows(tensor_flat(t), begin, n);
}

static union args flat_piece(enum op op, const union args *a, int64_t begin, int64_t n)
{
    union args p = *a;
    if (op == OP_SUMSQ) {
        p.sumsq.x = piece_of(a->sumsq.x, begin, n);
    } else if (op == OP_SGD) {
        p.sgd.p = piece_of(a->sgd.p, begin, n);
        p.sgd.m = piece_of(a->sgd.m, begin, n);
        p.sgd.g = piece_of(a->sgd.g, begin, n);
        p.sgd.first += begin;
        p.sgd.round.first += begin;
    } else {
        p.adamw.p = piece_of(a->adamw.p, begin, n);
        p.adamw.m = piece_of(a->adamw.m, begin, n);
        p.adamw.v = piece_of(a->adamw.v, begin, n);
        p.adamw.g = piece_of(a->adamw.g, begin, n);
        p.adamw.first += begin;
        p.adamw.round.first += begin;
    }
    return p;
}

static void run_flat(struct ops *o, enum op op, const union args *a, bool live)
{
    bool sums = op == OP_SUMSQ, adamw = op == OP_ADAMW;
    struct tensor whole = sums ? a->sumsq.x : adamw ? a->adamw.p : a->sgd.p;
    struct tensor copy = {0};
    if (!sums)
        copy = adamw ? a->adamw.copy : a->sgd.copy;
    int64_t n = tensor_count(whole);
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        union args p = flat_piece(op, a, begin, n - begin < PIECE ? n - begin : PIECE);
        run_wide(o, op, &p, live);
    }
    if (live && !tensor_none(copy))
        cast(o, tensor_flat(copy), tensor_flat(whole), false);
}

/* ---- fill and copy: no entry has them in 16 bits --------------------------------------------- */

static void fill_narrow(const struct fill_args *a)
{
    struct tensor y = tensor_contiguous(a->y)
                          ? tensor_nd(a->y.data, a->y.dtype, 2, (int64_t[]){1, tensor_count(a->y)})
                          : a->y;
    int64_t n = y.size[0], width = n ? tensor_count(y) / n : 0;
    double value = a->value;
    uint16_t bits;
    box_cast(&bits, y.dtype, &value, DTYPE_F64, 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            ((uint16_t *)y.data)[i * y.stride + k] = bits;
}

bool widen_lists(enum op op)
{
    return op == OP_FILL || op == OP_COPY || rows[op].size;
}

void widen_run(struct ops *o, enum op op, const void *args, bool live)
{
    const struct copy_args *c = args;
    const struct fill_args *f = args;
    union args a;
    if (op == OP_FILL && is_narrow(f->y)) {
        if (live)
            fill_narrow(f);
    } else if (op == OP_COPY && (is_narrow(c->y) || is_narrow(c->x))) {
        if (live)
            cast(o, c->y, c->x, c->accumulate);
    } else if (op == OP_FILL || op == OP_COPY) {
        run_entry(o, op, args, live);
    } else {
        BUG_ON(!widen_lists(op) || rows[op].size > sizeof(a), "%s: its tensors are not listed",
               op_name(op));
        memcpy(&a, args, rows[op].size);
        if (op == OP_ADAMW || op == OP_SGD || op == OP_SUMSQ)
            run_flat(o, op, &a, live);
        else
            run_wide(o, op, &a, live);
    }
}
