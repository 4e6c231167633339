/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "train/comm/call.h"
#include "train/comm/reduce.h"

struct thread_rank {
    struct comm_queue queue; /* first: what a struct comm's state begins with */
    struct comm_threads *all;
    pthread_t thread;
    /* of the call that is being carried out, for each rank of its group */
    struct comm_flight **peer;
    const void **from;
};

struct comm_threads {
    struct comm_hub hub;
    struct comm_options options;
    int ranks;
    struct thread_rank *rank;
};

struct comm_threads *comm_threads_create(struct mesh m, const struct comm_options *o)
{
    struct comm_threads *t = mem_new(1, sizeof(*t));
    comm_hub_init(&t->hub);
    t->options = o ? *o : (struct comm_options){0};
    t->ranks = mesh_world(m);
    t->rank = mem_new((size_t)t->ranks, sizeof(*t->rank));
    for (int i = 0; i < t->ranks; i++) {
        struct thread_rank *r = &t->rank[i];
        comm_queue_init(&r->queue, &t->hub, m, i);
        r->all = t;
        r->peer = mem_new((size_t)t->ranks, sizeof(*r->peer));
        r->from = mem_new((size_t)t->ranks, sizeof(*r->from));
    }
    return t;
}

void comm_threads_destroy(struct comm_threads *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->ranks; i++) {
        comm_queue_finish(&t->rank[i].queue);
        free(t->rank[i].peer);
        free(t->rank[i].from);
    }
    free(t->rank);
    comm_hub_finish(&t->hub);
    free(t);
}

/* ---- who has come: all of it with the lock held -----------------------------------------------
 */

/* The open call of world rank `rank` that belongs to `f`; exchanges: the one that sends to `f`. */
static struct comm_flight *counterpart(struct thread_rank *r, const struct comm_flight *f, int rank)
{
    struct comm_queue *q = &r->all->rank[rank].queue;
    int me = mesh_group_index(q->mesh, r->queue.rank, f->call.group);
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *g = &q->flight[i];
        if (g->state != FLIGHT_OPEN || g->call.group != f->call.group)
            continue;
        if (f->order ? g->order == f->order
                     : g->call.kind == COMM_EXCHANGE && g->call.to_rank == me &&
                           g->order_to == f->order_by)
            return g;
    }
    return NULL;
}

/*
 * Finds all that this rank's part of `f` works on, in r->peer. False: somebody has not come, or
 * calls do not fit each other, which is a fault.
 */
static bool gather_peers(struct thread_rank *r, struct comm_flight *f)
{
    const struct comm_call *call = &f->call;
    struct mesh m = r->queue.mesh;
    bool exchange = call->kind == COMM_EXCHANGE;
    int n = mesh_group_size(m, call->group), me = mesh_group_index(m, r->queue.rank, call->group);
    for (int k = 0; k < n; k++) {
        r->peer[k] = NULL;
        if (exchange && k != call->from_rank)
            continue;
        r->peer[k] = counterpart(r, f, mesh_group_rank(m, r->queue.rank, call->group, k));
        f->missing = r->peer[k] ? COMM_NOBODY : mesh_group_rank(m, r->queue.rank, call->group, k);
        if (!r->peer[k])
            return false;
    }
    for (int k = 0; k < n; k++) {
        char why[256];
        if (!r->peer[k] || k == me)
            continue;
        uint64_t order = exchange ? f->order_by : f->order;
        int world = mesh_group_rank(m, r->queue.rank, call->group, k);
        if (comm_hello_fits(call, comm_hello_to(&r->peer[k]->call, me, order),
                            comm_hello_from(call, k, order), world, r->queue.rank, why,
                            sizeof(why)))
            continue;
        comm_hub_fail(r->queue.hub, ERR_FAULT, why);
        return false;
    }
    return true;
}

/* An open call whose part of this rank is still to do and for which all have come. */
static struct comm_flight *next_ready(struct thread_rank *r)
{
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *f = &r->queue.flight[i];
        if (f->state == FLIGHT_OPEN && !f->own_done && gather_peers(r, f))
            return f;
        if (r->queue.hub->fault)
            return NULL;
    }
    return NULL;
}

/* Seconds until the oldest open call is too late; faults when it is. */
static double check_late(struct thread_rank *r)
{
    double left = comm_timeout(&r->all->options), now = comm_clock(), all = left;
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *f = &r->queue.flight[i];
        /* where this rank's part of a collective is done all have come */
        bool joined = f->own_done && f->call.kind != COMM_EXCHANGE;
        if (f->state != FLIGHT_OPEN || f->busy || joined)
            continue;
        left = f->since + all - now < left ? f->since + all - now : left;
        if (f->since + all > now)
            continue;
        const struct comm_call *call = &f->call;
        int missing = -1, n = mesh_group_size(r->queue.mesh, call->group);
        for (int k = 0; k < n; k++) {
            int rank = mesh_group_rank(r->queue.mesh, r->queue.rank, call->group, k);
            bool due = call->kind != COMM_EXCHANGE ||
                       (f->own_done ? k == call->to_rank : k == call->from_rank);
            if (due && missing < 0 && (f->own_done || !counterpart(r, f, rank)))
                missing = rank;
        }
        char why[256];
        comm_late(&r->queue, f, missing, &r->all->options, why, sizeof(why));
        comm_hub_fail(r->queue.hub, ERR_FAULT, why);
    }
    return left;
}

/* ---- parts of calls, without the lock
 * ------------------------------------------------------------ */

static void copy(char *to, const char *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

/* This rank's slice of a sum, into its own tensor or into everybody's. */
static void reduce_part(struct thread_rank *r, const struct comm_call *call, int n, int me)
{
    bool all = call->kind == COMM_ALL_REDUCE;
    struct comm_slice s = comm_slice_of(call, n, me);
    for (int k = 0; k < n; k++) {
        const struct comm_call *c = &r->peer[k]->call;
        r->from[k] = comm_at(all ? c->to : c->from, s.begin);
    }
    char *to = comm_at(call->to, all ? s.begin : 0);
    comm_reduce(to, r->from, n, s.end - s.begin, call->to.dtype, call->reduce);
    for (int k = 0; all && k < n; k++)
        copy(comm_at(r->peer[k]->call.to, s.begin), to,
             (size_t)(s.end - s.begin) * dtype_size(call->to.dtype));
}

static void all_to_all_part(struct thread_rank *r, const struct comm_call *call, int n, int me)
{
    for (int k = 0; k < n; k++) {
        const struct comm_call *c = &r->peer[k]->call;
        int64_t begin = comm_offset(c->from, c->give, me),
                end = comm_offset(c->from, c->give, me + 1);
        copy(comm_at(call->to, comm_offset(call->to, call->take, k)), comm_at(c->from, begin),
             (size_t)(end - begin) * dtype_size(c->from.dtype));
    }
}

static void do_part(struct thread_rank *r, const struct comm_call *call)
{
    int n = mesh_group_size(r->queue.mesh, call->group);
    int me = mesh_group_index(r->queue.mesh, r->queue.rank, call->group);
    size_t bytes = tensor_none(call->from) ? 0 : tensor_bytes(call->from);
    switch (call->kind) {
    case COMM_ALL_REDUCE:
    case COMM_REDUCE_SCATTER:
        reduce_part(r, call, n, me);
        break;
    case COMM_ALL_GATHER:
        for (int k = 0; k < n; k++)
            copy((char *)call->to.data + (size_t)k * bytes, r->peer[k]->call.from.data, bytes);
        break;
    case COMM_BROADCAST:
        copy(call->to.data, r->peer[call->from_rank]->call.to.data, tensor_bytes(call->to));
        break;
    case COMM_EXCHANGE:
        copy(call->to.data, r->peer[call->from_rank]->call.from.data, tensor_bytes(call->to));
        break;
    case COMM_ALL_TO_ALL:
        all_to_all_part(r, call, n, me);
        break;
    default:
        break;
    }
}

/* ---- the comm thread
 * ------------------------------------------------------------------------------ */

/* The flight at which part k of the call is counted; NULL: none. */
static struct comm_flight *touched(struct thread_rank *r, struct comm_flight *f, int k, int me)
{
    return f->call.kind == COMM_EXCHANGE && k == me ? f : r->peer[k];
}

static void carry_out(struct thread_rank *r, struct comm_flight *f)
{
    struct comm_hub *h = r->queue.hub;
    struct comm_call call = f->call;
    int n = mesh_group_size(r->queue.mesh, call.group);
    int me = mesh_group_index(r->queue.mesh, r->queue.rank, call.group);
    for (int k = 0; k < n; k++)
        if (touched(r, f, k, me))
            touched(r, f, k, me)->busy++;
    pthread_mutex_unlock(&h->lock);
    do_part(r, &call);
    pthread_mutex_lock(&h->lock);
    f->own_done = true;
    for (int k = 0; k < n; k++) {
        struct comm_flight *g = touched(r, f, k, me);
        if (!g)
            continue;
        g->busy--;
        if (--g->left == 0)
            comm_flight_done(&r->queue, g);
    }
    pthread_cond_broadcast(&h->changed);
}

static void open_flight(struct thread_rank *r, struct comm_flight *f)
{
    const struct comm_call *call = &f->call;
    if (call->kind == COMM_EXCHANGE) {
        f->own_done = call->from_rank == COMM_NOBODY;
        f->left = (call->from_rank != COMM_NOBODY) + (call->to_rank != COMM_NOBODY);
    } else {
        f->left = mesh_group_size(r->queue.mesh, call->group);
    }
    pthread_cond_broadcast(&r->queue.hub->changed);
}

static void *run(void *arg)
{
    struct thread_rank *r = arg;
    struct comm_hub *h = r->queue.hub;
    pthread_mutex_lock(&h->lock);
    while (!r->queue.closing || comm_queue_busy(&r->queue)) {
        struct comm_flight *f = comm_queue_open(&r->queue, &r->all->options);
        if (f) {
            open_flight(r, f);
            continue;
        }
        f = h->fault ? NULL : next_ready(r);
        if (f)
            carry_out(r, f);
        else
            comm_hub_wait(h, h->fault ? 0 : check_late(r));
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void close_threads(struct comm *c)
{
    struct thread_rank *r = c->state;
    pthread_mutex_lock(&r->queue.hub->lock);
    r->queue.closing = true;
    pthread_cond_broadcast(&r->queue.hub->changed);
    pthread_mutex_unlock(&r->queue.hub->lock);
    pthread_join(r->thread, NULL);
}

int comm_threads_open(struct comm *ret, struct comm_threads *t, int rank, struct err *e)
{
    static const struct comm_table table = {
        .issue = comm_queue_issue,
        .wait = comm_queue_wait,
        .abort = comm_queue_abort,
        .interrupt = comm_queue_interrupt,
        .look = comm_queue_look,
        .close = close_threads,
    };
    struct thread_rank *r = &t->rank[rank];
    int error = thread_start(&r->thread, run, r);
    if (error)
        return err_set(e, ERR_RESOURCE, "no comm thread could be started for rank %d: %s", rank,
                       strerror(error));
    *ret = (struct comm){
        .fn = &table, .state = r, .mesh = r->queue.mesh, .rank = rank, .world = t->ranks};
    return 0;
}
