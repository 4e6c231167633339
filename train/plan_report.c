/* SPDX-License-Identifier: Apache-2.0 */
#include "train/plan_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/engine/fit.h"
#include "train/stages.h"

/* ---- planning ---------------------------------------------------------------------------- */

static uint64_t slabs_of(const struct rank *r)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLAB_COUNT; i++)
        sum += r->slab[i].peak;
    return sum;
}

/* A process of the stage `pp`. */
static int plan_stage(struct rank *ret, const struct rank_config *like, const struct dev_desc *desc,
                      int pp, struct err *e)
{
    struct rank_config c = *like;
    c.rank = mesh_rank(c.layout.mesh, (struct coord){.pp = pp});
    c.comm = NULL;
    return rank_plan(ret, &c, desc, e);
}

static void find_limits(struct plan_report *p)
{
    int64_t given = p->job->o->device_memory;
    p->limits = 1;
    p->limit[0] = (struct mem_limit){
        .name = "--device-memory", .total = (uint64_t)given, .free = (uint64_t)given};
    if (!given)
        p->limits = mem_limits("/proc", "/sys/fs/cgroup", p->limit);
}

static void add_stage(struct plan_report *p, int i)
{
    const struct rank *r = &p->stage[i];
    const struct mesh m = r->config.layout.mesh;
    p->flops += plan_flops(&r->plan) * m.tp * m.cp * m.dp;
    for (int g = 0; g < GROUP_COUNT; g++)
        if (r->plan.sent[g] > p->traffic[g])
            p->traffic[g] = r->plan.sent[g];
    if (slabs_of(r) > slabs_of(&p->stage[p->largest]))
        p->largest = i;
}

int plan_report_make(struct plan_report *ret, struct job *j, struct err *e)
{
    const struct rank_config *c = &j->rank.config;
    struct mesh m = c->layout.mesh;
    struct schedule_shape shape = {
        .pp = m.pp, .chunks = c->layout.chunks, .micros = (int)c->micros};
    *ret = (struct plan_report){.job = j, .stage = mem_new((size_t)m.pp, sizeof(*ret->stage))};
    int code = 0;
    for (int i = 0; i < m.pp && !code; i++) {
        code = plan_stage(&ret->stage[i], c, &j->rank.dev.desc, i, e);
        if (!code)
            add_stage(ret, i);
    }
    ret->bubble = schedule_bubble(shape, 1, 2, 0);
    ret->checkpoint = (uint64_t)j->rank.params.parameters * dtype_size(j->rank.ops.master) *
                      (uint64_t)(1 + (j->o->no_save_optim ? 0 : j->rank.optim.rule->states));
    find_limits(ret);
    return code;
}

void plan_report_close(struct plan_report *p)
{
    for (int i = 0; p->stage && i < p->job->layout.mesh.pp; i++)
        rank_close(&p->stage[i]);
    free(p->stage);
    *p = (struct plan_report){0};
}

/* What the process takes beyond its slabs: initial weights while they are made, batches of the
 * loaders, buffers. */
static uint64_t beyond(const struct rank *r)
{
    uint64_t all = fit_need(r).touched, slabs = r->dev.desc.host ? slabs_of(r) : 0;
    return all > slabs ? all - slabs : 0;
}

/* ---- text -------------------------------------------------------------------------------- */

static void add_layout(const struct plan_report *p, struct buf *out)
{
    const struct layout *l = &p->job->layout;
    const struct mesh *m = &l->mesh;
    int world = mesh_world(*m);
    if (world == 1)
        return;
    buf_addf(out, "processes       %d: tensor %d x context %d x data %d x pipeline %d", world,
             m->tp, m->cp, m->dp, m->pp);
    if (l->zero)
        buf_addf(out, ", ZeRO %d", l->zero);
    if (m->instances > 1)
        buf_addf(out, " in %d instances", m->instances);
    buf_adds(out, "\n");
    if (m->cp > 1) {
        buf_adds(out, "context         ");
        context_describe(l, p->job->spec.layers, out);
        buf_adds(out, "\n");
    }
    if (m->pp == 1)
        return;
    buf_adds(out, "stages          ");
    stages_describe(l, p->job->spec.layers, out);
    buf_addf(out, " layers on %d processes\n", m->pp);
}

static void add_memory(const struct plan_report *p, struct buf *out)
{
    const struct rank *r = &p->stage[p->largest];
    buf_adds(out, "memory          ");
    rank_describe(r, out);
    buf_addf(out, "; beyond that %.1f MiB\n", (double)beyond(r) / 0x1p20);
    struct buf system = {0};
    fit_describe(r, &system);
    if (system.len)
        buf_addf(out, "system          %s\n", buf_str(&system));
    buf_finish(&system);
    for (int i = 0; p->job->layout.mesh.pp > 1 && i < p->job->layout.mesh.pp; i++)
        buf_addf(out, "  stage %-8d%.1f MiB%s\n", i, (double)slabs_of(&p->stage[i]) / 0x1p20,
                 i == p->largest ? ", described above" : "");
}

static void add_ops(const struct plan_report *p, struct buf *out)
{
    const struct plan *plan = &p->stage[p->largest].plan;
    for (int i = 0; i < OP_COUNT; i++)
        if (plan->op[i].calls)
            buf_addf(out, "  %-14s%8llu calls %12.3f GFLOP %10.3f GB\n", op_name((enum op)i),
                     (unsigned long long)plan->op[i].calls, plan->op[i].flops / 1e9,
                     plan->op[i].bytes / 1e9);
}

static void add_traffic(const struct plan_report *p, struct buf *out)
{
    bool some = false;
    for (int g = 0; g < GROUP_COUNT; g++)
        if (p->traffic[g] >= 1e5) { /* not a few sums */
            buf_addf(out, "%s%s %.3f GB", some ? ", " : "traffic         ",
                     mesh_group_name((enum group)g), p->traffic[g] / 1e9);
            some = true;
        }
    if (some)
        buf_adds(out, ", sent by a process in a step\n");
}

void plan_report_text(const struct plan_report *p, struct buf *out)
{
    const struct job *j = p->job;
    double tokens = (double)j->global_batch * (double)j->seq_length;
    buf_addf(out, "parameters      %lld\n", (long long)j->rank.params.parameters);
    add_layout(p, out);
    add_memory(p, out);
    buf_addf(out, "step            %lld sequences of %lld tokens in %lld micro-batches\n",
             (long long)j->global_batch, (long long)j->seq_length, (long long)j->micros);
    buf_addf(out, "operations      %.3f GFLOP a step, %.3f GFLOP a token%s\n", p->flops / 1e9,
             p->flops / 1e9 / tokens,
             mesh_world(j->layout.mesh) > 1 ? ", of all processes; of the one described:" : "");
    add_ops(p, out);
    add_traffic(p, out);
    if (!p->job->rank.dev.desc.host)
        buf_addf(out, "products        %s\nlaunches        %s\n",
                 j->rank.ops.entry[OP_MATMUL].backend,
                 j->rank.graphs.on ? "CUDA graphs of forward and backward" : "kernel by kernel");
    if (j->layout.mesh.pp > 1)
        buf_addf(out, "bubble          %.1f %% of a step\n", 100 * p->bubble);
    buf_addf(out, "checkpoint      %.3f GB\n", (double)p->checkpoint / 1e9);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void add_number(struct buf *out, const char *key, double v)
{
    if (out->data[out->len - 1] != '{')
        buf_adds(out, ", ");
    jsonw_key(out, key);
    buf_addf(out, "%.0f", v);
}

static void begin_object(struct buf *out, const char *key)
{
    if (out->data[out->len - 1] != '{')
        buf_adds(out, ", ");
    jsonw_key(out, key);
    buf_adds(out, "{");
}

static void json_slabs(const struct rank *r, struct buf *out)
{
    for (int i = 0; i < SLAB_COUNT; i++)
        add_number(out, r->slab[i].name, (double)r->slab[i].peak);
    add_number(out, "together", (double)slabs_of(r));
    add_number(out, "beyond", (double)beyond(r));
}

static void json_layout(const struct plan_report *p, struct buf *out)
{
    const struct layout *l = &p->job->layout;
    begin_object(out, "layout");
    add_number(out, "processes", mesh_world(l->mesh));
    add_number(out, "tensor", l->mesh.tp);
    add_number(out, "context", l->mesh.cp);
    add_number(out, "data", l->mesh.dp);
    add_number(out, "pipeline", l->mesh.pp);
    add_number(out, "zero_stage", l->zero);
    buf_adds(out, "}");
}

static void json_ops(const struct plan_report *p, struct buf *out)
{
    const struct plan *plan = &p->stage[p->largest].plan;
    begin_object(out, "ops");
    for (int i = 0; i < OP_COUNT; i++) {
        if (!plan->op[i].calls)
            continue;
        begin_object(out, op_name((enum op)i));
        add_number(out, "calls", (double)plan->op[i].calls);
        add_number(out, "flops", plan->op[i].flops);
        add_number(out, "bytes", plan->op[i].bytes);
        buf_adds(out, "}");
    }
    buf_adds(out, "}");
}

void plan_report_json(const struct plan_report *p, struct buf *out)
{
    const struct job *j = p->job;
    buf_adds(out, "{");
    add_number(out, "parameters", (double)j->rank.params.parameters);
    json_layout(p, out);
    begin_object(out, "memory");
    json_slabs(&p->stage[p->largest], out);
    buf_adds(out, "}, ");
    jsonw_key(out, "stages");
    buf_adds(out, "[");
    for (int i = 0; i < j->layout.mesh.pp; i++) {
        buf_adds(out, i ? ", {" : "{");
        json_slabs(&p->stage[i], out);
        buf_adds(out, "}");
    }
    buf_adds(out, "]");
    begin_object(out, "step");
    add_number(out, "sequences", (double)j->global_batch);
    add_number(out, "tokens", (double)j->global_batch * (double)j->seq_length);
    add_number(out, "micro_batches", (double)j->micros);
    add_number(out, "flops", p->flops);
    buf_adds(out, "}");
    json_ops(p, out);
    begin_object(out, "traffic");
    for (int g = 0; g < GROUP_COUNT; g++)
        if (p->traffic[g] > 0)
            add_number(out, mesh_group_name((enum group)g), p->traffic[g]);
    buf_adds(out, "}, ");
    jsonw_key(out, "bubble");
    jsonw_real(out, p->bubble);
    add_number(out, "checkpoint", (double)p->checkpoint);
    buf_adds(out, ", ");
    jsonw_key(out, "cuda_graphs");
    buf_adds(out, j->rank.graphs.on ? "true, " : "false, ");
    jsonw_key(out, "fits");
    buf_adds(out, plan_report_fit(p, NULL) ? "false}\n" : "true}\n");
}

/* ---- what would fit ---------------------------------------------------------------------- */

static bool stage_fits(const struct plan_report *p, const struct rank_config *c, int pp)
{
    struct rank r = {0};
    bool fits = !plan_stage(&r, c, &p->job->rank.dev.desc, pp, NULL) &&
                !fit_check(&r, p->limit, p->limits, NULL);
    rank_close(&r);
    return fits;
}

static bool change_fits(const struct plan_report *p, const struct rank_config *c)
{
    struct layout_model m = spec_layout_model(&c->spec);
    m.seq_length = c->seq_length;
    m.micros = c->micros;
    int last = c->layout.mesh.pp - 1;
    return !layout_check(&m, &c->layout, mesh_world(c->layout.mesh), NULL) && stage_fits(p, c, 0) &&
           (!last || stage_fits(p, c, last));
}

/* Each changes `c`, writes the options that do so, and returns whether it changed anything. */
typedef bool change(const struct plan_report *p, struct rank_config *c, struct buf *text);

static bool more_sequence(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    (void)p;
    bool can = c->layout.mesh.tp > 1 && !c->layout.sequence && !c->recompute.distribute;
    c->layout.sequence |= can;
    if (can)
        buf_adds(text, "--sequence-parallel");
    return can;
}

static bool more_zero(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    struct mesh m = c->layout.mesh;
    (void)p;
    if (m.dp * m.cp == 1 || c->layout.zero >= (m.pp == 1 ? ZERO_MAX : 1))
        return false;
    c->layout.zero++;
    buf_addf(text, "--zero-stage %d", c->layout.zero);
    return true;
}

static bool smaller_batch(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    (void)p;
    if (c->micro_batch % 2)
        return false;
    c->micro_batch /= 2;
    c->micros *= 2;
    buf_addf(text, "--micro-batch-size %lld", (long long)c->micro_batch);
    return true;
}

static bool recompute_attention(const struct plan_report *p, struct rank_config *c,
                                struct buf *text)
{
    (void)p;
    if (c->recompute.kind != RECOMPUTE_NONE)
        return false;
    c->recompute.kind = RECOMPUTE_SELECTIVE;
    buf_adds(text, "--recompute-activations");
    return true;
}

static bool recompute_layers(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    (void)p;
    if (c->recompute.kind > RECOMPUTE_SELECTIVE)
        return false;
    c->recompute = (struct recompute){.kind = RECOMPUTE_UNIFORM, .layers = 1};
    buf_adds(text,
             "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
    return true;
}

/* Twice as many processes for a replica: of those that there are, else of twice as many. */
static bool halve_data(struct rank_config *c, struct buf *text)
{
    struct mesh *m = &c->layout.mesh;
    if (m->dp % 2) {
        buf_addf(text, " --world-size %d", 2 * mesh_world(*m));
        return true;
    }
    m->dp /= 2;
    c->micros *= 2;
    if (m->dp * m->cp == 1)
        c->layout.zero = 0;
    return true;
}

static bool more_tensor(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    struct mesh *m = &c->layout.mesh;
    buf_addf(text, "--tensor-model-parallel-size %d", 2 * m->tp);
    halve_data(c, text);
    m->etp = m->etp == m->tp ? 2 * m->tp : m->etp;
    m->tp *= 2;
    c->spec.padded_vocab = spec_pad_vocab(c->spec.vocab, p->job->o->model.vocab_divisor, m->tp);
    return true;
}

static bool more_stages(const struct plan_report *p, struct rank_config *c, struct buf *text)
{
    (void)p;
    if (c->layout.layers)
        return false;
    buf_addf(text, "--pipeline-model-parallel-size %d", 2 * c->layout.mesh.pp);
    halve_data(c, text);
    c->layout.mesh.pp *= 2;
    return true;
}

enum { TIMES = 16 };

/* One change, as often as it takes; then all of them, one after the other. */
static bool find_change(const struct plan_report *p, struct buf *ret)
{
    static change *const changes[] = {more_sequence,       more_zero,        smaller_batch,
                                      recompute_attention, recompute_layers, more_tensor,
                                      more_stages};
    struct rank_config all = p->job->rank.config;
    struct buf both = {0};
    bool found = false;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]) && !found; i++) {
        struct rank_config c = p->job->rank.config;
        for (int k = 0; k < TIMES && !found; k++) {
            buf_reset(ret);
            if (!changes[i](p, &c, ret))
                break;
            found = change_fits(p, &c);
        }
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]) && !found; i++) {
        struct buf last = {0};
        for (int k = 0; k < TIMES && !found && mesh_world(all.layout.mesh) < 1 << 16; k++) {
            struct rank_config c = all;
            struct buf text = {0};
            bool changed = changes[i](p, &c, &text);
            if (changed) {
                all = c;
                buf_reset(&last);
                buf_addf(&last, "%s", buf_str(&text));
                found = change_fits(p, &all);
            }
            buf_finish(&text);
            if (!changed)
                break;
        }
        if (last.len)
            buf_addf(&both, "%s%s", both.len ? " " : "", buf_str(&last));
        buf_finish(&last);
        if (found) {
            buf_reset(ret);
            buf_adds(ret, buf_str(&both));
        }
    }
    buf_finish(&both);
    return found;
}

int plan_report_fit(const struct plan_report *p, struct err *e)
{
    int code = fit_check(&p->stage[p->largest], p->limit, p->limits, e);
    struct buf text = {0};
    if (code && e && find_change(p, &text))
        err_hint(e, "it would fit with %s", buf_str(&text));
    buf_finish(&text);
    return code;
}
