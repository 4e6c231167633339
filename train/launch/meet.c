/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/core/mem.h"

#define MAGIC "weftmeet"

struct greeting {
    char magic[8];
    uint32_t version;
    int32_t world, rank;
    uint32_t port;
};

struct answer {
    int32_t code;
    char text[256];
};

/* A rank's meeting. */
struct meeting {
    const struct launch_place *place;
    double until, seconds;
    int *fd;
    int listen_fd, port;
    struct sockaddr_storage *address; /* of each rank's own listening socket */
};

static double meet_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* ---- bytes within the time --------------------------------------------------------------------
 */

/* 0, or errno: ETIMEDOUT, ECONNRESET when the other side has closed. */
static int wait_for(int fd, short events, double until)
{
    for (;;) {
        double left = until - meet_clock();
        struct pollfd p = {.fd = fd, .events = events};
        int n = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
        if (n > 0)
            return 0;
        if (n == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

static int receive_bytes(int fd, void *to, size_t n, double until)
{
    for (char *at = to; n;) {
        int error = wait_for(fd, POLLIN, until);
        if (error)
            return error;
        ssize_t got = recv(fd, at, n, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got < 0 ? errno : ECONNRESET;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

static int send_bytes(int fd, const void *from, size_t n, double until)
{
    for (const char *at = from; n;) {
        int error = wait_for(fd, POLLOUT, until);
        if (error)
            return error;
        ssize_t put = send(fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (put < 0)
            return errno;
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

/* ---- sockets ----------------------------------------------------------------------------------
 */

int meet_listen(int port, int *ret_fd, int *ret_port, struct err *e)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in old = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1, off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool six = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0;
    if (fd >= 0 && !six)
        close(fd);
    if (!six)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(e, errno, "no socket could be opened");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (six ? bind(fd, (struct sockaddr *)&at, sizeof(at))
            : bind(fd, (struct sockaddr *)&old, sizeof(old))) {
        int error = errno;
        close(fd);
        return err_sys(e, error, "port %d cannot be listened at", port);
    }
    if (listen(fd, 1024)) {
        int error = errno;
        close(fd);
        return err_sys(e, error, "port %d cannot be listened at", port);
    }
    socklen_t n = six ? sizeof(at) : sizeof(old);
    getsockname(fd, six ? (struct sockaddr *)&at : (struct sockaddr *)&old, &n);
    *ret_port = ntohs(six ? at.sin6_port : old.sin_port);
    *ret_fd = fd;
    return 0;
}

/* 0 and a socket, or errno. */
static int connect_to(const struct sockaddr *at, socklen_t n, double until, int *ret)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, at, n) ? errno : 0;
    socklen_t size = sizeof(error);
    if (error == EINPROGRESS) {
        error = wait_for(fd, POLLOUT, until);
        if (!error)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error)
        close(fd);
    else
        *ret = fd;
    return error;
}

static int accept_one(const struct meeting *m, struct sockaddr_storage *ret_from, int *ret)
{
    for (;;) {
        int error = wait_for(m->listen_fd, POLLIN, m->until);
        if (error)
            return error;
        socklen_t n = sizeof(*ret_from);
        *ret = accept4(m->listen_fd, (struct sockaddr *)ret_from, &n, SOCK_CLOEXEC);
        if (*ret >= 0)
            return 0;
        if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
            return errno;
    }
}

/* ---- rank 0 -----------------------------------------------------------------------------------
 */

static void refuse(const struct meeting *m, int fd, int code, const char *text)
{
    struct answer a = {.code = code};
    snprintf(a.text, sizeof(a.text), "%s", text);
    send_bytes(fd, &a, sizeof(a), m->until);
}

/* Stores each rank's connection by its number. A connection without our greeting is dropped. */
static int welcome(struct meeting *m, int fd, const struct sockaddr_storage *from, bool *ret_taken,
                   struct err *e)
{
    struct greeting g;
    double until = meet_clock() + 5 < m->until ? meet_clock() + 5 : m->until;
    *ret_taken = false;
    if (receive_bytes(fd, &g, sizeof(g), until) || memcmp(g.magic, MAGIC, sizeof(g.magic)) != 0)
        return 0;
    int code = 0;
    if (g.version != MEET_VERSION)
        code =
            err_set(e, ERR_FAULT, "a rank of another version of the program came (%u, expected %d)",
                    g.version, MEET_VERSION);
    else if (g.world != m->place->world || g.rank < 1 || g.rank >= m->place->world)
        code = err_set(e, ERR_FAULT, "rank %d of %d came to a job of %d ranks", g.rank, g.world,
                       m->place->world);
    else if (m->fd[g.rank] >= 0)
        code =
            err_set(e, ERR_FAULT, "two processes say that they are rank %d of %d", g.rank, g.world);
    if (code) {
        refuse(m, fd, code, e->msg);
        return code;
    }
    m->fd[g.rank] = fd;
    m->address[g.rank] = *from;
    if (from->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&m->address[g.rank])->sin6_port = htons((uint16_t)g.port);
    else
        ((struct sockaddr_in *)&m->address[g.rank])->sin_port = htons((uint16_t)g.port);
    *ret_taken = true;
    return 0;
}

static int name_missing(const struct meeting *m, struct err *e)
{
    char list[128];
    int missing = 0, n = 0;
    for (int k = 1; k < m->place->world; k++)
        if (m->fd[k] < 0) {
            missing++;
            if (n < (int)sizeof(list) - 16)
                n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%d", n ? ", " : "", k);
        }
    return err_set(e, ERR_FAULT, "%d of %d ranks did not come to port %d within %g s: %s%s",
                   missing, m->place->world, m->port, m->seconds, list,
                   n >= (int)sizeof(list) - 16 ? ", ..." : "");
}

static int gather(struct meeting *m, struct err *e)
{
    int world = m->place->world, code = 0;
    for (int come = 1; come < world && !code;) {
        struct sockaddr_storage from = {0};
        bool taken;
        int fd;
        if (accept_one(m, &from, &fd))
            code = name_missing(m, e);
        else {
            code = welcome(m, fd, &from, &taken, e);
            come += taken;
            if (!taken)
                close(fd);
        }
    }
    struct answer a = {.code = code};
    if (code)
        snprintf(a.text, sizeof(a.text), "%.255s", e->msg);
    double until = meet_clock() + 10;
    for (int k = 1; k < world; k++) {
        int error = m->fd[k] < 0 ? 0 : send_bytes(m->fd[k], &a, sizeof(a), until);
        if (!error && !code)
            error = send_bytes(m->fd[k], m->address, (size_t)world * sizeof(*m->address), until);
        if (error && !code)
            code = err_set(e, ERR_FAULT, "rank %d was lost while the ranks met: %s", k,
                           strerror(error));
    }
    return code;
}

/* ---- the others -------------------------------------------------------------------------------
 */

static int greet_rank(const struct meeting *m, int fd)
{
    struct greeting g = {.version = MEET_VERSION,
                         .world = m->place->world,
                         .rank = m->place->rank,
                         .port = (uint32_t)m->port};
    memcpy(g.magic, MAGIC, sizeof(g.magic));
    return send_bytes(fd, &g, sizeof(g), m->until);
}

/* Rank 0 may start later: asked again until the time is over. */
static int find_first(struct meeting *m, struct err *e)
{
    const struct launch_place *p = m->place;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char port[16];
    int error = 0, why;
    snprintf(port, sizeof(port), "%d", p->port);
    do {
        why = getaddrinfo(p->host, port, &hints, &found);
        for (struct addrinfo *a = why ? NULL : found; a; a = a->ai_next) {
            error = connect_to(a->ai_addr, a->ai_addrlen, m->until, &m->fd[0]);
            if (!error)
                break;
        }
        if (!why)
            freeaddrinfo(found);
        if (m->fd[0] >= 0)
            return 0;
        pause_a_little();
    } while (meet_clock() < m->until && (!why || why == EAI_AGAIN));
    return err_set(e, ERR_FAULT, "rank %d of %d did not reach rank 0 at %s port %d within %g s: %s",
                   p->rank, p->world, p->host, p->port, m->seconds,
                   why ? gai_strerror(why) : strerror(error));
}

static int hear_first(struct meeting *m, struct err *e)
{
    struct answer a;
    size_t n = (size_t)m->place->world * sizeof(*m->address);
    /* rank 0 answers when all have come, or its own time is over, which began at another moment */
    int error = greet_rank(m, m->fd[0]);
    if (!error)
        error = receive_bytes(m->fd[0], &a, sizeof(a), m->until + m->seconds);
    a.text[sizeof(a.text) - 1] = 0;
    if (!error && a.code)
        return err_set(e, a.code, "rank 0: %s", a.text);
    if (!error)
        error = receive_bytes(m->fd[0], m->address, n, m->until + m->seconds);
    if (error)
        return err_set(e, ERR_FAULT, "rank %d lost rank 0 (%s port %d) while the ranks met: %s",
                       m->place->rank, m->place->host, m->place->port, strerror(error));
    return 0;
}

/* A connection to every lower rank but 0, which has one; then one from every higher rank. */
static int join_others(struct meeting *m, struct err *e)
{
    int rank = m->place->rank, world = m->place->world;
    m->until = meet_clock() + m->seconds;
    for (int k = 1; k < rank; k++) {
        int error = connect_to((struct sockaddr *)&m->address[k],
                               m->address[k].ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                   : sizeof(struct sockaddr_in),
                               m->until, &m->fd[k]);
        if (!error)
            error = greet_rank(m, m->fd[k]);
        if (error)
            return err_set(e, ERR_FAULT, "rank %d did not reach rank %d: %s", rank, k,
                           strerror(error));
    }
    for (int left = world - 1 - rank; left > 0;) {
        struct sockaddr_storage from;
        struct greeting g;
        int fd, error = accept_one(m, &from, &fd);
        if (error)
            return err_set(e, ERR_FAULT, "rank %d: %d ranks did not come within %g s: %s", rank,
                           left, m->seconds, strerror(error));
        bool ours = receive_bytes(fd, &g, sizeof(g), meet_clock() + 5) == 0 &&
                    memcmp(g.magic, MAGIC, sizeof(g.magic)) == 0 && g.world == world &&
                    g.rank > rank && g.rank < world && m->fd[g.rank] < 0;
        if (ours)
            m->fd[g.rank] = fd;
        else
            close(fd);
        left -= ours;
    }
    return 0;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

int meet_all(const struct launch_place *p, double seconds, int *fd, struct err *e)
{
    struct meeting m = {.place = p,
                        .seconds = seconds,
                        .until = meet_clock() + seconds,
                        .fd = fd,
                        .listen_fd = p->listen_fd,
                        .port = p->port};
    int code = 0;
    for (int k = 0; k < p->world; k++)
        fd[k] = -1;
    if (p->world == 1)
        return 0;
    if (!p->host[0])
        return err_set(
            e, ERR_USAGE,
            "ranks on several machines: expected the address of rank 0's in MASTER_ADDR");
    if (m.listen_fd < 0)
        code = meet_listen(p->rank == 0 ? p->port : 0, &m.listen_fd, &m.port, e);
    if (code)
        return err_wrap(e, "rank %d", p->rank);
    m.address = mem_new((size_t)p->world, sizeof(*m.address));
    if (p->rank == 0) {
        code = gather(&m, e);
    } else {
        code = find_first(&m, e);
        if (!code)
            code = hear_first(&m, e);
        if (!code)
            code = join_others(&m, e);
    }
    free(m.address);
    close(m.listen_fd);
    for (int k = 0; k < p->world && code; k++)
        if (fd[k] >= 0) {
            close(fd[k]);
            fd[k] = -1;
        }
    return code;
}
