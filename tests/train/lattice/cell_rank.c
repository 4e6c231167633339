/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/lattice/cell_rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/state.h"
#include "train/engine/step.h"
#include "train/engine/all_ranks.h"
#include "train/tensor/box.h"
#include "train/watch/copies.h"
#include "train/zero/gather.h"

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

/* Of all data-parallel ranks, in the longest step. */
static int64_t most_micros(const struct cell *c)
{
    return c->ramp ? 2 * c->micros : c->micros;
}

static struct ramp ramp_of(const struct cell *c)
{
    int64_t samples = c->micros * cell_rows(c);
    return c->ramp ? (struct ramp){samples, samples, CELL_SAVED * samples, 2 * samples}
                   : (struct ramp){0};
}

/* That all steps together take. */
static int64_t samples_of(const struct cell *c)
{
    int64_t micros = c->steps * c->micros;
    if (c->ramp && c->steps > CELL_SAVED)
        micros += (c->steps - CELL_SAVED) * c->micros;
    return micros * cell_rows(c);
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
                                .micros = most_micros(cell) / cell->layout.mesh.dp,
                                .ramp = ramp_of(cell),
                                .documents = cell->documents,
                                .seed = cell->init ? cell->init : CELL_INIT,
                                .per_token = cell->per_token,
                                .recompute = cell->recompute,
                                .expert_factor = cell->expert_factor,
                                .noise = cell->noise,
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
    int64_t numbers = whole ? flat.size[0] : r->zero.split.kept;
    rank_fetch(r, bytes, flat);
    box_cast(v, DTYPE_F64, bytes, flat.dtype, flat.size[0]);
    free(bytes);
    for (size_t i = 0; i < zero_pieces_of(&r->zero.split, numbers); i++) {
        struct zero_piece p = zero_piece_of(&r->zero.split, numbers, i);
        int64_t at = zero_place(&r->zero.split, flat.size[0], p);
        memcpy(ret.at + p.begin, v + at, (size_t)(p.end - p.begin) * sizeof(*v));
        memset(ret.held + p.begin, 1, (size_t)(p.end - p.begin));
    }
    free(v);
    return ret;
}

void cell_numbers_finish(struct cell_numbers *n)
{
    free(n->at);
    free(n->held);
    *n = (struct cell_numbers){0};
}

static int open_loader(struct cell_rank *c, uint64_t from, struct loader **ret)
{
    struct batch_layout l = {.eod = -1};
    const struct feed samples = feed_of(c->cell);
    rank_share_batches(&c->rank, &l);
    return loader_create(&samples, &l, from, 1, ret, &c->e);
}

/* On samples that no step takes. */
static int evaluate(struct cell_rank *c)
{
    struct rank *r = &c->rank;
    struct loader *in;
    int code = open_loader(c, 1 << 10, &in);
    if (!code)
        code = step_evaluate(r, in, c->cell->micros / c->cell->layout.mesh.dp,
                             &c->printed.evaluation, &c->e);
    loader_destroy(in);
    return code;
}

static int load(struct cell_rank *c, const char *folder)
{
    struct ckpt *from;
    int code = ckpt_open_newest(folder, &from, NULL, &c->e);
    if (!code)
        code = state_load(&c->rank, from, true, &c->e);
    ckpt_close(from);
    return code;
}

static int save(struct cell_rank *c, const char *folder)
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
    int code = c->index ? 0 : ckpt_writer_open(folder, r->at.iteration, &w, &c->e);
    code = all_ranks_agree(&r->comm, code, &c->e);
    if (!code)
        code = state_save(r, w, 1, &c->e);
    if (!code && w)
        code = ckpt_commit(w, &m, &c->e);
    code = all_ranks_agree(&r->comm, code, &c->e);
    ckpt_writer_close(w);
    buf_finish(&model);
    return code;
}

static int take_step(struct cell_rank *c, struct loader *in)
{
    struct cell_printed *p = &c->printed;
    int64_t i = c->rank.at.iteration;
    struct step_result s;
    int code = tiny_step(&c->rank, in, &s, &c->e);
    p->loss[i] = s.loss;
    p->norm[i] = s.grad_norm;
    p->balance[i] = s.balance;
    p->z[i] = s.z;
    p->samples[i] = s.samples;
    if (c->cell->crowded && !c->index)
        *c->cell->crowded = s.crowded;
    return code;
}

/* A step that is forgotten. */
static int step_and_back(struct cell_rank *c, struct loader **in)
{
    int code = save(c, c->cell->rewind);
    if (!code)
        code = take_step(c, *in);
    if (!code)
        code = load(c, c->cell->rewind);
    loader_destroy(*in);
    *in = NULL;
    return code ? code : open_loader(c, (uint64_t)c->rank.at.consumed, in);
}

static int cell_steps(struct cell_rank *c, struct loader **in)
{
    struct rank *r = &c->rank;
    int code = 0;
    while (!code && r->at.iteration < c->cell->steps) {
        bool first = r->at.iteration == 0;
        if (c->cell->rewind && r->at.iteration == CELL_SAVED)
            code = step_and_back(c, in);
        if (!code)
            code = take_step(c, *in);
        if (!code && first)
            c->grads = cell_numbers(r, r->zero.grads, false);
        if (!code && first && (c->cell->evaluates || (!c->threads && !c->cell->begin)))
            code = evaluate(c);
    }
    gather_wait(&r->zero);
    if (!code)
        c->weights = cell_numbers(r, r->zero.weights, true);
    if (!code && !c->cell->judge &&
        (r->at.consumed != samples_of(c->cell) || r->at.scheduled != r->at.consumed))
        code = err_set(&c->e, ERR_FAIL, "%lld samples are consumed and %lld scheduled",
                       (long long)r->at.consumed, (long long)r->at.scheduled);
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

/* Nobody waits for a rank that has failed, not even for one that failed before it took its comm. */
static void abort_others(struct cell_rank *c)
{
    struct comm *open = c->rank.comm.fn ? &c->rank.comm : &c->comm;
    if (c->code && open->fn)
        comm_abort(open, &c->e);
}

void *cell_rank_run(void *arg)
{
    struct cell_rank *c = arg;
    struct rank_config config = configure(c);
    struct loader *in = NULL;
    c->code = c->threads ? comm_threads_open(&c->comm, c->threads, c->index, &c->e) : 0;
    if (!c->code)
        c->code = rank_open(&c->rank, &config, &c->e);
    if (!c->code && c->cell->begin)
        c->cell->begin(c->cell->arg, &c->rank);
    if (!c->code)
        watch_slabs(c);
    if (!c->code && c->cell->load)
        c->code = load(c, c->cell->load);
    if (!c->code)
        c->code = open_loader(c, (uint64_t)c->rank.at.consumed, &in);
    if (!c->code)
        c->code = cell_steps(c, &in);
    if (!c->code)
        c->code = slabs_are_as_planned(c);
    if (!c->code && c->threads)
        c->code = copies_are_equal(c);
    if (!c->code && c->cell->look)
        c->cell->look(c->cell->look_arg, &c->rank, in);
    if (!c->code && c->cell->save)
        c->code = save(c, c->cell->save);
    abort_others(c);
    loader_destroy(in);
    return NULL;
}

void cell_rank_close(struct cell_rank *c)
{
    rank_close(&c->rank);
    comm_close(&c->comm); /* if the rank did not take it over */
    cell_numbers_finish(&c->grads);
    cell_numbers_finish(&c->weights);
}
