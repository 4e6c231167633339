/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_OPS_H
#define TRAIN_OPS_OPS_H

/*
 * The ops table: the maths of training, forward and backward. The model calls op_NAME(o, &args);
 * that checks types and shapes once for every backend (a mistake is a BUG), takes the op's scratch
 * from the workspace slab, and jumps. An entry is a pair: `run`, and `scratch`, a pure function of
 * shapes and a device's description. Ops return void: nothing can fail once memory is bound. What a
 * backend must find out for a shape (an algorithm of a library, a compiled kernel) its entry
 * prepares while the step is planned, which may fail with a sentence. While the workspace slab is
 * unbound nothing runs: a call only checks and measures its scratch.
 *
 * A table has four types (struct ops): F32 for all, or F64 (gradient checks, plain C only), or
 * BF16 or F16 for activations and weights with F32 for the rest, sums included; of that rest
 * gradients, master weights and moments may be BF16, too (struct ops_narrow). Tensors below are of
 * the type `real` unless said otherwise: mean, rstd, lse, cos, sin, max, sum, target and loss are
 * `stat`; dtok, dpos, dw, db, dbias and what a matmul accumulates into are `grad`, as are the x of
 * sumsq and the g of AdamW and SGD; their p is `master`, SGD's m, too; AdamW's m and v are
 * `moment`. "none" marks a tensor that may be absent. The host computes in F32 or F64 alone and
 * casts (widen.h). Gradients of parameters (dw, db, ...) are added to what is there; gradients of
 * activations are written. Sizes: n tokens (rows), C hidden, O x I a weight [out, in], V
 * vocabulary, H heads of queries, K heads of keys and values, D head dimension. n may be 0.
 *
 * Matrices and heads may have gaps between their rows (stride). Outputs may not overlap inputs but
 * where it is said. Ids, positions and labels are the caller's to check; they are not looked at
 * while memory is measured.
 *
 * Work is cut by size, never by the number of threads, and sums run in a fixed order: the same
 * arguments give the same bytes.
 */

#include "train/tensor/dev.h"
#include "train/tensor/slab.h"
#include "train/tensor/tensor.h"

enum act { ACT_NONE, ACT_GELU_TANH, ACT_GELU_ERF };
enum norm { NORM_LAYER, NORM_RMS };
enum glu { GLU_SILU, GLU_GELU_TANH, GLU_GELU_ERF };

/*
 * Dropout as a function of global indices, so that masks do not depend on ranks or micro-batches.
 * Each 8 columns of a row of a [n, width] tensor share a block of 128 random bits, seven rounds of
 * philox(seed, RNG_DROPOUT, sub, (row0 + row) * ceil(width / 8) + col / 8). With i = col % 8 the
 * element has the lower 15 bits of a half of word i % 4, the lower half for i < 4. It is kept if
 * these are at least q * 2^15, q being p rounded to a multiple of 2^-15 below 1, and is then scaled
 * by 1 / (1 - q). row0 is the global number of the first row. 0 <= p < 1; p = 0: no dropout. With
 * `rows` (I32 [n], where the rows of a rank are not neighbours in the micro-batch; not in
 * attention, which has drop_row) row i is the global row row0 + rows[i]. With `origin` (struct
 * drop_origin, values.h) the seed is that in its memory, and row0 is added to that there.
 */
struct dropout {
    float p;
    uint64_t seed;
    uint32_t sub; /* layer and place */
    uint64_t row0;
    struct tensor rows;   /* or none */
    struct tensor origin; /* I32 [DROP_ORIGIN] or none */
};

/*
 * y[n,C] = dropout(scale tok[id] + pos[position] + u); scale 0: 1. With `shard`, tok is a part of
 * the vocabulary, from id `first` on, and an id without a row here has zeros for tok[id]. u is a
 * random number between -noise and noise for each element, numbered as the masks of `drop` are:
 * noise * (2 rng_unit(philox(seed, RNG_NOISE, 0, e / 4)[e % 4]) - 1). 0: none.
 */
struct embed_args {
    struct tensor y, id /* I32 [n] */, tok /* [V,C] */, pos /* [P,C] or none */,
        position /* I32 [n], none without pos */;
    bool shard;
    int64_t first;
    double scale;
    float noise;
    struct dropout drop;
};

/*
 * dtok[id] += scale dy, dpos[position] += dy (dy through the dropout), each row's sum in the order
 * of n.
 */
struct embed_bwd_args {
    struct tensor dy, id, dtok /* or none */, dpos /* or none */, position;
    bool shard; /* as forward */
    int64_t first;
    double scale; /* likewise */
    struct dropout drop;
};

/*
 * The residual stream and the norm that reads it, in one pass:
 * r = x + dropout(a + bias); y = norm(r) * w + b.
 * With less_one, weights are stored less one: norm(r) * (1 + w). Without a: r is x and is not
 * written (r none). mean [n] (NORM_LAYER only, else none), rstd [n].
 * r may be x's memory.
 */
struct norm_args {
    enum norm kind;
    float eps;
    bool less_one;
    struct tensor y, r, mean, rstd, x, a, bias /* [C] or none */, w, b /* [C] or none */;
    struct dropout drop;
};

/*
 * dr holds the gradient that reaches r from behind (zeros if none) and gets the norm's added:
 * dr += d norm(r); dw, db added to. da (none if there was no a) = dropout'(dr), dbias += column
 * sums of da. da may be dr's memory only if p = 0.
 */
struct norm_bwd_args {
    enum norm kind;
    bool less_one; /* as forward */
    struct tensor dr, dy, r, mean, rstd, w, dw, db /* or none */, da, dbias /* or none */;
    struct dropout drop;
};

/*
 * y = act(op(a) op(b) + bias), or y += op(a) op(b) if accumulate (bias and act none then).
 * y [m,n], op(a) [m,k], op(b) [k,n]; ta, tb: the tensor is stored transposed. The three uses are
 *     forward  y[n,O]  = x[n,I]  w[O,I]^T     tb
 *     dgrad    dx[n,I] = dy[n,O] w[O,I]
 *     wgrad    dw[O,I] += dy[n,O]^T x[n,I]    ta, accumulate; dbias [O] += column sums of dy
 * Without accumulate all three may be `master` instead (an optimizer's, where the table has that).
 * pre (same shape as y): forward with act: receives op(a) op(b) + bias, or none; with act_bwd it is
 * read: y = (op(a) op(b)) * act'(pre), bias none.
 */
struct matmul_args {
    struct tensor y, a, b;
    bool ta, tb, accumulate, act_bwd;
    enum act act;
    struct tensor bias, pre, dbias;
};

/*
 * y[n,F] = act(g) * u with g = x[:, 0:F], u = x[:, F:2F]: silu (SwiGLU; Shazeer 2020), or GELU in
 * one of its two forms (GeGLU).
 */
struct glu_args {
    struct tensor y, x;
    enum glu act;
};

/* dx[n,2F]; dx may be x's memory. */
struct glu_bwd_args {
    struct tensor dx, dy, x;
    enum glu act;
};

/*
 * Rotary positions in place on heads [n, heads, D]: the first `rotary` dimensions of each head,
 * pairs (i, i + rotary / 2), turned by the angle of table row position[i]. cos, sin:
 * [P, rotary / 2]. backward: turned back.
 */
struct rope_args {
    struct tensor x, cos, sin, position /* I32 [n] */;
    int64_t rotary;
    bool backward;
};

/*
 * Causal softmax attention over ragged rows. Sequence s has query rows q_start[s] ..
 * q_start[s+1] - 1 and key rows k_start[s] .. + k_len[s] - 1; its last query sees its last key (so
 * decoding with a cache is the same op), and with window > 0 only the last `window` keys before and
 * including its own. q_start begins with 0, ends with n and does not fall; k_len[s] is at least the
 * number of s's queries; key ranges of sequences do not overlap.
 * q, o [n,H,D]; k, v [nk,K,D]; H a multiple of K. lse [H,n]: log of the sum of exponentials, saved
 * for backward (none if there will be none).
 * drop is over weights: row (row0 + query row) * all_heads + head0 + head, width max_len, column
 * key - k_start[s].
 *
 * even: a promise about the rows. Sequence s has the query and key rows s max_len .. (s+1) max_len
 * - 1, and in the backward dout, dq, dk and dv have the strides of o, q, k and v. What is in lse is
 * then for the same backend's backward alone.
 *
 * Context parallel: the keys are a part of those that the queries see, and the results of several
 * calls are merged (merge_args). ahead[s] is by how many positions the last query lies after the
 * last key, so query i of s sees keys up to k_len[s] - queries + i + ahead[s]: at least `queries`
 * means no mask. k_len[s] may then be any, also 0; key ranges may overlap in the forward. A query
 * that sees no key has o = 0, lse = -infinity. For dropout the first query of s is then row
 * (row0 + drop_row[s]), the first key column drop_key[s].
 */
struct attention_args {
    struct tensor o, lse, q, k, v;
    struct tensor q_start /* I32 [s+1] */, k_start /* I32 [s] */, k_len /* I32 [s] */;
    struct tensor ahead /* I32 [s] or none: 0 */, drop_row, drop_key /* I32 [s], with ahead only */;
    int64_t head0, all_heads; /* of the dropout's rows: global heads; all_heads 0: H */
    int64_t max_len;          /* no k_len is larger */
    int64_t window;           /* 0: none */
    double seen; /* of the keys here the mean that a query sees: for its cost; 0: as max_len says */
    bool even;
    bool any_order; /* the backward may add in an order that changes from run to run, and its bytes
                       with it, where that is cheaper; false: in one order */
    float scale;    /* of q k^T, usually 1 / sqrt(D) */
    float cap;      /* a score s becomes cap tanh(s / cap) before the mask; 0: s */
    struct dropout drop;
};

/*
 * fwd as it ran, with o and lse; of a part of the keys, with the merged o and lse, which then gives
 * this part's dk and dv, and its share of dq. dq, dk, dv are written, in rows that no query sees
 * with zeros; key ranges of sequences do not overlap.
 */
struct attention_bwd_args {
    struct attention_args fwd;
    struct tensor dout, dq, dk, dv;
};

/*
 * Attention over two parts of the keys is that over both: o [n,H,D], lse [H,n] become
 * log(exp(lse) + exp(part_lse)), and o and part_o weighed by exp of their lse less that. -infinity
 * in both: zeros. Has no backward of its own: attention_bwd of each part takes what was merged.
 */
struct merge_args {
    struct tensor o, lse, part_o, part_lse;
};

/*
 * Cross-entropy over rows of logits [n,V], in two steps so that a vocabulary may be spread over
 * ranks. stats: max [n] and sum [n] of exp(logit - max) over these columns; target [n]: the label's
 * logit if first <= label < first + V, else 0. Across ranks the caller reduces max first and passes
 * it to a second call with `max_given`, then sums sum and target.
 */
struct xent_stats_args {
    struct tensor logits, label /* I32 [n] */, max, sum, target;
    int64_t first;  /* column 0's id */
    bool max_given; /* max is input: only sum and target are written */
};

/*
 * loss [n] = (log(sum) + max - target) * mask; if grad: logits are overwritten by
 * (softmax - one-hot) * mask * weight, weight being scale * factor / divisor (0 if the divisor is
 * 0; 1 where they are none). A row of mask 0 gets zeros, whatever is in it. total += the sum of
 * loss, added up in double. cap, if not 0: logits came out of op_cap, and what overwrites them is
 * the gradient of what went in, (1 - (logit / cap)^2) times as much. alone: the logits are those of
 * all ids, and max, sum and target are not given but written, as by xent_stats.
 */
struct xent_loss_args {
    struct tensor logits, label, max, sum, target, mask /* F32 [n] */, loss, total /* F64 [1] */;
    struct tensor factor, divisor; /* F64 [1] or none */
    int64_t first;
    double scale;
    bool grad, alone;
    float cap;
};

/* In place, x [n,m] = cap tanh(x / cap); its backward is a factor in xent_loss. */
struct cap_args {
    struct tensor x;
    float cap;
};

/*
 * How an optimizer's op stores weights and moments in BF16: to the nearest without `runs`, else
 * stochastically, a number between two neighbours as either of them, with the mean of the number
 * itself. The random bits are a function of the seed, the optimizer's step (*number), the tensor
 * that an element belongs to, its index in the whole tensor, and which of weights and moments it
 * is (rounding.h). Other types are not affected.
 */
struct rounding {
    struct tensor runs;   /* I32 [k, RUN_INTS] or none: where each tensor lies in a flat range */
    struct tensor number; /* F64 [1] */
    uint64_t seed;
    int64_t first; /* where element 0 of the call lies in that range */
};

/*
 * AdamW (Loshchilov & Hutter 2019) on n elements, contiguous, in place: with g' = g * factor
 *     m = beta1 m + (1 - beta1) g', v = beta2 v + (1 - beta2) g'^2,
 *     p = p (1 - lr decay) - lr / (1 - beta1^n) m / (sqrt(v / (1 - beta2^n)) + eps)
 * lr, decay and what follows from n, the number of the step, are those of `values` (F64
 * [STEP_VALUES], values.h). `segments` (I32 [k, SEGMENT_INTS] or none, segments.h) say which
 * elements are updated, and which decay: element 0 is `first` there. Nothing happens where *skip is
 * not 0.
 */
struct adamw_args {
    struct tensor p, g, m, v, factor /* F64 [1] or none */, skip /* I32 [1] or none */;
    struct tensor copy; /* p in the type `real`, is written; none where that is `master` */
    struct tensor values, segments;
    int64_t first;
    double beta1, beta2, eps;
    struct rounding round; /* of p, m and v */
};

/*
 * SGD (Robbins & Monro 1951; momentum as by Sutskever et al. 2013, without dampening) on n
 * elements, contiguous, in place: with g' = g * factor + decay p m = momentum m + g', p = p - lr m;
 * without m: p = p - lr g'. lr, decay and segments as AdamW's. Nothing happens where *skip is not
 * 0.
 */
struct sgd_args {
    struct tensor p, g, m /* or none */, factor, skip, copy, values, segments; /* as AdamW's */
    int64_t first;
    double momentum;
    struct rounding round; /* of p and m */
};

/* total (F64 [1]) += sum of squares of x (contiguous), in double, by fixed chunks. */
struct sumsq_args {
    struct tensor total, x;
};

/*
 * From the sum of squares: norm = sqrt(total), factor = min(1, max_norm / (norm + 1e-6)) as
 * Megatron computes it (max_norm 0: 1), skip = 0; if norm is not finite, factor = 0 and skip = 1.
 * With `count` the gradients are to be divided by it, at least 1: norm = sqrt(total) / count, and
 * factor is divided by it, too; likewise by `scale`, the loss scale, of any size. All F64 [1] but
 * skip, I32 [1].
 */
struct clip_args {
    struct tensor total, norm, factor, skip, count /* or none */, scale /* or none */;
    double max_norm;
};

/* y = value; F32, F64, I32, or one of the table's types */
struct fill_args {
    struct tensor y;
    double value;
};

/*
 * y = x, F32, F64, I32 or one of the table's types; or y += x, real or `grad`. Same type and shape,
 * strides may differ. Without gaps y may be `real` where x is F32, and gets the nearest; the host
 * casts between any two of the table's types, with gaps, too.
 */
struct copy_args {
    struct tensor y, x;
    bool accumulate;
};

enum op {
    OP_EMBED,
    OP_EMBED_BWD,
    OP_NORM,
    OP_NORM_BWD,
    OP_MATMUL,
    OP_GLU,
    OP_GLU_BWD,
    OP_ROPE,
    OP_ATTENTION,
    OP_ATTENTION_BWD,
    OP_MERGE,
    OP_XENT_STATS,
    OP_XENT_LOSS,
    OP_ADAMW,
    OP_SGD,
    OP_SUMSQ,
    OP_CLIP,
    OP_FILL,
    OP_COPY,
    OP_ROUTE, /* experts.h */
    OP_ROUTE_BWD,
    OP_ROUTE_LOSS,
    OP_PERMUTE,
    OP_PERMUTE_BWD,
    OP_UNPERMUTE,
    OP_UNPERMUTE_BWD,
    OP_GROUPED,
    OP_GROUPED_BWD,
    OP_GATE,
    OP_GATE_BWD,
    OP_CAP,
    OP_HEAD_NORM, /* head_norm.h */
    OP_HEAD_NORM_BWD,
    OP_MOMENTS, /* blocks.h */
    OP_GSNR,
    OP_MOMENTUM,
    OP_DECAYED,
    OP_COMBINE,
    OP_UNIT,
    OP_SELECT, /* values.h */
    OP_COUNT
};

struct ops;

struct op_entry {
    void (*run)(struct ops *o, const void *args, void *scratch);
    size_t (*scratch)(const struct dev_desc *d, const void *args); /* bytes; NULL: none */
    const char *backend; /* "ref", "avx512": for the table that `train` can print */
    /* for these shapes, while planning: addresses count by their alignment alone. NULL: nothing */
    int (*prepare)(struct ops *o, const void *args, struct err *e);
};

/* What is BF16 where it would be F32. */
struct ops_narrow {
    bool grad, master, moment[2];
};

/* How the algorithm of a library for one shape of an op came to be. */
enum ops_origin {
    OPS_FIRST,   /* the library's own first choice */
    OPS_GIVEN,   /* by struct ops_config */
    OPS_TIMED,   /* the fastest of a few */
    OPS_REFUSED, /* the first choice: another was given, but the library does not take it */
};

/* An algorithm of a library for one shape of an op, both as texts that the table alone reads. */
struct ops_choice {
    char what[160], how[192];
    enum ops_origin origin;
    double us, first_us; /* OPS_TIMED: microseconds of this one and of the first choice */
};

/* What serves the attention of some layers, in words that the table owns until it is closed. */
struct ops_served {
    const char *by, *form; /* "cuDNN 9.19.0", "window 512" */
    const char *lacks;     /* why what is faster does not; "": nothing is */
    int layers;            /* that were planned */
    double times;          /* as long as the fastest would take, about */
    bool loops;            /* by plain loops, which nobody wants */
};

/* What a table is asked to be. */
struct ops_config {
    enum dtype real; /* of activations and weights: BF16, F16, or F32, F64, as all others then are
                        but those of `narrow` */
    struct ops_narrow narrow;
    bool tf32;                /* a GPU's products of F32 in TF32 */
    const char *kernels;      /* most that it may use ("avx2"); NULL: the best */
    const char *library_path; /* folders of libraries that are opened at run time; NULL: none */
    const struct ops_choice *choices; /* to be taken, the first of a shape */
    size_t nchoices;
    bool tune; /* others are timed while the step is planned */
};

struct ops {
    struct op_entry entry[OP_COUNT];
    struct dev *dev;
    struct slab *workspace; /* scratch comes from here, by mark and reset */
    /* types (ops_set_types) */
    enum dtype real;      /* activations, their gradients, weights */
    enum dtype stat;      /* means, 1 / deviations, log-sum-exps, tables of angles, losses */
    enum dtype grad;      /* gradients of weights */
    enum dtype master;    /* the optimizer's weights */
    enum dtype moment[2]; /* AdamW's m and v */
    bool widens; /* entries have F32 alone: calls with tensors of 16 bits go through widen.h */
    bool dry;    /* calls are counted and not done (train/plan); scratch is measured */
    int layer;   /* that the model computes, for a fault's sentence; -1: none */
    /* what op_NAME calls when the arguments are checked: ops_run, or a wrapper round it */
    void (*call)(struct ops *o, enum op op, const void *args);
    void *wrapper; /* the wrapper's own */
    /* The i-th choice that was made; false past the last. NULL: none is made. */
    bool (*choice)(const struct ops *o, size_t i, struct ops_choice *ret);
    /* The i-th kind of layers whose attention was planned; false past the last. NULL: there is one
     * implementation. */
    bool (*served)(const struct ops *o, size_t i, struct ops_served *ret);
    void *state; /* the backend's own, which `close` frees (NULL: nothing to free) */
    void (*close)(struct ops *o);
};

const char *op_name(enum op op);

void ops_close(struct ops *o);

void ops_set_types(struct ops *o, enum dtype real, struct ops_narrow narrow);

/* What of a call only the tables of the host have, in words; NULL: nothing. */
const char *ops_host_form(enum op op, const void *args);

/* Takes scratch, runs unless the workspace is unbound or the table is dry, gives scratch back. A
 * fault of the device that the op meets gets the op's name and the layer. */
void ops_run(struct ops *o, enum op op, const void *args);

/*
 * Floating-point operations (a multiply-add is two, an exponential or a root one) and bytes that
 * the op must read and write at least. From shapes alone: attention counts its queries as spread
 * evenly over sequences of max_len keys each.
 */
struct op_cost {
    double flops, bytes;
};
struct op_cost op_cost(enum op op, const void *args);

/*
 * Fills every entry with plain C, then overwrites by what the processor offers up to `level`:
 * "ref", "plain", "avx2", "avx512"; NULL for the best. F64 has plain C only. ERR_USAGE for a level
 * that this machine lacks.
 */
int ops_cpu_init(struct ops *o, struct dev *d, struct slab *workspace, enum dtype real,
                 const char *level, struct err *e);
/* The same as an entry of struct rank_backends. */
int ops_cpu_open(struct ops *o, struct dev *d, struct slab *workspace, const struct ops_config *c,
                 struct err *e);

void op_embed(struct ops *o, const struct embed_args *a);
void op_embed_bwd(struct ops *o, const struct embed_bwd_args *a);
void op_cap(struct ops *o, const struct cap_args *a);
void op_norm(struct ops *o, const struct norm_args *a);
void op_norm_bwd(struct ops *o, const struct norm_bwd_args *a);
void op_matmul(struct ops *o, const struct matmul_args *a);
void op_glu(struct ops *o, const struct glu_args *a);
void op_glu_bwd(struct ops *o, const struct glu_bwd_args *a);
void op_rope(struct ops *o, const struct rope_args *a);
void op_attention(struct ops *o, const struct attention_args *a);
void op_attention_bwd(struct ops *o, const struct attention_bwd_args *a);
void op_merge(struct ops *o, const struct merge_args *a);
void op_xent_stats(struct ops *o, const struct xent_stats_args *a);
void op_xent_loss(struct ops *o, const struct xent_loss_args *a);
void op_adamw(struct ops *o, const struct adamw_args *a);
void op_sgd(struct ops *o, const struct sgd_args *a);
void op_sumsq(struct ops *o, const struct sumsq_args *a);
void op_clip(struct ops *o, const struct clip_args *a);
void op_fill(struct ops *o, const struct fill_args *a);
void op_copy(struct ops *o, const struct copy_args *a);

#endif
