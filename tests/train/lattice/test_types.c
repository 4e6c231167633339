/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/space.h"
#include "tests/train/spec/same.h"
#include "train/ops/dropout.h"
#include "train/ops/experts.h"
#include "train/tensor/box.h"

/*
 * Types of 16 bits on a sample of the lattice's cells: the gradients of the first step against
 * those of one rank in fp32, on the same rounded weights. A tensor agrees by the angle between the
 * two and the ratio of their norms; one whose norm is below `small` of that of all, by the norm of
 * the difference. Tokens of routed models go to the experts that the rank in fp32 chose for them.
 */

/* Weights of a usual size, and enough rows that roundings average out in the 20 numbers of a norm;
 * in WIDE where more of them add up: in routed models, with norms of heads, with four in a layer,
 * these of the usual size for that width.
 */
enum { SEED = 21, CELLS = 52, FAMILY = 2, ROUTED = 5, ROWS = 16, WIDE = 64, SCALE = 1024 };
static const double init_std = 0.05, wide_std = 0.02;
static const double cosine = 0.999, ratio = 0.01, small = 1e-3;

/* Gradients of all ranks, in the places of a single one's. */
struct whole {
    enum dtype rounded;          /* to which initial weights are rounded */
    const struct params *params; /* of the single rank */
    double *at;                  /* [params->elements] */
    double norm;
};

static void round_weights(void *arg, struct rank *r)
{
    enum dtype d = ((const struct whole *)arg)->rounded;
    struct tensor t = rank_master(r);
    void *bits = mem_new((size_t)t.size[0], dtype_size(d));
    box_cast(bits, d, t.data, t.dtype, t.size[0]);
    box_cast(t.data, t.dtype, bits, d, t.size[0]);
    free(bits);
    rank_spread_master(r);
}

/* ---- the choice of experts ---------------------------------------------------------------- */

enum { CHOICES = 4, EXPERTS_MAX = 8, LAYERS_MAX = 8, TOKENS_MAX = 8 * ROWS * CELL_LENGTH };

/* Of each layer and token of the step by their global numbers, 1 + the expert; 0: not seen. Written
 * by the single rank, read by all ranks of a cell. */
static struct {
    void (*route)(struct ops *o, const void *args, void *scratch); /* the table's own */
    bool known;
    int8_t at[LAYERS_MAX][TOKENS_MAX][CHOICES];
} chosen;

/* The micro-batch that the rank is computing. */
static const struct model_pass *pass_of(const struct rank *r)
{
    for (int i = 0; i < r->pipe.schedule.places; i++)
        if (r->pipe.place[i].acts.layer == r->model.a.layer)
            return &r->pipe.place[i].pass;
    BUG("the model is in no place of the pipeline");
}

/* Global numbers of the rows that a router has: those of the stream, or of all tensor-parallel
 * ranks. */
static struct dropout rows_of(const struct rank *r, int64_t n)
{
    const struct model_pass *p = pass_of(r);
    struct dropout d = model_dropout(&r->model, p, DROP_MLP, 0);
    if (n == p->n)
        d = model_dropout(&r->model, p, DROP_ATTENTION, 0);
    if (n == p->n && !tensor_none(r->model.a.row))
        d.rows = tensor_rows(r->model.a.row, 0, n);
    return d;
}

/* The experts of row i are those of the first rank: a second call of the op, with logits of which
 * these are the largest, says where its pairs go. */
static void follow_choice(struct ops *o, const struct route_args *a, void *scratch,
                          int8_t *const *want)
{
    int64_t n = a->choice.size[0], k = a->choice.size[1], E = a->logits.size[1];
    float *mem = mem_new((size_t)(n * (2 * E + k + 1)), sizeof(*mem));
    struct route_args b = *a;
    b.logits = tensor_2d(mem, DTYPE_F32, n, E);
    b.prob = tensor_2d(mem + n * E, DTYPE_F32, n, E);
    b.weight = tensor_2d(mem + 2 * n * E, DTYPE_F32, n, k);
    b.lse = tensor_1d(mem + 2 * n * E + n * k, DTYPE_F32, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            mem[i * E + want[i][j] - 1] = (float)(k - j);
    chosen.route(o, &b, scratch);
    for (int64_t i = 0; i < n; i++) {
        const float *prob = (const float *)a->prob.data + i * a->prob.stride;
        float *weight = (float *)a->weight.data + i * a->weight.stride;
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += (double)prob[want[i][j] - 1];
        for (int64_t j = 0; j < k; j++)
            weight[j] = (float)((double)prob[want[i][j] - 1] / (a->normalize ? sum : 1));
    }
    free(mem);
}

/* In the place of the table's route. */
static void route(struct ops *o, const void *args, void *scratch)
{
    const struct route_args *a = args;
    const struct rank *r = (const void *)((const char *)o - offsetof(struct rank, ops));
    int64_t n = a->choice.size[0], k = a->choice.size[1];
    int layer = r->model.stage.first + o->layer;
    struct dropout d = rows_of(r, n);
    int8_t **row = mem_new((size_t)n, sizeof(*row));
    BUG_ON(k > CHOICES || layer < 0 || layer >= LAYERS_MAX, "layer %d", layer);
    chosen.route(o, args, scratch);
    for (int64_t i = 0; i < n; i++) {
        uint64_t token = drop_row(d, i);
        BUG_ON(token >= TOKENS_MAX, "token %llu", (unsigned long long)token);
        row[i] = chosen.at[layer][token];
        BUG_ON(chosen.known && !row[i][0], "token %llu was not routed", (unsigned long long)token);
        for (int64_t j = 0; !chosen.known && j < k; j++)
            row[i][j] = (int8_t)(1 + ((const int32_t *)a->choice.data)[i * a->choice.stride + j]);
    }
    if (chosen.known)
        follow_choice(o, a, scratch, row);
    free(row);
}

/* Before the first step of each rank. */
static void begin(void *arg, struct rank *r)
{
    round_weights(arg, r);
    if (!r->config.spec.experts)
        return;
    if (!chosen.known)
        chosen.route = r->ops.entry[OP_ROUTE].run;
    BUG_ON(r->ops.entry[OP_ROUTE].run != chosen.route, "tables of two kinds");
    r->ops.entry[OP_ROUTE].run = route;
}

/* ---- gradients ---------------------------------------------------------------------------- */

static void put_source(struct whole *w, const struct param *p, const struct param_source *s,
                       const struct cell_numbers *g)
{
    const struct param *to = params_same(w->params, p);
    for (int k = 0; k < to->sources; k++) {
        if (strcmp(to->source[k].name, s->name))
            continue;
        for (int64_t i = 0; i < s->count[0] * s->count[1]; i++) {
            int64_t row = i / s->count[1], col = i % s->count[1];
            int64_t from = p->offset + (s->row + row) * p->size[1] + col;
            if (g->held[from])
                w->at[to->offset + (to->source[k].row + s->begin[0] + row) * to->size[1] +
                      s->begin[1] + col] = g->at[from] / SCALE;
        }
    }
}

static void put_rank(void *arg, const struct rank *r, const struct cell_numbers *g)
{
    const struct whole *w = arg;
    T_NEAR(*r->host_norm, w->norm, ratio * w->norm); /* as it is printed: without the scale */
    for (int i = 0; i < r->params.n; i++)
        for (int k = 0; k < r->params.at[i].sources; k++)
            put_source(arg, &r->params.at[i], &r->params.at[i].source[k], g);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double distance(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* The furthest from what is allowed, over all tensors: 1 is the bound. */
static double compare(const struct params *ps, const double *want, const double *got, char *why,
                      size_t size)
{
    double all = sqrt(dot(want, want, ps->elements)), most = 0;
    for (int i = 0; i < ps->n; i++) {
        const struct param *p = &ps->at[i];
        const double *w = want + p->offset, *g = got + p->offset;
        double norm = sqrt(dot(w, w, p->count)), other = sqrt(dot(g, g, p->count));
        double angle = 1 - dot(w, g, p->count) / (norm * other), off = 0;
        if (norm > small * all)
            off = fmax(angle / (1 - cosine), fabs(other / norm - 1) / ratio);
        else
            off = distance(w, g, p->count) / (small * all);
        if (!(off < 1)) /* a NaN, too */
            snprintf(why, size,
                     "%s has norm %g, expected %g (of all: %g); the cosine is 1 - %g, the "
                     "difference %g",
                     p->source[0].name, other, norm, all, angle, distance(w, g, p->count));
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

static void widen(struct spec *s)
{
    s->hidden = WIDE;
    s->head_dim = s->qk_norm ? WIDE : WIDE / 4;
    s->init_std = s->experts ? init_std : wide_std;
    if (s->query_scalar > 0)
        s->query_scalar = (double)s->head_dim; /* as Gemma's: scores of a usual size */
}

/* One step of the cell in `real` against one rank's in fp32. */
static void run_cell(struct cell c, enum dtype real, double *worst)
{
    struct cell one = c;
    struct cell_single single;
    struct whole w = {.rounded = real};
    char name[128], why[600] = "";
    c.scale.first = SCALE;
    c.spec.init_std = init_std;
    if (c.spec.experts || c.spec.qk_norm || c.spec.post_norm)
        widen(&c.spec);
    one.spec = c.spec;
    c.rows = one.rows = ROWS;
    c.real = real;
    c.begin = one.begin = begin;
    c.evaluates = one.evaluates = false; /* on tokens without a choice */
    c.arg = one.arg = &w;
    one.real = DTYPE_F32;
    c.steps = one.steps = 1;
    one.layout = layout_plain(mesh_single());
    one.recompute = (struct recompute){0};
    one.overlap = 0;
    memset(&chosen, 0, sizeof(chosen));
    if (cell_run_single(&one, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    chosen.known = true;
    w.params = &single.params;
    w.norm = single.printed.norm[0];
    w.at = mem_new((size_t)single.params.elements, sizeof(double));
    c.judge = put_rank;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    double off = compare(w.params, single.grads.at, w.at, why, sizeof(why));
    if (!(off < 1))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    *worst = off > *worst ? off : *worst;
    free(w.at);
    cell_single_finish(&single);
}

/* Some of all's cells, which are closed. */
static void sample(struct space *all, enum dtype real, size_t cells)
{
    size_t n = getenv("WEFT_FULL") ? 10 * cells : cells, pairs, missing, run = 0, routed = 0;
    size_t *number = mem_new(n, sizeof(*number));
    double worst = 0;
    n = space_sample(all, SEED, n, number, &pairs, &missing);
    for (size_t i = 0; i < n; i++) {
        struct cell c = space_cell(all, number[i]);
        if (c.other_grads || (c.spec.experts && cells == CELLS && i % 3 && !getenv("WEFT_FULL")))
            continue; /* routed ones have samples of their own */
        run_cell(c, real, &worst);
        routed += c.spec.experts > 0;
        run++;
    }
    printf("# %zu cells in %s, %zu of them routed, at most %.2f of what is allowed\n", run,
           dtype_name(real), routed, worst);
    T_CHECK(run >= (cells == CELLS ? 20 : cells) && (routed || cells == FAMILY));
    space_close(all);
    free(number);
}

static void of_all(enum dtype real)
{
    struct space all;
    space_open(&all);
    sample(&all, real, CELLS);
}

static void of_model(struct spec spec, enum dtype real)
{
    struct space all;
    space_open_model(&all, spec);
    sample(&all, real, spec.experts ? ROUTED : FAMILY);
}

static void bf16(void)
{
    of_all(DTYPE_BF16);
}

static void fp16(void)
{
    of_all(DTYPE_F16);
}

static void routed(enum dtype real)
{
    of_model(cell_qwen_moe(), real);
    of_model(cell_qwen3_moe(), real);
}

static void families(enum dtype real)
{
    of_model(cell_qwen3(), real);
    of_model(cell_mistral(), real);
    of_model(cell_gemma2(), real);
    of_model(cell_gemma3(), real);
    of_model(cell_neox(), real);
    of_model(cell_phi3(), real);
}

static void bf16_families(void)
{
    families(DTYPE_BF16);
}

static void fp16_families(void)
{
    families(DTYPE_F16);
}

static void bf16_routed(void)
{
    routed(DTYPE_BF16);
}

static void fp16_routed(void)
{
    routed(DTYPE_F16);
}

/* ---- an overflow of one rank -------------------------------------------------------------- */

enum { ONE_ROW = 1, ONE_MICROS = 4 };

/* A token that one of the first ONE_MICROS samples has, and none of the others. */
static int64_t rare_token(uint64_t *ret_sample)
{
    for (int64_t token = 0; token < CELL_VOCAB; token++) {
        int samples = 0;
        for (uint64_t k = 0; k < ONE_MICROS; k++) {
            bool has = false;
            for (uint64_t i = 0; i < CELL_LENGTH; i++)
                has |= (int64_t)(t_rand(k, 2 * i) % CELL_VOCAB) == token;
            samples += has;
            *ret_sample = has ? k : *ret_sample;
        }
        if (samples == 1)
            return token;
    }
    BUG("every token is in several samples");
}

struct overflow {
    int64_t token;
    double before[CELL_WORLD_MAX]; /* sums of each rank's finite weights */
};

static double sum_weights(const struct rank *r)
{
    struct tensor t = rank_master(r);
    double sum = 0;
    for (int64_t i = 0; i < t.size[0]; i++)
        sum += isfinite(((const float *)t.data)[i]) ? (double)((const float *)t.data)[i] : 0;
    return sum;
}

/* The embedding of the token is infinite: the sample that has it overflows. */
static void poison(void *arg, struct rank *r)
{
    struct overflow *o = arg;
    const struct param *p = params_find(&r->params, PARAM_EMBED, -1);
    struct tensor t = rank_master(r);
    int64_t row = p ? o->token - p->source[0].begin[0] : -1;
    if (row >= 0 && row < p->source[0].count[0])
        for (size_t i = 0; i < zero_pieces_of(&r->zero.split, t.size[0]); i++) {
            struct zero_piece piece = zero_piece_of(&r->zero.split, t.size[0], i);
            int64_t at = p->offset + (p->source[0].row + row) * p->size[1];
            if (zero_cut(&piece, at, at + p->size[1]))
                for (int64_t k = 0; k < piece.end - piece.begin; k++)
                    ((float *)t.data)[piece.at + k] = INFINITY;
        }
    rank_spread_master(r);
    o->before[r->config.rank] = sum_weights(r);
}

/* Every rank has skipped the step, and lowered the scale. */
static void all_skipped(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    const struct overflow *o = arg;
    (void)grads;
    T_EQ(r->at.iteration, 1);
    T_EQ(r->at.consumed, ONE_MICROS * ONE_ROW);
    T_EQ(r->at.steps, 0);
    T_EQ(r->at.scheduled, 0);
    T_CHECK(r->at.scale.scale == 512 && r->at.scale.left == 0);
    T_CHECK(sum_weights(r) == o->before[r->config.rank]);
}

/* The token is in one micro-batch of one data-parallel rank. */
static void overflow_of_one_rank(void)
{
    static const struct cell_shares all[] = {
        {1, 4, 1, 1, false, 0, {4}},    {1, 4, 1, 1, false, 1, {4}},
        {1, 4, 1, 1, false, 2, {4}},    {1, 4, 1, 1, false, 3, {4}},
        {2, 2, 1, 1, true, 1, {4}},     {1, 2, 2, 1, false, 1, {2, 2}},
        {2, 2, 2, 1, false, 0, {1, 3}}, {1, 2, 1, 1, false, 3, {4}, 2}};
    struct overflow o;
    uint64_t sample = 0;
    o.token = rare_token(&sample);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct cell c = {
            .spec = cell_llama(),
            .layout = cell_layout(&all[i]),
            .real = DTYPE_F16,
            .rows = ONE_ROW,
            .micros = ONE_MICROS,
            .steps = 1,
            .scale = {.first = 1024, .dynamic = true, .least = 1, .window = 1000, .hysteresis = 1},
            .begin = poison,
            .judge = all_skipped,
            .arg = &o};
        char name[128], why[600];
        cell_name(&c, name, sizeof(name));
        if (cell_run(&c, NULL, 0, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    }
    printf("# the token %lld of the sample %llu\n", (long long)o.token, (unsigned long long)sample);
}

/* Weights of 16 bits are the master weights, rounded, and these have moved. */
static void is_rounded(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    const struct overflow *o = arg;
    struct tensor master = rank_master(r), w = r->zero.weights;
    void *bits = mem_new((size_t)w.size[0], dtype_size(w.dtype));
    (void)grads;
    T_EQ(w.size[0], master.size[0]);
    box_cast(bits, w.dtype, master.data, master.dtype, w.size[0]);
    T_MEM(w.data, bits, tensor_bytes(w));
    T_CHECK(sum_weights(r) != o->before[r->config.rank]);
    free(bits);
}

static void note_sum(void *arg, struct rank *r)
{
    ((struct overflow *)arg)->before[r->config.rank] = sum_weights(r);
}

static void weights_follow_their_master(void)
{
    static const struct cell_shares all[] = {{1, 1, 1, 1, false, 0, {4}},
                                             {2, 2, 1, 1, true, 0, {4}}};
    struct overflow o;
    for (int kind = 0; kind < OPTIM_KINDS; kind++)
        for (int i = 0; i < 4; i++) {
            struct cell c = {.spec = cell_llama(),
                             .layout = cell_layout(&all[i / 2]),
                             .real = i % 2 ? DTYPE_F16 : DTYPE_BF16,
                             .optimizer = (enum optim_kind)kind,
                             .tuning = {.muon.momentum = 0.95, .muon.extra = 1, .muon.steps = 5},
                             .micros = 2,
                             .steps = 1,
                             .scale = {.first = SCALE},
                             .begin = note_sum,
                             .judge = is_rounded,
                             .arg = &o};
            char name[128], why[600];
            cell_name(&c, name, sizeof(name));
            if (cell_run(&c, NULL, 0, why, sizeof(why)))
                t_fail(__FILE__, __LINE__, "%s: %s", name, why);
        }
}

/* Every step overflows: the scale after three is 2^97, whether the run was stopped or not. */
static void lowered_thrice(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    (void)arg;
    (void)grads;
    T_EQ(r->at.iteration, CELL_STEPS);
    T_EQ(r->at.steps, 0);
    T_CHECK(r->at.scale.scale == 0x1p97 && r->at.scale.left == -2);
}

static void lowered(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    (void)arg;
    (void)grads;
    T_CHECK(r->at.scale.scale == 0x1p98);
}

static void resumed_scale(void)
{
    static const struct cell_shares shares = {2, 2, 1, 1, false, 1, {4}};
    struct cell c = {
        .spec = cell_gpt(),
        .layout = cell_layout(&shares),
        .real = DTYPE_F16,
        .micros = 4,
        .steps = CELL_SAVED,
        .scale = {.first = 0x1p100, .dynamic = true, .least = 1, .window = 1000, .hysteresis = 1},
        .save = t_path("scale"),
        .judge = lowered};
    char why[600];
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    c.steps = CELL_STEPS;
    c.load = c.save;
    c.save = NULL;
    c.judge = lowered_thrice;
    c.layout = layout_plain(mesh_dense(1, 1, 4, 1));
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
}

T_MAIN(T_CASE(bf16), T_CASE(fp16), T_CASE(bf16_families), T_CASE(fp16_families),
       T_CASE(bf16_routed), T_CASE(fp16_routed), T_CASE(overflow_of_one_rank),
       T_CASE(weights_follow_their_master), T_CASE(resumed_scale))
