/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/context.h"

#include "base/core/fault.h"
#include "train/model/attention.h"

/* ---- ragged rows ------------------------------------------------------------------------- */

enum { ARRAYS = sizeof(struct context_rows) / sizeof(int32_t *) };

static int context_sets(struct context c)
{
    return CONTEXT_STEPS + context_call_number(c.cp);
}

int64_t context_ints(struct context c, int64_t documents)
{
    return context_sets(c) * ARRAYS * (context_rows_most(c, documents) + 1);
}

/* Elements of an array of a set, of `size` for all. */
static int64_t array_size(struct context c, int64_t size)
{
    return size / ARRAYS / context_sets(c);
}

static struct context_rows set_at(struct context c, int32_t *ints, int64_t size, int set)
{
    int64_t each = array_size(c, size);
    ints += set * ARRAYS * each;
    return (struct context_rows){.q_start = ints,
                                 .k_start = ints + each,
                                 .k_len = ints + 2 * each,
                                 .ahead = ints + 3 * each,
                                 .drop_row = ints + 4 * each,
                                 .drop_key = ints + 5 * each};
}

void context_fill(struct context c, const struct layout *l, int64_t layers, const int32_t *document,
                  int64_t documents, int32_t *ints, int64_t size)
{
    int64_t parts = context_rows_most(c, documents);
    bool used[CONTEXT_COMMS] = {false};
    for (int64_t i = 0; i < layers; i++)
        used[layout_context(l, (int)i)] = true;
    for (int half = 0; used[CONTEXT_ALL_GATHER] && half < 2; half++) {
        struct context_rows r = set_at(c, ints, size, CONTEXT_WHOLE + half);
        context_rows_pad(r, context_rows_whole(c, document, documents, half, r), parts);
    }
    for (int step = 0; used[CONTEXT_P2P] && step < c.cp; step++) {
        struct context_call call[CONTEXT_CALLS];
        int n = context_calls(c, step, call), set = CONTEXT_STEPS + context_call_number(step);
        for (int i = 0; i < n; i++) {
            struct context_rows r = set_at(c, ints, size, set + i);
            context_rows_pad(r, context_rows(c, document, documents, call[i], r), parts);
        }
    }
}

/* ---- calls ------------------------------------------------------------------------------- */

static struct tensor half_of(struct tensor t, int half)
{
    return tensor_rows(t, half * (t.size[0] / 2), t.size[0] / 2);
}

enum { OF_ALL = -1 }; /* key_rank of a call with the keys of all ranks */

/* The mean of the keys that a query of a whole sequence sees: of pieces before its own all. */
static double keys_seen(struct context c, struct context_call call)
{
    double each = (double)context_piece_length(c), own = (each + 1) / 2;
    int64_t mine = context_piece(c, call.half);
    struct context other = c;
    if (call.key_rank == OF_ALL)
        return (double)mine * each + own;
    other.rank = call.key_rank;
    return context_piece(other, call.key_half) == mine ? own : each;
}

/* A half's queries against the keys of kv: keys, and values beside them. */
static struct attention_args call_of(const struct model *m, const struct model_pass *p, int l,
                                     struct context_call call, int set, struct tensor kv)
{
    struct attention_args a = attention_args_of(m, p, l);
    int half = call.half;
    struct tensor ints = m->a.context;
    int64_t each = array_size(m->context, ints.size[0]), width = kv.size[1] / 2;
    struct tensor rows = tensor_rows(ints, set * ARRAYS * each, ARRAYS * each);
    a.q = half_of(a.q, half);
    a.o = half_of(a.o, half);
    a.lse = tensor_cols(a.lse, half * (p->n / 2), p->n / 2);
    a.k = tensor_heads(tensor_cols(kv, 0, width), m->kv_heads);
    a.v = tensor_heads(tensor_cols(kv, width, width), m->kv_heads);
    a.q_start = tensor_rows(rows, 0, p->parts + 1);
    a.k_start = tensor_rows(rows, each, p->parts);
    a.k_len = tensor_rows(rows, 2 * each, p->parts);
    a.ahead = tensor_rows(rows, 3 * each, p->parts);
    a.drop_row = tensor_rows(rows, 4 * each, p->parts);
    a.drop_key = tensor_rows(rows, 5 * each, p->parts);
    a.seen = keys_seen(m->context, call);
    return a;
}

/* The gradients of such a call: of keys and values into dkv. */
static struct attention_bwd_args call_bwd_of(const struct model *m, struct attention_args fwd,
                                             int half, struct tensor datt, struct tensor dqkv,
                                             struct tensor dkv)
{
    int64_t width = dkv.size[1] / 2;
    return (struct attention_bwd_args){
        .fwd = fwd,
        .dout = half_of(tensor_heads(datt, m->heads), half),
        .dq = half_of(model_heads(m, dqkv).q, half),
        .dk = tensor_heads(tensor_cols(dkv, 0, width), m->kv_heads),
        .dv = tensor_heads(tensor_cols(dkv, width, width), m->kv_heads)};
}

static void move_rows(struct model *m, struct tensor to, struct tensor from)
{
    op_copy(m->ops, &(struct copy_args){.y = to, .x = from});
}

static void add_rows_to(struct model *m, struct tensor to, struct tensor from)
{
    op_copy(m->ops, &(struct copy_args){.y = to, .x = from, .accumulate = true});
}

static struct tensor scratch_2d(struct model *m, int64_t rows, int64_t cols)
{
    return slab_2d(m->ops->workspace, m->ops->real, rows, cols);
}

/* Keys and values of packed rows: neighbouring columns. */
static struct tensor keys_of(const struct model *m, struct tensor qkv)
{
    int64_t q = m->heads * m->spec->head_dim, kv = m->kv_heads * m->spec->head_dim;
    return tensor_cols(qkv, q, 2 * kv);
}

/* ---- all keys at once -------------------------------------------------------------------- */

/* Rows of all ranks, one rank after the other, into the order of the sequences, or back. */
static void reorder(struct model *m, struct tensor ranks, struct tensor whole, bool back)
{
    struct context c = m->context;
    int64_t width = ranks.size[1], piece = context_piece_length(c) * width;
    struct tensor rows = tensor_2d(ranks.data, ranks.dtype, 2 * c.cp * c.sequences, piece);
    struct tensor sequences = tensor_2d(whole.data, whole.dtype, c.sequences, 2 * c.cp * piece);
    for (c.rank = 0; c.rank < c.cp; c.rank++)
        for (int half = 0; half < 2; half++) {
            struct tensor of_rank =
                tensor_rows(rows, (2 * c.rank + half) * c.sequences, c.sequences);
            struct tensor of_all = tensor_cols(sequences, context_piece(c, half) * piece, piece);
            move_rows(m, back ? of_rank : of_all, back ? of_all : of_rank);
        }
}

/* Keys and values of all ranks in the order of the sequences, [cp n, 2 K D]. */
static struct tensor gather(struct model *m, struct tensor qkv, struct tensor ranks)
{
    struct tensor keys = keys_of(m, qkv), whole = scratch_2d(m, ranks.size[0], ranks.size[1]);
    struct tensor mine = tensor_rows(ranks, m->context.rank * keys.size[0], keys.size[0]);
    move_rows(m, mine, keys);
    comm_wait(m->comm, comm_all_gather(m->comm, GROUP_CP, ranks, mine));
    reorder(m, ranks, whole, false);
    return whole;
}

static void gathered(struct model *m, const struct model_pass *p, int l, struct tensor qkv)
{
    struct tensor ranks = scratch_2d(m, p->n * m->context.cp, keys_of(m, qkv).size[1]);
    struct tensor kv = gather(m, qkv, ranks);
    for (int half = 0; half < 2; half++) {
        struct context_call call = {.half = half, .key_rank = OF_ALL};
        struct attention_args a = call_of(m, p, l, call, CONTEXT_WHOLE + half, kv);
        op_attention(m->ops, &a);
    }
}

static void gathered_bwd(struct model *m, const struct model_pass *p, int l, struct tensor qkv,
                         struct tensor datt, struct tensor dqkv)
{
    int64_t rows = p->n * m->context.cp, width = keys_of(m, qkv).size[1];
    struct tensor ranks = scratch_2d(m, rows, width), kv = gather(m, qkv, ranks);
    struct tensor dkv[2] = {scratch_2d(m, rows, width), scratch_2d(m, rows, width)};
    for (int half = 0; half < 2; half++) {
        struct context_call call = {.half = half, .key_rank = OF_ALL};
        struct attention_args a = call_of(m, p, l, call, CONTEXT_WHOLE + half, kv);
        struct attention_bwd_args b = call_bwd_of(m, a, half, datt, dqkv, dkv[half]);
        op_attention_bwd(m->ops, &b);
    }
    if (!FAULT("context_keys"))
        add_rows_to(m, dkv[0], dkv[1]);
    reorder(m, ranks, dkv[0], true);
    struct tensor mine = tensor_rows(ranks, m->context.rank * p->n, p->n);
    comm_wait(m->comm, comm_reduce_scatter(m->comm, GROUP_CP, mine, ranks, REDUCE_SUM));
    move_rows(m, keys_of(m, dqkv), mine);
}

/* ---- keys go round ----------------------------------------------------------------------- */

/*
 * Keys and values on their way round the ranks, from each to the next: in step k a rank has those
 * of the rank before it by k. While a step computes, those of the next one arrive (Liu et al. 2023,
 * Ring Attention).
 */
struct ring {
    struct tensor kv[2]; /* [n, 2 K D]: of this step and of the next, in turn */
    int next, before;    /* ranks */
    struct comm_ticket moving;
};

static struct ring ring_of(struct model *m, const struct model_pass *p, struct tensor keys)
{
    struct context c = m->context;
    struct ring r = {.next = (c.rank + 1) % c.cp, .before = (c.rank + c.cp - 1) % c.cp};
    for (int i = 0; i < 2; i++)
        r.kv[i] = scratch_2d(m, p->n, keys.size[1]);
    move_rows(m, r.kv[0], keys);
    return r;
}

static struct comm_ticket pass_on(struct model *m, const struct ring *r, const struct tensor t[2],
                                  int step)
{
    return comm_exchange(m->comm, GROUP_CP, t[step % 2], r->next, t[(step + 1) % 2], r->before);
}

/* The keys of a step; those of the next one begin to arrive. */
static struct tensor ring_begin(struct model *m, struct ring *r, int step)
{
    if (step + 1 < m->context.cp)
        r->moving = pass_on(m, r, r->kv, step);
    return r->kv[step % 2];
}

static void ring_end(struct model *m, struct ring *r, int step)
{
    if (step + 1 < m->context.cp)
        comm_wait(m->comm, r->moving);
}

/* A call's result goes to scratch, to be merged with what there is. */
static struct merge_args apart(struct model *m, struct attention_args *a)
{
    int64_t n = a->q.size[0], width = m->heads * m->spec->head_dim;
    struct merge_args merge = {.o = a->o,
                               .lse = a->lse,
                               .part_o = tensor_heads(scratch_2d(m, n, width), m->heads),
                               .part_lse = slab_2d(m->ops->workspace, m->ops->stat, m->heads, n)};
    a->o = merge.part_o;
    a->lse = merge.part_lse;
    return merge;
}

/* The calls of a step. */
struct step {
    struct context_call call[CONTEXT_CALLS];
    int calls, set; /* set: of the first */
    int number;
};

static struct step step_of(const struct model *m, int number)
{
    struct step s = {.number = number, .set = CONTEXT_STEPS + context_call_number(number)};
    s.calls = context_calls(m->context, number, s.call);
    return s;
}

/* Whether call i is the first of its half. */
static bool opens(const struct step *s, int i)
{
    return s->number == 0 && (i == 0 || s->call[i].half != s->call[i - 1].half);
}

static void step_forward(struct model *m, const struct model_pass *p, int l, const struct step *s,
                         struct tensor kv)
{
    for (int i = 0; i < s->calls; i++) {
        size_t mark = slab_mark(m->ops->workspace);
        struct tensor part = half_of(kv, s->call[i].key_half);
        struct attention_args a = call_of(m, p, l, s->call[i], s->set + i, part);
        struct merge_args merge = {0};
        if (!opens(s, i))
            merge = apart(m, &a);
        op_attention(m->ops, &a);
        if (!opens(s, i))
            op_merge(m->ops, &merge);
        slab_reset(m->ops->workspace, mark);
    }
}

static void round_trip(struct model *m, const struct model_pass *p, int l, struct tensor qkv)
{
    struct ring ring = ring_of(m, p, keys_of(m, qkv));
    for (int i = 0; i < m->context.cp; i++) {
        struct step s = step_of(m, i);
        struct tensor kv = ring_begin(m, &ring, i);
        step_forward(m, p, l, &s, kv);
        ring_end(m, &ring, i);
    }
}

/* dq is written by the first call of a half and added to by the others; the gradients of keys are
 * left in dkv, one call's after the other. */
static void step_backward(struct model *m, const struct model_pass *p, int l, const struct step *s,
                          struct tensor kv, const struct tensor grads[2],
                          const struct tensor dkv[CONTEXT_CALLS])
{
    for (int i = 0; i < s->calls; i++) {
        size_t mark = slab_mark(m->ops->workspace);
        int half = s->call[i].half;
        struct tensor part = half_of(kv, s->call[i].key_half);
        struct attention_args a = call_of(m, p, l, s->call[i], s->set + i, part);
        struct attention_bwd_args b = call_bwd_of(m, a, half, grads[0], grads[1], dkv[i]);
        struct tensor dq = b.dq;
        if (!opens(s, i))
            b.dq = tensor_heads(scratch_2d(m, dq.size[0], dq.size[1] * dq.size[2]), m->heads);
        op_attention_bwd(m->ops, &b);
        if (!opens(s, i))
            add_rows_to(m, dq, b.dq);
        slab_reset(m->ops->workspace, mark);
    }
}

/*
 * The gradients of keys follow them round the ranks, a step later, and add up; the last message
 * brings them home.
 */
static void round_trip_bwd(struct model *m, const struct model_pass *p, int l, struct tensor qkv,
                           struct tensor datt, struct tensor dqkv)
{
    struct tensor keys = keys_of(m, qkv), sum[2], dkv[CONTEXT_CALLS], grads[] = {datt, dqkv};
    struct ring ring = ring_of(m, p, keys);
    struct comm_ticket coming = {0};
    for (int i = 0; i < 2; i++)
        sum[i] = scratch_2d(m, p->n, keys.size[1]);
    for (int i = 0; i < CONTEXT_CALLS; i++)
        dkv[i] = scratch_2d(m, p->n / 2, keys.size[1]);
    op_fill(m->ops, &(struct fill_args){.y = sum[0], .value = 0});
    for (int i = 0; i < m->context.cp; i++) {
        struct step s = step_of(m, i);
        struct tensor kv = ring_begin(m, &ring, i);
        step_backward(m, p, l, &s, kv, grads, dkv);
        comm_wait(m->comm, coming);
        for (int k = 0; k < s.calls && !(i && FAULT("context_home")); k++)
            add_rows_to(m, half_of(sum[i % 2], s.call[k].key_half), dkv[k]);
        coming = pass_on(m, &ring, sum, i);
        ring_end(m, &ring, i);
    }
    comm_wait(m->comm, coming);
    move_rows(m, keys_of(m, dqkv), sum[m->context.cp % 2]);
}

/* ---- whole sequences of a part of the heads ---------------------------------------------- */

/*
 * Context-parallel ranks share out the heads for the time of the attention (Jacobs et al. 2023,
 * DeepSpeed Ulysses): rank k gets the k-th part of the query heads and of those of keys and values,
 * of all tokens. What travels are columns of several tensors side by side, equally many of each for
 * each rank.
 */
enum { TRADED = 3 };

struct trade {
    struct tensor t[TRADED]; /* [n, columns] */
    int count;
};

static int64_t columns_for_each(const struct model *m, const struct trade *t)
{
    int64_t sum = 0;
    for (int i = 0; i < t->count; i++)
        sum += t->t[i].size[1] / m->context.cp;
    return sum;
}

/* Between the tensors and rows for each rank, one rank after the other. */
static void trade_columns(struct model *m, const struct trade *t, struct tensor packed, bool back)
{
    int cp = m->context.cp;
    int64_t at = 0, n = packed.size[0] / cp;
    for (int i = 0; i < t->count; i++) {
        int64_t width = t->t[i].size[1] / cp;
        for (int k = 0; k < cp; k++) {
            struct tensor mine = tensor_cols(t->t[i], k * width, width);
            struct tensor theirs = tensor_cols(tensor_rows(packed, k * n, n), at, width);
            move_rows(m, back ? mine : theirs, back ? theirs : mine);
        }
        at += width;
    }
}

static struct tensor all_to_all(struct model *m, struct tensor give)
{
    struct tensor got = scratch_2d(m, give.size[0], give.size[1]);
    comm_wait(m->comm, comm_all_to_all(m->comm, GROUP_CP, got, m->a.traded, give, m->a.traded));
    return got;
}

/* Columns of this rank's tokens to those of this rank's heads, of all tokens, in `whole`. */
static void to_heads(struct model *m, const struct trade *t, struct tensor whole)
{
    struct tensor packed = scratch_2d(m, whole.size[0], whole.size[1]);
    trade_columns(m, t, packed, false);
    reorder(m, all_to_all(m, packed), whole, false);
}

static void from_heads(struct model *m, struct tensor whole, const struct trade *t)
{
    struct tensor ranks = scratch_2d(m, whole.size[0], whole.size[1]);
    reorder(m, ranks, whole, true);
    trade_columns(m, t, all_to_all(m, ranks), true);
}

static struct trade trade_qkv(const struct model *m, struct tensor qkv)
{
    int64_t q = m->heads * m->spec->head_dim, kv = m->kv_heads * m->spec->head_dim;
    return (struct trade){
        .t = {tensor_cols(qkv, 0, q), tensor_cols(qkv, q, kv), tensor_cols(qkv, q + kv, kv)},
        .count = 3};
}

/* The columns of q, k and v of packed rows of this rank's heads. */
static struct qkv_heads own_heads(const struct model *m, struct tensor whole)
{
    int64_t h = m->heads / m->context.cp, k = m->kv_heads / m->context.cp, d = m->spec->head_dim;
    return (struct qkv_heads){.q = tensor_heads(tensor_cols(whole, 0, h * d), h),
                              .k = tensor_heads(tensor_cols(whole, h * d, k * d), k),
                              .v = tensor_heads(tensor_cols(whole, (h + k) * d, k * d), k)};
}

/* acts.qkv once its columns have been traded, and what keeps the same size in another shape. */
static struct tensor as_whole(const struct model *m, struct tensor t)
{
    return tensor_2d(t.data, t.dtype, t.size[0] * m->context.cp, t.size[1] / m->context.cp);
}

static struct attention_args heads_args(const struct model *m, const struct model_pass *p, int l,
                                        struct tensor o)
{
    const struct layer_acts *acts = &m->a.layer[l];
    struct attention_args a = attention_args_of(m, p, l);
    struct qkv_heads h = own_heads(m, as_whole(m, acts->qkv));
    a.q = h.q;
    a.k = h.k;
    a.v = h.v;
    a.o = tensor_heads(o, h.q.size[1]);
    a.lse = tensor_2d(acts->lse.data, acts->lse.dtype, h.q.size[1], h.q.size[0]);
    if (!FAULT("context_heads"))
        a.head0 += m->context.rank * h.q.size[1];
    return a;
}

static void traded(struct model *m, const struct model_pass *p, int l, bool again)
{
    const struct layer_acts *acts = &m->a.layer[l];
    struct trade qkv = trade_qkv(m, acts->qkv), att = {.t = {acts->att}, .count = 1};
    size_t mark = slab_mark(m->ops->workspace);
    if (!again)
        to_heads(m, &qkv, as_whole(m, acts->qkv));
    slab_reset(m->ops->workspace, mark);
    struct tensor o = scratch_2d(m, p->n * m->context.cp, columns_for_each(m, &att));
    struct attention_args a = heads_args(m, p, l, o);
    op_attention(m->ops, &a);
    from_heads(m, o, &att);
}

static void traded_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                       struct tensor dqkv)
{
    struct trade both = {.t = {m->a.layer[l].att, datt}, .count = 2}, back = trade_qkv(m, dqkv);
    int64_t rows = p->n * m->context.cp, width = datt.size[1] / m->context.cp;
    struct tensor o = scratch_2d(m, rows, columns_for_each(m, &both));
    struct tensor dwhole = scratch_2d(m, rows, columns_for_each(m, &back));
    struct qkv_heads d = own_heads(m, dwhole);
    size_t mark = slab_mark(m->ops->workspace);
    to_heads(m, &both, o);
    slab_reset(m->ops->workspace, mark);
    op_attention_bwd(m->ops, &(struct attention_bwd_args){
                                 .fwd = heads_args(m, p, l, tensor_cols(o, 0, width)),
                                 .dout = tensor_heads(tensor_cols(o, width, width), d.q.size[1]),
                                 .dq = d.q,
                                 .dk = d.k,
                                 .dv = d.v});
    from_heads(m, dwhole, &back);
}

/* ---- one layer --------------------------------------------------------------------------- */

void context_attention(struct model *m, const struct model_pass *p, int l, bool again)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor qkv = tensor_rows(m->a.layer[l].qkv, 0, p->n);
    switch (layout_context(m->layout, m->stage.first + l)) {
    case CONTEXT_ALL_GATHER:
        gathered(m, p, l, qkv);
        break;
    case CONTEXT_A2A:
        traded(m, p, l, again);
        break;
    default:
        round_trip(m, p, l, qkv);
    }
    slab_reset(m->ops->workspace, mark);
}

void context_attention_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                           struct tensor dqkv)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor qkv = tensor_rows(m->a.layer[l].qkv, 0, p->n);
    switch (layout_context(m->layout, m->stage.first + l)) {
    case CONTEXT_ALL_GATHER:
        gathered_bwd(m, p, l, qkv, datt, dqkv);
        break;
    case CONTEXT_A2A:
        traded_bwd(m, p, l, datt, dqkv);
        break;
    default:
        round_trip_bwd(m, p, l, qkv, datt, dqkv);
    }
    slab_reset(m->ops->workspace, mark);
}
