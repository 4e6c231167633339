/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_LINKS_H
#define TRAIN_LAUNCH_LINKS_H

/*
 * Connections that are being made, out and in, each until both sides have proven themselves
 * (greet.h). One thread, one poll: nobody waits for a connection that is silent. Those that come in
 * have LINKS_SECONDS each, and there are LINKS_MOST at a time: one more, and the oldest that has
 * said nothing of this job is dropped. Strangers are dropped with a warning, of which there are
 * few. Those that go out are tried again until they succeed.
 */

#include <netinet/in.h>
#include <sys/socket.h>

#include "train/launch/greet.h"

enum { LINKS_MOST = 256, LINKS_SECONDS = 5 };

struct links;

enum link_kind {
    LINK_NONE,     /* nothing within the time */
    LINK_MADE,     /* a connection: fd is the caller's now, and does not block */
    LINK_REFUSED,  /* by the rank that was called: `why`; it is not called again */
    LINK_READABLE, /* what links_watch watches */
};

struct link_event {
    enum link_kind kind;
    int fd;
    bool accepted;         /* it came in */
    int rank, world, port; /* the other's; what it says itself if `accepted` */
    struct in6_addr from;  /* the other's, IPv4 as ::ffff:a.b.c.d */
    enum greet_verdict verdict;
    char why[160];
};

/* `self` stays the caller's, which may set self->port in `connected`: that is called, if it is not
 * NULL, for each connection that goes out, before its greeting. */
struct links *links_open(const struct greet_self *self, int (*connected)(void *arg, int fd),
                         void *arg);
/* Closes what has not been handed out; NULL is fine. Says how many strangers there were if not all
 * of them have been named. */
void links_close(struct links *l);

/* Takes connections from a socket that listens and does not block; -1: none. */
void links_listen(struct links *l, int listen_fd);

/* Connects to a rank, by one of n addresses. */
void links_call(struct links *l, int rank, const struct sockaddr_storage *at, int n);

/* Wakes links_next when the socket can be read; -1: none. */
void links_watch(struct links *l, int fd);

/* The next event before the monotonic clock reads `until` seconds. ERR_RESOURCE: no sockets. */
int links_next(struct links *l, double until, struct link_event *ret, struct err *e);

/* Why a rank that is being called has not been reached: a part of a sentence. */
void links_reason(const struct links *l, int rank, char *ret, size_t size);

double links_clock(void);

/* Between socket addresses and those of events, IPv4 as ::ffff:a.b.c.d. */
struct in6_addr links_address(const struct sockaddr_storage *a);
struct sockaddr_storage links_socket_address(const struct in6_addr *a, int port, uint32_t scope);
socklen_t links_address_size(const struct sockaddr_storage *a);

#endif
