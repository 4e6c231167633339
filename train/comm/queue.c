/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/queue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/comm/call.h"

double comm_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct timespec timespec_of(double seconds)
{
    double whole = floor(seconds);
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
}

void comm_hub_init(struct comm_hub *h)
{
    *h = (struct comm_hub){0};
    pthread_mutex_init(&h->lock, NULL);
}

void comm_hub_finish(struct comm_hub *h)
{
    pthread_mutex_destroy(&h->lock);
}

void comm_hub_fail(struct comm_hub *h, int code, const char *sentence)
{
    comm_hub_tell(h, code, 0, sentence);
}

void comm_hub_tell(struct comm_hub *h, int code, int64_t step, const char *sentence)
{
    if (!h->fault) {
        h->fault = code;
        h->step = step;
        snprintf(h->text, sizeof(h->text), "%s", sentence);
    }
    for (struct comm_bell *b = h->bells; b; b = b->next)
        comm_bell_ring(b);
}

void comm_hub_wait(struct comm_hub *h, struct comm_bell *b, double seconds)
{
    struct timespec until = timespec_of(comm_clock() + seconds);
    if (seconds > 0)
        pthread_cond_timedwait(&b->rung, &h->lock, &until);
    else
        pthread_cond_wait(&b->rung, &h->lock);
}

void comm_bell_init(struct comm_bell *b, struct comm_hub *h)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&b->rung, &a);
    pthread_condattr_destroy(&a);
    pthread_mutex_lock(&h->lock);
    b->next = h->bells;
    h->bells = b;
    pthread_mutex_unlock(&h->lock);
}

void comm_bell_finish(struct comm_bell *b, struct comm_hub *h)
{
    struct comm_bell **at = &h->bells;
    pthread_mutex_lock(&h->lock);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    pthread_mutex_unlock(&h->lock);
    pthread_cond_destroy(&b->rung);
}

void comm_bell_ring(struct comm_bell *b)
{
    pthread_cond_signal(&b->rung);
}

void comm_queue_init(struct comm_queue *q, struct comm_hub *h, struct comm_bell *work,
                     struct mesh m, int rank)
{
    size_t peers = (size_t)GROUP_COUNT * (size_t)mesh_world(m);
    *q = (struct comm_queue){.hub = h, .work = work, .mesh = m, .rank = rank};
    q->to = mem_new(peers, sizeof(*q->to));
    q->by = mem_new(peers, sizeof(*q->by));
    comm_bell_init(&q->done, h);
}

void comm_queue_finish(struct comm_queue *q)
{
    comm_bell_finish(&q->done, q->hub);
    free(q->to);
    free(q->by);
}

struct comm_flight *comm_queue_flight(struct comm_queue *q, uint64_t number)
{
    return &q->flight[number % COMM_IN_FLIGHT];
}

struct comm_ticket comm_queue_issue(struct comm *c, const struct comm_call *call)
{
    struct comm_queue *q = c->state;
    struct comm_hub *h = q->hub;
    if (comm_alone(c, call))
        return (struct comm_ticket){0};
    pthread_mutex_lock(&h->lock);
    uint64_t number = q->issued + 1;
    struct comm_flight *f = comm_queue_flight(q, number);
    while (f->state != FLIGHT_DONE && !h->fault)
        comm_hub_wait(h, &q->done, 0);
    if (!h->fault) {
        *f = (struct comm_flight){
            .call = *call, .state = FLIGHT_ISSUED, .number = number, .missing = COMM_NOBODY};
        q->issued = number;
    }
    pthread_mutex_unlock(&h->lock);
    comm_bell_ring(q->work);
    return (struct comm_ticket){number};
}

void comm_queue_wait(struct comm *c, struct comm_ticket t)
{
    struct comm_queue *q = c->state;
    struct comm_hub *h = q->hub;
    pthread_mutex_lock(&h->lock);
    const struct comm_flight *f = comm_queue_flight(q, t.number);
    while (t.number && f->number == t.number && f->state != FLIGHT_DONE && (!h->fault || f->busy))
        comm_hub_wait(h, &q->done, 0);
    if (h->fault && !c->fault) {
        c->fault = h->fault;
        c->fault_heard = h->heard;
        c->fault_step = h->step;
        snprintf(c->fault_text, sizeof(c->fault_text), "%s", h->text);
    }
    pthread_mutex_unlock(&h->lock);
}

void comm_queue_abort(struct comm *c, const struct err *why)
{
    comm_queue_interrupt(c, why);
    comm_queue_wait(c, (struct comm_ticket){0}); /* the first fault may be another */
}

void comm_queue_interrupt(const struct comm *c, const struct err *why)
{
    struct comm_queue *q = c->state;
    pthread_mutex_lock(&q->hub->lock);
    comm_hub_tell(q->hub, why->code, why->step, why->msg);
    pthread_mutex_unlock(&q->hub->lock);
}

/* "call 5 of the data-parallel group (all-reduce)"; the number of one that has not been opened is
 * not known. */
static void name_call(const struct comm_flight *f, char *ret, size_t size)
{
    uint64_t order = f->order ? f->order : f->order_by ? f->order_by : f->order_to;
    int n = snprintf(ret, size, "%s", f->state == FLIGHT_OPEN ? "" : "a call");
    if (f->state == FLIGHT_OPEN)
        n = snprintf(ret, size, "call %llu", (unsigned long long)order);
    snprintf(ret + n, size - (size_t)n, " of the %s group (%s)", mesh_group_name(f->call.group),
             comm_kind_name(f->call.kind));
}

void comm_queue_look(const struct comm *c, struct comm_state *ret)
{
    struct comm_queue *q = c->state;
    const struct comm_flight *oldest = NULL;
    pthread_mutex_lock(&q->hub->lock);
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        const struct comm_flight *f = &q->flight[i];
        if (f->state != FLIGHT_DONE && (!oldest || f->number < oldest->number))
            oldest = f;
    }
    ret->in_call = oldest != NULL;
    if (oldest)
        name_call(oldest, ret->call, sizeof(ret->call));
    ret->missing = oldest ? oldest->missing : COMM_NOBODY;
    ret->progress = q->moved;
    ret->fault = q->hub->fault;
    ret->step = q->hub->step;
    snprintf(ret->text, sizeof(ret->text), "%s", q->hub->text);
    pthread_mutex_unlock(&q->hub->lock);
}

/* One call in four is late, so that ranks come in any order; more would only cost time. */
static void delay(struct comm_queue *q, const struct comm_options *o)
{
    double part = 4 * rng_uniform(o->seed, RNG_TEST, (uint32_t)q->rank, q->opened);
    struct timespec t = timespec_of(part * (double)o->delay_us * 1e-6);
    if (part >= 1)
        return;
    pthread_mutex_unlock(&q->hub->lock);
    nanosleep(&t, NULL);
    pthread_mutex_lock(&q->hub->lock);
}

struct comm_flight *comm_queue_open(struct comm_queue *q, const struct comm_options *o)
{
    if (q->opened == q->issued || q->hub->fault)
        return NULL;
    if (o->delay_us > 0)
        delay(q, o);
    if (q->hub->fault)
        return NULL;
    struct comm_flight *f = comm_queue_flight(q, ++q->opened);
    const struct comm_call *call = &f->call;
    int row = (int)call->group * mesh_world(q->mesh);
    if (call->kind != COMM_EXCHANGE)
        f->order = ++q->order[call->group];
    if (call->kind == COMM_EXCHANGE && call->to_rank != COMM_NOBODY)
        f->order_to = ++q->to[row + call->to_rank];
    if (call->kind == COMM_EXCHANGE && call->from_rank != COMM_NOBODY)
        f->order_by = ++q->by[row + call->from_rank];
    f->state = FLIGHT_OPEN;
    f->since = comm_clock();
    return f;
}

bool comm_queue_busy(const struct comm_queue *q)
{
    if (!q->hub->fault)
        return q->finished != q->issued;
    for (int i = 0; i < COMM_IN_FLIGHT; i++)
        if (q->flight[i].busy)
            return true;
    return false;
}

void comm_flight_done(struct comm_queue *q, struct comm_flight *f)
{
    f->state = FLIGHT_DONE;
    q->moved++;
    while (q->finished < q->issued && comm_queue_flight(q, q->finished + 1)->state == FLIGHT_DONE)
        q->finished++;
}

double comm_timeout(const struct comm_options *o)
{
    return o->timeout > 0 ? o->timeout : 600;
}

void comm_late(const struct comm_queue *q, const struct comm_flight *f, int missing,
               const struct comm_options *o, char *sentence, size_t size)
{
    char call[128];
    name_call(f, call, sizeof(call));
    snprintf(sentence, size, "rank %d waited %g s for rank %d in %s", q->rank, comm_timeout(o),
             missing, call);
}
