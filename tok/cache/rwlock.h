/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_RWLOCK_H
#define TOK_CACHE_RWLOCK_H

/*
 * A readers-writer lock whose read side scales: each thread has a `struct rwlock_reader` of its
 * own, and to enter or leave writes only to that, without a mutex, unless exclusive access was
 * requested. Then the next thread to enter becomes the writer: it waits until all readers have
 * left, and new readers block until it calls rwlock_end_exclusive and is a reader again. While
 * inside, a thread must not wait for one that is about to enter, nor register or unregister.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct rwlock_reader {
    _Alignas(64) _Atomic bool inside;
    struct rwlock_reader *next;
};

struct rwlock {
    _Atomic bool wanted; /* exclusive access was requested: entering takes the mutex */
    unsigned guests;     /* registered readers; changes only while none is inside */
    struct rwlock_reader *first;
    pthread_mutex_t lock;
};

void rwlock_init(struct rwlock *g);
void rwlock_finish(struct rwlock *g); /* all readers are unregistered */

void rwlock_register(struct rwlock *g, struct rwlock_reader *x);
void rwlock_unregister(struct rwlock *g, struct rwlock_reader *x);

bool rwlock_enter_contended(struct rwlock *g, struct rwlock_reader *x);

/* True: the caller holds the lock exclusively and must call rwlock_end_exclusive. */
static inline bool rwlock_enter(struct rwlock *g, struct rwlock_reader *x)
{
    atomic_store(&x->inside, true); /* before it reads `wanted`; the writer does the reverse */
    return atomic_load(&g->wanted) && rwlock_enter_contended(g, x);
}

void rwlock_end_exclusive(struct rwlock *g, struct rwlock_reader *x);

static inline void rwlock_leave(struct rwlock_reader *x)
{
    atomic_store_explicit(&x->inside, false, memory_order_release);
}

/* The next thread to enter does so exclusively. */
static inline void rwlock_request_exclusive(struct rwlock *g)
{
    atomic_store_explicit(&g->wanted, true, memory_order_relaxed);
}

#endif
