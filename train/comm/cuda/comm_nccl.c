/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/cuda/comm_nccl.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "train/comm/call.h"
#include "train/comm/cuda/nccl.h"
#include "train/comm/queue.h"
#include "train/tensor/cuda/dev_cuda.h"

/* Seconds between two looks of the watcher at what may have failed. */
static const double LOOK_SECONDS = 0.1;

enum { TIMEOUT_SECONDS = 600 };

/* A communicator with its stream: of a group, or of the messages from one rank to another. */
struct channel {
    void *comm;
    cudaStream_t stream;
    enum group group;
    int from, to; /* members of the group; a group's own: -1 */
};

/* A call that was issued; one over the host's comm has its ticket there. */
struct slot {
    uint64_t number;
    struct comm_ticket host;
    cudaEvent_t done[2]; /* an exchange has two: given, taken */
    int waits;           /* events of `done` that count */
    enum comm_kind kind;
    enum group group;
    uint64_t order; /* among the group's calls on GPUs */
    double since;
};

struct nccl {
    struct comm host;
    struct dev *dev;
    int gpu;
    double timeout;
    struct library library;
    struct nccl_api api;
    cudaEvent_t before; /* the compute that a call comes after */
    struct slot slot[COMM_IN_FLIGHT];
    uint64_t issued, order[GROUP_COUNT];
    /* guards the fault, the slots and the use of communicators, which the watcher may abort */
    struct comm_hub hub;
    struct comm_bell work; /* of the watcher */
    struct channel *channel;
    int channels;
    bool aborted, closing;
    pthread_t watcher;
};

static struct nccl *nccl_of(const struct comm *c)
{
    return c->state;
}

/* ---- faults: with the lock held ------------------------------------------------------------ */

static void nccl_fault(struct nccl *n, const char *what, const char *why)
{
    char sentence[256];
    snprintf(sentence, sizeof(sentence), "%s: %s", what, why);
    comm_hub_fail(&n->hub, ERR_FAULT, sentence);
}

static void check_cuda(struct nccl *n, const char *what, cudaError_t code)
{
    if (code != cudaSuccess)
        nccl_fault(n, what, cudaGetErrorString(code));
}

static void check_nccl(struct nccl *n, const char *what, int result)
{
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        nccl_fault(n, what, n->api.error(result));
}

/* ---- communicators -------------------------------------------------------------------------- */

/* An id that the group's member `from` makes reaches the others, or the member `to` alone. */
static int share_id(struct nccl *n, enum group g, int from, int to, struct nccl_id *id,
                    struct err *e)
{
    struct tensor t = tensor_1d(id->word, DTYPE_I32, sizeof(id->word) / sizeof(id->word[0]));
    bool mine = comm_index(&n->host, g) == from;
    struct tensor none = {0};
    int result = mine ? n->api.get_id(id) : NCCL_SUCCESS;
    if (result != NCCL_SUCCESS)
        return err_set(e, ERR_RESOURCE, "NCCL: %s", n->api.error(result));
    struct comm_ticket sent = to < 0 ? comm_broadcast(&n->host, g, t, from)
                              : mine ? comm_exchange(&n->host, g, t, to, none, COMM_NOBODY)
                                     : comm_exchange(&n->host, g, none, COMM_NOBODY, t, from);
    comm_wait(&n->host, sent);
    return comm_fault(&n->host, e);
}

/* NCCL connects two ranks at their first message: one number from each to each other. */
static int connect(struct nccl *n, const struct channel *ch, int ranks, int rank)
{
    int32_t *v = NULL;
    if (cudaMalloc((void **)&v, (size_t)(ranks + 1) * sizeof(*v)) != cudaSuccess)
        return NCCL_SUCCESS; /* then the first messages do it */
    int type = nccl_type(DTYPE_I32), result = n->api.group_start();
    for (int k = 0; k < ranks && !result; k++) {
        if (k == rank)
            continue;
        result = n->api.send(v + ranks, 1, type, k, ch->comm, ch->stream);
        if (!result)
            result = n->api.receive(v + k, 1, type, k, ch->comm, ch->stream);
    }
    int ended = n->api.group_end();
    cudaStreamSynchronize(ch->stream);
    cudaFree(v);
    return result ? result : ended;
}

/* Of `ranks` ranks, this one `rank` of them; all of them do it at the same time. `messages`: they
 * exchange some. */
static int add_channel(struct nccl *n, struct channel ch, int ranks, int rank, bool messages,
                       struct err *e)
{
    struct nccl_id id;
    int code = share_id(n, ch.group, ch.from < 0 ? 0 : ch.from, ch.to, &id, e);
    if (code)
        return code;
    int result = n->api.init(&ch.comm, ranks, id, rank);
    if (result != NCCL_SUCCESS)
        return err_set(e, ERR_RESOURCE, "NCCL, %s group: %s", mesh_group_name(ch.group),
                       n->api.error(result));
    cudaError_t failed = cudaStreamCreateWithFlags(&ch.stream, cudaStreamNonBlocking);
    pthread_mutex_lock(&n->hub.lock);
    n->channel = mem_grow(n->channel, (size_t)n->channels + 1, sizeof(*n->channel));
    n->channel[n->channels++] = ch;
    pthread_mutex_unlock(&n->hub.lock);
    if (failed)
        return err_set(e, ERR_RESOURCE, "a CUDA stream: %s", cudaGetErrorString(failed));
    result = messages ? connect(n, &ch, ranks, rank) : NCCL_SUCCESS;
    return result ? err_set(e, ERR_RESOURCE, "NCCL, messages of the %s group: %s",
                            mesh_group_name(ch.group), n->api.error(result))
                  : 0;
}

static struct channel *find_channel(struct nccl *n, enum group g, int from, int to)
{
    for (int i = 0; i < n->channels; i++) {
        struct channel *ch = &n->channel[i];
        if (ch->group == g && ch->from == from && ch->to == to)
            return ch;
    }
    return NULL;
}

/* Of messages from one member to another; made by these two at once. */
static int add_direction(struct nccl *n, enum group g, int from, int to, struct err *e)
{
    struct channel ch = {.group = g, .from = from, .to = to};
    if (find_channel(n, g, from, to))
        return 0;
    return add_channel(n, ch, 2, comm_index(&n->host, g) == to, true, e);
}

static void need_channel(struct nccl *n, enum group g, int from, int to)
{
    struct err e;
    if (from == COMM_NOBODY || to == COMM_NOBODY || !add_direction(n, g, from, to, &e))
        return;
    pthread_mutex_lock(&n->hub.lock);
    comm_hub_fail(&n->hub, e.code, e.msg);
    pthread_mutex_unlock(&n->hub.lock);
}

/* The two channels of an exchange, all ranks by one order, so that no ring of them can block. */
static void need_channels(struct nccl *n, const struct comm_call *call, int me)
{
    bool give_first = me < call->from_rank;
    if (give_first)
        need_channel(n, call->group, me, call->to_rank);
    need_channel(n, call->group, call->from_rank, me);
    if (!give_first)
        need_channel(n, call->group, me, call->to_rank);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool on_device(struct tensor t)
{
    struct cudaPointerAttributes a;
    if (tensor_none(t) || cudaPointerGetAttributes(&a, t.data) != cudaSuccess)
        return false;
    return a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged;
}

static void compute_first(struct nccl *n, cudaStream_t stream)
{
    check_cuda(n, "NCCL", cudaStreamWaitEvent(stream, n->before, 0));
}

static void all_to_all(struct nccl *n, const struct comm_call *call, struct channel *ch, int size)
{
    const struct nccl_api *api = &n->api;
    int type = nccl_type(call->to.dtype);
    check_nccl(n, "NCCL", api->group_start());
    for (int k = 0; k < size; k++) {
        int64_t give = comm_offset(call->from, call->give, k),
                take = comm_offset(call->to, call->take, k);
        size_t given = (size_t)(comm_offset(call->from, call->give, k + 1) - give),
               taken = (size_t)(comm_offset(call->to, call->take, k + 1) - take);
        if (given)
            check_nccl(n, "NCCL all-to-all",
                       api->send(comm_at(call->from, give), given, type, k, ch->comm, ch->stream));
        if (taken)
            check_nccl(n, "NCCL all-to-all",
                       api->receive(comm_at(call->to, take), taken, type, k, ch->comm, ch->stream));
    }
    check_nccl(n, "NCCL all-to-all", api->group_end());
}

static void collective(struct nccl *n, const struct comm_call *call, struct channel *ch)
{
    const struct nccl_api *api = &n->api;
    struct tensor to = call->to, from = call->from;
    int type = nccl_type(to.dtype), op = call->reduce == REDUCE_MAX ? NCCL_MAX : NCCL_SUM;
    size_t count = (size_t)tensor_count(to);
    int result = NCCL_SUCCESS;
    compute_first(n, ch->stream);
    if (call->kind == COMM_ALL_REDUCE)
        result = api->all_reduce(to.data, to.data, count, type, op, ch->comm, ch->stream);
    else if (call->kind == COMM_ALL_GATHER)
        result = api->all_gather(from.data, to.data, (size_t)tensor_count(from), type, ch->comm,
                                 ch->stream);
    else if (call->kind == COMM_REDUCE_SCATTER)
        result = api->reduce_scatter(from.data, to.data, count, type, op, ch->comm, ch->stream);
    else if (call->kind == COMM_BROADCAST)
        result =
            api->broadcast(to.data, to.data, count, type, call->from_rank, ch->comm, ch->stream);
    else
        all_to_all(n, call, ch, comm_size(&n->host, call->group));
    check_nccl(n, comm_kind_name(call->kind), result);
}

static void mark_done(struct nccl *n, struct slot *s, cudaStream_t stream)
{
    check_cuda(n, "NCCL", cudaEventRecord(s->done[s->waits++], stream));
}

static void exchange(struct nccl *n, const struct comm_call *call, struct slot *s, int me)
{
    struct tensor give = call->from, take = call->to;
    struct channel *out = find_channel(n, call->group, me, call->to_rank),
                   *in = find_channel(n, call->group, call->from_rank, me);
    if (out) {
        compute_first(n, out->stream);
        check_nccl(n, "NCCL send",
                   n->api.send(give.data, (size_t)tensor_count(give), nccl_type(give.dtype), 1,
                               out->comm, out->stream));
        mark_done(n, s, out->stream);
    }
    if (in) {
        compute_first(n, in->stream);
        check_nccl(n, "NCCL receive",
                   n->api.receive(take.data, (size_t)tensor_count(take), nccl_type(take.dtype), 0,
                                  in->comm, in->stream));
        mark_done(n, s, in->stream);
    }
}

/* Over one rank, or an exchange of a rank with itself: a copy among the compute. False: it needs
 * others. */
static bool copied_alone(struct comm *c, const struct comm_call *call)
{
    struct nccl *n = nccl_of(c);
    bool self = call->kind == COMM_EXCHANGE && call->to_rank == comm_index(c, call->group);
    if (comm_size(c, call->group) > 1 && !self)
        return false;
    if (!tensor_none(call->from) && call->from.data != call->to.data)
        n->dev->fn->copy(n->dev, STREAM_COMPUTE, call->to.data, call->from.data,
                         tensor_bytes(call->from));
    return true;
}

/* The slot of the next call; that of COMM_IN_FLIGHT calls before is waited for. */
static struct slot *next_slot(struct nccl *n, const struct comm_call *call)
{
    struct slot *s = &n->slot[(n->issued + 1) % COMM_IN_FLIGHT];
    for (int i = 0; i < s->waits; i++)
        cudaEventSynchronize(s->done[i]);
    comm_wait(&n->host, s->host);
    pthread_mutex_lock(&n->hub.lock);
    s->number = ++n->issued;
    s->waits = 0;
    s->kind = call->kind;
    s->group = call->group;
    s->since = comm_clock();
    s->host = (struct comm_ticket){0};
    pthread_mutex_unlock(&n->hub.lock);
    return s;
}

static struct comm_ticket nccl_issue(struct comm *c, const struct comm_call *call)
{
    struct nccl *n = nccl_of(c);
    bool device = on_device(call->to) || on_device(call->from);
    if (device && copied_alone(c, call))
        return (struct comm_ticket){0};
    struct slot *s = next_slot(n, call);
    if (!device) {
        s->host = n->host.fn->issue(&n->host, call);
        return (struct comm_ticket){s->number};
    }
    int me = comm_index(c, call->group);
    if (call->kind == COMM_EXCHANGE)
        need_channels(n, call, me);
    pthread_mutex_lock(&n->hub.lock);
    s->order = ++n->order[call->group];
    if (!n->hub.fault) {
        check_cuda(n, "NCCL", cudaEventRecord(n->before, dev_cuda_stream(n->dev, STREAM_COMPUTE)));
        struct channel *ch = find_channel(n, call->group, -1, -1);
        if (call->kind == COMM_EXCHANGE) {
            exchange(n, call, s, me);
        } else {
            collective(n, call, ch);
            mark_done(n, s, ch->stream);
        }
    }
    pthread_mutex_unlock(&n->hub.lock);
    return (struct comm_ticket){s->number};
}

static void nccl_wait(struct comm *c, struct comm_ticket t)
{
    struct nccl *n = nccl_of(c);
    struct slot *s = &n->slot[t.number % COMM_IN_FLIGHT];
    if (t.number && s->number == t.number) {
        comm_wait(&n->host, s->host);
        pthread_mutex_lock(&n->hub.lock);
        for (int i = 0; i < s->waits; i++)
            check_cuda(n, "NCCL",
                       cudaStreamWaitEvent(dev_cuda_stream(n->dev, STREAM_COMPUTE), s->done[i], 0));
        pthread_mutex_unlock(&n->hub.lock);
    }
    pthread_mutex_lock(&n->hub.lock);
    if (n->host.fault)
        comm_hub_tell(&n->hub, n->host.fault, n->host.fault_step, n->host.fault_text);
    if (n->hub.fault && !c->fault) {
        c->fault = n->hub.fault;
        c->fault_step = n->hub.step;
        snprintf(c->fault_text, sizeof(c->fault_text), "%s", n->hub.text);
    }
    pthread_mutex_unlock(&n->hub.lock);
}

/* ---- what may fail while calls run ---------------------------------------------------------- */

static void name_slot(const struct slot *s, char *ret, size_t size)
{
    snprintf(ret, size, "call %llu of the %s group (%s) on GPUs", (unsigned long long)s->order,
             mesh_group_name(s->group), comm_kind_name(s->kind));
}

/* The oldest call that NCCL has not done; NULL: none. With the lock held. */
static const struct slot *oldest(const struct nccl *n)
{
    const struct slot *first = NULL;
    for (int i = 0; i < COMM_IN_FLIGHT; i++) {
        const struct slot *s = &n->slot[i];
        bool busy = false;
        for (int k = 0; k < s->waits; k++)
            busy |= cudaEventQuery(s->done[k]) == cudaErrorNotReady;
        if (busy && (!first || s->number < first->number))
            first = s;
    }
    return first;
}

/* With the lock held: kernels that wait for a rank that will not come end. */
static void abort_all(struct nccl *n)
{
    for (int i = 0; i < n->channels && !n->aborted; i++)
        n->api.abort(n->channel[i].comm);
    n->aborted = true;
}

/* With the lock held. */
static void tell_host(struct nccl *n)
{
    struct err why;
    err_set(&why, n->hub.fault, "%s", n->hub.text);
    why.step = n->hub.step;
    comm_interrupt(&n->host, &why);
}

/* With the lock held. */
static void look_for_faults(struct nccl *n)
{
    struct comm_state host;
    comm_look(&n->host, &host);
    if (host.fault)
        comm_hub_tell(&n->hub, host.fault, host.step, host.text);
    for (int i = 0; i < n->channels && !n->hub.fault; i++) {
        int result = NCCL_SUCCESS;
        n->api.async_error(n->channel[i].comm, &result);
        check_nccl(n, mesh_group_name(n->channel[i].group), result);
    }
    const struct slot *s = n->hub.fault ? NULL : oldest(n);
    if (s && comm_clock() - s->since > n->timeout) {
        char call[128], why[256];
        name_slot(s, call, sizeof(call));
        snprintf(why, sizeof(why), "rank %d waited %g s in %s", n->host.rank, n->timeout, call);
        comm_hub_fail(&n->hub, ERR_FAULT, why);
    }
    if (n->hub.fault && !host.fault) /* the others hear of it there */
        tell_host(n);
    if (n->hub.fault)
        abort_all(n);
}

static void *watch_faults(void *arg)
{
    struct nccl *n = arg;
    cudaSetDevice(n->gpu);
    pthread_mutex_lock(&n->hub.lock);
    while (!n->closing && !n->aborted) {
        look_for_faults(n);
        comm_hub_wait(&n->hub, &n->work, LOOK_SECONDS);
    }
    pthread_mutex_unlock(&n->hub.lock);
    return NULL;
}

static void nccl_interrupt(const struct comm *c, const struct err *why)
{
    struct nccl *n = nccl_of(c);
    pthread_mutex_lock(&n->hub.lock);
    comm_hub_tell(&n->hub, why->code, why->step, why->msg);
    look_for_faults(n);
    pthread_mutex_unlock(&n->hub.lock);
}

static void nccl_abort(struct comm *c, const struct err *why)
{
    nccl_interrupt(c, why);
    nccl_wait(c, (struct comm_ticket){0}); /* the first fault may be another */
}

static void nccl_look(const struct comm *c, struct comm_state *ret)
{
    struct nccl *n = nccl_of(c);
    comm_look(&n->host, ret);
    pthread_mutex_lock(&n->hub.lock);
    const struct slot *s = oldest(n);
    if (s && !ret->in_call) {
        ret->in_call = true;
        name_slot(s, ret->call, sizeof(ret->call));
    }
    if (n->hub.fault) {
        ret->fault = n->hub.fault;
        snprintf(ret->text, sizeof(ret->text), "%s", n->hub.text);
    }
    pthread_mutex_unlock(&n->hub.lock);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void release(struct nccl *n)
{
    for (int i = 0; i < n->channels; i++) {
        if (!n->aborted)
            n->api.destroy(n->channel[i].comm);
        cudaStreamDestroy(n->channel[i].stream);
    }
    for (int i = 0; i < COMM_IN_FLIGHT; i++)
        for (int k = 0; k < 2; k++)
            if (n->slot[i].done[k])
                cudaEventDestroy(n->slot[i].done[k]);
    if (n->before)
        cudaEventDestroy(n->before);
    comm_bell_finish(&n->work, &n->hub);
    comm_hub_finish(&n->hub);
    free(n->channel);
    free(n);
}

static void nccl_close(struct comm *c)
{
    struct nccl *n = nccl_of(c);
    struct comm host = n->host;
    for (int i = 0; i < n->channels; i++)
        cudaStreamSynchronize(n->channel[i].stream);
    pthread_mutex_lock(&n->hub.lock);
    n->closing = true;
    pthread_mutex_unlock(&n->hub.lock);
    comm_bell_ring(&n->work);
    pthread_join(n->watcher, NULL);
    release(n);
    comm_close(&host);
}

static int create_events(struct nccl *n, struct err *e)
{
    cudaError_t code = cudaEventCreateWithFlags(&n->before, cudaEventDisableTiming);
    for (int i = 0; i < COMM_IN_FLIGHT * 2 && !code; i++)
        code = cudaEventCreateWithFlags(&n->slot[i / 2].done[i % 2], cudaEventDisableTiming);
    return code ? err_set(e, ERR_RESOURCE, "CUDA events: %s", cudaGetErrorString(code)) : 0;
}

/* Both directions between each member of a group and the next; all ranks go through them in one
 * order. */
static int open_ring(struct nccl *n, enum group g, int size, int me, struct err *e)
{
    int code = 0;
    for (int i = 0; i < size && !code; i++) {
        int next = (i + 1) % size;
        if (i != me && next != me)
            continue;
        code = add_direction(n, g, i, next, e);
        if (!code)
            code = add_direction(n, g, next, i, e);
    }
    return code;
}

/* A communicator for each group of several ranks, in one order on all of them. */
static int open_groups(struct nccl *n, unsigned rings, struct err *e)
{
    for (int g = 0; g < GROUP_COUNT; g++) {
        int size = comm_size(&n->host, (enum group)g), me = comm_index(&n->host, (enum group)g);
        struct channel ch = {.group = (enum group)g, .from = -1, .to = -1};
        if (size == 1 || me < 0)
            continue;
        bool messages = g == GROUP_EP || rings & 1u << g; /* all-to-all is made of them */
        int code = add_channel(n, ch, size, me, messages, e);
        if (!code && rings & 1u << g)
            code = open_ring(n, (enum group)g, size, me, e);
        if (code)
            return code;
    }
    return 0;
}

int comm_nccl_open(struct comm *c, struct dev *d, const struct comm_nccl_options *o, struct err *e)
{
    static const struct comm_table table = {
        .issue = nccl_issue,
        .wait = nccl_wait,
        .abort = nccl_abort,
        .interrupt = nccl_interrupt,
        .look = nccl_look,
        .close = nccl_close,
    };
    struct nccl *n = mem_new(1, sizeof(*n));
    n->host = *c;
    n->dev = d;
    n->timeout = o->timeout > 0 ? o->timeout : TIMEOUT_SECONDS;
    comm_hub_init(&n->hub);
    comm_bell_init(&n->work, &n->hub);
    cudaGetDevice(&n->gpu);
    int code = nccl_open(&n->library, &n->api, o->library_path, e);
    if (!code)
        code = create_events(n, e);
    if (!code)
        code = open_groups(n, o->rings | 1u << GROUP_PP | 1u << GROUP_CP, e);
    int failed = code ? 0 : thread_start(&n->watcher, watch_faults, n);
    if (failed)
        code = err_set(e, ERR_RESOURCE, "no thread could be started: %s", strerror(failed));
    if (code) {
        *c = n->host; /* it may have heard of a fault */
        release(n);
        return code;
    }
    struct comm whole = *c;
    whole.fn = &table;
    whole.state = n;
    *c = whole;
    return 0;
}
