/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/context.h"

#include "base/core/fault.h"
#include "train/model/attention.h"

/* ---- ragged rows ------------------------------------------------------------------------- */

enum { ARRAYS = sizeof(struct context_rows) / sizeof(int32_t *) };

int context_sets(struct context c)
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

/* A half's queries against the keys of kv: keys, and values beside them. */
static struct attention_args call_of(const struct model *m, const struct model_pass *p, int l,
                                     int half, int set, struct tensor kv)
{
    struct attention_args a = attention_args_of(m, p, l);
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
        struct attention_args a = call_of(m, p, l, half, CONTEXT_WHOLE + half, kv);
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
        struct attention_args a = call_of(m, p, l, half, CONTEXT_WHOLE + half, kv);
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

/* ---- one layer --------------------------------------------------------------------------- */

void context_attention(struct model *m, const struct model_pass *p, int l)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor qkv = tensor_rows(m->a.layer[l].qkv, 0, p->n);
    gathered(m, p, l, qkv);
    slab_reset(m->ops->workspace, mark);
}

void context_attention_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                           struct tensor dqkv)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor qkv = tensor_rows(m->a.layer[l].qkv, 0, p->n);
    gathered_bwd(m, p, l, qkv, datt, dqkv);
    slab_reset(m->ops->workspace, mark);
}
