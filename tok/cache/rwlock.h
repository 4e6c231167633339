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

struct gate_guest {
    _Alignas(64) _Atomic bool inside;
    struct gate_guest *next;
};

struct gate {
    _Atomic bool wanted; /* who enters goes through the lock, and the first one alone */
    unsigned guests;     /* changes while none is inside */
    struct gate_guest *first;
    pthread_mutex_t lock;
};

void gate_init(struct gate *g);
void gate_finish(struct gate *g); /* all guests have parted */

void gate_join(struct gate *g, struct gate_guest *x);
void gate_part(struct gate *g, struct gate_guest *x);

bool gate_enter_wanted(struct gate *g, struct gate_guest *x);

/* True: it is alone, as somebody wanted, and lets the others in by gate_open. */
static inline bool gate_enter(struct gate *g, struct gate_guest *x)
{
    atomic_store(&x->inside, true); /* before it looks, as who wants to be alone does */
    return atomic_load(&g->wanted) && gate_enter_wanted(g, x);
}

void gate_open(struct gate *g, struct gate_guest *x);

static inline void gate_leave(struct gate_guest *x)
{
    atomic_store_explicit(&x->inside, false, memory_order_release);
}

/* The next who enters is to be alone. */
static inline void gate_want(struct gate *g)
{
    atomic_store_explicit(&g->wanted, true, memory_order_relaxed);
}

#endif
