/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "train/comm/call.h"
#include "train/comm/range.h"
#include "train/comm/reduce.h"

enum { FAULT_BYTES = 256, SCRATCH = 1 << 20, MESSAGE = 1 << 28, FAULT_TAG = 1 };

/* Seconds between two looks at calls that do not move. */
#define PAUSE 100e-6
/* and for others' faults while there are no calls. */
#define IDLE 50e-3

/* What a call is waiting for: greetings, then data, round after round. */
enum step { STEP_HELLO, STEP_DATA, STEP_SHARES };

/* A flight's state in MPI, for the comm thread alone. */
struct mpi_call {
    enum step step;
    int requests;
    int64_t round;
    MPI_Request *request; /* two for each rank */
    struct comm_hello *out, *in;
    const void **from; /* a sum's parts */
    char *scratch;     /* those of them that came from others */
};

struct comm_mpi {
    struct comm_queue queue; /* first: what a struct comm's state begins with */
    struct comm_hub hub;
    struct comm_options options;
    pthread_t thread;
    bool open, started, leaving;
    int error; /* of MPI_Init */
    int rank, world;
    MPI_Comm data, control;
    MPI_Request fault_in;
    struct {
        int code;
        char text[FAULT_BYTES];
    } fault, fault_heard;
    bool told;
    struct mpi_call call[COMM_IN_FLIGHT];
};

/* ---- sending and receiving
 * ------------------------------------------------------------------------ */

/* A flight and where it is in its group. */
struct at {
    struct comm_mpi *job;
    struct comm_flight *flight;
    struct mpi_call *call;
    int n, me;
};

static struct at at_of(struct comm_mpi *job, struct comm_flight *f)
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

static void mpi_check(struct comm_mpi *job, int error)
{
    char text[MPI_MAX_ERROR_STRING], why[FAULT_BYTES];
    int n;
    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &n);
    snprintf(why, sizeof(why), "rank %d: MPI: %s", job->rank, text);
    pthread_mutex_lock(&job->hub.lock);
    comm_hub_fail(&job->hub, ERR_FAULT, why);
    pthread_mutex_unlock(&job->hub.lock);
}

static void send_to(struct at *a, int k, struct comm_range r)
{
    uint64_t order = a->flight->order ? a->flight->order : a->flight->order_to;
    if (r.bytes)
        mpi_check(a->job,
                  MPI_Isend(r.at, (int)r.bytes, MPI_BYTE, world_rank(a, k), tag_of(a, order),
                            a->job->data, &a->call->request[a->call->requests++]));
}

static void receive_from(struct at *a, int k, struct comm_range r)
{
    uint64_t order = a->flight->order ? a->flight->order : a->flight->order_by;
    if (r.bytes)
        mpi_check(a->job,
                  MPI_Irecv(r.at, (int)r.bytes, MPI_BYTE, world_rank(a, k), tag_of(a, order),
                            a->job->data, &a->call->request[a->call->requests++]));
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
        char why[FAULT_BYTES];
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

static int64_t message_bytes(const struct comm_mpi *job, int64_t usual)
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
    int64_t n = message_bytes(a->job, SCRATCH) / a->n / size;
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
    struct mpi_call *m = a->call;
    const struct comm_call *c = &a->flight->call;
    bool reduction = c->kind == COMM_ALL_REDUCE || c->kind == COMM_REDUCE_SCATTER;
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

static void begin(struct comm_mpi *job, struct comm_flight *f)
{
    struct at a = at_of(job, f);
    a.call->step = STEP_HELLO;
    a.call->requests = 0;
    a.call->round = 0;
    memset(a.call->in, 0, (size_t)job->world * sizeof(*a.call->in));
    greet(&a);
}

/* One look at an open call. True: something moved. */
static bool look(struct comm_mpi *job, struct comm_flight *f)
{
    struct at a = at_of(job, f);
    int done = 0;
    mpi_check(job, MPI_Testall(a.call->requests, a.call->request, &done, MPI_STATUSES_IGNORE));
    if (!done)
        return false;
    f->since = comm_clock();
    if (advance(&a))
        return true;
    pthread_mutex_lock(&job->hub.lock);
    f->busy = 0;
    comm_flight_done(&job->queue, f);
    pthread_mutex_unlock(&job->hub.lock);
    return true;
}

/* The first rank of whom something is still missing, by world rank. */
static int missing_rank(struct at *a)
{
    for (int k = 0; k < a->n; k++) {
        bool heard = a->call->in[k].order != 0;
        if (takes_from(a, k) && !heard)
            return world_rank(a, k);
    }
    for (int k = 0; k < a->n; k++)
        if (gives_to(a, k))
            return world_rank(a, k);
    return a->job->rank;
}

static void check_late(struct comm_mpi *job, struct comm_flight *f)
{
    char why[FAULT_BYTES];
    struct at a = at_of(job, f);
    if (comm_clock() < f->since + comm_timeout(&job->options))
        return;
    comm_late(&job->queue, f, missing_rank(&a), &job->options, why, sizeof(why));
    pthread_mutex_lock(&job->hub.lock);
    comm_hub_fail(&job->hub, ERR_FAULT, why);
    pthread_mutex_unlock(&job->hub.lock);
}

/* Hears of others' faults, and tells them of this rank's. */
static void pass_faults(struct comm_mpi *job)
{
    int heard = 0, fault;
    if (!job->told)
        MPI_Test(&job->fault_in, &heard, MPI_STATUS_IGNORE);
    pthread_mutex_lock(&job->hub.lock);
    if (heard)
        comm_hub_fail(&job->hub, job->fault_heard.code, job->fault_heard.text);
    fault = job->hub.fault;
    job->fault.code = fault;
    memcpy(job->fault.text, job->hub.text, sizeof(job->fault.text));
    pthread_mutex_unlock(&job->hub.lock);
    if (!fault || job->told)
        return;
    job->told = true;
    for (int k = 0; k < job->world && !heard; k++) {
        MPI_Request r;
        if (k == job->rank)
            continue;
        MPI_Isend(&job->fault, sizeof(job->fault), MPI_BYTE, k, FAULT_TAG, job->control, &r);
        MPI_Request_free(&r); /* a few hundred bytes leave at once */
    }
}

/* After a fault: nothing arrives any more in what the ranks' threads hold. */
static void drop_all(struct comm_mpi *job)
{
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct comm_flight *f = &job->queue.flight[i];
        struct mpi_call *m = &job->call[i];
        pthread_mutex_lock(&job->hub.lock);
        bool open = f->state == FLIGHT_OPEN;
        pthread_mutex_unlock(&job->hub.lock);
        for (int k = 0; open && k < m->requests; k++)
            if (m->request[k] != MPI_REQUEST_NULL) {
                MPI_Cancel(&m->request[k]);
                MPI_Request_free(&m->request[k]);
            }
        pthread_mutex_lock(&job->hub.lock);
        f->busy = 0;
        if (f->state != FLIGHT_DONE)
            comm_flight_done(&job->queue, f);
        pthread_mutex_unlock(&job->hub.lock);
    }
}

/* Looks at every open call. Returns how many there are; *moved: whether any of them went on. */
static int look_at_all(struct comm_mpi *job, bool *moved)
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
static void work(struct comm_mpi *job)
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
        comm_hub_wait(h, PAUSE);
    else if (!open && !waiting && !job->leaving)
        comm_hub_wait(h, job->open ? IDLE : 0);
}

static void *run(void *arg)
{
    struct comm_mpi *job = arg;
    struct comm_hub *h = &job->hub;
    int level;
    job->error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (!job->error) {
        MPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &job->world);
        MPI_Comm_dup(MPI_COMM_WORLD, &job->data);
        MPI_Comm_dup(MPI_COMM_WORLD, &job->control);
        MPI_Comm_set_errhandler(job->data, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(job->control, MPI_ERRORS_RETURN);
        MPI_Irecv(&job->fault_heard, sizeof(job->fault_heard), MPI_BYTE, MPI_ANY_SOURCE, FAULT_TAG,
                  job->control, &job->fault_in);
    }
    pthread_mutex_lock(&h->lock);
    job->started = true;
    pthread_cond_broadcast(&h->changed);
    while (!job->error && !job->leaving)
        work(job);
    bool together = !job->error && !h->fault;
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; !together && !job->error && i < 20; i++) { /* what tells of a fault leaves */
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, FAULT_TAG, job->control, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (together) {
        MPI_Cancel(&job->fault_in);
        MPI_Wait(&job->fault_in, MPI_STATUS_IGNORE);
        MPI_Comm_free(&job->data);
        MPI_Comm_free(&job->control);
        MPI_Finalize();
    }
    return NULL;
}

/* ---- the job and its comm
 * ------------------------------------------------------------------------------ */

static void release(struct comm_mpi *job)
{
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        free(job->call[i].request);
        free(job->call[i].out);
        free(job->call[i].in);
        free(job->call[i].from);
        free(job->call[i].scratch);
    }
    comm_hub_finish(&job->hub);
    free(job);
}

static void reserve(struct comm_mpi *job)
{
    size_t world = (size_t)job->world;
    /* pages that no call touches are not taken */
    size_t scratch = (size_t)message_bytes(job, SCRATCH) + world * sizeof(double);
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        struct mpi_call *m = &job->call[i];
        m->request = mem_new(2 * world, sizeof(*m->request));
        m->out = mem_new(world, sizeof(*m->out));
        m->in = mem_new(world, sizeof(*m->in));
        m->from = mem_new(world, sizeof(*m->from));
        m->scratch = mem_new(scratch, 1);
    }
}

int comm_mpi_join(struct comm_mpi **ret, const struct comm_options *o, struct err *e)
{
    struct comm_mpi *job = mem_new(1, sizeof(*job));
    comm_hub_init(&job->hub);
    job->options = o ? *o : (struct comm_options){0};
    int error = thread_start(&job->thread, run, job);
    if (error) {
        release(job);
        return err_set(e, ERR_RESOURCE, "no comm thread could be started: %s", strerror(error));
    }
    pthread_mutex_lock(&job->hub.lock);
    while (!job->started)
        comm_hub_wait(&job->hub, 0);
    pthread_mutex_unlock(&job->hub.lock);
    if (job->error) {
        pthread_join(job->thread, NULL);
        release(job);
        return err_set(e, ERR_FAULT, "MPI could not be initialized");
    }
    reserve(job);
    *ret = job;
    return 0;
}

int comm_mpi_rank(const struct comm_mpi *job)
{
    return job->rank;
}

int comm_mpi_world(const struct comm_mpi *job)
{
    return job->world;
}

void comm_mpi_leave(struct comm_mpi *job)
{
    pthread_mutex_lock(&job->hub.lock);
    job->leaving = true;
    pthread_cond_broadcast(&job->hub.changed);
    pthread_mutex_unlock(&job->hub.lock);
    pthread_join(job->thread, NULL);
    release(job);
}

static void close_mpi(struct comm *c)
{
    struct comm_mpi *job = c->state;
    pthread_mutex_lock(&job->hub.lock);
    while (comm_queue_busy(&job->queue))
        comm_hub_wait(&job->hub, 0);
    job->open = false;
    comm_queue_finish(&job->queue);
    pthread_mutex_unlock(&job->hub.lock);
}

int comm_mpi_open(struct comm *ret, struct comm_mpi *job, struct mesh m, struct err *e)
{
    static const struct comm_table table = {
        .issue = comm_queue_issue,
        .wait = comm_queue_wait,
        .abort = comm_queue_abort,
        .close = close_mpi,
    };
    int code = mesh_check(m, job->world, e);
    if (code)
        return code;
    pthread_mutex_lock(&job->hub.lock);
    BUG_ON(job->open, "a second comm in one MPI job");
    comm_queue_init(&job->queue, &job->hub, m, job->rank);
    job->open = true;
    pthread_cond_broadcast(&job->hub.changed);
    pthread_mutex_unlock(&job->hub.lock);
    *ret = (struct comm){
        .fn = &table, .state = job, .mesh = m, .rank = job->rank, .world = job->world};
    return 0;
}
