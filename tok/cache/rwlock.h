/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_RWLOCK_H
#define TOK_CACHE_RWLOCK_H

/*
 * Many threads inside at a time, or one of them alone. Each has a guest of its own; to enter and to
 * leave writes nothing that others write, and takes no lock while nobody wants to be alone. Who
 * does gets in when all others have left, and those who come wait. Nobody may wait inside for
 * someone who is to enter, nor join or part there.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct rwlock_reader {
    _Alignas(64) _Atomic bool inside;
    struct rwlock_reader *next;
};

struct rwlock {
    _Atomic bool wanted; /* who enters goes through the lock, and the first one alone */
    unsigned guests;     /* changes while none is inside */
    struct rwlock_reader *first;
    pthread_mutex_t lock;
};

void rwlock_init(struct rwlock *g);
void rwlock_finish(struct rwlock *g); /* all guests have parted */

void rwlock_register(struct rwlock *g, struct rwlock_reader *x);
void rwlock_unregister(struct rwlock *g, struct rwlock_reader *x);

bool rwlock_enter_contended(struct rwlock *g, struct rwlock_reader *x);

/* True: it is alone, as somebody wanted, and lets the others in by rwlock_end_exclusive. */
static inline bool rwlock_enter(struct rwlock *g, struct rwlock_reader *x)
{
    atomic_store(&x->inside, true); /* before it looks, as who wants to be alone does */
    return atomic_load(&g->wanted) && rwlock_enter_contended(g, x);
}

void rwlock_end_exclusive(struct rwlock *g, struct rwlock_reader *x);

static inline void rwlock_leave(struct rwlock_reader *x)
{
    atomic_store_explicit(&x->inside, false, memory_order_release);
}

/* The next who enters is to be alone. */
static inline void rwlock_request_exclusive(struct rwlock *g)
{
    atomic_store_explicit(&g->wanted, true, memory_order_relaxed);
}

#endif
