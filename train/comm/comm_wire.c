/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "base/thread/thread.h"
#include "train/comm/call.h"
#include "train/comm/footprint.h"
#include "train/comm/range.h"
#include "train/comm/reduce.h"

enum { MESSAGE = 1 << 28 };

/* Seconds between two looks at calls that do not move. */
#define PAUSE 100e-6
/* and for others' faults while there are no calls. */
#define IDLE 50e-3

/* What a call is waiting for: greetings, then data, round after round. */
enum step { STEP_HELLO, STEP_DATA, STEP_SHARES };

/* A flight's state, private to the comm thread. */
struct wire_call {
    enum step step;
    int requests;
    int64_t round;
    struct wire_request *request; /* two for each rank */
    int *peer;                    /* of each, the world rank */
    struct comm_hello *out, *in;
    const void **from; /* a sum's parts */
    char *scratch;     /* those of them that came from others; NULL: it adds nothing */
};

struct comm_wire {
    struct comm_queue queue; /* first: what a struct comm's state begins with */
    struct comm_hub hub;
    struct comm_bell work, ready; /* of the comm thread; of the one that joins */
    struct comm_options options;
    pthread_t thread;
    bool open, started, leaving;
    const struct wire_table *fn;
    void *wire;
    int code; /* of fn->begin */
    struct err error;
    int rank, world;
    bool told; /* the others of a fault */
    struct wire_call call[COMM_IN_FLIGHT];
    char *scratch[COMM_IN_FLIGHT]; /* of calls that are not open, the last ones used on top */
    int scratches;
};

/* ---- sending and receiving
 * ------------------------------------------------------------------------ */

/* A flight and where it is in its group. */
struct at {
    struct comm_wire *job;
    struct comm_flight *flight;
    struct wire_call *call;
    int n, me;
};

static struct at at_of(struct comm_wire *job, struct comm_flight *f)
{
    return (struct at){.job = job,
                       .flight = f,
                       .call = &job->call[f - job->queue.flight],
                       .n = mesh_group_size(job->queue.mesh, f->call.group),
                       .me = mesh_group_index(job->queue.mesh, job->rank, f->call.group)};
}

static int world_rank(const struct at *a, int k)
{
    return mesh_group_rank(a->job->queue.mesh, a->job->rank, a->flight->call.group, k);
}

/* A message belongs to one call of one group; those of one call arrive in their order. */
static int tag_of(const struct at *a, uint64_t order)
{
    uint64_t kinds = 2 * GROUP_COUNT, kind = 2 * (uint64_t)a->flight->call.group;
    kind += a->flight->call.kind == COMM_EXCHANGE;
    return (int)(order % (1 << 20) * kinds + kind); /* below 2^25: fits any MPI_TAG_UB there is */
}

static void send_to(struct at *a, int k, struct comm_range r)
{
    uint64_t order = a->flight->order ? a->flight->order : a->flight->order_to;
    a->call->peer[a->call->requests] = world_rank(a, k);
    if (r.bytes)
        a->job->fn->send(a->job->wire, world_rank(a, k), tag_of(a, order), r.at, r.bytes,
                         &a->call->request[a->call->requests++]);
}

static void receive_from(struct at *a, int k, struct comm_range r)
{
    uint64_t order = a->flight->order ? a->flight->order : a->flight->order_by;
    a->call->peer[a->call->requests] = world_rank(a, k);
    if (r.bytes)
        a->job->fn->receive(a->job->wire, world_rank(a, k), tag_of(a, order), r.at, r.bytes,
                            &a->call->request[a->call->requests++]);
}

static bool gives_to(const struct at *a, int k)
{
    const struct comm_call *c = &a->flight->call;
    return k != a->me && (c->kind != COMM_EXCHANGE || k == c->to_rank);
}

static bool takes_from(const struct at *a, int k)
{
    const struct comm_call *c = &a->flight->call;
    return k != a->me && (c->kind != COMM_EXCHANGE || k == c->from_rank);
}

/* ---- the steps of a call
 * ---------------------------------------------------------------------------- */

static void greet(struct at *a)
{
    const struct comm_flight *f = a->flight;
    for (int k = 0; k < a->n; k++) {
        int64_t bytes = sizeof(*a->call->out);
        if (takes_from(a, k))
            receive_from(a, k, (struct comm_range){(char *)&a->call->in[k], bytes});
        if (gives_to(a, k)) {
            a->call->out[k] = comm_hello_to(&f->call, k, f->order ? f->order : f->order_to);
            send_to(a, k, (struct comm_range){(char *)&a->call->out[k], bytes});
        }
    }
}

/* False: a fault. */
static bool greetings_fit(struct at *a)
{
    const struct comm_flight *f = a->flight;
    for (int k = 0; k < a->n; k++) {
        char why[WIRE_TEXT];
        if (!takes_from(a, k) ||
            comm_hello_fits(&f->call, a->call->in[k],
                            comm_hello_from(&f->call, k, f->order ? f->order : f->order_by),
                            world_rank(a, k), a->job->rank, why, sizeof(why)))
            continue;
        pthread_mutex_lock(&a->job->hub.lock);
        comm_hub_fail(&a->job->hub, ERR_FAULT, why);
        pthread_mutex_unlock(&a->job->hub.lock);
        return false;
    }
    return true;
}

static int64_t message_bytes(const struct comm_wire *job, int64_t usual)
{
    return job->options.message ? (int64_t)job->options.message : usual;
}

/* The next round of a call that copies. False: there is nothing more. */
static bool copy_round(struct at *a)
{
    const struct comm_call *c = &a->flight->call;
    int64_t most = message_bytes(a->job, MESSAGE), round = a->call->round++;
    for (int k = 0; k < a->n; k++) {
        struct comm_range in = comm_taken(c, k), out = comm_given(c, a->me, k);
        if (k == a->me && round == 0 && in.bytes && in.at != out.at && out.bytes == in.bytes)
            memcpy(in.at, out.at, (size_t)in.bytes);
        if (takes_from(a, k))
            receive_from(a, k, comm_piece(in, round, most));
        if (gives_to(a, k))
            send_to(a, k, comm_piece(out, round, most));
    }
    return a->call->requests > 0;
}

/* Elements of each rank's slice that are added in one round. */
static int64_t reduce_elements(const struct at *a)
{
    int64_t size = (int64_t)dtype_size(a->flight->call.to.dtype);
    int64_t n = message_bytes(a->job, WIRE_SCRATCH) / a->n / size;
    return n > 0 ? n : 1;
}

/* Of slice `k`, what is added in this round. */
static struct comm_slice slice_round(const struct at *a, int k)
{
    struct comm_slice s = comm_slice_of(&a->flight->call, a->n, k);
    int64_t each = reduce_elements(a), end = s.end;
    s.begin += a->call->round * each;
    s.begin = s.begin < end ? s.begin : end;
    s.end = end - s.begin < each ? end : s.begin + each;
    return s;
}

/* Where the part of rank `k` in this rank's slice is put. */
static struct comm_range scratch_of(const struct at *a, int k, struct comm_slice own)
{
    int64_t size = (int64_t)dtype_size(a->flight->call.to.dtype);
    return (struct comm_range){a->call->scratch + k * reduce_elements(a) * size,
                               (own.end - own.begin) * size};
}

static bool is_reduction(const struct comm_call *c)
{
    return c->kind == COMM_ALL_REDUCE || c->kind == COMM_REDUCE_SCATTER;
}

static struct tensor reduced(const struct comm_call *c)
{
    return c->kind == COMM_ALL_REDUCE ? c->to : c->from;
}

/* Sends each rank its part of what it adds in this round. False: the rounds are over. */
static bool reduce_round(struct at *a)
{
    const struct comm_call *c = &a->flight->call;
    struct comm_slice own = slice_round(a, a->me);
    for (int k = 0; k < a->n; k++) {
        struct comm_slice s = slice_round(a, k);
        if (k == a->me)
            continue;
        receive_from(a, k, scratch_of(a, k, own));
        send_to(a, k, comm_range(reduced(c), s.begin, s.end));
    }
    return a->call->requests > 0;
}

/* Adds what has arrived. Of an all-reduce, sends the sum to the others and receives theirs. */
static void add_round(struct at *a)
{
    const struct comm_call *c = &a->flight->call;
    struct comm_slice own = slice_round(a, a->me);
    bool all = c->kind == COMM_ALL_REDUCE;
    for (int k = 0; k < a->n; k++)
        a->call->from[k] = k == a->me ? comm_at(reduced(c), own.begin) : scratch_of(a, k, own).at;
    char *to = comm_at(c->to, all ? own.begin : a->call->round * reduce_elements(a));
    comm_reduce(to, a->call->from, a->n, own.end - own.begin, c->to.dtype, c->reduce);
    for (int k = 0; all && k < a->n; k++) {
        struct comm_slice s = slice_round(a, k);
        if (k == a->me)
            continue;
        receive_from(a, k, comm_range(c->to, s.begin, s.end));
        send_to(a, k, comm_range(c->to, own.begin, own.end));
    }
}

/* What follows when all requests are done. False: the call is. */
static bool advance(struct at *a)
{
    struct wire_call *m = a->call;
    const struct comm_call *c = &a->flight->call;
    bool reduction = is_reduction(c);
    m->requests = 0;
    if (m->step == STEP_HELLO) {
        if (!greetings_fit(a))
            return true;
        m->step = STEP_DATA;
        return reduction ? reduce_round(a) : copy_round(a);
    }
    if (!reduction)
        return copy_round(a);
    if (m->step == STEP_DATA) {
        add_round(a);
        m->step = STEP_SHARES;
        return true;
    }
    m->step = STEP_DATA;
    m->round++;
    return reduce_round(a);
}

/* ---- the comm thread
 * ---------------------------------------------------------------------------------- */

static void give_scratch_back(struct comm_wire *job, struct wire_call *m)
{
    if (m->scratch)
        job->scratch[job->scratches++] = m->scratch;
    m->scratch = NULL;
}

static void begin(struct comm_wire *job, struct comm_flight *f)
{
    struct at a = at_of(job, f);
    if (is_reduction(&f->call))
        a.call->scratch = job->scratch[--job->scratches];
    a.call->step = STEP_HELLO;
    a.call->requests = 0;
    a.call->round = 0;
    memset(a.call->in, 0, (size_t)job->world * sizeof(*a.call->in));
    greet(&a);
}

/* One look at an open call. True: something moved. */
static bool look(struct comm_wire *job, struct comm_flight *f)
{
    struct at a = at_of(job, f);
    if (!job->fn->done(job->wire, a.call->request, a.call->requests))
        return false;
    f->since = comm_clock();
    job->queue.moved++;
    if (advance(&a))
        return true;
    give_scratch_back(job, a.call);
    pthread_mutex_lock(&job->hub.lock);
    f->busy = 0;
    comm_flight_done(&job->queue, f);
    comm_bell_ring(&job->queue.done); /* with the lock: the queue may be closed after it */
    pthread_mutex_unlock(&job->hub.lock);
    return true;
}

/* The first rank whose greeting is missing, by world rank. */
static int absent_rank(struct at *a)
{
    for (int k = 0; k < a->n; k++)
        if (takes_from(a, k) && a->call->in[k].order == 0)
            return world_rank(a, k);
    return COMM_NOBODY;
}

/* The first rank of whom something is still missing. */
static int missing_rank(struct at *a)
{
    if (absent_rank(a) != COMM_NOBODY)
        return absent_rank(a);
    for (int i = 0; i < a->call->requests; i++)
        if (!a->job->fn->done(a->job->wire, &a->call->request[i], 1))
            return a->call->peer[i];
    return COMM_NOBODY;
}

static void check_late(struct comm_wire *job, struct comm_flight *f)
{
    char why[WIRE_TEXT];
    struct at a = at_of(job, f);
    double waited = comm_clock() - f->since;
    int missing = waited > 0.1 ? missing_rank(&a) : f->missing;
    if (missing != f->missing) {
        pthread_mutex_lock(&job->hub.lock);
        f->missing = missing;
        pthread_mutex_unlock(&job->hub.lock);
    }
    if (waited < comm_timeout(&job->options))
        return;
    comm_late(&job->queue, f, missing, &job->options, why, sizeof(why));
    pthread_mutex_lock(&job->hub.lock);
    comm_hub_fail(&job->hub, ERR_FAULT, why);
    pthread_mutex_unlock(&job->hub.lock);
}

/* Of a fault that came from outside: no code but of a failure (a run that was asked to stop says so
 * in a call), and no text that a terminal obeys. */
static void make_plain(struct wire_fault *f)
{
    char text[WIRE_TEXT];
    int code = comm_code(f->code);
    f->code = code > ERR_FAULT ? ERR_FAULT : code;
    f->step = f->step > 0 ? f->step : 0;
    utf8_plain(f->text, strnlen(f->text, sizeof(f->text)), text, sizeof(text));
    snprintf(f->text, sizeof(f->text), "%s", text);
}

/* Receives others' faults, and sends them this rank's. */
static void pass_faults(struct comm_wire *job)
{
    struct wire_fault f = {0};
    bool heard = !job->told && job->fn->heard(job->wire, &f);
    if (heard && f.heard)
        make_plain(&f);
    pthread_mutex_lock(&job->hub.lock);
    if (heard && !job->hub.fault)
        job->hub.heard = f.heard != 0;
    if (heard)
        comm_hub_tell(&job->hub, f.code, f.step, f.text);
    f = (struct wire_fault){.code = job->hub.fault, .step = job->hub.step};
    memcpy(f.text, job->hub.text, sizeof(f.text));
    pthread_mutex_unlock(&job->hub.lock);
    if (!f.code || job->told)
        return;
    job->told = true;
    if (!heard)
        job->fn->tell(job->wire, &f);
}

/* After a fault: nothing arrives any more in what the ranks' threads hold. */
static void drop_all(struct comm_wire *job)
{
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *f = &job->queue.flight[i];
        struct wire_call *m = &job->call[i];
        pthread_mutex_lock(&job->hub.lock);
        bool open = f->state == FLIGHT_OPEN;
        pthread_mutex_unlock(&job->hub.lock);
        if (open)
            job->fn->cancel(job->wire, m->request, m->requests);
        give_scratch_back(job, m);
        pthread_mutex_lock(&job->hub.lock);
        f->busy = 0;
        if (f->state != FLIGHT_DONE)
            comm_flight_done(&job->queue, f);
        if (job->open)
            comm_bell_ring(&job->queue.done);
        pthread_mutex_unlock(&job->hub.lock);
    }
}

/* Looks at every open call. Returns how many there are; *moved: whether any of them went on. */
static int look_at_all(struct comm_wire *job, bool *moved)
{
    int open = 0;
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *f = &job->queue.flight[i];
        pthread_mutex_lock(&job->hub.lock);
        bool is_open = f->state == FLIGHT_OPEN && !job->hub.fault;
        pthread_mutex_unlock(&job->hub.lock);
        if (!is_open)
            continue;
        open++;
        if (look(job, f))
            *moved = true;
        else
            check_late(job, f);
    }
    return open;
}

/* With the lock held, as it is on return. */
static void work(struct comm_wire *job)
{
    struct comm_hub *h = &job->hub;
    bool moved = false;
    bool is_open = job->open;
    struct comm_flight *f = is_open ? comm_queue_open(&job->queue, &job->options) : NULL;
    if (f)
        f->busy = 1;
    pthread_mutex_unlock(&h->lock);
    if (f)
        begin(job, f);
    int open = is_open ? look_at_all(job, &moved) : 0;
    pass_faults(job);
    pthread_mutex_lock(&h->lock);
    if (h->fault && is_open) {
        pthread_mutex_unlock(&h->lock);
        pass_faults(job);
        drop_all(job);
        pthread_mutex_lock(&h->lock);
    }
    bool waiting = job->open && job->queue.opened != job->queue.issued && !h->fault;
    if (open && !moved && !waiting)
        comm_hub_wait(h, &job->work, PAUSE);
    else if (!open && !waiting && !job->leaving)
        comm_hub_wait(h, &job->work, job->open ? IDLE : 0);
}

static void *run(void *arg)
{
    struct comm_wire *job = arg;
    struct comm_hub *h = &job->hub;
    job->code = job->fn->begin(job->wire, &job->rank, &job->world, &job->error);
    pthread_mutex_lock(&h->lock);
    job->started = true;
    comm_bell_ring(&job->ready);
    while (!job->code && !job->leaving)
        work(job);
    bool together = !h->fault;
    pthread_mutex_unlock(&h->lock);
    if (!job->code && !together) /* the rank may leave right after its fault */
        pass_faults(job);
    if (!job->code)
        job->fn->end(job->wire, together);
    return NULL;
}

/* ---- the job and its comm
 * ------------------------------------------------------------------------------ */

static void release(struct comm_wire *job)
{
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        free(job->call[i].request);
        free(job->call[i].peer);
        free(job->call[i].out);
        free(job->call[i].in);
        free(job->call[i].from);
        free(job->call[i].scratch);
    }
    while (job->scratches)
        free(job->scratch[--job->scratches]);
    comm_bell_finish(&job->work, &job->hub);
    comm_bell_finish(&job->ready, &job->hub);
    comm_hub_finish(&job->hub);
    free(job);
}

static void reserve(struct comm_wire *job)
{
    size_t world = (size_t)job->world;
    /* pages that no call touches are not taken */
    size_t scratch = (size_t)message_bytes(job, WIRE_SCRATCH) + world * sizeof(double);
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct wire_call *m = &job->call[i];
        m->request = mem_new(2 * world, sizeof(*m->request));
        m->peer = mem_new(2 * world, sizeof(*m->peer));
        m->out = mem_new(world, sizeof(*m->out));
        m->in = mem_new(world, sizeof(*m->in));
        m->from = mem_new(world, sizeof(*m->from));
        job->scratch[job->scratches++] = mem_new(scratch, 1);
    }
}

int comm_wire_join(struct comm_wire **ret, const struct wire_table *fn, void *wire,
                   const struct comm_options *o, struct err *e)
{
    struct comm_wire *job = mem_new(1, sizeof(*job));
    comm_hub_init(&job->hub);
    comm_bell_init(&job->work, &job->hub);
    comm_bell_init(&job->ready, &job->hub);
    job->fn = fn;
    job->wire = wire;
    job->options = o ? *o : (struct comm_options){0};
    int error = thread_start(&job->thread, run, job);
    if (error) {
        release(job);
        return err_set(e, ERR_RESOURCE, "no comm thread could be started: %s", strerror(error));
    }
    pthread_mutex_lock(&job->hub.lock);
    while (!job->started)
        comm_hub_wait(&job->hub, &job->ready, 0);
    pthread_mutex_unlock(&job->hub.lock);
    if (job->code) {
        int code = job->code;
        pthread_join(job->thread, NULL);
        if (e)
            *e = job->error;
        release(job);
        return code;
    }
    reserve(job);
    *ret = job;
    return 0;
}

void comm_wire_leave(struct comm_wire *job)
{
    pthread_mutex_lock(&job->hub.lock);
    job->leaving = true;
    pthread_mutex_unlock(&job->hub.lock);
    comm_bell_ring(&job->work);
    pthread_join(job->thread, NULL);
    release(job);
}

static void close_wire(struct comm *c)
{
    struct comm_wire *job = c->state;
    pthread_mutex_lock(&job->hub.lock);
    while (comm_queue_busy(&job->queue))
        comm_hub_wait(&job->hub, &job->queue.done, 0);
    job->open = false;
    pthread_mutex_unlock(&job->hub.lock);
    comm_queue_finish(&job->queue);
}

int comm_wire_open(struct comm *ret, struct comm_wire *job, struct mesh m, struct err *e)
{
    static const struct comm_table table = {
        .issue = comm_queue_issue,
        .wait = comm_queue_wait,
        .abort = comm_queue_abort,
        .interrupt = comm_queue_interrupt,
        .look = comm_queue_look,
        .close = close_wire,
    };
    int code = mesh_check(m, job->world, e);
    if (code)
        return code;
    BUG_ON(job->open, "a second comm in one job");
    comm_queue_init(&job->queue, &job->hub, &job->work, m, job->rank);
    pthread_mutex_lock(&job->hub.lock);
    job->open = true;
    pthread_mutex_unlock(&job->hub.lock);
    comm_bell_ring(&job->work);
    *ret = (struct comm){
        .fn = &table, .state = job, .mesh = m, .rank = job->rank, .world = job->world};
    return 0;
}
