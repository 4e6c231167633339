/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/core/array.h"
#include "base/core/log.h"
#include "base/core/mem.h"

/* Seconds of one attempt to connect, and between two; strangers that are named. */
#define ATTEMPT 10
#define AGAIN 0.02
enum { NAMED = 8, ADDRESSES = 8, ACCEPTS = 64 };

/* A connection in the making, or a place for one (fd < 0). */
struct link {
    int fd;
    bool connecting;
    double since, until;
    struct greet greet;
    struct sockaddr_storage other;
};

/* A rank that is called. */
struct call {
    struct link link;
    int rank, n, next; /* of the addresses */
    double again;      /* when it is tried next */
    bool over;         /* connected, or refused */
    int error;         /* of the last attempt; 0: it was not finished */
    struct sockaddr_storage at[ADDRESSES];
};

struct links {
    const struct greet_self *self;
    int (*connected)(void *arg, int fd);
    void *arg;
    int listen_fd, watched;
    struct link in[LINKS_MOST];
    struct call **call;
    size_t calls, capacity;
    struct pollfd *poll;
    size_t poll_capacity;
    uint64_t named, unnamed; /* strangers */
};

double links_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- addresses --------------------------------------------------------------------------------
 */

struct in6_addr links_address(const struct sockaddr_storage *a)
{
    struct in6_addr r = {0};
    if (a->ss_family == AF_INET6)
        return ((const struct sockaddr_in6 *)a)->sin6_addr;
    r.s6_addr[10] = r.s6_addr[11] = 0xff;
    memcpy(r.s6_addr + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
    return r;
}

struct sockaddr_storage links_socket_address(const struct in6_addr *a, int port, uint32_t scope)
{
    struct sockaddr_storage r = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&r;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&r;
    if (IN6_IS_ADDR_V4MAPPED(a)) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        memcpy(&four->sin_addr, a->s6_addr + 12, 4);
        return r;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    six->sin6_addr = *a;
    six->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(a) ? scope : 0;
    return r;
}

socklen_t links_address_size(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* "10.0.0.1 port 29500" */
static void links_address_text(const struct sockaddr_storage *a, char *ret, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "an unknown address";
    struct in6_addr six = links_address(a);
    if (IN6_IS_ADDR_V4MAPPED(&six))
        inet_ntop(AF_INET, six.s6_addr + 12, text, sizeof(text));
    else
        inet_ntop(AF_INET6, &six, text, sizeof(text));
    snprintf(ret, size, "%s port %d", text,
             ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                            : ((const struct sockaddr_in *)a)->sin_port));
}

/* ---- opening and closing ----------------------------------------------------------------------
 */

struct links *links_open(const struct greet_self *self, int (*connected)(void *arg, int fd),
                         void *arg)
{
    struct links *l = mem_new(1, sizeof(*l));
    l->self = self;
    l->connected = connected;
    l->arg = arg;
    l->listen_fd = l->watched = -1;
    for (int i = 0; i < LINKS_MOST; i++)
        l->in[i].fd = -1;
    return l;
}

static void close_link(struct link *k)
{
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
}

void links_close(struct links *l)
{
    if (!l)
        return;
    for (int i = 0; i < LINKS_MOST; i++)
        close_link(&l->in[i]);
    for (size_t i = 0; i < l->calls; i++) {
        close_link(&l->call[i]->link);
        free(l->call[i]);
    }
    if (l->unnamed)
        log_warn("%llu more connections of strangers were dropped", (unsigned long long)l->unnamed);
    free(l->call);
    free(l->poll);
    free(l);
}

void links_listen(struct links *l, int listen_fd)
{
    l->listen_fd = listen_fd;
}

void links_watch(struct links *l, int fd)
{
    l->watched = fd;
}

void links_call(struct links *l, int rank, const struct sockaddr_storage *at, int n)
{
    struct call *c = mem_new(1, sizeof(*c));
    c->rank = rank;
    c->link.fd = -1;
    c->n = n < ADDRESSES ? n : ADDRESSES;
    memcpy(c->at, at, (size_t)c->n * sizeof(*at));
    ARRAY_GROW(l->call, l->calls, l->capacity);
    l->call[l->calls++] = c;
}

/* ---- strangers --------------------------------------------------------------------------------
 */

static void drop_stranger(struct links *l, struct link *k, const char *why)
{
    char from[80], reason[160];
    greet_reason(&k->greet, reason, sizeof(reason));
    links_address_text(&k->other, from, sizeof(from));
    if (l->named < NAMED) {
        l->named++;
        log_warn("a connection from %s was dropped: %s%s", from, reason, why);
    } else {
        l->unnamed++;
    }
    close_link(k);
}

static bool has_greeted(const struct link *k)
{
    return k->greet.in == k->greet.proof;
}

/* Of those that have said nothing of this job the oldest goes, else the oldest of all. NULL: there
 * are none. */
static struct link *drop_oldest(struct links *l)
{
    struct link *worst = NULL;
    for (int i = 0; i < LINKS_MOST; i++) {
        struct link *k = &l->in[i];
        if (k->fd >= 0 && (!worst || has_greeted(k) < has_greeted(worst) ||
                           (has_greeted(k) == has_greeted(worst) && k->since < worst->since)))
            worst = k;
    }
    if (worst)
        drop_stranger(l, worst, ", and there are too many at a time");
    return worst;
}

static struct link *make_room(struct links *l)
{
    for (int i = 0; i < LINKS_MOST; i++)
        if (l->in[i].fd < 0)
            return &l->in[i];
    return drop_oldest(l);
}

/* Of the connections that wait, a number at a time, so that those which are under way go on. */
static int accept_some(struct links *l, struct err *e)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof(from);
        int fd = accept4(l->listen_fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        int error = errno; /* EMFILE and the like: those of strangers go first */
        if (fd < 0 && !drop_oldest(l))
            return err_sys(e, error, "rank %d takes no more connections", l->self->rank);
        if (fd < 0)
            continue;
        struct link *k = make_room(l);
        *k = (struct link){.fd = fd, .since = links_clock(), .other = from};
        k->until = k->since + LINKS_SECONDS;
        greet_accept(&k->greet, l->self);
    }
    return 0;
}

/* ---- a connection goes on ---------------------------------------------------------------------
 */

/* errno of what it has come to; 0: it goes on, or its greeting is over and sent. */
static int send_greeting(struct link *k)
{
    const uint8_t *at;
    for (size_t n; (n = greet_output(&k->greet, &at)) > 0;) {
        ssize_t put = send(k->fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
        greet_sent(&k->greet, (size_t)put);
    }
    return 0;
}

static int move_link(struct link *k)
{
    uint8_t *to;
    int error = send_greeting(k);
    for (size_t n; !error && (n = greet_room(&k->greet, &to)) > 0;) {
        ssize_t got = recv(k->fd, to, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (got <= 0)
            return got < 0 ? errno : ECONNRESET;
        greet_take(&k->greet, (size_t)got);
        error = send_greeting(k);
    }
    return error;
}

static bool is_finished(const struct link *k)
{
    const uint8_t *at;
    return k->greet.over && (k->greet.verdict != GREET_FINE || !greet_output(&k->greet, &at));
}

static void hand_out(struct link *k, struct link_event *ret)
{
    *ret = (struct link_event){.kind = LINK_MADE,
                               .fd = k->fd,
                               .accepted = k->greet.accepts,
                               .rank = (int)k->greet.rank,
                               .world = (int)k->greet.world,
                               .port = (int)k->greet.port,
                               .from = links_address(&k->other)};
    k->fd = -1;
}

/* True: there is an event. */
static bool move_in(struct links *l, struct link *k, double now, struct link_event *ret)
{
    int error = move_link(k);
    if (is_finished(k) && k->greet.verdict == GREET_FINE) {
        hand_out(k, ret);
        return true;
    }
    if (is_finished(k))
        drop_stranger(l, k, "");
    else if (error)
        drop_stranger(l, k, ", and has closed the connection");
    else if (now >= k->until)
        drop_stranger(l, k, " within its time");
    return false;
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static void dial(struct call *c, double now)
{
    struct link *k = &c->link;
    *k = (struct link){.other = c->at[c->next], .since = now, .until = now + ATTEMPT};
    c->next = (c->next + 1) % c->n;
    c->again = now + AGAIN;
    k->fd = socket(k->other.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (k->fd < 0) {
        c->error = errno;
        return;
    }
    k->connecting = true;
    if (connect(k->fd, (const struct sockaddr *)&k->other, links_address_size(&k->other)) &&
        errno != EINPROGRESS) {
        c->error = errno;
        close_link(k);
    }
}

/* After poll has said that the connection is there, or is not. 0 or errno. */
static int has_connected(const struct links *l, struct call *c)
{
    struct link *k = &c->link;
    int error = 0;
    socklen_t n = sizeof(error);
    getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &error, &n);
    k->connecting = false;
    if (!error && l->connected)
        error = l->connected(l->arg, k->fd);
    greet_connect(&k->greet, l->self, c->rank);
    return error;
}

static bool move_out(const struct links *l, struct call *c, bool ready, double now,
                     struct link_event *ret)
{
    struct link *k = &c->link;
    int error = ready && k->connecting ? has_connected(l, c) : 0;
    if (!error && !k->connecting)
        error = move_link(k);
    if (!error && is_finished(k)) {
        c->over = true;
        if (k->greet.verdict == GREET_FINE) {
            hand_out(k, ret);
            return true;
        }
        *ret = (struct link_event){
            .kind = LINK_REFUSED, .fd = -1, .rank = c->rank, .verdict = k->greet.verdict};
        greet_reason(&k->greet, ret->why, sizeof(ret->why));
        close_link(k);
        return true;
    }
    if (error || now >= k->until) {
        c->error = error;
        close_link(k);
    }
    return false;
}

void links_reason(const struct links *l, int rank, char *ret, size_t size)
{
    snprintf(ret, size, "it was not called");
    for (size_t i = 0; i < l->calls; i++)
        if (l->call[i]->rank == rank)
            snprintf(ret, size, "%s",
                     l->call[i]->error ? strerror(l->call[i]->error)
                                       : "it did not answer the greeting");
}

/* ---- one poll for all -------------------------------------------------------------------------
 */

static short events_of(const struct link *k)
{
    const uint8_t *at;
    bool out = k->connecting || greet_output(&k->greet, &at) > 0;
    return (short)(POLLIN | (out ? POLLOUT : 0));
}

/* Fills l->poll: the listening socket, the watched one, those that come in, those that go out.
 * *until comes down to the next time at which something is due. */
static size_t fill_poll(struct links *l, double now, double *until)
{
    size_t need = 2 + LINKS_MOST + l->calls, n = 0;
    if (need > l->poll_capacity)
        l->poll = mem_grow(l->poll, l->poll_capacity = 2 * need, sizeof(*l->poll));
    l->poll[n++] = (struct pollfd){.fd = l->listen_fd, .events = POLLIN};
    l->poll[n++] = (struct pollfd){.fd = l->watched, .events = POLLIN};
    for (int i = 0; i < LINKS_MOST; i++) {
        struct link *k = &l->in[i];
        l->poll[n++] = (struct pollfd){.fd = k->fd, .events = events_of(k)};
        if (k->fd >= 0 && k->until < *until)
            *until = k->until;
    }
    for (size_t i = 0; i < l->calls; i++) {
        struct call *c = l->call[i];
        if (!c->over && c->link.fd < 0 && c->again <= now)
            dial(c, now);
        double due = c->link.fd >= 0 ? c->link.until : c->again;
        if (!c->over && due < *until)
            *until = due;
        l->poll[n++] = (struct pollfd){.fd = c->link.fd, .events = events_of(&c->link)};
    }
    return n;
}

/* Looks at all connections until one of them makes an event. */
static bool move_all(struct links *l, double now, struct link_event *ret)
{
    for (int i = 0; i < LINKS_MOST; i++)
        if (l->in[i].fd >= 0 && (l->poll[2 + i].revents || now >= l->in[i].until) &&
            move_in(l, &l->in[i], now, ret))
            return true;
    for (size_t i = 0; i < l->calls; i++) {
        struct call *c = l->call[i];
        bool ready = l->poll[2 + LINKS_MOST + i].revents;
        if (c->link.fd >= 0 && (ready || now >= c->link.until) && move_out(l, c, ready, now, ret))
            return true;
    }
    return false;
}

int links_next(struct links *l, double until, struct link_event *ret, struct err *e)
{
    *ret = (struct link_event){.kind = LINK_NONE, .fd = -1};
    for (;;) {
        double now = links_clock(), due = until;
        size_t n = fill_poll(l, now, &due);
        int wait = due > now ? (int)((due - now) * 1000) + 1 : 0;
        int ready = poll(l->poll, (nfds_t)n, wait);
        if (ready < 0 && errno != EINTR)
            return err_sys(e, errno, "rank %d cannot wait for connections", l->self->rank);
        now = links_clock();
        if (ready >= 0 && move_all(l, now, ret))
            return 0;
        if (ready > 0 && l->poll[1].revents) {
            ret->kind = LINK_READABLE;
            return 0;
        }
        /* last: the places of those that came in may change their owner */
        int code = ready > 0 && l->poll[0].revents ? accept_some(l, e) : 0;
        if (code || now >= until)
            return code;
    }
}
