/* SPDX-License-Identifier: Apache-2.0 */
#include "train/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/log.h"
#include "train/engine/memory_fit.h"
#include "train/job/served.h"
#include "train/hint/hint.h"
#include "train/options/stages.h"

/* `train plan`: what is said of a job that is planned (job_plan_rank): one process of each pipeline
 * stage is planned, and the largest is described. */
struct plan_report {
    struct job *job;
    struct rank *stage;          /* [pp] planned */
    int largest;                 /* of them */
    double flops;                /* of a step, of all processes */
    double traffic[GROUP_COUNT]; /* bytes that the process sends which sends most */
    double bubble;               /* share of a step in which a process waits for others */
    uint64_t checkpoint;         /* bytes of its tensors */
    struct mem_limit limit[MEM_LIMITS];
    int limits;
};

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
    if (slabs_of(r) + memory_fit_communication(r) >
        slabs_of(&p->stage[p->largest]) + memory_fit_communication(&p->stage[p->largest]))
        p->largest = i;
}

static int make_report(struct plan_report *ret, struct job *j, struct err *e)
{
    const struct rank_config *c = &j->rank.config;
    struct mesh m = c->layout.mesh;
    struct schedule_shape shape = {
        .pp = m.pp, .chunks = c->layout.chunks, .micros = (int)j->rank.effective.micros};
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

/* Takes half-made ones, too. */
static void close_report(struct plan_report *p)
{
    for (int i = 0; p->stage && i < p->job->layout.mesh.pp; i++)
        rank_close(&p->stage[i]);
    free(p->stage);
    *p = (struct plan_report){0};
}

/* ERR_RESOURCE where it does not fit (memory_fit.h); the hint names options with which it would. */
static int check_report_fit(const struct plan_report *p, struct err *e)
{
    const struct rank *largest = &p->stage[p->largest];
    const struct hint_job job = {p->job, largest, p->limit, p->limits, NULL};
    int code = memory_fit_check(largest, p->limit, p->limits, e);
    struct buf text = {0};
    if (code && e && hint_find(&job, &text))
        err_hint(e, "it would fit with %s", buf_str(&text));
    buf_finish(&text);
    return code;
}

/* What the process takes beyond its slabs: initial weights while they are made, batches of the
 * loaders, buffers. */
static uint64_t beyond(const struct rank *r)
{
    uint64_t all = memory_fit_need(r).touched, slabs = r->dev.desc.host ? slabs_of(r) : 0;
    slabs += r->dev.desc.host ? memory_fit_communication(r) : 0;
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

static void add_whole(const char *name, struct slots_whole w, struct buf *out)
{
    if (!w.layers)
        return;
    buf_addf(out,
             "whole units     of the %s: %d layer%s of up to %.1f MiB at a time, embedding and "
             "head %.1f MiB\n",
             name, w.layers, w.layers > 1 ? "s" : "", (double)w.layer / 0x1p20,
             (double)w.ends / 0x1p20);
}

static void add_communication(const struct rank *r, struct buf *out)
{
    uint64_t bytes = memory_fit_communication(r);
    if (bytes)
        buf_addf(out, "communication   %.1f MiB at most, %s\n", (double)bytes / 0x1p20,
                 r->dev.desc.host ? "of messages that wait and parts of sums"
                                  : "NCCL's buffers for this layout");
}

static void add_experts(const struct rank *r, struct buf *out)
{
    struct expert_shape x = {0};
    if (r->config.spec.experts)
        x = experts_shape(&r->model, r->model.tokens);
    if (x.senders > 1)
        buf_addf(
            out,
            "experts         room for %lld routed tokens of a micro-batch on each process, %.1f "
            "times an even share; more take further rounds (--expert-buffer-factor)\n",
            (long long)x.room, (double)x.room / (double)x.pairs);
}

static void add_memory(const struct plan_report *p, struct buf *out)
{
    const struct rank *r = &p->stage[p->largest];
    buf_adds(out, "memory          ");
    rank_describe(r, out);
    buf_addf(out, "; beyond that %.1f MiB\n", (double)beyond(r) / 0x1p20);
    add_whole(r->slab[SLAB_PARAMETERS].name, slots_whole(&r->zero.weight_slots), out);
    add_whole(r->slab[SLAB_GRADIENTS].name, slots_whole(&r->zero.grad_slots), out);
    add_experts(r, out);
    add_communication(r, out);
    struct buf system = {0};
    memory_fit_describe(r, &system);
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

static void write_text(const struct plan_report *p, struct buf *out)
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
    if (!p->job->rank.dev.desc.host) {
        buf_addf(out, "products        %s\nattention       ", j->rank.ops.entry[OP_MATMUL].backend);
        served_add(&p->stage[p->largest], out);
        buf_addf(out, "\nlaunches        %s\n",
                 j->rank.graphs.on ? "CUDA graphs of forward and backward" : "kernel by kernel");
    }
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

static void json_whole(struct slots_whole w, const char *name, struct buf *out)
{
    if (!w.layers)
        return;
    begin_object(out, name);
    add_number(out, "layers", w.layers);
    add_number(out, "layer", (double)w.layer);
    add_number(out, "ends", (double)w.ends);
    buf_adds(out, "}");
}

static void json_slabs(const struct rank *r, struct buf *out)
{
    for (int i = 0; i < SLAB_COUNT; i++)
        add_number(out, r->slab[i].name, (double)r->slab[i].peak);
    add_number(out, "together", (double)slabs_of(r));
    add_number(out, "beyond", (double)beyond(r));
    add_number(out, "communication", (double)memory_fit_communication(r));
    json_whole(slots_whole(&r->zero.weight_slots), "whole_weights", out);
    json_whole(slots_whole(&r->zero.grad_slots), "whole_gradients", out);
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

static void json_attention(const struct rank *r, struct buf *out)
{
    const struct ops *o = &r->ops;
    struct ops_served s;
    buf_adds(out, ", ");
    jsonw_key(out, "attention");
    buf_adds(out, "[");
    for (size_t i = 0; o->served && o->served(o, i, &s); i++) {
        buf_adds(out, i ? ", {" : "{");
        jsonw_key(out, "by");
        jsonw_string(out, s.by, strlen(s.by));
        buf_adds(out, ", ");
        jsonw_key(out, "form");
        jsonw_string(out, s.form, strlen(s.form));
        add_number(out, "layers", s.layers);
        buf_adds(out, ", ");
        jsonw_key(out, "loops");
        buf_adds(out, s.loops ? "true}" : "false}");
    }
    buf_adds(out, "]");
}

static void write_json(const struct plan_report *p, struct buf *out)
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
    json_attention(&p->stage[p->largest], out);
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
    buf_adds(out, check_report_fit(p, NULL) ? "false}\n" : "true}\n");
}

/* ---- the verb ---------------------------------------------------------------------------- */

/* The data are looked at for the tokenizer that they were made with, and whether they are packed.
 */
static bool names_data(const struct train_options *o)
{
    const struct data_flags *d = &o->data;
    return d->path.n || d->args_path || d->parts_path || d->part[PART_TRAIN].n ||
           d->part[PART_VALID].n || d->part[PART_TEST].n;
}

/*
 * `train plan`: what the options would need, by running the step's code over unbound memory. What
 * does not fit here is planned and printed all the same, and then is the error.
 */
int verb_plan(struct opts *opts, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    struct buf b = {0};
    int code = job_open_world(&j, e);
    if (!code && names_data(j.o))
        code = job_open_manifest(&j, e);
    if (!code)
        code = job_open_tokenizer(&j, e);
    if (!code)
        code = job_spec(&j, false, e);
    if (!code)
        code = job_plan_rank(&j, e);
    struct plan_report p = {0};
    if (!code)
        code = make_report(&p, &j, e);
    if (!code && j.rank.dev.desc.assumed)
        log_warn("there is no GPU here: this is planned for an H100 with 80 GB, as if cuDNN were "
                 "installed");
    if (!code)
        served_tell(&p.stage[p.largest]);
    if (!code) {
        if (j.o->json)
            write_json(&p, &b);
        else
            write_text(&p, &b);
        fputs(buf_str(&b), stdout);
        code = check_report_fit(&p, e);
    }
    close_report(&p);
    buf_finish(&b);
    job_close(&j);
    return code;
}
