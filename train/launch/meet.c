/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/launch/links.h"

enum { NEWS = 12, ENTRY = 18, BACKLOG = 4096, HOSTS = 8 };

/* What rank 0 has to tell: its numbers, each with a sentence of its own. */
enum news {
    NEWS_ALL_THERE,
    NEWS_LATE,  /* a of b ranks did not come */
    NEWS_WORLD, /* a process of a job of `a` ranks came to one of `b` */
    NEWS_RANK,  /* rank `a` came twice, or is none of the `b` there are */
};

/* A rank's meeting. */
struct meeting {
    const struct launch_place *place;
    struct greet_self self;
    double until, seconds;
    int *fd;
    int missing; /* connections */
    int listen_fd;
    struct links *links;
    uint8_t *table; /* rank 0's news, and the addresses */
    size_t table_bytes, table_got;
    uint32_t scope;     /* of link-local addresses: this rank's */
    enum news news;     /* of rank 0; with their numbers */
    int news_a, news_b; /* known if it is not NEWS_ALL_THERE */
};

const char *meet_host(const struct launch_place *p)
{
    return p->local_world == p->world ? "127.0.0.1" : p->host;
}

/* ---- listening --------------------------------------------------------------------------------
 */

/* 0 and a socket, or errno. */
static int listen_at(const struct sockaddr_storage *a, int *ret_fd, int *ret_port)
{
    int on = 1, off = 0;
    struct sockaddr_storage got = {0};
    socklen_t n = sizeof(got);
    int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, (const struct sockaddr *)a, links_address_size(a)) || listen(fd, BACKLOG)) {
        int error = errno;
        close(fd);
        return error;
    }
    getsockname(fd, (struct sockaddr *)&got, &n);
    *ret_port = ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
                                                : ((struct sockaddr_in *)&got)->sin_port);
    *ret_fd = fd;
    return 0;
}

static int listen_anywhere(int port, int *ret_fd, int *ret_port)
{
    struct sockaddr_storage a = links_socket_address(&in6addr_any, port, 0);
    int error = listen_at(&a, ret_fd, ret_port);
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL)
        return error;
    a = (struct sockaddr_storage){.ss_family = AF_INET}; /* no IPv6 here */
    ((struct sockaddr_in *)&a)->sin_port = htons((uint16_t)port);
    return listen_at(&a, ret_fd, ret_port);
}

/* The addresses of a name; their number, 0 with a reason. */
static int resolve(const char *host, int port, struct sockaddr_storage *ret, int most,
                   const char **ret_why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char text[16];
    int n = 0;
    snprintf(text, sizeof(text), "%d", port);
    int why = getaddrinfo(host, text, &hints, &found);
    *ret_why = why ? gai_strerror(why) : "";
    for (struct addrinfo *a = why ? NULL : found; a && n < most; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
            memset(&ret[n], 0, sizeof(ret[n]));
            memcpy(&ret[n++], a->ai_addr, a->ai_addrlen);
        }
    if (!why)
        freeaddrinfo(found);
    return n;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    struct in6_addr six = links_address(a);
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

/* A number that is one, or the name of it: what a user has to write to be on one machine. */
static bool says_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    return !strcmp(host, "localhost") || inet_pton(AF_INET, host, &four) == 1 ||
           inet_pton(AF_INET6, host, &six) == 1;
}

int meet_listen(const char *address, int port, int *ret_fd, int *ret_port, struct err *e)
{
    struct sockaddr_storage at[HOSTS];
    const char *why;
    int n = address ? resolve(address, port, at, HOSTS, &why) : 0, error = EADDRNOTAVAIL;
    for (int i = 0; i < n && error == EADDRNOTAVAIL; i++)
        if (!is_loopback(&at[i]) || says_loopback(address))
            error = listen_at(&at[i], ret_fd, ret_port);
    if (error == EADDRNOTAVAIL) { /* or the name of this machine is in its /etc/hosts alone */
        error = listen_anywhere(port, ret_fd, ret_port);
        if (!error && address)
            log_warn("no interface of this machine has the address %s%s%s%s: rank 0 listens on all "
                     "of them",
                     address, n ? "" : " (", n ? "" : why, n ? "" : ")");
    }
    if (!error)
        return 0;
    err_sys(e, error, "port %d of %s cannot be listened at", port,
            address ? address : "this machine");
    return error == EADDRINUSE
               ? err_hint(e, "another job may have it: give each job its own --master-port")
           : e ? e->code
               : ERR_IO;
}

/* ---- what rank 0 tells ------------------------------------------------------------------------
 */

/* The sentence of what has ended a meeting, as every rank of it says it. */
static int say_news(const struct meeting *m, const char *who, struct err *e)
{
    int a = m->news_a, b = m->news_b;
    if (m->news == NEWS_WORLD) {
        err_set(e, ERR_USAGE, "%sa process of a job of %d ranks came to one of %d ranks", who, a,
                b);
        return err_hint(e, "start every machine with the same --nnodes and --nproc-per-node, or "
                           "the same WORLD_SIZE");
    }
    if (m->news == NEWS_RANK) {
        err_set(e, ERR_USAGE, "%stwo processes say that they are rank %d of %d", who, a, b);
        return err_hint(e, "give each machine its own --node-rank, and each process its own RANK");
    }
    return err_set(e, ERR_FAULT, "%s%d of %d ranks did not come in time", who, a, b);
}

static int end_with(struct meeting *m, enum news news, int a, int b, struct err *e)
{
    m->news = news;
    m->news_a = a;
    m->news_b = b;
    return say_news(m, "", e);
}

static int name_missing(struct meeting *m, struct err *e)
{
    char list[128];
    int missing = 0, n = 0;
    for (int k = 1; k < m->place->world; k++)
        if (m->fd[k] < 0) {
            missing++;
            if (n < (int)sizeof(list) - 16)
                n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%d", n ? ", " : "", k);
        }
    end_with(m, NEWS_LATE, missing, m->place->world, e);
    return err_set(e, ERR_FAULT, "%d of %d ranks did not come to port %d within %g s: %s%s",
                   missing, m->place->world, m->self.port, m->seconds, list,
                   n >= (int)sizeof(list) - 16 ? ", ..." : "");
}

/* Within ten seconds: the others are known, and wait for it. */
static int send_all(int fd, const uint8_t *at, size_t n)
{
    double until = links_clock() + 10;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = 1}, sizeof(struct timeval));
    while (n) {
        ssize_t put = send(fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && (errno == EINTR || errno == EAGAIN) && links_clock() < until)
            continue;
        if (put < 0)
            return errno == EAGAIN ? ETIMEDOUT : errno;
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

static int tell_all(struct meeting *m, int code, struct err *e)
{
    uint8_t *table = m->table;
    store_u32(table, (uint32_t)m->news);
    store_u32(table + 4, (uint32_t)m->news_a);
    store_u32(table + 8, (uint32_t)m->news_b);
    for (int k = 1; k < m->place->world; k++) {
        int error = m->fd[k] < 0 ? 0 : send_all(m->fd[k], table, code ? NEWS : m->table_bytes);
        if (error && !code)
            code = err_set(e, ERR_FAULT, "rank %d was lost while the ranks met: %s", k,
                           strerror(error));
    }
    return code;
}

/* ---- rank 0 -----------------------------------------------------------------------------------
 */

/* It has the token: what does not fit is a mistake of this job's own user. */
static int welcome(struct meeting *m, const struct link_event *v, struct err *e)
{
    int world = m->place->world;
    bool fits = v->world == world && v->rank > 0 && v->rank < world && m->fd[v->rank] < 0;
    if (fits) {
        uint8_t *entry = m->table + NEWS + (size_t)v->rank * ENTRY;
        memcpy(entry, &v->from, 16);
        store_u16(entry + 16, (uint16_t)v->port);
        m->fd[v->rank] = v->fd;
        m->missing--;
        return 0;
    }
    enum news news = v->world != world ? NEWS_WORLD : NEWS_RANK;
    int code = end_with(m, news, v->world != world ? v->world : v->rank, world, e);
    uint8_t told[NEWS];
    store_u32(told, (uint32_t)news);
    store_u32(told + 4, (uint32_t)m->news_a);
    store_u32(told + 8, (uint32_t)m->news_b);
    send_all(v->fd, told, NEWS);
    close(v->fd);
    return code;
}

static int gather(struct meeting *m, struct err *e)
{
    int code = 0;
    while (m->missing && !code) {
        struct link_event v;
        code = links_next(m->links, m->until, &v, e);
        if (!code && v.kind == LINK_MADE)
            code = welcome(m, &v, e);
        else if (!code && v.kind == LINK_NONE)
            code = name_missing(m, e);
    }
    return tell_all(m, code, e);
}

/* ---- the others -------------------------------------------------------------------------------
 */

/* What has come of rank 0's news and addresses. *ret_all: all of it. */
static int hear_table(struct meeting *m, bool *ret_all, struct err *e)
{
    *ret_all = false;
    while (m->table_got < m->table_bytes) {
        ssize_t n = recv(m->fd[0], m->table + m->table_got, m->table_bytes - m->table_got, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            return err_set(e, ERR_FAULT, "rank %d lost rank 0 (%s port %d) while the ranks met: %s",
                           m->place->rank, meet_host(m->place), m->place->port,
                           n < 0 ? strerror(errno) : "its process has ended");
        m->table_got += (size_t)n;
        m->news = m->table_got >= NEWS ? (enum news)load_u32(m->table) : NEWS_ALL_THERE;
        if (m->news != NEWS_ALL_THERE) {
            m->news_a = load_i32(m->table + 4);
            m->news_b = load_i32(m->table + 8);
            return say_news(m, "rank 0: ", e);
        }
    }
    *ret_all = true;
    return 0;
}

/* A connection to every lower rank but 0, which has one; every higher rank makes one. */
static void call_lower(struct meeting *m)
{
    for (int k = 1; k < m->place->rank; k++) {
        struct in6_addr a;
        const uint8_t *entry = m->table + NEWS + (size_t)k * ENTRY;
        memcpy(&a, entry, sizeof(a));
        struct sockaddr_storage at = links_socket_address(&a, load_u16(entry + 16), m->scope);
        links_call(m->links, k, &at, 1);
    }
    links_watch(m->links, -1);
    m->until = links_clock() + m->seconds;
}

/* The address by which rank 0 has been reached is the one to listen at. 0 or errno. */
static int listen_there(void *arg, int fd)
{
    struct meeting *m = arg;
    struct sockaddr_storage own = {0};
    socklen_t n = sizeof(own);
    if (m->fd[0] >= 0) /* a call of another rank */
        return 0;
    if (getsockname(fd, (struct sockaddr *)&own, &n))
        return errno;
    struct in6_addr six = links_address(&own);
    if (own.ss_family == AF_INET6)
        m->scope = ((struct sockaddr_in6 *)&own)->sin6_scope_id;
    struct sockaddr_storage at = links_socket_address(&six, 0, m->scope);
    if (m->listen_fd >= 0)
        close(m->listen_fd);
    m->listen_fd = -1;
    int error = listen_at(&at, &m->listen_fd, &m->self.port);
    links_listen(m->links, m->listen_fd);
    return error;
}

/* Its name may not be known yet. */
static int find_first(struct meeting *m, struct err *e)
{
    const struct launch_place *p = m->place;
    struct sockaddr_storage at[HOSTS];
    const char *host = meet_host(p), *why;
    int n;
    while (!(n = resolve(host, p->port, at, HOSTS, &why)) && links_clock() < m->until)
        usleep(100000);
    if (!n)
        return err_set(e, ERR_FAULT, "rank %d of %d did not find rank 0 at %s within %g s: %s",
                       p->rank, p->world, host, m->seconds, why);
    links_call(m->links, 0, at, n);
    return 0;
}

static int refused(const struct meeting *m, const struct link_event *v, struct err *e)
{
    const struct launch_place *p = m->place;
    if (v->rank)
        return err_set(e, ERR_USAGE, "rank %d called rank %d and reached another process: %s",
                       p->rank, v->rank, v->why);
    err_set(e, ERR_USAGE, "rank %d reached another process than its rank 0 at %s port %d: %s",
            p->rank, meet_host(p), p->port, v->why);
    return err_hint(e, "give each job its own --master-port (MASTER_PORT), and all of its "
                       "processes the same job token");
}

static void take_link(struct meeting *m, const struct link_event *v)
{
    int world = m->place->world;
    bool called = !v->accepted && m->fd[v->rank] < 0;
    bool came = v->accepted && v->world == world && v->rank > m->place->rank && v->rank < world &&
                m->fd[v->rank] < 0;
    if (!called && !came) {
        log_warn("rank %d of %d came to rank %d, which does not expect it", v->rank, v->world,
                 m->place->rank);
        close(v->fd);
        return;
    }
    m->fd[v->rank] = v->fd;
    m->missing--;
    if (v->rank == 0) { /* rank 0 answers when its own time is over, which began elsewhere */
        m->until += m->seconds;
        links_watch(m->links, v->fd);
    }
}

static int late(const struct meeting *m, struct err *e)
{
    const struct launch_place *p = m->place;
    char why[96];
    if (m->fd[0] < 0) {
        links_reason(m->links, 0, why, sizeof(why));
        return err_set(e, ERR_FAULT,
                       "rank %d of %d did not reach rank 0 at %s port %d within %g s: %s", p->rank,
                       p->world, meet_host(p), p->port, m->seconds, why);
    }
    if (m->table_got < m->table_bytes)
        return err_set(e, ERR_FAULT, "rank %d heard nothing more of rank 0 within %g s", p->rank,
                       2 * m->seconds);
    for (int k = 1; k < p->rank; k++)
        if (m->fd[k] < 0) {
            links_reason(m->links, k, why, sizeof(why));
            return err_set(e, ERR_FAULT, "rank %d did not reach rank %d within %g s: %s", p->rank,
                           k, m->seconds, why);
        }
    return err_set(e, ERR_FAULT, "rank %d: %d ranks did not come within %g s", p->rank, m->missing,
                   m->seconds);
}

static int come(struct meeting *m, struct err *e)
{
    int code = find_first(m, e);
    bool has_table = false;
    while (!code && (m->missing || !has_table)) {
        struct link_event v;
        code = links_next(m->links, m->until, &v, e);
        if (code)
            break;
        if (v.kind == LINK_NONE)
            code = late(m, e);
        else if (v.kind == LINK_REFUSED)
            code = refused(m, &v, e);
        else if (v.kind == LINK_MADE)
            take_link(m, &v);
        else
            code = hear_table(m, &has_table, e);
        if (!code && v.kind == LINK_READABLE && has_table)
            call_lower(m);
    }
    return code;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static int open_door(struct meeting *m, struct err *e)
{
    const struct launch_place *p = m->place;
    if (p->rank)
        return 0;
    m->self.port = p->port;
    m->listen_fd = p->listen_fd;
    if (m->listen_fd < 0) {
        int code = meet_listen(meet_host(p), p->port, &m->listen_fd, &m->self.port, e);
        if (code)
            return err_wrap(e, "rank 0");
    }
    fcntl(m->listen_fd, F_SETFL, fcntl(m->listen_fd, F_GETFL) | O_NONBLOCK);
    links_listen(m->links, m->listen_fd);
    return 0;
}

int meet_all(const struct launch_place *p, const struct job_token *token, double seconds, int *fd,
             struct err *e)
{
    struct meeting m = {.place = p,
                        .self = {.rank = p->rank, .world = p->world, .token = token},
                        .seconds = seconds,
                        .until = links_clock() + seconds,
                        .fd = fd,
                        .missing = p->world - 1,
                        .listen_fd = -1};
    for (int k = 0; k < p->world; k++)
        fd[k] = -1;
    if (p->world == 1)
        return 0;
    if (!meet_host(p)[0])
        return err_set(
            e, ERR_USAGE,
            "ranks on several machines: expected the address of rank 0's in MASTER_ADDR");
    m.table_bytes = NEWS + (size_t)p->world * ENTRY;
    m.table = mem_new(m.table_bytes, 1);
    m.links = links_open(&m.self, p->rank ? listen_there : NULL, &m);
    int code = open_door(&m, e);
    if (!code)
        code = p->rank ? come(&m, e) : gather(&m, e);
    links_close(m.links);
    free(m.table);
    if (m.listen_fd >= 0)
        close(m.listen_fd);
    for (int k = 0; k < p->world && code; k++)
        if (fd[k] >= 0) {
            close(fd[k]);
            fd[k] = -1;
        }
    return code;
}
