/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/options/earlier.h"
#include "train/engine/all_ranks.h"
#include "train/job/job.h"
#include "train/schedule/balance.h"
#include "train/options/stages.h"

static bool is_given(const struct job *j, const char *option)
{
    return opts_origin(j->opts, option) != FROM_DEFAULT;
}

/* One line for each option of parallelism that changes nothing in this layout. */
static void warn_idle(const struct job *j, int asked)
{
    const struct train_options *o = j->o;
    const struct layout *l = &j->layout;
    static const char check[] = "check-weight-hash-across-dp-replicas-interval",
                      timeout[] = "distributed-timeout-minutes", factor[] = "expert-buffer-factor";
    bool one = l->mesh.dp * l->mesh.cp == 1, alone = mesh_world(l->mesh) == 1;
    const struct {
        const char *option;
        /* idle: where one rank has the weights, without ZeRO, with ZeRO 2 and 3, with one stage,
         * in one process, where each process has all experts */
        bool given, one, plain, sliced, staged, joint, spread;
    } rows[] = {{"use-distributed-optimizer", o->distributed_optimizer, true, false, false},
                {"zero-stage", asked > 0 && is_given(j, "zero-stage"), true, false, false},
                {"num-distributed-optimizer-instances", o->instances > 1, true, false, false},
                {"overlap-grad-reduce", o->overlap_grad_reduce, true, false, false},
                {"overlap-param-gather", o->overlap_param_gather, true, true, false},
                {"ddp-bucket-size", o->bucket_size > 0, true, false, true},
                {"account-for-embedding-in-pipeline-split", o->stages.embedding, .staged = true},
                {"account-for-loss-in-pipeline-split", o->stages.loss, .staged = true},
                {"use-tp-pp-dp-mapping", o->stages.before_data, .one = true, .staged = true},
                {check, opts_origin(j->opts, check) == FROM_FLAG, .joint = true},
                {timeout, opts_origin(j->opts, timeout) == FROM_FLAG, .joint = true},
                {factor, opts_origin(j->opts, factor) == FROM_FLAG, .spread = true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *why = rows[i].one && one              ? "one data-parallel process"
                          : rows[i].plain && !l->zero     ? "--zero-stage 0"
                          : rows[i].sliced && l->zero > 1 ? "ZeRO 2 or 3, which send whole layers"
                          : rows[i].staged && l->mesh.pp == 1 ? "one pipeline stage"
                          : rows[i].joint && alone            ? "one process"
                          : rows[i].spread && l->mesh.ep == 1 ? "--expert-model-parallel-size 1"
                                                              : NULL;
        if (rows[i].given && why)
            log_warn("--%s has no effect with %s", rows[i].option, why);
    }
}

/* What data-parallel processes share out. */
static int choose_zero(struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    struct layout *l = &j->layout;
    int stage = is_given(j, "zero-stage") ? (int)o->zero_stage : o->distributed_optimizer;
    if (o->distributed_optimizer && !stage)
        return err_set(e, ERR_USAGE,
                       "--use-distributed-optimizer and --zero-stage 0 exclude each other");
    if (o->instances > 1 && !stage)
        return err_set(e, ERR_USAGE,
                       "--num-distributed-optimizer-instances %lld: expected "
                       "--use-distributed-optimizer or a --zero-stage above 0",
                       (long long)o->instances);
    l->zero = l->mesh.dp * l->mesh.cp > 1 ? stage : 0;
    l->mesh.instances = l->zero ? (int)o->instances : 1;
    warn_idle(j, stage);
    return mesh_check(l->mesh, mesh_world(l->mesh), e);
}

static int too_few(int ranks, int tp, int cp, int pp, struct err *e)
{
    const struct {
        const char *name;
        int n;
    } parts[] = {{"--tensor-model-parallel-size", tp},
                 {"--context-parallel-size", cp},
                 {"--pipeline-model-parallel-size", pp}};
    struct buf b = {0};
    for (int i = 0; i < 3; i++)
        if (parts[i].n > 1)
            buf_addf(&b, "%s%s %d", b.len ? " x " : "", parts[i].name, parts[i].n);
    err_set(e, ERR_USAGE, "%d process%s cannot be shared out to %s", ranks, ranks == 1 ? "" : "es",
            buf_str(&b));
    buf_finish(&b);
    return err_hint(
        e,
        "their number is a multiple of %d: --nproc-per-node starts that many on this machine, "
        "as mpirun, srun and torchrun do on several",
        tp * cp * pp);
}

/* The processes that a plan is for. */
static int planned_ranks(const struct job *j, int *ret, struct err *e)
{
    enum { MOST = 1000000 }; /* as of --world-size */
    const struct train_options *o = j->o;
    int64_t per_node = o->per_node ? o->per_node : 1, nodes = o->nodes ? o->nodes : 1;
    bool whole = is_given(j, "world-size"), parts = o->per_node || o->nodes;
    int64_t ranks = parts ? per_node * nodes : o->world_size;
    if (ranks > MOST)
        return err_set(e, ERR_USAGE, "--nnodes %lld x --nproc-per-node %lld: at most %d processes",
                       (long long)nodes, (long long)per_node, MOST);
    *ret = (int)ranks;
    if (whole && o->world_size != ranks)
        return err_set(e, ERR_USAGE,
                       "--world-size %lld is not --nnodes %lld x --nproc-per-node %lld",
                       (long long)o->world_size, (long long)nodes, (long long)per_node);
    return 0;
}

static int open_world(struct job *j, struct err *e)
{
    const struct job_world *w = j->o->world;
    const struct train_options *o = j->o;
    bool trains = j->opts->verb == VERB_RUN || j->opts->verb == VERB_PLAN;
    int tp = trains ? (int)o->tensor_parallel : 1;
    int ranks = w->ranks;
    int code = j->opts->verb == VERB_PLAN ? planned_ranks(j, &ranks, e) : 0;
    if (code)
        return code;
    if (!trains && w->ranks > 1)
        return err_set(e, ERR_USAGE, "train %s runs as one process, and %d were started",
                       j->opts->table->verb[j->opts->verb].name, w->ranks);
    int pp = trains ? (int)o->pipeline_parallel : 1, cp = trains ? (int)o->context.size : 1;
    int64_t model = (int64_t)tp * cp * pp;
    if (ranks % model)
        return too_few(ranks, tp, cp, pp, e);
    j->layout = layout_plain(mesh_dense(tp, cp, (int)(ranks / model), pp));
    j->layout.sequence = trains && o->sequence_parallel && tp > 1; /* as Megatron-LM does */
    if (trains && o->sequence_parallel && tp == 1)
        log_warn("--sequence-parallel has no effect with --tensor-model-parallel-size 1");
    if (trains && o->context.comm.n && cp == 1)
        log_warn("--cp-comm-type has no effect with --context-parallel-size 1");
    j->layout.mesh.pp_before_dp = trains && o->stages.before_data && pp > 1; /* else no order */
    if (trains)
        j->layout.mesh.ep = (int)o->experts.parallel;
    if (trains && o->experts.tensor_parallel)
        j->layout.mesh.etp = (int)o->experts.tensor_parallel;
    code = mesh_check(j->layout.mesh, ranks, e);
    if (!code && trains)
        code = choose_zero(j, e);
    if (code)
        return code;
    if (w->ranks > 1 && j->opts->verb == VERB_RUN)
        return w->open(&j->comm, w->state, j->layout.mesh, e);
    comm_self_open(&j->comm);
    return 0;
}

int job_open_world(struct job *j, struct err *e)
{
    bool several = j->o->world->ranks > 1 && j->opts->verb == VERB_RUN;
    int code = several ? job_same_options(j, e) : 0;
    if (code)
        return code;
    code = open_world(j, e);
    if (code && !j->comm.fn && !job_is_first(j)) /* the same on all: the first one says it */
        *e = (struct err){.code = code};
    return code || !several ? code : job_tell_ranks(j, e);
}

struct comm *job_comm(struct job *j)
{
    return j->comm.fn ? &j->comm : &j->rank.comm;
}

int job_agree(struct job *j, int code, struct err *e)
{
    struct comm *c = job_comm(j); /* without functions: ranks failed alike before they met */
    return j->o->world->ranks > 1 && c->fn ? all_ranks_agree(c, code, e) : code;
}

bool job_is_first(const struct job *j)
{
    return j->o->world->rank == 0;
}

bool job_is_last(const struct job *j)
{
    return j->o->world->rank == j->o->world->ranks - 1;
}

static int comm_by_name(const char *name, enum context_comm *ret, struct err *e)
{
    for (int i = 0; i < CONTEXT_COMMS; i++)
        if (!strcmp(name, context_comm_name((enum context_comm)i))) {
            *ret = (enum context_comm)i;
            return 0;
        }
    if (!strcmp(name, "a2a+p2p"))
        return err_set(e, ERR_USAGE,
                       "--cp-comm-type a2a+p2p: two levels of context parallelism are not "
                       "supported: expected p2p, all_gather or a2a");
    return err_set(e, ERR_USAGE, "--cp-comm-type %s: expected p2p, all_gather or a2a", name);
}

int context_share(const struct context_flags *f, int64_t layers, struct layout *l,
                  enum context_comm **ret_of, struct err *e)
{
    int code = 0;
    if (f->comm.n > 1 && (int64_t)f->comm.n != layers)
        return err_set(e, ERR_USAGE,
                       "--cp-comm-type with %zu values: expected one, or one for each of the %lld "
                       "layers",
                       f->comm.n, (long long)layers);
    if (f->comm.n == 1)
        return comm_by_name(f->comm.item[0], &l->context, e);
    if (!f->comm.n)
        return 0;
    *ret_of = mem_new(f->comm.n, sizeof(**ret_of));
    for (size_t i = 0; !code && i < f->comm.n; i++)
        code = comm_by_name(f->comm.item[i], &(*ret_of)[i], e);
    l->context_of = *ret_of;
    return code;
}

void context_describe(const struct layout *l, int64_t layers, struct buf *out)
{
    buf_addf(out, "%d processes share each sequence (", l->mesh.cp);
    for (int i = 0, begin = 0; i < layers; i++) {
        if (i + 1 < layers && layout_context(l, i + 1) == layout_context(l, i))
            continue;
        buf_addf(out, "%s%s", begin ? ", " : "", context_comm_name(layout_context(l, i)));
        if (i - begin + 1 < layers)
            buf_addf(out, " in %d layer%s", i - begin + 1, i > begin ? "s" : "");
        begin = i + 1;
    }
    buf_adds(out, ")");
}

/* The interleaved schedule takes micro-batches in groups, in the short steps of a ramp, too. */
static int ramp_fits(const struct job *j, struct err *e)
{
    const struct ramp *r = &j->course.ramp;
    int64_t group = j->o->micro_batch * j->layout.mesh.dp * j->layout.mesh.pp;
    if (j->layout.chunks > 1 && r->increment && (r->start % group || r->increment % group))
        return err_set(e, ERR_USAGE,
                       "--rampup-batch-size: virtual pipeline stages take micro-batches in groups "
                       "of %d: expected START and INCREMENT to be multiples of %lld",
                       j->layout.mesh.pp, (long long)group);
    return 0;
}

/* What balances the experts of a mixture counts all tokens of a micro-batch: those of rows that are
 * missing would count, too. */
static int epochs_fit(const struct job *j, struct err *e)
{
    const struct ramp *r = &j->course.ramp;
    const struct spec *s = &j->spec;
    if (!s->experts || !r->epoch || r->epoch % r->full == 0 ||
        (s->balance_coeff <= 0 && s->z_coeff <= 0))
        return 0;
    err_set(e, ERR_USAGE,
            "--num-train-epochs: the last step of an epoch has %lld of %lld sequences, and the "
            "experts of a mixture are balanced over whole micro-batches",
            (long long)(r->epoch % r->full), (long long)r->full);
    return err_hint(e,
                    "take a batch that divides the %lld sequences of an epoch, or "
                    "--moe-aux-loss-coeff 0",
                    (long long)r->epoch);
}

static enum optim_kind chosen_rule(const struct train_options *o)
{
    return optimizer_kind((enum optimizer)o->optimizer, o->sgd_momentum > 0);
}

static int optimizer_fits(const struct job *j, struct err *e)
{
    const struct optim_rule *rule = optim_rule(chosen_rule(j->o));
    return rule->check ? rule->check(&j->o->tuning, &j->layout, e) : 0;
}

int job_adopt_schedule(struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    const struct earlier_now now = {j->data_digest, j->global_batch, o->micro_batch, j->seq_length,
                                    j->epoch};
    struct course was;
    if (o->checkpoint_schedule && o->override_schedule)
        return err_set(e, ERR_USAGE,
                       "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler "
                       "exclude each other");
    if (!o->checkpoint_schedule || !j->ckpt || (o->finetune && !j->ckpt_is_own))
        return 0;
    int code = earlier_course(j->opts, j->ckpt, &now, &was, e);
    if (code)
        return code;
    j->course.lr = was.lr;
    j->course.decay = was.decay;
    return 0;
}

int job_settle_layout(struct job *j, bool trains, struct rank_config *ret, struct err *e)
{
    struct layout_model m = spec_layout_model(&j->spec);
    m.seq_length = j->seq_length;
    m.micros = j->micros;
    int code = 0, tp = j->layout.mesh.tp;
    ret->per_token = trains && j->o->per_token;
    ret->noise = trains ? j->o->neftune : 0;
    ret->expert_factor = trains ? j->o->experts.buffer : 0;
    ret->merge_tokens = trains ? j->o->tokens_per_pass : 0;
    if (trains)
        code = stages_share(&j->o->stages, j->spec.layers, &j->layout, &j->stage_layers, e);
    if (trains && !code)
        code = context_share(&j->o->context, j->spec.layers, &j->layout, &j->context_of, e);
    if (trains && !code)
        code = stages_recompute(&j->o->recompute, &j->layout, j->spec.layers, &ret->recompute, e);
    if (trains && !code)
        code = ramp_fits(j, e);
    if (trains && !code)
        code = epochs_fit(j, e);
    if (trains && !code)
        code = optimizer_fits(j, e);
    int64_t length = j->seq_length / j->layout.mesh.cp;
    ret->layout = j->layout;
    if (!code && ret->recompute.distribute && j->o->micro_batch * length * j->spec.hidden % tp)
        code =
            err_set(e, ERR_USAGE,
                    "--distribute-saved-activations: %lld x %lld x %lld numbers cannot be shared "
                    "out to --tensor-model-parallel-size %d",
                    (long long)j->o->micro_batch, (long long)length, (long long)j->spec.hidden, tp);
    return code ? code : layout_check(&m, &j->layout, mesh_world(j->layout.mesh), e);
}

int job_threads(const struct job *j)
{
    int each = pool_cpus() / j->o->world->locals;
    if (j->o->threads || j->o->world->ranks == 1)
        return (int)j->o->threads;
    return each > 1 ? each : 1;
}

void job_settle_optimizer(const struct train_options *o, struct rank_config *ret)
{
    ret->optimizer = chosen_rule(o);
    ret->momentum = o->sgd_momentum;
    ret->tuning = o->tuning;
    ret->beta1 = o->beta1;
    ret->beta2 = o->beta2;
    ret->eps = o->adam_eps;
    ret->clip = o->clip_grad;
}

/* Whether each process of the job finds a device of the first backend, and may take it. --kernels
 * is the CPU's. */
static bool all_have_device(struct job *j, const struct rank_config *c)
{
    struct dev_desc desc;
    struct err why;
    int lacks =
        j->o->kernels || c->backends->describe_device(&desc, c->device, c->threads, &why) != 0;
    return !all_ranks_max(&j->comm, lacks);
}

int job_choose_device(struct job *j, struct rank_config *c, struct err *e)
{
    const struct train_options *o = j->o;
    bool several = j->comm.world > 1;
    c->backends = o->backends;
    c->nbackends = o->nbackends;
    c->device = several ? o->world->local : 0;
    bool cpu = o->device == DEVICE_CPU || (o->device == DEVICE_AUTO &&
                                           (several ? !all_have_device(j, c) : o->kernels != NULL));
    const char *name = cpu ? "cpu" : "cuda";
    if (o->device == DEVICE_AUTO && !cpu) {
        c->nbackends = several ? 1 : c->nbackends;
        return 0;
    }
    for (int i = 0; i < o->nbackends; i++)
        if (!strcmp(o->backends[i].name, name)) {
            c->backends = &o->backends[i];
            c->nbackends = 1;
            return 0;
        }
    err_set(e, ERR_USAGE, "--device %s: this program was built without it", name);
    return err_hint(e, "build it where nvcc of the CUDA toolkit, 12 or newer, is installed");
}

/* ---- stages of a pipeline (stages.h) ------------------------------------------------------ */

/* Virtual stages of each rank; 0: not given. */
static int chunks_of(const struct stage_flags *f, int64_t layers, int pp, int *ret, struct err *e)
{
    int64_t counted = layers + f->embedding + f->loss, each = f->virtual_layers;
    *ret = (int)f->chunks;
    if (!each)
        return 0;
    if (f->chunks)
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage and "
                       "--num-virtual-stages-per-pipeline-rank exclude each other");
    if (f->first >= 0 || f->last >= 0)
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage: with "
                       "--decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers "
                       "expected --num-virtual-stages-per-pipeline-rank");
    if (counted % (pp * each))
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage %lld: %lld layers cannot be shared "
                       "out to --pipeline-model-parallel-size %d",
                       (long long)each, (long long)counted, pp);
    *ret = (int)(counted / (pp * each));
    return 0;
}

int stages_share(const struct stage_flags *f, int64_t layers, struct layout *l,
                 int64_t **ret_layers, struct err *e)
{
    int pp = l->mesh.pp, chunks;
    struct layer_range *range = NULL;
    *ret_layers = NULL;
    int code = chunks_of(f, layers, pp, &chunks, e);
    if (code)
        return code;
    const struct balance b = {.layers = layers,
                              .pp = pp,
                              .chunks = chunks,
                              .list = f->balance,
                              .first = f->first,
                              .last = f->last,
                              .embedding = f->embedding,
                              .loss = f->loss,
                              .method = f->method,
                              .layout = f->layout};
    code = balance_layers(&b, &range, &l->chunks, e);
    if (code || !balance_uneven(&b)) {
        free(range);
        return code;
    }
    int64_t *share = mem_new((size_t)pp * (size_t)l->chunks, sizeof(*share));
    for (int i = 0; i < pp * l->chunks; i++)
        share[i] = range[i].count;
    free(range);
    l->layers = *ret_layers = share;
    return 0;
}

void stages_describe(const struct layout *l, int64_t layers, struct buf *out)
{
    for (int i = 0; i < l->mesh.pp * l->chunks; i++)
        buf_addf(out, "%s%d", i ? "-" : "",
                 layout_stage(*l, layers, i % l->mesh.pp, i / l->mesh.pp).layers);
}

/* ---- recomputation ----------------------------------------------------------------------- */

enum { GRANULARITY_NONE, GRANULARITY_SELECTIVE, GRANULARITY_FULL };
enum { METHOD_NONE, METHOD_UNIFORM, METHOD_BLOCK };

static int full_recompute(const struct recompute_flags *f, int64_t layers, struct recompute *ret,
                          struct err *e)
{
    int method = f->checkpoint && !f->method ? METHOD_UNIFORM : f->method;
    int64_t each = f->checkpoint && !f->layers ? 1 : f->layers;
    if (method == METHOD_NONE)
        return err_set(
            e, ERR_USAGE,
            "--recompute-granularity full: expected --recompute-method uniform or block");
    if (each < 1 || each > layers)
        return err_set(e, ERR_USAGE,
                       "--recompute-granularity full: expected --recompute-num-layers from 1 to "
                       "%lld",
                       (long long)layers);
    ret->kind = method == METHOD_UNIFORM ? RECOMPUTE_UNIFORM : RECOMPUTE_BLOCK;
    ret->layers = (int)each;
    return 0;
}

int stages_recompute(const struct recompute_flags *f, const struct layout *l, int64_t layers,
                     struct recompute *ret, struct err *e)
{
    bool selective = f->granularity == GRANULARITY_SELECTIVE || f->activations;
    bool full = f->granularity == GRANULARITY_FULL || f->checkpoint;
    int code = 0;
    *ret = (struct recompute){.distribute = f->distribute};
    if (selective && full)
        return err_set(e, ERR_USAGE, "selective and full recomputation exclude each other");
    if (!full && f->method)
        return err_set(e, ERR_USAGE, "--recompute-method: expected --recompute-granularity full");
    if (selective)
        ret->kind = RECOMPUTE_SELECTIVE;
    else if (full)
        code = full_recompute(f, layers, ret, e);
    if (code || !f->distribute)
        return code;
    if (!full)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: expected --recompute-granularity full");
    if (l->mesh.tp == 1)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: expected a --tensor-model-parallel-size "
                       "above 1");
    if (l->sequence)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: with --sequence-parallel each process has "
                       "a part of them already");
    return 0;
}
