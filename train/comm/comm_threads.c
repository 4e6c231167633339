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
    struct comm_bell work;
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
        comm_bell_init(&r->work, &t->hub);
        comm_queue_init(&r->queue, &t->hub, &r->work, m, i);
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
        comm_bell_finish(&t->rank[i].work, &t->hub);
        free(t->rank[i].peer);
        free(t->rank[i].from);
    }
    free(t->rank);
    comm_hub_finish(&t->hub);
    free(t);
}

/* ---- who has come: all of it with the lock held ---------------------------------------------- */

static int group_size(const struct thread_rank *r, const struct comm_flight *f)
{
    return mesh_group_size(r->queue.mesh, f->call.group);
}

static int own_index(const struct thread_rank *r, const struct comm_flight *f)
{
    return mesh_group_index(r->queue.mesh, r->queue.rank, f->call.group);
}

/* The rank `k` of the group of `f`. */
static struct thread_rank *member(struct thread_rank *r, const struct comm_flight *f, int k)
{
    return &r->all->rank[mesh_group_rank(r->queue.mesh, r->queue.rank, f->call.group, k)];
}

/* The open call of a group's rank `k` that belongs to the collective `f`; NULL: not yet. */
static struct comm_flight *same_call(struct thread_rank *r, const struct comm_flight *f, int k)
{
    struct comm_queue *q = &member(r, f, k)->queue;
    for (uint64_t i = q->finished + 1; i <= q->opened; i++) {
        struct comm_flight *g = comm_queue_flight(q, i);
        if (g->state == FLIGHT_OPEN && g->call.group == f->call.group && g->order == f->order)
            return g;
    }
    return NULL;
}

/* The open exchange of a group's rank `k` that sends to `f`; `takes`: that takes from it and has
 * not yet. */
static struct comm_flight *other_end(struct thread_rank *r, const struct comm_flight *f, int k,
                                     bool takes)
{
    struct comm_queue *q = &member(r, f, k)->queue;
    int me = own_index(r, f);
    for (uint64_t i = q->finished + 1; i <= q->opened; i++) {
        struct comm_flight *g = comm_queue_flight(q, i);
        if (g->state != FLIGHT_OPEN || g->call.group != f->call.group ||
            g->call.kind != COMM_EXCHANGE)
            continue;
        if (takes ? !g->taken && g->call.from_rank == me && g->order_by == f->order_to
                  : g->call.to_rank == me && g->order_to == f->order_by)
            return g;
    }
    return NULL;
}

/* Index in its group of a rank that has not joined `f` yet; COMM_NOBODY: all have. */
static int missing_index(struct thread_rank *r, const struct comm_flight *f)
{
    const struct comm_call *call = &f->call;
    if (f->busy)
        return COMM_NOBODY;
    if (call->kind == COMM_EXCHANGE)
        return call->from_rank != COMM_NOBODY && !f->taken ? call->from_rank : call->to_rank;
    for (int k = 0; k < group_size(r, f); k++)
        if (!same_call(r, f, k))
            return k;
    return COMM_NOBODY;
}

static int missing_rank(struct thread_rank *r, const struct comm_flight *f)
{
    int k = missing_index(r, f);
    return k == COMM_NOBODY ? k : member(r, f, k)->queue.rank;
}

/* Whether the call `g` of the group's rank `from` is what the call `f` of its rank `to` needs; a
 * fault if not. */
static bool calls_fit(struct thread_rank *r, const struct comm_flight *f, int to,
                      const struct comm_flight *g, int from)
{
    char why[256];
    uint64_t order = f->call.kind == COMM_EXCHANGE ? f->order_by : f->order;
    if (comm_hello_fits(&f->call, comm_hello_to(&g->call, to, order),
                        comm_hello_from(&f->call, from, order), member(r, f, from)->queue.rank,
                        member(r, f, to)->queue.rank, why, sizeof(why)))
        return true;
    comm_hub_fail(r->queue.hub, ERR_FAULT, why);
    return false;
}

/* All calls of the collective `f`, in r->peer. False: a rank has not come, or calls do not fit
 * each other, which is a fault. */
static bool all_have_come(struct thread_rank *r, struct comm_flight *f)
{
    int n = group_size(r, f), me = own_index(r, f);
    for (int k = 0; k < n; k++) {
        r->peer[k] = same_call(r, f, k);
        if (!r->peer[k])
            return false;
    }
    for (int k = 0; k < n; k++)
        if (k != me && !calls_fit(r, f, me, r->peer[k], k))
            return false;
    /* all are of one kind: only rows may differ between two others */
    for (int to = 0; to < n && f->call.kind == COMM_ALL_TO_ALL; to++)
        for (int k = 0; k < n; k++)
            if (to != me && k != to && !calls_fit(r, r->peer[to], to, r->peer[k], k))
                return false;
    return true;
}

/* Seconds until the oldest open call is too late; faults when it is. */
static double check_late(struct thread_rank *r)
{
    struct comm_queue *q = &r->queue;
    double all = comm_timeout(&r->all->options), left = all, now = comm_clock();
    for (uint64_t i = q->finished + 1; i <= q->opened; i++) {
        struct comm_flight *f = comm_queue_flight(q, i);
        if (f->state != FLIGHT_OPEN || f->busy)
            continue;
        left = f->since + all - now < left ? f->since + all - now : left;
        if (f->since + all > now)
            continue;
        char why[256];
        comm_late(q, f, missing_rank(r, f), &r->all->options, why, sizeof(why));
        comm_hub_fail(q->hub, ERR_FAULT, why);
    }
    return left;
}

/* ---- calls of all, without the lock -----------------------------------------------------------
 */

static void copy(char *to, const char *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

/* Of all ranks, into the first one's tensor and from there into the others'. */
static void all_reduce(struct thread_rank *r, const struct comm_call *call, int n)
{
    char *sum = r->peer[0]->call.to.data;
    for (int k = 0; k < n; k++)
        r->from[k] = r->peer[k]->call.to.data;
    comm_reduce(sum, r->from, n, comm_elements(call->to), call->to.dtype, call->reduce);
    for (int k = 1; k < n; k++)
        copy(r->peer[k]->call.to.data, sum, tensor_bytes(call->to));
}

/* The share of the group's rank `me`. */
static void reduce_scatter(struct thread_rank *r, const struct comm_call *call, int n, int me)
{
    struct comm_slice s = comm_slice_of(call, n, me);
    for (int k = 0; k < n; k++)
        r->from[k] = comm_at(r->peer[k]->call.from, s.begin);
    comm_reduce(call->to.data, r->from, n, s.end - s.begin, call->to.dtype, call->reduce);
}

static void all_gather(struct thread_rank *r, const struct comm_call *call, int n)
{
    size_t bytes = tensor_bytes(call->from);
    for (int k = 0; k < n; k++)
        copy((char *)call->to.data + (size_t)k * bytes, r->peer[k]->call.from.data, bytes);
}

static void all_to_all(struct thread_rank *r, const struct comm_call *call, int n, int me)
{
    for (int k = 0; k < n; k++) {
        const struct comm_call *c = &r->peer[k]->call;
        int64_t begin = comm_offset(c->from, c->give, me),
                end = comm_offset(c->from, c->give, me + 1);
        copy(comm_at(call->to, comm_offset(call->to, call->take, k)), comm_at(c->from, begin),
             (size_t)(end - begin) * dtype_size(c->from.dtype));
    }
}

/* What the group's rank `me` ends with; all-reduce: all of them, with the first. */
static void do_part(struct thread_rank *r, int n, int me)
{
    const struct comm_call *call = &r->peer[me]->call;
    switch (call->kind) {
    case COMM_ALL_REDUCE:
        if (me == 0)
            all_reduce(r, call, n);
        break;
    case COMM_REDUCE_SCATTER:
        reduce_scatter(r, call, n, me);
        break;
    case COMM_ALL_GATHER:
        all_gather(r, call, n);
        break;
    case COMM_BROADCAST:
        copy(call->to.data, r->peer[call->from_rank]->call.to.data, tensor_bytes(call->to));
        break;
    case COMM_ALL_TO_ALL:
        all_to_all(r, call, n, me);
        break;
    default:
        break;
    }
}

/* ---- the comm thread --------------------------------------------------------------------------
 */

/* Calls of the group of `call` are done, of its rank `only` alone if that is not COMM_NOBODY. With
 * the lock held, which is left meanwhile, for the threads that wake take it. */
static void ring(struct thread_rank *r, const struct comm_call *call, int only)
{
    struct comm_hub *h = r->queue.hub;
    struct mesh m = r->queue.mesh;
    int n = mesh_group_size(m, call->group);
    bool ending = h->fault;
    for (int k = 0; k < n; k++)
        ending |= r->all->rank[mesh_group_rank(m, r->queue.rank, call->group, k)].queue.closing;
    pthread_mutex_unlock(&h->lock);
    for (int k = 0; k < n; k++) {
        struct thread_rank *of = &r->all->rank[mesh_group_rank(m, r->queue.rank, call->group, k)];
        if (only != COMM_NOBODY && only != k)
            continue;
        comm_bell_ring(&of->queue.done);
        if (ending)
            comm_bell_ring(&of->work);
    }
    pthread_mutex_lock(&h->lock);
}

/* A collective for which all have come, for all of them. */
static void carry_out(struct thread_rank *r, struct comm_flight *f)
{
    struct comm_hub *h = r->queue.hub;
    struct comm_call call = f->call;
    int n = group_size(r, f);
    for (int k = 0; k < n; k++)
        r->peer[k]->busy++;
    pthread_mutex_unlock(&h->lock);
    for (int k = 0; k < n; k++)
        do_part(r, n, k);
    pthread_mutex_lock(&h->lock);
    for (int k = 0; k < n; k++) {
        r->peer[k]->busy--;
        comm_flight_done(&member(r, f, k)->queue, r->peer[k]);
    }
    ring(r, &call, COMM_NOBODY);
}

/* The message of `give`, a call of the group's rank `from`, to `take` of its rank `to`. */
static void carry_message(struct thread_rank *r, struct comm_flight *give, int from,
                          struct comm_flight *take, int to)
{
    struct comm_hub *h = r->queue.hub;
    struct comm_call call = take->call;
    struct comm_queue *giver = &member(r, take, from)->queue, *taker = &member(r, give, to)->queue;
    if (!calls_fit(r, take, to, give, from))
        return;
    take->taken = true;
    give->busy++;
    take->busy++;
    pthread_mutex_unlock(&h->lock);
    copy(take->call.to.data, give->call.from.data, tensor_bytes(take->call.to));
    pthread_mutex_lock(&h->lock);
    give->busy--;
    take->busy--;
    if (--give->left == 0)
        comm_flight_done(giver, give);
    if (--take->left == 0)
        comm_flight_done(taker, take);
    ring(r, &call, from);
    ring(r, &call, to);
}

/* The messages of a call that has just been opened whose other ends are there. */
static void exchange(struct thread_rank *r, struct comm_flight *f)
{
    uint64_t number = f->number;
    int me = own_index(r, f), from = f->call.from_rank, to = f->call.to_rank;
    f->left = (from != COMM_NOBODY) + (to != COMM_NOBODY);
    struct comm_flight *give = from == COMM_NOBODY ? NULL : other_end(r, f, from, false);
    if (give)
        carry_message(r, give, from, f, me);
    if (to == COMM_NOBODY || r->queue.hub->fault || f->number != number || f->state != FLIGHT_OPEN)
        return;
    struct comm_flight *take = other_end(r, f, to, true);
    if (take)
        carry_message(r, f, me, take, to);
}

static void *run(void *arg)
{
    struct thread_rank *r = arg;
    struct comm_hub *h = r->queue.hub;
    pthread_mutex_lock(&h->lock);
    while (!r->queue.closing || comm_queue_busy(&r->queue)) {
        struct comm_flight *f = comm_queue_open(&r->queue, &r->all->options);
        if (f && f->call.kind == COMM_EXCHANGE)
            exchange(r, f);
        else if (f && all_have_come(r, f))
            carry_out(r, f);
        else if (!f)
            comm_hub_wait(h, &r->work, h->fault ? 0 : check_late(r));
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void look_threads(const struct comm *c, struct comm_state *ret)
{
    struct thread_rank *r = c->state;
    struct comm_queue *q = &r->queue;
    pthread_mutex_lock(&q->hub->lock);
    for (uint64_t i = q->finished + 1; i <= q->opened; i++) {
        struct comm_flight *f = comm_queue_flight(q, i);
        if (f->state == FLIGHT_OPEN)
            f->missing = missing_rank(r, f);
    }
    pthread_mutex_unlock(&q->hub->lock);
    comm_queue_look(c, ret);
}

static void close_threads(struct comm *c)
{
    struct thread_rank *r = c->state;
    pthread_mutex_lock(&r->queue.hub->lock);
    r->queue.closing = true;
    pthread_mutex_unlock(&r->queue.hub->lock);
    comm_bell_ring(&r->work);
    pthread_join(r->thread, NULL);
}

int comm_threads_open(struct comm *ret, struct comm_threads *t, int rank, struct err *e)
{
    static const struct comm_table table = {
        .issue = comm_queue_issue,
        .wait = comm_queue_wait,
        .abort = comm_queue_abort,
        .interrupt = comm_queue_interrupt,
        .look = look_threads,
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
