/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "train/comm/footprint.h"

/* What stands before a message: plain integers, between processes of one machine type. */
enum frame_kind { FRAME_DATA, FRAME_FAULT, FRAME_LEAVE };
struct frame {
    int32_t kind, tag;
    int64_t bytes;
};

/* No message is longer (comm_wire.c), and no tag higher. */
enum { FRAME_MOST = 1 << 28, TAG_MOST = 1 << 25 };

/* Bytes that are kept unasked before their senders wait; a message of no bytes takes some, too.
 * What a rank may send before what is wanted of it: each of its calls in flight has a message. */
enum { MESSAGE_COST = 256 };
#define EARLY_FAULT(early) (COMM_IN_FLIGHT * (early))

/* A message to send or to receive, or one that came before anybody asked for it (`own`). */
struct message {
    struct message *next;
    struct frame frame;
    char *at;
    int64_t moved; /* bytes; of what is sent: with the frame */
    bool own;      /* `at` is this module's */
    bool done;
    uint64_t number;
};

struct messages {
    struct message *first, **end;
};

struct peer {
    int fd;
    struct messages out;    /* to be sent, in order */
    struct messages wanted; /* receives that are issued and have not begun to arrive */
    struct messages early;  /* arrived, and not asked for yet */
    struct message *in;     /* is arriving */
    struct frame frame;
    size_t frame_bytes; /* of `frame` that have arrived */
    bool left, lost;
};

struct tcp_wire {
    int rank, world;
    struct peer *peer;
    struct pollfd *poll;
    int64_t early, early_most; /* bytes */
    bool ending;               /* all that comes is read */
    struct wire_fault fault;
    bool has_fault, told; /* the others of it */
};

struct comm_tcp {
    struct comm_wire *wire;
    struct tcp_wire tcp;
};

/* ---- lists of messages ------------------------------------------------------------------------
 */

static void append(struct messages *l, struct message *m)
{
    if (!l->first)
        l->end = &l->first;
    m->next = NULL;
    *l->end = m;
    l->end = &m->next;
}

static struct message *take_first(struct messages *l)
{
    struct message *m = l->first;
    l->first = m->next;
    return m;
}

/* Takes the first one with this tag out of the list; NULL: there is none. */
static struct message *take_tag(struct messages *l, int32_t tag)
{
    for (struct message **at = &l->first; *at; at = &(*at)->next)
        if ((*at)->frame.tag == tag) {
            struct message *m = *at;
            *at = m->next;
            if (!m->next)
                l->end = at;
            return m;
        }
    return NULL;
}

static void drop_message(struct message *m)
{
    if (m && m->own)
        free(m->at);
    free(m);
}

static void drop_list(struct messages *l)
{
    while (l->first)
        drop_message(take_first(l));
}

/* ---- faults -----------------------------------------------------------------------------------
 */

/* `step`: that the text names, 0 if none. */
static void tcp_fault(struct tcp_wire *t, int code, int64_t step, const char *text)
{
    if (t->has_fault)
        return;
    t->has_fault = true;
    t->fault.code = code;
    t->fault.step = step;
    snprintf(t->fault.text, sizeof(t->fault.text), "%s", text);
}

static void lose(struct tcp_wire *t, int rank, int error)
{
    char text[WIRE_TEXT];
    struct peer *p = &t->peer[rank];
    p->lost = true;
    if (p->left)
        return;
    snprintf(text, sizeof(text), "rank %d is lost: %s", rank,
             error ? strerror(error) : "its process has ended");
    tcp_fault(t, ERR_FAULT, 0, text);
}

/* ---- sending ----------------------------------------------------------------------------------
 */

/* As much as the socket takes. */
static void push(struct tcp_wire *t, int rank)
{
    struct peer *p = &t->peer[rank];
    while (p->out.first && !p->lost) {
        struct message *m = p->out.first;
        int64_t head = (int64_t)sizeof(m->frame), all = head + m->frame.bytes;
        bool in_head = m->moved < head;
        const char *at = in_head ? (const char *)&m->frame + m->moved : m->at + (m->moved - head);
        size_t left = (size_t)((in_head ? head : all) - m->moved);
        ssize_t n = send(p->fd, at, left, MSG_NOSIGNAL | (in_head && all > head ? MSG_MORE : 0));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0) {
            lose(t, rank, errno);
            return;
        }
        m->moved += n;
        if (m->moved < all)
            continue;
        take_first(&p->out);
        m->done = true;
        if (m->own)
            drop_message(m);
    }
}

static void queue_own(struct tcp_wire *t, int rank, enum frame_kind kind, const void *at, size_t n)
{
    struct message *m = mem_new(1, sizeof(*m));
    m->frame = (struct frame){.kind = (int32_t)kind, .bytes = (int64_t)n};
    m->own = true;
    m->at = mem_new(n + 1, 1);
    if (n)
        memcpy(m->at, at, n);
    append(&t->peer[rank].out, m);
    push(t, rank);
}

/* ---- early messages ---------------------------------------------------------------------------
 */

static int64_t cost_of(const struct message *m)
{
    return m->frame.bytes + MESSAGE_COST;
}

/* Counted from its frame on. False: there are too many. */
static bool keep_early(struct tcp_wire *t, const struct message *m)
{
    t->early += cost_of(m);
    return t->early <= EARLY_FAULT(t->early_most);
}

static void drop_early(struct tcp_wire *t, struct message *m)
{
    t->early -= cost_of(m);
    drop_message(m);
}

/* Nothing of this rank is wanted now, and much is kept: it is read on when something is. */
static bool waits(const struct tcp_wire *t, const struct peer *p)
{
    bool wanted = p->wanted.first || (p->in && !p->in->own);
    return t->early > t->early_most && !wanted && !t->ending && !t->has_fault;
}

/* ---- receiving --------------------------------------------------------------------------------
 */

static bool is_frame(struct frame f)
{
    return f.kind == FRAME_DATA
               ? f.bytes > 0 && f.bytes <= FRAME_MOST && f.tag >= 0 && f.tag < TAG_MOST
           : f.kind == FRAME_LEAVE ? f.bytes == 0
                                   : f.kind == FRAME_FAULT && f.bytes == sizeof(struct wire_fault);
}

/* Nothing that a rank would send: it is not listened to any more. */
static void refuse_message(struct tcp_wire *t, int rank, const char *why)
{
    char text[WIRE_TEXT];
    snprintf(text, sizeof(text), "rank %d sent a message of %lld bytes that rank %d cannot take%s",
             rank, (long long)t->peer[rank].frame.bytes, t->rank, why);
    tcp_fault(t, ERR_FAULT, 0, text);
    t->peer[rank].lost = true;
}

/* Where the message whose frame has arrived is put. False: it is refused. */
static bool begin_message(struct tcp_wire *t, int rank)
{
    struct peer *p = &t->peer[rank];
    struct frame f = p->frame;
    struct message *m = is_frame(f) && f.kind == FRAME_DATA ? take_tag(&p->wanted, f.tag) : NULL;
    if (!is_frame(f) || (m && m->frame.bytes != f.bytes)) {
        if (m)
            append(&p->wanted, m);
        refuse_message(t, rank, "");
        return false;
    }
    if (!m) {
        m = mem_new(1, sizeof(*m));
        m->own = true;
        m->frame = f;
        if (f.kind == FRAME_DATA && !keep_early(t, m)) {
            drop_early(t, m);
            refuse_message(t, rank, ": too many came that it has not asked for");
            return false;
        }
        m->at = mem_new((size_t)f.bytes + 1, 1);
    }
    p->in = m;
    return true;
}

static void end_message(struct tcp_wire *t, int rank)
{
    struct peer *p = &t->peer[rank];
    struct message *m = p->in;
    p->in = NULL;
    p->frame_bytes = 0;
    if (m->frame.kind == FRAME_DATA && m->own) {
        append(&p->early, m);
        return;
    }
    if (m->frame.kind == FRAME_DATA) {
        m->done = true;
        return;
    }
    if (m->frame.kind == FRAME_LEAVE)
        p->left = true;
    if (m->frame.kind == FRAME_FAULT) {
        struct wire_fault f;
        memcpy(&f, m->at, sizeof(f));
        f.text[sizeof(f.text) - 1] = 0;
        if (!f.text[0])
            snprintf(f.text, sizeof(f.text), "rank %d failed and did not say why", rank);
        t->fault.heard = t->has_fault ? t->fault.heard : 1;
        tcp_fault(t, f.code, f.step, f.text);
    }
    drop_message(m);
}

/* What has arrived from a rank. False: nothing. */
static bool pull(struct tcp_wire *t, int rank)
{
    struct peer *p = &t->peer[rank];
    bool any = false;
    while (!p->lost && !waits(t, p)) {
        bool head = p->frame_bytes < sizeof(p->frame);
        char *at = head ? (char *)&p->frame + p->frame_bytes : p->in->at + p->in->moved;
        size_t left =
            head ? sizeof(p->frame) - p->frame_bytes : (size_t)(p->in->frame.bytes - p->in->moved);
        ssize_t n = left ? recv(p->fd, at, left, 0) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return any;
        if (left && n <= 0) {
            lose(t, rank, n < 0 ? errno : 0);
            return true;
        }
        any = true;
        if (head)
            p->frame_bytes += (size_t)n;
        else
            p->in->moved += n;
        if (head && (p->frame_bytes < sizeof(p->frame) || !begin_message(t, rank)))
            continue;
        if (p->in->moved == p->in->frame.bytes)
            end_message(t, rank);
    }
    return any;
}

/* Moves what can be moved, after waiting for it at most `milliseconds`. */
static void move_all(struct tcp_wire *t, int milliseconds)
{
    for (int k = 0; k < t->world; k++)
        t->poll[k] = (struct pollfd){.fd = t->peer[k].lost ? -1 : t->peer[k].fd,
                                     .events = (short)((waits(t, &t->peer[k]) ? 0 : POLLIN) |
                                                       (t->peer[k].out.first ? POLLOUT : 0))};
    if (poll(t->poll, (nfds_t)t->world, milliseconds) <= 0)
        return;
    for (int k = 0; k < t->world; k++) {
        if (t->poll[k].revents & POLLOUT)
            push(t, k);
        if (t->poll[k].revents & (POLLIN | POLLHUP | POLLERR))
            pull(t, k);
    }
}

/* ---- the table --------------------------------------------------------------------------------
 */

static void store(struct wire_request *r, struct message *m)
{
    r->word[0] = (uint64_t)(uintptr_t)m;
}

static struct message *message_of(const struct wire_request *r)
{
    return (struct message *)(uintptr_t)r->word[0];
}

static int tcp_begin(void *wire, int *ret_rank, int *ret_world, struct err *e)
{
    struct tcp_wire *t = wire;
    (void)e;
    *ret_rank = t->rank;
    *ret_world = t->world;
    return 0;
}

static void tcp_send(void *wire, int rank, int tag, void *at, int64_t bytes,
                     struct wire_request *ret)
{
    struct tcp_wire *t = wire;
    struct message *m = mem_new(1, sizeof(*m));
    m->frame = (struct frame){.kind = FRAME_DATA, .tag = tag, .bytes = bytes};
    m->at = at;
    store(ret, m);
    append(&t->peer[rank].out, m);
    push(t, rank);
}

static void tcp_receive(void *wire, int rank, int tag, void *at, int64_t bytes,
                        struct wire_request *ret)
{
    struct tcp_wire *t = wire;
    struct peer *p = &t->peer[rank];
    struct message *m = mem_new(1, sizeof(*m)), *early = take_tag(&p->early, tag);
    m->frame = (struct frame){.kind = FRAME_DATA, .tag = tag, .bytes = bytes};
    m->at = at;
    store(ret, m);
    if (!early && p->in && p->in->own && p->in->frame.kind == FRAME_DATA &&
        p->in->frame.tag == tag &&
        p->in->frame.bytes == bytes) { /* is arriving: here from now on */
        memcpy(at, p->in->at, (size_t)p->in->moved);
        m->moved = p->in->moved;
        drop_early(t, p->in);
        p->in = m;
        return;
    }
    if (!early) {
        append(&p->wanted, m);
        return;
    }
    if (early->frame.bytes != bytes)
        tcp_fault(t, ERR_FAULT, 0, "a message came with another length than was expected");
    else
        memcpy(at, early->at, (size_t)bytes);
    m->done = true;
    drop_early(t, early);
}

static bool tcp_done(void *wire, struct wire_request *r, int n)
{
    bool all = true;
    move_all(wire, 0);
    for (int i = 0; i < n; i++)
        all = all && (!message_of(&r[i]) || message_of(&r[i])->done);
    for (int i = 0; i < n && all; i++) {
        drop_message(message_of(&r[i]));
        store(&r[i], NULL);
    }
    return all;
}

/* After a fault: what this memory was for goes nowhere, and nothing more arrives in it. */
static void tcp_cancel(void *wire, struct wire_request *r, int n)
{
    struct tcp_wire *t = wire;
    for (int i = 0; i < n; i++) {
        struct message *m = message_of(&r[i]);
        for (int k = 0; k < t->world && m && !m->done; k++) {
            struct peer *p = &t->peer[k];
            if (p->in == m) {
                p->lost = true;
                p->in = NULL;
            }
            for (struct message **at = &p->wanted.first; *at; at = &(*at)->next)
                if (*at == m) {
                    *at = m->next;
                    break;
                }
            for (struct message **at = &p->out.first; *at; at = &(*at)->next)
                if (*at == m) { /* a part of it may be gone: nothing follows that could be read */
                    p->lost = p->lost || m->moved > 0;
                    *at = m->next;
                    break;
                }
        }
        drop_message(m);
        store(&r[i], NULL);
    }
    for (int k = 0; k < t->world; k++) {
        for (struct message **at = &t->peer[k].out.first; *at; at = &(*at)->next)
            t->peer[k].out.end = &(*at)->next;
        for (struct message **at = &t->peer[k].wanted.first; *at; at = &(*at)->next)
            t->peer[k].wanted.end = &(*at)->next;
    }
}

static void tcp_tell(void *wire, const struct wire_fault *f)
{
    struct tcp_wire *t = wire;
    t->told = true;
    for (int k = 0; k < t->world; k++)
        if (k != t->rank && !t->peer[k].lost)
            queue_own(t, k, FRAME_FAULT, f, sizeof(*f));
}

static bool tcp_heard(void *wire, struct wire_fault *ret)
{
    struct tcp_wire *t = wire;
    move_all(t, 0);
    *ret = t->fault;
    return t->has_fault;
}

/* Whether all that is to be sent is, and the others have left, or closed their side. */
static bool all_left(const struct tcp_wire *t)
{
    for (int k = 0; k < t->world; k++) {
        const struct peer *p = &t->peer[k];
        if (k != t->rank && !p->lost && (p->out.first || !p->left))
            return false;
    }
    return true;
}

/*
 * Leaves with all others. After a fault each hears of it from this rank, too, before it sees the
 * connection end: otherwise that end would be the first fault it hears of. A socket that is closed
 * while bytes are unread resets the connection, and what was sent last is lost; so both sides first
 * shut down, and read to the end.
 */
static void tcp_end(void *wire, bool together)
{
    struct tcp_wire *t = wire;
    double until = comm_clock() + (together ? 60 : 2);
    t->ending = true;
    if (!together && !t->told)
        tcp_tell(t, &t->fault);
    for (int k = 0; k < t->world && together; k++)
        if (k != t->rank && !t->peer[k].lost)
            queue_own(t, k, FRAME_LEAVE, NULL, 0);
    while (!all_left(t) && comm_clock() < until) {
        for (int k = 0; k < t->world && !together; k++)
            if (k != t->rank && !t->peer[k].lost && !t->peer[k].out.first)
                shutdown(t->peer[k].fd, SHUT_WR);
        move_all(t, 20);
    }
}

/* ---- the job ----------------------------------------------------------------------------------
 */

static void release_tcp(struct comm_tcp *job)
{
    struct tcp_wire *t = &job->tcp;
    for (int k = 0; k < t->world; k++) {
        struct peer *p = &t->peer[k];
        if (p->fd >= 0)
            close(p->fd);
        drop_list(&p->out);
        drop_list(&p->early);
        drop_list(&p->wanted);
        if (p->in && p->in->own)
            drop_message(p->in);
    }
    free(t->peer);
    free(t->poll);
    free(job);
}

int comm_tcp_join(struct comm_tcp **ret, int rank, int world, const int *fd,
                  const struct comm_options *o, struct err *e)
{
    static const struct wire_table table = {
        .begin = tcp_begin,
        .end = tcp_end,
        .send = tcp_send,
        .receive = tcp_receive,
        .done = tcp_done,
        .cancel = tcp_cancel,
        .tell = tcp_tell,
        .heard = tcp_heard,
    };
    struct comm_tcp *job = mem_new(1, sizeof(*job));
    struct tcp_wire *t = &job->tcp;
    *t = (struct tcp_wire){.rank = rank, .world = world, .early_most = WIRE_EARLY};
    if (o && o->early)
        t->early_most = (int64_t)o->early;
    t->peer = mem_new((size_t)world, sizeof(*t->peer));
    t->poll = mem_new((size_t)world, sizeof(*t->poll));
    for (int k = 0; k < world; k++) {
        int on = 1;
        t->peer[k].fd = fd[k];
        t->peer[k].lost = k == rank;
        if (k == rank)
            continue;
        fcntl(fd[k], F_SETFL, fcntl(fd[k], F_GETFL) | O_NONBLOCK);
        setsockopt(fd[k], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* not of local sockets */
    }
    int code = comm_wire_join(&job->wire, &table, t, o, e);
    if (code)
        release_tcp(job);
    else
        *ret = job;
    return code;
}

void comm_tcp_leave(struct comm_tcp *job)
{
    comm_wire_leave(job->wire);
    release_tcp(job);
}

int comm_tcp_open(struct comm *ret, struct comm_tcp *job, struct mesh m, struct err *e)
{
    return comm_wire_open(ret, job->wire, m, e);
}
