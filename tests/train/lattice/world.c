/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/lattice/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "tests/t.h"
#include "train/comm/comm_threads.h"
#include "train/engine/state.h"
#include "train/engine/step.h"
#include "train/engine/world.h"
#include "train/tensor/box.h"
#include "train/watch/copies.h"

enum { DELAY_US = 50, TIMEOUT = 60 };

/* ---- samples ----------------------------------------------------------------------------- */

/* Labels are masked unevenly; of every fourth micro-batch all of them. */
static int make_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    (void)self;
    (void)e;
    for (uint64_t i = 0; i < CELL_LENGTH; i++) {
        ret->tokens[i] = (int32_t)(t_rand(k, 2 * i) % CELL_VOCAB);
        ret->labels[i] = (int32_t)(t_rand(k, 2 * i + 1) % CELL_VOCAB);
        ret->loss_mask[i] = k / CELL_ROWS % 4 == 3 || i % (2 + k % 5) == 1 ? 0 : 1;
        ret->position[i] = (int32_t)i;
    }
    ret->ends[0] = CELL_LENGTH;
    ret->nends = 1;
    return 0;
}

/* The same, in documents of 1, 2, ... tokens from a number on that depends on the sample; their
 * positions begin anew. */
static int make_documents(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    int code = make_row(self, k, ret, e);
    int32_t begin = 0, length = (int32_t)(k % 4) + 1;
    for (ret->nends = 0; begin < CELL_LENGTH; begin += length++) {
        int32_t end = begin + length < CELL_LENGTH ? begin + length : CELL_LENGTH;
        for (int32_t i = begin; i < end; i++)
            ret->position[i] = i - begin;
        ret->ends[ret->nends++] = end;
    }
    return code;
}

static struct feed feed_of(const struct cell *c)
{
    return (struct feed){.row = c->documents ? make_documents : make_row,
                         .count = 1 << 20,
                         .seq_length = CELL_LENGTH,
                         .pad = -1,
                         .name = "cells",
                         .part = "train"};
}

/* ---- one rank ---------------------------------------------------------------------------- */

struct cell_rank {
    const struct cell *cell;
    int index;
    struct comm_threads *threads; /* NULL: one rank alone */
    struct comm comm;             /* until the rank takes it over; open: of a process */
    struct rank rank;
    struct err e;
    int code;
    double loss[CELL_STEPS], norm[CELL_STEPS], balance[CELL_STEPS];
    struct cell_numbers grads, weights;
    size_t planned[SLAB_COUNT];
};

static int64_t cell_rows(const struct cell *c)
{
    return c->rows ? c->rows : CELL_ROWS;
}

/* As it was described first: that takes a dozen files of /proc. */
static int describe_host(struct dev_desc *ret, int which, int threads, struct err *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct dev_desc first;
    static bool known;
    int code = 0;
    pthread_mutex_lock(&lock);
    if (!known)
        code = dev_host_describe(&first, which, threads, e);
    known = known || !code;
    *ret = first;
    pthread_mutex_unlock(&lock);
    return code;
}

static struct rank_config configure(struct cell_rank *c)
{
    static const double rates[OPTIM_KINDS] = {
        [OPTIM_ADAM] = 1e-2, [OPTIM_SGD] = 1,          [OPTIM_SGD_PLAIN] = 1,
        [OPTIM_SAI] = 1e-3,  [OPTIM_SAI_PLAIN] = 1e-3, [OPTIM_MUON] = 1e-2};
    const struct cell *cell = c->cell;
    static const struct rank_backends backends = {
        .describe_device = describe_host, .open_device = dev_host_start, .init_ops = ops_cpu_open};
    return (struct rank_config){.backends = cell->backends ? cell->backends : &backends,
                                .device = c->index,
                                .layout = cell->layout,
                                .rank = c->index,
                                .comm = c->threads || c->comm.fn ? &c->comm : NULL,
                                .spec = cell->spec,
                                .use = MODEL_TRAIN,
                                .real = cell->real,
                                .narrow = cell->narrow,
                                .round = cell->round,
                                .scale = cell->scale,
                                .threads = 1,
                                .micro_batch = cell_rows(cell),
                                .seq_length = CELL_LENGTH,
                                .micros = cell->micros / cell->layout.mesh.dp,
                                .documents = cell->documents,
                                .seed = cell->init ? cell->init : CELL_INIT,
                                .per_token = cell->per_token,
                                .recompute = cell->recompute,
                                .overlap_grad_reduce = cell->overlap & OVERLAP_GRADIENTS,
                                .overlap_param_gather = cell->overlap & OVERLAP_WEIGHTS,
                                .bucket_size = CELL_BUCKET,
                                .optimizer = cell->optimizer,
                                .momentum = 0.8,
                                .beta1 = 0.9,
                                .beta2 = 0.99,
                                .eps = 1e-5,
                                .decay = {.start = 0.01, .end = 0.01},
                                .clip = 0.1,
                                .tuning = cell->tuning,
                                .lr = {.style = LR_CONSTANT, .max = rates[cell->optimizer]}};
}

/* As doubles; `whole`: all of the slab is of use where the tensor has it. */
static struct cell_numbers cell_numbers(struct rank *r, struct tensor flat, bool whole)
{
    size_t n = (size_t)flat.size[0], all = (size_t)r->params.elements;
    struct cell_numbers ret = {mem_new(all, sizeof(double)), mem_new(all, sizeof(bool))};
    double *v = mem_new(n, sizeof(*v));
    void *bytes = mem_new(n, sizeof(*v));
    int64_t numbers = whole ? flat.size[0] : r->zero.kept;
    rank_fetch(r, bytes, flat);
    box_cast(v, DTYPE_F64, bytes, flat.dtype, flat.size[0]);
    free(bytes);
    for (size_t i = 0; i < zero_pieces_of(&r->zero, numbers); i++) {
        struct zero_piece p = zero_piece_of(&r->zero, numbers, i);
        int64_t at = zero_place(&r->zero, flat.size[0], p);
        memcpy(ret.at + p.begin, v + at, (size_t)(p.end - p.begin) * sizeof(*v));
        memset(ret.held + p.begin, 1, (size_t)(p.end - p.begin));
    }
    free(v);
    return ret;
}

static void numbers_finish(struct cell_numbers *n)
{
    free(n->at);
    free(n->held);
    *n = (struct cell_numbers){0};
}

static int cell_steps(struct cell_rank *c, struct loader *in)
{
    struct rank *r = &c->rank;
    int code = 0;
    for (int64_t i = r->at.iteration; !code && i < c->cell->steps; i++) {
        struct step_result s;
        code = step_train(r, in, &s, &c->e);
        c->loss[i] = s.loss;
        c->norm[i] = s.grad_norm;
        c->balance[i] = s.balance + s.z;
        if (!code && i == 0)
            c->grads = cell_numbers(r, r->grads, false);
    }
    units_settle(r);
    if (!code)
        c->weights = cell_numbers(r, r->weights, true);
    if (!code && !c->cell->judge &&
        (r->at.consumed != (int64_t)c->cell->steps * c->cell->micros * cell_rows(c->cell) ||
         r->at.scheduled != r->at.consumed))
        code = err_set(&c->e, ERR_FAIL, "%lld samples are consumed and %lld scheduled",
                       (long long)r->at.consumed, (long long)r->at.scheduled);
    return code;
}

static int load(struct cell_rank *c)
{
    struct ckpt *from;
    int code = ckpt_open_newest(c->cell->load, &from, NULL, &c->e);
    if (!code)
        code = state_load(&c->rank, from, true, &c->e);
    ckpt_close(from);
    return code;
}

static int save(struct cell_rank *c)
{
    struct rank *r = &c->rank;
    struct ckpt_writer *w = NULL;
    struct state_pairs pairs;
    struct buf model = {0};
    state_pairs(r, &pairs);
    spec_to_json(&c->cell->spec, &model);
    struct ckpt_meta m = {.iteration = r->at.iteration,
                          .consumed_samples = r->at.consumed,
                          .model = buf_str(&model),
                          .eod = -1,
                          .state = pairs.pair,
                          .nstate = pairs.n};
    int code = c->index ? 0 : ckpt_writer_open(c->cell->save, r->at.iteration, &w, &c->e);
    code = world_agree(&r->comm, code, &c->e);
    if (!code)
        code = state_save(r, w, 1, &c->e);
    if (!code && w)
        code = ckpt_commit(w, &m, &c->e);
    code = world_agree(&r->comm, code, &c->e);
    ckpt_writer_close(w);
    buf_finish(&model);
    return code;
}

/* From here on the slabs' peaks are those of the run: before, those of the plan, which are kept. */
static void watch_slabs(struct cell_rank *c)
{
    for (int i = 0; i < SLAB_COUNT; i++) {
        struct slab *s = &c->rank.slab[i];
        c->planned[i] = s->peak;
        s->peak = s->used;
    }
}

/* What a product of 16 bits is widened in is planned for the most rows that experts can get. */
static bool may_be_less(const struct cell *c, int slab)
{
    return slab == SLAB_WORKSPACE && c->spec.experts && dtype_size(c->real) == 2;
}

/* Byte for byte, each slab of each rank, if it has made a step. */
static int slabs_are_as_planned(struct cell_rank *c)
{
    if (c->cell->load && c->cell->steps == CELL_SAVED)
        return 0;
    for (int i = 0; i < SLAB_COUNT; i++) {
        const struct slab *s = &c->rank.slab[i];
        if (s->peak > c->planned[i] || (s->peak < c->planned[i] && !may_be_less(c->cell, i)))
            return err_set(&c->e, ERR_FAIL, "%s: %zu bytes are taken and %zu planned", s->name,
                           s->peak, c->planned[i]);
    }
    return 0;
}

/* What ranks hold alike has the same bytes, whatever the layout. */
static int copies_are_equal(struct cell_rank *c)
{
    struct copies *copies;
    int code = copies_find(&c->rank, &copies, &c->e);
    if (!code)
        code = copies_compare(&c->rank, copies, &c->e);
    copies_destroy(copies);
    return code;
}

static void *cell_rank_run(void *arg)
{
    struct cell_rank *c = arg;
    struct rank_config config = configure(c);
    struct loader *in = NULL;
    struct batch_layout l = {.eod = -1};
    const struct feed samples = feed_of(c->cell);
    c->code = c->threads ? comm_threads_open(&c->comm, c->threads, c->index, &c->e) : 0;
    if (!c->code)
        c->code = rank_open(&c->rank, &config, &c->e);
    if (!c->code && c->cell->begin)
        c->cell->begin(c->cell->arg, &c->rank);
    if (!c->code)
        watch_slabs(c);
    if (!c->code && c->cell->load)
        c->code = load(c);
    if (!c->code) {
        rank_share_batches(&c->rank, &l);
        c->code = loader_create(&samples, &l, (uint64_t)c->rank.at.consumed, 1, &in, &c->e);
    }
    if (!c->code)
        c->code = cell_steps(c, in);
    if (!c->code)
        c->code = slabs_are_as_planned(c);
    if (!c->code && c->threads)
        c->code = copies_are_equal(c);
    if (!c->code && c->cell->look)
        c->cell->look(c->cell->look_arg, &c->rank, in);
    if (!c->code && c->cell->save)
        c->code = save(c);
    if (c->code && c->rank.comm.fn)
        comm_abort(&c->rank.comm, &c->e);
    loader_destroy(in);
    return NULL;
}

static void cell_rank_close(struct cell_rank *c)
{
    rank_close(&c->rank);
    numbers_finish(&c->grads);
    numbers_finish(&c->weights);
}

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}

static struct cell_sizes sizes_of(const struct params *ps, const double *flat)
{
    struct cell_sizes ret = {.source = mem_new((size_t)ps->n, sizeof(*ret.source))};
    for (int i = 0; i < ps->n; i++) {
        const struct param *p = &ps->at[i];
        double x = largest(flat + p->offset, p->count), *kind = &ret.kind[p->kind];
        *kind = x > *kind ? x : *kind;
        for (int k = 0; k < p->sources; k++)
            ret.source[i][k] = largest(flat + p->offset + p->source[k].row * p->size[1],
                                       p->source[k].count[0] * p->size[1]);
    }
    return ret;
}

/* ---- the single rank --------------------------------------------------------------------- */

int cell_run_single(const struct cell *c, struct cell_single *ret, char *why, size_t size)
{
    static struct cell_rank r;
    r = (struct cell_rank){.cell = c};
    cell_rank_run(&r);
    if (r.code) {
        snprintf(why, size, "the single rank: %s", r.e.msg);
        cell_rank_close(&r);
        return -1;
    }
    *ret = (struct cell_single){
        .steps = c->steps, .params = r.rank.params, .grads = r.grads, .weights = r.weights};
    memcpy(ret->loss, r.loss, sizeof(r.loss));
    memcpy(ret->norm, r.norm, sizeof(r.norm));
    memcpy(ret->balance, r.balance, sizeof(r.balance));
    ret->grad_sizes = sizes_of(&ret->params, ret->grads.at);
    ret->weight_sizes = sizes_of(&ret->params, ret->weights.at);
    r.rank.params = (struct params){0};
    r.grads = r.weights = (struct cell_numbers){0};
    cell_rank_close(&r);
    return 0;
}

void cell_single_finish(struct cell_single *s)
{
    params_finish(&s->params);
    numbers_finish(&s->grads);
    numbers_finish(&s->weights);
    free(s->grad_sizes.source);
    free(s->weight_sizes.source);
    *s = (struct cell_single){0};
}

/* ---- comparison -------------------------------------------------------------------------- */

/* The number of a parameter's source; those of one name are one tensor. */
static int same_source(const struct param *p, const char *name)
{
    for (int k = 0; k < p->sources; k++)
        if (!strcmp(p->source[k].name, name))
            return k;
    BUG("%s is not in the single rank's table", name);
}

/* What is compared: the flat slab of a rank. */
struct held {
    const char *what;
    struct cell_numbers got;
    const double *want;
    const struct cell_sizes *sizes;
    double floor; /* share of the kind's largest value */
};

/* The box `s` of the parameter `p` of a rank. */
static int compare_box(const struct cell_single *single, const struct held *h,
                       const struct param *p, const struct param_source *s, double tolerance,
                       char *why, size_t size)
{
    const struct param *w = params_same(&single->params, p);
    int k = same_source(w, s->name);
    const double *whole = h->want + w->offset + w->source[k].row * w->size[1];
    double most = h->sizes->source[w - single->params.at][k];
    double kind = h->floor * h->sizes->kind[p->kind];
    double allowed = tolerance * (most > kind ? most : kind);
    for (int64_t i = 0; i < s->count[0] * s->count[1]; i++) {
        int64_t row = i / s->count[1], col = i % s->count[1];
        int64_t at = p->offset + (s->row + row) * p->size[1] + col;
        double want = whole[(s->begin[0] + row) * w->size[1] + s->begin[1] + col];
        if (!h->got.held[at] || fabs(h->got.at[at] - want) <= allowed)
            continue;
        snprintf(why, size, "%s of %s [%lld, %lld] is %.17g, expected %.17g +- %g", h->what,
                 s->name, (long long)(s->begin[0] + row), (long long)(s->begin[1] + col),
                 h->got.at[at], want, allowed);
        return -1;
    }
    return 0;
}

static int compare_slab(const struct cell_rank *c, const struct cell_single *single, struct held h,
                        double tolerance, char *why, size_t size)
{
    const struct params *ps = &c->rank.params;
    int code = 0;
    for (int i = 0; i < ps->n; i++)
        for (int k = 0; !code && k < ps->at[i].sources; k++)
            code = compare_box(single, &h, &ps->at[i], &ps->at[i].source[k], tolerance, why, size);
    return code;
}

static int compare_rank(const struct cell_rank *c, const struct cell_single *single,
                        double tolerance, char *why, size_t size)
{
    for (int i = c->cell->load ? CELL_SAVED : 0; i < c->cell->steps; i++) {
        double loss = single->loss[i], norm = single->norm[i];
        if (fabs(c->loss[i] - loss) > tolerance * fabs(loss) ||
            fabs(c->norm[i] - norm) > tolerance * norm ||
            fabs(c->balance[i] - single->balance[i]) > tolerance * single->balance[i]) {
            snprintf(why, size,
                     "step %d has loss %.17g, norm %.17g and routing losses %.17g, expected %.17g, "
                     "%.17g and %.17g",
                     i + 1, c->loss[i], c->norm[i], c->balance[i], loss, norm, single->balance[i]);
            return -1;
        }
    }
    double share = c->cell->real == DTYPE_F64 ? 0.01 : 0.1;
    struct held grads = {"the gradient", c->grads, single->grads.at, &single->grad_sizes, share};
    struct held weights = {"the weight", c->weights, single->weights.at, &single->weight_sizes,
                           share};
    int code = c->grads.at && !c->cell->other_grads
                   ? compare_slab(c, single, grads, tolerance, why, size)
                   : 0;
    bool rounded = c->cell->real == DTYPE_F32 && c->cell->optimizer == OPTIM_ADAM;
    if (!code && !rounded && c->cell->steps == single->steps)
        code = compare_slab(c, single, weights, tolerance, why, size);
    return code;
}

static uint64_t digest_of(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++) /* FNV-1a */
        h = (h ^ b[i]) * UINT64_C(1099511628211);
    return h;
}

static void add_bytes(struct cell_bytes *b, const struct cell_rank *c)
{
    size_t n = (size_t)c->rank.params.elements * sizeof(double);
    b->activations += c->rank.slab[SLAB_ACTIVATIONS].peak;
    b->digest = digest_of(b->digest, c->loss, sizeof(c->loss));
    b->digest = digest_of(b->digest, c->norm, sizeof(c->norm));
    b->digest = digest_of(b->digest, c->grads.at, n);
    b->digest = digest_of(b->digest, c->weights.at, n);
}

/* ---- a world of threads ------------------------------------------------------------------ */

static int first_fault(const struct cell_rank *r, int n, char *why, size_t size)
{
    for (int i = 0; i < n; i++)
        if (r[i].code && r[i].e.msg[0] && !strstr(r[i].e.msg, "rank ")) {
            snprintf(why, size, "rank %d: %s", i, r[i].e.msg);
            return -1;
        }
    for (int i = 0; i < n; i++)
        if (r[i].code) {
            snprintf(why, size, "rank %d: %s", i, r[i].e.msg);
            return -1;
        }
    return 0;
}

/* All ranks to their ends; 0, or -1 with what one of them says. */
static int run_ranks(const struct cell *c, struct cell_rank *r, char *why, size_t size)
{
    pthread_t thread[CELL_WORLD_MAX];
    int n = mesh_world(c->layout.mesh), started = 0;
    struct comm_options o = {.timeout = TIMEOUT, .delay_us = DELAY_US, .seed = c->seed};
    struct comm_threads *threads = comm_threads_create(c->layout.mesh, &o);
    for (; started < n; started++) {
        r[started] = (struct cell_rank){.cell = c, .index = started, .threads = threads};
        BUG_ON(thread_start(&thread[started], cell_rank_run, &r[started]), "no thread");
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return first_fault(r, n, why, size);
}

static void close_ranks(const struct cell *c, struct cell_rank *r)
{
    struct comm_threads *threads = r[0].threads;
    for (int i = 0; i < mesh_world(c->layout.mesh); i++)
        cell_rank_close(&r[i]);
    comm_threads_destroy(threads);
}

int cell_run(const struct cell *c, const struct cell_single *want, double tolerance, char *why,
             size_t size)
{
    static struct cell_rank r[CELL_WORLD_MAX];
    int n = mesh_world(c->layout.mesh), code = run_ranks(c, r, why, size);
    for (int i = 0; c->judge && !code && i < n; i++)
        c->judge(c->arg, &r[i].rank, &r[i].grads);
    for (int i = 0; want && !code && i < n; i++) {
        char of[400];
        code = compare_rank(&r[i], want, tolerance, of, sizeof(of));
        if (code)
            snprintf(why, size, "rank %d: %s", i, of);
    }
    for (int i = 0; !code && c->bytes && i < n; i++)
        add_bytes(c->bytes, &r[i]);
    close_ranks(c, r);
    return code;
}

int cell_run_process(const struct cell *c, const struct cell_single *want, double tolerance,
                     struct comm *comm, char *why, size_t size)
{
    static struct cell_rank r;
    char of[400];
    r = (struct cell_rank){.cell = c, .index = comm->rank, .comm = *comm};
    *comm = (struct comm){0};
    cell_rank_run(&r);
    int code = r.code ? -1 : compare_rank(&r, want, tolerance, of, sizeof(of));
    if (code)
        snprintf(why, size, "rank %d: %s", r.index, r.code ? r.e.msg : of);
    cell_rank_close(&r);
    return code;
}

static bool same_numbers(struct cell_numbers a, struct cell_numbers b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a.held[i] != b.held[i] || (a.held[i] && memcmp(&a.at[i], &b.at[i], sizeof(*a.at))))
            return false;
    return true;
}

static bool same_rank(const struct cell_rank *a, const struct cell_rank *b)
{
    int64_t n = a->rank.params.elements;
    return !memcmp(a->loss, b->loss, sizeof(a->loss)) &&
           !memcmp(a->norm, b->norm, sizeof(a->norm)) && same_numbers(a->grads, b->grads, n) &&
           same_numbers(a->weights, b->weights, n);
}

int cell_run_overlap(const struct cell *c, char *why, size_t size)
{
    static struct cell_rank r[2][CELL_WORLD_MAX];
    struct cell cells[2] = {*c, *c};
    int code = 0;
    cells[0].overlap = 0;
    cells[1].overlap = OVERLAP_GRADIENTS | OVERLAP_WEIGHTS;
    for (int k = 0; k < 2 && !code; k++)
        code = run_ranks(&cells[k], r[k], why, size);
    for (int i = 0; !code && i < mesh_world(c->layout.mesh); i++) {
        const struct rank *late = &r[0][i].rank, *early = &r[1][i].rank;
        code = same_rank(&r[0][i], &r[1][i]) ? 0 : -1;
        if (code)
            snprintf(why, size, "rank %d has other bits with overlap", i);
        if (!code && late->zero.stage < 2 && (late->units.early || !early->units.early)) {
            snprintf(why, size, "rank %d sent %zu buckets early, and without overlap %zu", i,
                     early->units.early, late->units.early);
            code = -1;
        }
    }
    for (int k = 0; k < 2; k++)
        close_ranks(&cells[k], r[k]);
    return code;
}
