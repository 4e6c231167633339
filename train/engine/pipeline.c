/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/pipeline.h"

#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/mem.h"

/* ---- memory ------------------------------------------------------------------------------ */

void pipeline_take(struct rank *r, struct slab *s)
{
    struct pipeline *p = &r->pipe;
    const struct rank_config *c = &r->config;
    struct schedule_shape shape = {
        .pp = c->layout.mesh.pp, .chunks = c->layout.chunks, .micros = (int)c->micros};
    if (!p->place) {
        schedule_build(&p->schedule, shape, mesh_coord(c->layout.mesh, c->rank).pp);
        size_t places = (size_t)p->schedule.places, buffers = (size_t)p->schedule.buffers;
        p->place = mem_new(places, sizeof(*p->place));
        p->received = mem_new(buffers + 1, sizeof(*p->received));
    }
    int64_t rows = stream_count(&r->model, r->model.tokens), width = c->spec.hidden;
    for (int i = 1; i < p->schedule.places; i++)
        model_take_place(&r->model, s, &p->place[i].acts);
    p->place[0].acts = r->model.a;
    if (c->layout.mesh.pp == 1)
        return;
    for (int i = 0; i <= p->schedule.buffers; i++)
        p->received[i].t = slab_2d(s, c->real, rows, width);
    for (int i = 0; i < PIPELINE_SENDS; i++)
        p->sent[i].t = slab_2d(s, c->real, rows, width);
}

void pipeline_finish(struct rank *r)
{
    struct pipeline *p = &r->pipe;
    if (!p->place)
        return;
    r->model.a = p->place[0].acts; /* whose layers are the model's to free */
    for (int i = 1; i < p->schedule.places; i++)
        model_place_finish(&p->place[i].acts);
    schedule_finish(&p->schedule);
    free(p->place);
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

static void copy(struct rank *r, struct tensor to, struct tensor from)
{
    op_copy(&r->ops, &(struct copy_args){.y = to, .x = from});
}

/* What a stage begins with arrives in `to`. */
static void take_message(struct rank *r, struct message *m, struct tensor to)
{
    wait_for(r, &m->ticket);
    copy(r, to, m->t);
}

/* ---- slots ------------------------------------------------------------------------------- */

/* Labels in the loss of a micro-batch. */
static double counted(const struct batch *b)
{
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)b->rows * b->seq_length; i++)
        sum += (double)b->loss_mask[i];
    return sum;
}

static struct in_flight *enter(struct rank *r, int place)
{
    r->model.a = r->pipe.place[place].acts;
    return &r->pipe.place[place];
}

static int run_forward(struct rank *r, const struct slot *s, struct pipeline_source *in,
                       struct err *e)
{
    struct in_flight *at = enter(r, s->place);
    const struct batch *b;
    int code = in->next(in->arg, &b, e);
    if (code)
        return code;
    double n = b->loss_mask ? counted(b) : 1; /* the planner's batch has none */
    in->labels += n;
    wait_for(r, &at->sent);
    at->pass = rank_pass(r, b, true);
    rank_stage(r, b);
    if (!r->model.stage.embed)
        take_message(r, &r->pipe.received[s->buffer], r->model.a.x);
    model_forward(&r->model, &at->pass);
    if (r->model.stage.head)
        model_loss(&r->model, &at->pass, tensor_rows(r->totals, 0, 1),
                   (float)rank_loss_scale(r, n));
    else
        at->sent = send(r, r->model.a.r, s->peer);
    return 0;
}

static void run_backward(struct rank *r, const struct slot *s)
{
    struct in_flight *at = enter(r, s->place);
    if (!r->model.stage.head)
        take_message(r, &r->pipe.received[s->buffer], r->model.a.dr);
    model_backward(&r->model, &at->pass);
    if (r->model.stage.embed)
        return;
    struct message *out = &r->pipe.sent[r->pipe.sends++ % PIPELINE_SENDS];
    wait_for(r, &out->ticket);
    copy(r, out->t, r->model.a.dr);
    out->ticket = send(r, out->t, s->peer);
}

int pipeline_train(struct rank *r, struct pipeline_source *in, struct err *e)
{
    const struct schedule *table = &r->pipe.schedule;
    int code = 0;
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
    enter(r, 0);
    return code;
}

int pipeline_evaluate(struct rank *r, struct pipeline_source *in, int64_t micros, struct err *e)
{
    int at = mesh_coord(r->config.layout.mesh, r->config.rank).pp, code = 0;
    struct tensor from = r->config.layout.mesh.pp > 1 ? r->pipe.received[0].t : (struct tensor){0};
    for (int64_t i = 0; !code && i < micros; i++) {
        const struct batch *b;
        code = in->next(in->arg, &b, e);
        if (code)
            break;
        struct model_pass p = rank_pass(r, b, false);
        in->labels += counted(b);
        rank_stage(r, b);
        if (!r->model.stage.embed) {
            comm_wait(&r->comm, receive(r, from, at - 1));
            copy(r, r->model.a.x, from);
        }
        model_forward(&r->model, &p);
        if (r->model.stage.head)
            model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), 0);
        else
            comm_wait(&r->comm, send(r, r->model.a.r, at + 1));
    }
    return code;
}
