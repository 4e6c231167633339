/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/engine/memory_fit.h"
#include "train/engine/pipeline.h"
#include "train/engine/plan.h"
#include "train/engine/stage.h"
#include "train/engine/step_scalars.h"
#include "train/engine/all_ranks.h"
#include "train/tensor/box.h"
#include "train/zero/gather.h"

static const struct {
    const char *name;
    enum place place;
} slabs[SLAB_COUNT] = {
    [SLAB_PARAMETERS] = {"parameters", PLACE_DEVICE},
    [SLAB_GRADIENTS] = {"gradients", PLACE_DEVICE},
    [SLAB_OPTIMIZER] = {"optimizer", PLACE_DEVICE},
    [SLAB_ACTIVATIONS] = {"activations", PLACE_DEVICE},
    [SLAB_WORKSPACE] = {"workspace", PLACE_DEVICE},
    [SLAB_STAGING] = {"staging", PLACE_PINNED},
    [SLAB_SNAPSHOT] = {"snapshot", PLACE_PINNED},
};

/* Cuts everything from the slabs: once to measure, once in earnest. */
static void rank_take(struct rank *r)
{
    const struct rank_config *c = &r->config;
    bool train = c->use == MODEL_TRAIN;
    struct slab *s = r->slab;

    zero_take(&r->zero);
    zero_bind(&r->zero, r->model.stage, &r->model.w, &r->model.g);
    if (train) {
        step_scalars_take(r, &s[SLAB_ACTIVATIONS], &s[SLAB_STAGING]);
        r->optim.weights = r->zero.weights;
        r->optim.grads = r->zero.grads;
        optim_take(&r->optim, &s[SLAB_OPTIMIZER], &s[SLAB_ACTIVATIONS], &r->ops);
    }
    r->model.any_order = c->any_order;
    r->model.frozen = c->frozen;
    r->model.frozen_id = c->frozen_id;
    r->model.stretches = c->documents ? r->effective.micro_batch * c->seq_length : 0;
    model_take_acts(&r->model, &s[SLAB_ACTIVATIONS], c->use, r->effective.micro_batch,
                    c->seq_length);
    if (train)
        pipeline_take(r, &s[SLAB_ACTIVATIONS]);
    r->totals = slab_1d(&s[SLAB_ACTIVATIONS], DTYPE_F64, TOTALS);
    if (c->per_token)
        r->optim.divisor = tensor_rows(r->totals, 1, 1);
    r->model.route_sums = tensor_rows(r->totals, 2, 2);
    for (int i = 0; i < STEPS_AHEAD; i++)
        r->back[i] = slab_bytes(&s[SLAB_STAGING], sizeof(*r->back[i]));
    r->host_totals = r->back[0]->totals;
    r->host_norm = &r->back[0]->norm;
    if (c->use != MODEL_DECODE)
        stage_take(r, &s[SLAB_STAGING]);
    save_take(r);
}

void rank_put(struct rank *r, struct tensor to, const void *from)
{
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, to.data, from, tensor_bytes(to));
}

struct tensor rank_master(const struct rank *r)
{
    return r->config.use == MODEL_TRAIN ? r->optim.master : r->zero.weights;
}

/* Rows of one parameter, shared over the host's threads: each is a function of its global index. */
struct init_job {
    const struct param *p;
    uint64_t seed;
    int64_t row0, rows; /* those that are made now */
    int64_t each;       /* of a task */
    float *to;
    char *narrow; /* the same in the weights' type; NULL: that is F32 */
    enum dtype type;
};

/* Of a task about so many elements, so that all threads have as much to do. */
enum { FILL_TASK = 1 << 14, FILL_BYTES = 32 << 20, FILL_BUFFERS = 2, EVENT_FILL = 10 };

static int64_t columns_of(const struct param *p)
{
    return p->rank == 2 ? p->size[1] : 1;
}

/* Rows of a parameter that are made at a time. */
static int64_t fill_at_once(const struct param *p)
{
    int64_t most = FILL_BYTES / (int64_t)sizeof(float) / columns_of(p);
    most = most > 1 ? most : 1;
    return p->size[0] < most ? p->size[0] : most;
}

/* Where a checkpoint replaces them, random values are not made: the slab is zeros. */
static bool is_filled(const struct rank *r, const struct param *p)
{
    return !r->config.loads || p->init == INIT_ONE;
}

/* Memory that values are made in: one buffer, or two so that one is copied while the other is
 * filled. */
struct fill_area {
    int64_t elements; /* of a buffer */
    size_t bytes;     /* of a buffer */
    int buffers, next;
    char *memory;
};

static struct fill_area fill_area(const struct rank *r)
{
    enum dtype d = rank_master(r).dtype;
    struct fill_area a = {.buffers = r->dev.desc.host ? 1 : FILL_BUFFERS};
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        int64_t n = is_filled(r, p) ? fill_at_once(p) * columns_of(p) : 0;
        a.elements = n > a.elements ? n : a.elements;
    }
    a.bytes = (size_t)a.elements * (sizeof(float) + (d == DTYPE_F32 ? 0 : dtype_size(d)));
    return a;
}

uint64_t rank_fill_bytes(const struct rank *r)
{
    struct fill_area a = fill_area(r);
    return (uint64_t)a.bytes * (uint64_t)a.buffers;
}

static void fill_rows(void *arg, int task, int thread)
{
    const struct init_job *f = arg;
    int64_t begin = (int64_t)task * f->each, left = f->rows - begin, cols = columns_of(f->p);
    int64_t n = left < f->each ? left : f->each;
    (void)thread;
    param_init_rows(f->p, f->seed, f->row0 + begin, n, f->to + begin * cols);
    if (f->narrow)
        box_cast(f->narrow + (size_t)(begin * cols) * dtype_size(f->type), f->type,
                 f->to + begin * cols, DTYPE_F32, n * cols);
}

void rank_spread_master(struct rank *r)
{
    struct tensor from = rank_master(r), to = r->zero.weights;
    bool apart = from.data != to.data;
    for (size_t i = 0; apart && i < zero_pieces(&r->zero.split); i++) {
        struct zero_piece p = zero_piece(&r->zero.split, i);
        int64_t n = p.end - p.begin;
        op_copy(&r->ops,
                &(struct copy_args){
                    .y = tensor_rows(to, zero_place(&r->zero.split, to.size[0], p), n),
                    .x = tensor_rows(from, zero_place(&r->zero.split, from.size[0], p), n)});
    }
    if (apart || r->zero.split.stage == 3)
        gather_weights(&r->zero);
    gather_wait(&r->zero);
}

/* Elements begin .. begin + n - 1 of the slab, as far as the rank holds them, of its type. */
static void put_held(struct rank *r, int64_t begin, int64_t n, const char *from)
{
    struct tensor to = rank_master(r);
    for (size_t i = 0; i < zero_pieces_of(&r->zero.split, to.size[0]); i++) {
        struct zero_piece p = zero_piece_of(&r->zero.split, to.size[0], i);
        if (zero_cut(&p, begin, begin + n))
            rank_put(r, tensor_rows(to, p.at, p.end - p.begin),
                     from + (size_t)(p.begin - begin) * dtype_size(to.dtype));
    }
}

/* Rows of a parameter from row `row0` on; returns how many. */
static int64_t fill_some(struct rank *r, const struct param *p, int64_t row0, struct fill_area *a)
{
    enum dtype d = rank_master(r).dtype;
    int64_t cols = columns_of(p), at_once = fill_at_once(p), left = p->size[0] - row0;
    char *buffer = a->memory + a->bytes * (size_t)a->next;
    int event = EVENT_FILL + a->next;
    struct init_job f = {.p = p, .seed = r->config.seed, .row0 = row0, .type = d};
    f.rows = left < at_once ? left : at_once;
    f.each = FILL_TASK / cols > 1 ? FILL_TASK / cols : 1;
    f.to = (float *)buffer;
    f.narrow = d == DTYPE_F32 ? NULL : buffer + (size_t)a->elements * sizeof(float);
    if (!FAULT("fill_wait"))
        r->dev.fn->await(&r->dev, event);
    pool_run(r->dev.pool, (int)((f.rows + f.each - 1) / f.each), fill_rows, &f);
    put_held(r, p->offset + row0 * cols, f.rows * cols, f.narrow ? f.narrow : buffer);
    r->dev.fn->record(&r->dev, STREAM_COMPUTE, event);
    a->next = (a->next + 1) % a->buffers;
    return f.rows;
}

static int fill_weights(struct rank *r, struct err *e)
{
    struct fill_area a = fill_area(r);
    void *memory = NULL;
    int code = r->dev.fn->alloc(&r->dev, PLACE_PINNED, rank_fill_bytes(r), &memory, e);
    a.memory = memory;
    for (int i = 0; i < r->params.n && !code; i++) {
        const struct param *p = &r->params.at[i];
        for (int64_t row = 0; row < p->size[0] && is_filled(r, p);)
            row += fill_some(r, p, row, &a);
    }
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    r->dev.fn->release(&r->dev, PLACE_PINNED, memory);
    return code;
}

/* The fewest and the most layers of the chunks of a pipeline rank. */
static void count_layers(const struct rank_config *c, int pp, struct model *m)
{
    m->least_layers = (int)c->spec.layers;
    for (int i = 0; i < c->layout.chunks; i++) {
        int layers = layout_stage(c->layout, c->spec.layers, pp, i).layers;
        m->least_layers = layers < m->least_layers ? layers : m->least_layers;
        m->most_layers = layers > m->most_layers ? layers : m->most_layers;
    }
}

/* What of the model and the optimizer follows from the configuration. */
static void rank_shape(struct rank *r)
{
    const struct rank_config *c = &r->config;
    int tp = c->layout.mesh.tp;
    struct coord at = mesh_coord(c->layout.mesh, c->rank);
    r->model = (struct model){.stage = layout_stage(c->layout, c->spec.layers, at.pp, 0),
                              .params = &r->params,
                              .spec = &r->config.spec,
                              .ops = &r->ops,
                              .comm = &r->comm,
                              .context = {.cp = c->layout.mesh.cp, .rank = at.cp},
                              .layout = &r->config.layout,
                              .heads = c->spec.heads / tp,
                              .kv_heads = c->spec.kv_heads < tp ? 1 : c->spec.kv_heads / tp,
                              .ffn = c->spec.ffn / tp,
                              .sequence = c->layout.sequence,
                              .recompute = c->recompute,
                              .expert_factor = c->expert_factor,
                              .noise = c->noise,
                              .host = &r->host};
    count_layers(c, at.pp, &r->model);
    r->zero = (struct zero){.spec = &r->config.spec,
                            .params = &r->params,
                            .ops = &r->ops,
                            .comm = &r->comm,
                            .parameters = &r->slab[SLAB_PARAMETERS],
                            .gradients = &r->slab[SLAB_GRADIENTS],
                            .workspace = &r->slab[SLAB_WORKSPACE],
                            .real = c->real,
                            .trains = c->use == MODEL_TRAIN,
                            .overlap_grad_reduce = c->overlap_grad_reduce,
                            .overlap_param_gather = c->overlap_param_gather};
    bool sharing = c->layout.zero && c->use == MODEL_TRAIN;
    int64_t size = c->bucket_size ? c->bucket_size
                                  : zero_bucket_size(mesh_group_size(c->layout.mesh, GROUP_DP_CP));
    zero_split_build(&r->zero.split, &r->params, sharing ? c->layout.zero : 0, size,
                     mesh_group_size(c->layout.mesh, GROUP_SHARD),
                     mesh_group_index(c->layout.mesh, c->rank, GROUP_SHARD));
    zero_split_experts(&r->zero.split, &r->params, size, mesh_edp(c->layout.mesh), at.edp);
    r->model.units = zero_functions(&r->zero);
    r->optim = (struct optim){.rule = optim_rule(c->optimizer),
                              .params = &r->params,
                              .zero = &r->zero.split,
                              .beta1 = c->beta1,
                              .beta2 = c->beta2,
                              .eps = c->eps,
                              .momentum = c->momentum,
                              .tuning = c->tuning,
                              .rounds = c->round,
                              .seed = c->seed,
                              .clip = c->clip};
    optim_open(&r->optim, c->layout.mesh, c->rank);
}

static int rank_ops(struct rank *r, struct err *e)
{
    const struct rank_config *c = &r->config;
    const struct ops_config wanted = {.real = c->real,
                                      .narrow = c->narrow,
                                      .tf32 = c->tf32,
                                      .choices = c->choices,
                                      .nchoices = c->nchoices,
                                      .tune = c->tune,
                                      .kernels = c->kernels,
                                      .library_path = c->library_path};
    ops_close(&r->ops);
    return c->backends->init_ops(&r->ops, &r->dev, &r->slab[SLAB_WORKSPACE], &wanted, e);
}

int rank_choose(struct rank_config *c, struct dev_desc *ret, struct err *e)
{
    int n = c->nbackends ? c->nbackends : 1, code = 0;
    for (int i = 0; i < n; i++) {
        code = c->backends[i].describe_device(ret, c->device, c->threads, e);
        if (!code) {
            c->backends += i;
            c->nbackends = 1;
            return 0;
        }
        if (i + 1 < n)
            log_debug("--device %s is not taken: %s", c->backends[i].name, e->msg);
    }
    return code;
}

static int check_context(const struct rank_config *c, const struct dev_desc *desc, struct err *e)
{
    if (!desc->host)
        return err_set(e, ERR_USAGE,
                       "--context-parallel-size %d runs on CPUs alone, and this device is %s: give "
                       "--device cpu, or --tensor-model-parallel-size with --sequence-parallel",
                       c->layout.mesh.cp, desc->name);
    return 0;
}

/* A GPU is not full below so many tokens. */
enum { MERGE_BELOW = 4096 };

int64_t rank_merged(const struct rank_config *c, const struct dev_desc *desc)
{
    int64_t tokens = c->micro_batch * c->seq_length, n = c->merge_tokens / tokens;
    bool alone = mesh_world(c->layout.mesh) == 1 && c->layout.chunks <= 1;
    if (desc->host || c->use != MODEL_TRAIN || !alone || c->documents || c->spec.experts ||
        c->ramp.increment || tokens >= MERGE_BELOW)
        return 1;
    while (n > 1 && c->micros % n)
        n--;
    return n > 1 ? n : 1;
}

/* Rows of a rank alone follow each other from one micro-batch to the next: so do their dropout's.
 */
static void merge(struct rank *r, int64_t n)
{
    r->model.merged = n;
    r->effective.micro_batch = r->config.micro_batch * n;
    r->effective.micros = r->config.micros / n;
}

int rank_plan(struct rank *r, const struct rank_config *c, const struct dev_desc *desc,
              struct err *e)
{
    *r = (struct rank){.config = *c, .dev = {.desc = *desc}};
    r->comm =
        (struct comm){.mesh = c->layout.mesh, .rank = c->rank, .world = mesh_world(c->layout.mesh)};
    for (int i = 0; i < SLAB_COUNT; i++)
        slab_init(&r->slab[i], slabs[i].name, slabs[i].place);
    int code = spec_check(&c->spec, e);
    if (!code && c->layout.mesh.cp > 1)
        code = check_context(c, desc, e);
    if (!code)
        code = rank_ops(r, e);
    if (!code)
        code = params_build(&r->params, &r->config.spec, c->layout, c->rank, e);
    if (code)
        return code;
    rank_shape(r);
    merge(r, rank_merged(c, desc));
    bool graphs = graphs_wanted(c, r->effective.micro_batch * c->seq_length, desc);
    r->at.scale = loss_scale_begin(&c->scale);
    rank_take(r);
    code = plan_rank(r, e);
    r->graphs.on = graphs && !code;
    return code;
}

static void take_comm(struct rank *r)
{
    const struct rank_config *c = &r->config;
    if (!c->comm) {
        comm_self_open(&r->comm);
    } else {
        r->comm = *c->comm;
        *c->comm = (struct comm){0};
    }
    BUG_ON(r->comm.rank != c->rank || !mesh_equal(r->comm.mesh, c->layout.mesh),
           "planned as rank %d, opened as rank %d or on another mesh", c->rank, r->comm.rank);
}

int rank_bind(struct rank *r, struct err *e)
{
    const struct rank_config *c = &r->config;
    const struct rank_backends *b = c->backends;
    int code = b->open_device(&r->dev, c->device, c->threads, e);
    r->graphs.on = r->graphs.on && !code && r->dev.fn->capture_begin;
    if (!code)
        code = rank_ops(r, e);
    take_comm(r);
    if (b->open_comm && r->comm.world > 1) {
        code = all_ranks_agree(&r->comm, code, e); /* it is opened by all of them */
        if (!code)
            code = b->open_comm(&r->comm, &r->dev, c->library_path, e);
    }
    for (int i = 0; !code && i < SLAB_COUNT; i++)
        if (i != SLAB_SNAPSHOT || r->slab[i].peak)
            code = slab_bind(&r->slab[i], &r->dev, e);
    if (!code) {
        rank_take(r);
        code = plan_rank(r, e); /* once more: now what must be prepared is */
    }
    code = all_ranks_agree(&r->comm, code, e); /* ranks meet again to gather initial weights */
    if (code)
        return code;
    stage_fill(r);
    for (int i = 1; i < r->pipe.schedule.places; i++) {
        r->model.a = r->pipe.place[i].acts;
        stage_fill(r);
    }
    if (c->use == MODEL_TRAIN)
        r->model.a = r->pipe.place[0].acts;
    model_fill_tables(&r->model, r->config.use == MODEL_DECODE ? 1 : r->config.seq_length);
    if (c->use == MODEL_TRAIN) {
        optim_put(&r->optim, &r->dev);
        step_scalars_put(r, step_scalars_of(r, &r->at), step_scalars_of(r, &r->at));
    }
    code = fill_weights(r, e);
    rank_spread_master(r);
    return code ? code : dev_fault(&r->dev, e);
}

int rank_open(struct rank *r, const struct rank_config *c, struct err *e)
{
    struct dev_desc desc;
    struct mem_limit limit[MEM_LIMITS];
    struct rank_config one = *c;
    *r = (struct rank){0};
    int code = rank_choose(&one, &desc, e);
    for (bool again = !code; again;) {
        code = rank_plan(r, &one, &desc, e);
        if (!code)
            code = memory_fit_check(r, limit, mem_limits("/proc", "/sys/fs/cgroup", limit), e);
        again = code && model_merged(&r->model) > 1; /* fewer at a time take less memory */
        one.merge_tokens /= 2;
        if (again)
            rank_close(r);
    }
    if (c->comm)
        code = all_ranks_agree(c->comm, code, e);
    return code ? code : rank_bind(r, e);
}

void rank_close(struct rank *r)
{
    save_drop(r);
    graphs_finish(r);
    pipeline_finish(r);
    optim_finish(&r->optim);
    model_finish(&r->model);
    zero_finish(&r->zero);
    arena_finish(&r->host);
    params_finish(&r->params);
    for (int i = 0; i < SLAB_COUNT; i++)
        slab_release(&r->slab[i], &r->dev);
    ops_close(&r->ops);
    dev_close(&r->dev);
    comm_close(&r->comm);
}

void rank_describe(const struct rank *r, struct buf *out)
{
    double sum = 0;
    for (int i = 0; i < SLAB_COUNT; i++) {
        const struct slab *s = &r->slab[i];
        if (i == SLAB_SNAPSHOT && !s->peak)
            continue;
        buf_addf(out, "%s%s %.1f MiB", i ? ", " : "", s->name, (double)s->peak / 0x1p20);
        sum += (double)s->peak;
    }
    buf_addf(out, "; together %.1f MiB", sum / 0x1p20);
}

/* Micro-batches of a step on all data-parallel ranks that have any of its `there` samples. */
static double micros_of(const struct rank *r, uint64_t there)
{
    uint64_t rows = (uint64_t)(r->effective.micro_batch / model_merged(&r->model));
    double micros = (double)(r->effective.micros * model_merged(&r->model));
    if (there)
        return (double)(there / rows + (there % rows > 0));
    return FAULT("dp_scale") ? micros : micros * r->config.layout.mesh.dp;
}

double rank_loss_divisor(const struct rank *r, double labels, uint64_t there)
{
    double micros = micros_of(r, there);
    if (r->config.per_token)
        return 1;
    if (FAULT("context_scale"))
        micros *= r->config.layout.mesh.cp;
    return labels * micros;
}

int64_t rank_samples(const struct rank *r, int64_t consumed)
{
    const struct rank_config *c = &r->config;
    int dp = FAULT("dp_consumed") ? 1 : c->layout.mesh.dp;
    return c->ramp.epoch ? ramp_at(&c->ramp, consumed)
                         : r->effective.micros * r->effective.micro_batch * dp;
}

double rank_rate(const struct rank *r, const struct cursor *at)
{
    const struct lr *lr = &r->config.lr;
    bool updates = lr->rules == LR_HF && !FAULT("lr_updates");
    return lr_at(lr, updates ? at->steps : at->scheduled);
}

void rank_follow_ramp(struct rank *r)
{
    const struct rank_config *c = &r->config;
    if (!c->ramp.increment)
        return;
    int64_t micros =
        ramp_at(&c->ramp, r->at.consumed) / (r->effective.micro_batch * c->layout.mesh.dp);
    if (micros == r->effective.micros)
        return;
    r->effective.micros = micros;
    pipeline_reschedule(r);
}

void rank_share_batches(const struct rank *r, struct batch_layout *l)
{
    l->rows = (uint32_t)r->effective.micro_batch;
    struct coord at = mesh_coord(r->config.layout.mesh, r->config.rank);
    l->rank = FAULT("dp_batches") ? 0 : (uint32_t)at.dp;
    l->ranks = (uint32_t)r->config.layout.mesh.dp;
    if (FAULT("context_batches")) {
        l->rank = l->rank * (uint32_t)r->config.layout.mesh.cp + (uint32_t)at.cp;
        l->ranks *= (uint32_t)r->config.layout.mesh.cp;
    }
}

void rank_put_labels(struct rank *r, double *from, double labels)
{
    struct mesh m = r->config.layout.mesh;
    struct coord at = mesh_coord(m, r->config.rank);
    bool head = at.pp == m.pp - 1; /* where the losses are */
    bool counts = head && (at.cp == 0 || FAULT("context_labels"));
    *from = counts ? labels : 0;
    rank_put(r, tensor_rows(r->totals, 1, 1), from);
}

void rank_fetch_later(struct rank *r, void *to, struct tensor from)
{
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, to, from.data, tensor_bytes(from));
}

void rank_fetch(struct rank *r, void *to, struct tensor from)
{
    rank_fetch_later(r, to, from);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
}

void rank_set_timer(struct rank *r, rank_timer_fn *fn, void *arg)
{
    r->effective.timer = fn;
    r->effective.timer_arg = arg;
}

void rank_timer(struct rank *r, enum rank_timer t, bool begins)
{
    if (!r->effective.timer)
        return;
    if (!r->dev.desc.host)
        r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    r->effective.timer(r->effective.timer_arg, t, begins);
}
