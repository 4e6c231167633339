/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_QUEUE_H
#define TRAIN_COMM_QUEUE_H

/*
 * The issued and unfinished calls of a rank, shared by the asynchronous backends. The rank's thread
 * issues and waits here, a comm thread carries the calls out. Everything is guarded by the hub's
 * lock, except the data of a flight's tensors.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "train/comm/comm.h"

/* How a backend behaves; zeroed: the usual. */
struct comm_options {
    double timeout;   /* seconds that a call waits for a rank to join; 0: 600 */
    int64_t delay_us; /* tests: the comm thread sleeps up to this before it opens one call in 4 */
    uint64_t seed;    /* of these delays */
    size_t early;     /* sockets: bytes of messages kept that nobody has asked for; 0: 256 MiB */
    size_t message;   /* tests: most bytes of an MPI message; 0: 1 MiB in reductions, else 256 */
};

/* What one thread waits for, so that nobody else is woken with it. */
struct comm_bell {
    pthread_cond_t rung; /* by the monotonic clock */
    struct comm_bell *next;
};

/* Lock and fault that several ranks (threads) or one (MPI) use. */
struct comm_hub {
    pthread_mutex_t lock;
    struct comm_bell *bells; /* all of them: a fault rings them */
    int fault;
    int64_t step; /* that the fault's sentence names, 0 if none */
    char text[256];
    bool heard; /* the fault: from another process */
};

enum flight_state { FLIGHT_DONE, FLIGHT_ISSUED, FLIGHT_OPEN };

struct comm_flight {
    struct comm_call call;
    enum flight_state state;
    uint64_t number;             /* its ticket */
    uint64_t order;              /* among the collectives of its group */
    uint64_t order_to, order_by; /* COMM_EXCHANGE: among those to and from these ranks */
    double since;                /* seconds on the monotonic clock: when it was opened */
    int left;                    /* threads, COMM_EXCHANGE: messages not yet copied */
    bool taken;                  /* threads, COMM_EXCHANGE: the one to this rank is copied */
    int busy;                    /* threads at work in its tensors; a wait lasts that long */
    int missing;                 /* the rank that it waits for; COMM_NOBODY: not known */
};

struct comm_queue {
    struct comm_hub *hub;
    struct comm_bell *work; /* of the comm thread: a call is issued */
    struct comm_bell done;  /* of the rank's thread: a call is done */
    struct mesh mesh;
    int rank;
    struct comm_flight flight[COMM_IN_FLIGHT]; /* at number % COMM_IN_FLIGHT */
    uint64_t issued, opened;                   /* last tickets */
    uint64_t finished;                         /* all calls up to this ticket are done */
    uint64_t order[GROUP_COUNT];
    uint64_t *to, *by; /* [GROUP_COUNT * world] messages to and from each rank of each group */
    bool closing;
    atomic_uint_fast64_t moved; /* how often a call went on */
};

void comm_hub_init(struct comm_hub *h);
void comm_hub_finish(struct comm_hub *h);
/* Keeps the first fault and rings all bells. With the lock held. comm_hub_tell: a fault whose
 * sentence names a step. */
void comm_hub_fail(struct comm_hub *h, int code, const char *sentence);
void comm_hub_tell(struct comm_hub *h, int code, int64_t step, const char *sentence);
/* Waits until the bell is rung, at most `seconds` if that is positive. With the lock held. */
void comm_hub_wait(struct comm_hub *h, struct comm_bell *b, double seconds);

/* Without the lock, like comm_bell_finish. */
void comm_bell_init(struct comm_bell *b, struct comm_hub *h);
void comm_bell_finish(struct comm_bell *b, struct comm_hub *h);
/* After a change under the lock; cheaper without it, for the thread that wakes takes it. */
void comm_bell_ring(struct comm_bell *b);

/* `work` must exist as long as the queue. Without the lock, like comm_queue_finish. */
void comm_queue_init(struct comm_queue *q, struct comm_hub *h, struct comm_bell *work,
                     struct mesh m, int rank);
void comm_queue_finish(struct comm_queue *q);

/* Entries of the table whose c->state begins with a struct comm_queue. */
struct comm_ticket comm_queue_issue(struct comm *c, const struct comm_call *call);
void comm_queue_wait(struct comm *c, struct comm_ticket t);
void comm_queue_abort(struct comm *c, const struct err *why);
void comm_queue_interrupt(const struct comm *c, const struct err *why);
void comm_queue_look(const struct comm *c, struct comm_state *ret);

/*
 * The oldest issued call, now open: numbered within its group. NULL: there is none. With the lock
 * held, which is left during the delay of a test.
 */
struct comm_flight *comm_queue_open(struct comm_queue *q, const struct comm_options *o);
/* Whether anything of this rank's calls is still to come; after a fault: is being worked on. */
bool comm_queue_busy(const struct comm_queue *q);
/* Of a ticket; those of (q->finished, q->opened] alone can be open. */
struct comm_flight *comm_queue_flight(struct comm_queue *q, uint64_t number);
/* With the lock held; the caller rings q->done. */
void comm_flight_done(struct comm_queue *q, struct comm_flight *f);

double comm_clock(void);

/* "after 30 s in all-reduce 3 of the data-parallel group, rank 1 waits for rank 5" */
void comm_late(const struct comm_queue *q, const struct comm_flight *f, int missing,
               const struct comm_options *o, char *sentence, size_t size);
double comm_timeout(const struct comm_options *o);

#endif
