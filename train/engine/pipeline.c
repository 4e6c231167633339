/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/pipeline.h"

#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/engine/stage.h"

/* ---- memory ------------------------------------------------------------------------------ */

static void take_chunk(struct rank *r, int i)
{
    const struct rank_config *c = &r->config;
    struct chunk *k = &r->pipe.chunk[i];
    int at = mesh_coord(c->layout.mesh, c->rank).pp;
    k->stage = layout_stage(c->layout, c->spec.layers, at, i);
    zero_bind(&r->zero, k->stage, &k->w, &k->g);
}

static void build_schedule(const struct rank *r, struct schedule *ret)
{
    const struct rank_config *c = &r->config;
    struct schedule_shape shape = {
        .pp = c->layout.mesh.pp, .chunks = c->layout.chunks, .micros = (int)r->effective.micros};
    schedule_build(ret, shape, mesh_coord(c->layout.mesh, c->rank).pp);
}

void pipeline_take(struct rank *r, struct slab *s)
{
    struct pipeline *p = &r->pipe;
    const struct rank_config *c = &r->config;
    if (!p->place) {
        build_schedule(r, &p->schedule);
        size_t places = (size_t)p->schedule.places, buffers = (size_t)p->schedule.buffers;
        p->place = mem_new(places, sizeof(*p->place));
        p->chunk = mem_new((size_t)c->layout.chunks, sizeof(*p->chunk));
        p->received = mem_new(buffers + 1, sizeof(*p->received));
    }
    int64_t rows = stream_count(&r->model, r->model.tokens), width = c->spec.hidden;
    for (int i = 1; i < p->schedule.places; i++)
        model_take_place(&r->model, s, &p->place[i].acts);
    p->place[0].acts = r->model.a;
    p->chunk[0] = (struct chunk){r->model.stage, r->model.w, r->model.g};
    for (int i = 1; i < c->layout.chunks; i++)
        take_chunk(r, i);
    if (c->layout.mesh.pp == 1)
        return;
    for (int i = 0; i <= p->schedule.buffers; i++)
        p->received[i].t = slab_2d(s, c->real, rows, width);
    for (int i = 0; i < PIPELINE_SENDS; i++)
        p->sent[i].t = slab_2d(s, c->real, rows, width);
}

/* The places and buffers stay those of the longest step. */
void pipeline_reschedule(struct rank *r)
{
    struct schedule *s = &r->pipe.schedule, next;
    build_schedule(r, &next);
    BUG_ON(next.places > s->places || next.buffers > s->buffers,
           "%lld micro-batches need more memory than was taken", (long long)r->effective.micros);
    next.places = s->places;
    next.buffers = s->buffers;
    schedule_finish(s);
    *s = next;
}

void pipeline_finish(struct rank *r)
{
    struct pipeline *p = &r->pipe;
    if (!p->place)
        return;
    r->model.a = p->place[0].acts; /* what it has allocated is the model's to free */
    r->model.w = p->chunk[0].w;
    r->model.g = p->chunk[0].g;
    for (int i = 1; i < r->config.layout.chunks; i++) {
        weights_finish(&p->chunk[i].w);
        weights_finish(&p->chunk[i].g);
    }
    for (int i = 1; i < p->schedule.places; i++)
        model_place_finish(&p->place[i].acts);
    schedule_finish(&p->schedule);
    free(p->place);
    free(p->chunk);
    free(p->received);
    *p = (struct pipeline){0};
}

/* ---- messages ---------------------------------------------------------------------------- */

static struct comm_ticket send(struct rank *r, struct tensor t, int to)
{
    return comm_exchange(&r->comm, GROUP_PP, t, to, (struct tensor){0}, COMM_NOBODY);
}

static struct comm_ticket receive(struct rank *r, struct tensor t, int from)
{
    return comm_exchange(&r->comm, GROUP_PP, (struct tensor){0}, COMM_NOBODY, t, from);
}

static void wait_for(struct rank *r, struct comm_ticket *t)
{
    comm_wait(&r->comm, *t);
    *t = (struct comm_ticket){0};
}

static void wait_timed(struct rank *r, struct comm_ticket *t, enum rank_timer timer)
{
    rank_timer(r, timer, true);
    wait_for(r, t);
    rank_timer(r, timer, false);
}

static void copy(struct rank *r, struct tensor to, struct tensor from)
{
    op_copy(&r->ops, &(struct copy_args){.y = to, .x = from});
}

/* What a stage begins with arrives in `to`. */
static void take_message(struct rank *r, struct message *m, struct tensor to, enum rank_timer t)
{
    wait_timed(r, &m->ticket, t);
    copy(r, to, m->t);
}

/* ---- slots ------------------------------------------------------------------------------- */

/* Makes the model the stage of a chunk, in a place, with the micro-batch of the place `home`. */
static struct in_flight *enter(struct rank *r, int chunk, int place, int home)
{
    const struct chunk *c = &r->pipe.chunk[chunk];
    r->model.stage = c->stage;
    r->model.w = c->w;
    r->model.g = c->g;
    r->model.a = r->pipe.place[place].acts;
    if (home != place && !FAULT("chunk_batch"))
        model_share_batch(&r->model.a, &r->pipe.place[home].acts);
    return &r->pipe.place[place];
}

/* The first chunk fetches a micro-batch, later ones find it in its place. */
static int fetch(struct rank *r, const struct slot *s, struct in_flight *at,
                 struct pipeline_source *in, struct err *e)
{
    const struct batch *b;
    if (s->chunk) {
        at->pass = r->pipe.place[s->home].pass;
        at->labels = r->pipe.place[s->home].labels;
        return 0;
    }
    int code = in->next(in->arg, &b, e);
    if (code)
        return code;
    at->pass = rank_pass(r, b, true);
    at->labels = rank_stage(r, b, true);
    in->labels += at->labels;
    return 0;
}

static int run_forward(struct rank *r, const struct slot *s, struct pipeline_source *in,
                       struct err *e)
{
    struct in_flight *at = enter(r, s->chunk, s->place, s->home);
    wait_timed(r, &at->sent, RANK_TIMER_FORWARD_SEND);
    int code = fetch(r, s, at, in, e);
    if (code)
        return code;
    if (!r->model.stage.embed)
        take_message(r, &r->pipe.received[s->buffer], r->model.a.x, RANK_TIMER_FORWARD_RECV);
    rank_timer(r, RANK_TIMER_FORWARD, true);
    graphs_pass(r, GRAPH_FORWARD, &at->pass);
    rank_timer(r, RANK_TIMER_FORWARD, false);
    if (!r->model.stage.head)
        at->sent = send(r, model_output(&r->model), s->peer);
    return 0;
}

static void run_backward(struct rank *r, const struct slot *s)
{
    struct in_flight *at = enter(r, s->chunk, s->place, s->home);
    if (!r->model.stage.head)
        take_message(r, &r->pipe.received[s->buffer], r->model.a.dr, RANK_TIMER_BACKWARD_RECV);
    rank_timer(r, RANK_TIMER_BACKWARD, true);
    graphs_pass(r, GRAPH_BACKWARD, &at->pass);
    rank_timer(r, RANK_TIMER_BACKWARD, false);
    if (r->model.stage.embed)
        return;
    struct message *out = &r->pipe.sent[r->pipe.sends++ % PIPELINE_SENDS];
    wait_timed(r, &out->ticket, RANK_TIMER_BACKWARD_SEND);
    copy(r, out->t, r->model.a.dr);
    out->ticket = send(r, out->t, s->peer);
}

int pipeline_train(struct rank *r, struct pipeline_source *in, struct err *e)
{
    const struct schedule *table = &r->pipe.schedule;
    int code = 0;
    zero_begin(&r->zero, r->effective.micros);
    for (size_t i = 0; !code && i < table->n; i++) {
        const struct slot *s = &table->slot[i];
        if (s->kind == SLOT_RECEIVE)
            r->pipe.received[s->buffer].ticket = receive(r, r->pipe.received[s->buffer].t, s->peer);
        else if (s->kind == SLOT_FORWARD)
            code = run_forward(r, s, in, e);
        else if (s->kind == SLOT_INPUT_GRAD) /* with the weights' gradients */
            run_backward(r, s);
    }
    for (int i = 0; i < table->places; i++)
        wait_for(r, &r->pipe.place[i].sent);
    for (int i = 0; i < PIPELINE_SENDS; i++)
        wait_for(r, &r->pipe.sent[i].ticket);
    enter(r, 0, 0, 0);
    return code;
}

/* One stage of a micro-batch that is staged. */
static void evaluate_stage(struct rank *r, int chunk, const struct model_pass *p)
{
    int pp = r->config.layout.mesh.pp, at = mesh_coord(r->config.layout.mesh, r->config.rank).pp;
    if (r->pipe.chunk)
        enter(r, chunk, 0, 0);
    if (!r->model.stage.embed) {
        struct tensor from = r->pipe.received[0].t;
        comm_wait(&r->comm, receive(r, from, (at + pp - 1) % pp));
        copy(r, r->model.a.x, from);
    }
    graphs_pass(r, GRAPH_FORWARD, p);
    if (!r->model.stage.head)
        comm_wait(&r->comm, send(r, model_output(&r->model), (at + 1) % pp));
}

int pipeline_evaluate(struct rank *r, struct pipeline_source *in, int64_t micros, struct err *e)
{
    int chunks = r->pipe.chunk ? r->config.layout.chunks : 1, code = 0;
    for (int64_t i = 0; !code && i < micros; i++) {
        const struct batch *b;
        code = in->next(in->arg, &b, e);
        if (code)
            break;
        struct model_pass p = rank_pass(r, b, false);
        in->labels += rank_stage(r, b, false);
        for (int chunk = 0; chunk < chunks; chunk++)
            evaluate_stage(r, chunk, &p);
    }
    if (r->pipe.chunk)
        enter(r, 0, 0, 0);
    return code;
}
