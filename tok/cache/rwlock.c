/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/rwlock.h"

#include <sched.h>

void gate_init(struct gate *g)
{
    *g = (struct gate){0};
    pthread_mutex_init(&g->lock, NULL);
}

void gate_finish(struct gate *g)
{
    pthread_mutex_destroy(&g->lock);
}

/* Under the lock: nobody else is inside then, nor comes in without the lock before the next
 * gate_open. */
static void shut(struct gate *g)
{
    atomic_store(&g->wanted, true);
    for (struct gate_guest *x = g->first; x; x = x->next)
        while (atomic_load(&x->inside))
            sched_yield();
}

bool gate_enter_wanted(struct gate *g, struct gate_guest *x)
{
    gate_leave(x);
    pthread_mutex_lock(&g->lock);
    bool alone = atomic_load(&g->wanted);
    if (alone) {
        shut(g);
        return true;
    }
    atomic_store(&x->inside, true);
    pthread_mutex_unlock(&g->lock);
    return false;
}

void gate_open(struct gate *g, struct gate_guest *x)
{
    atomic_store(&x->inside, true);
    atomic_store(&g->wanted, false);
    pthread_mutex_unlock(&g->lock);
}

void gate_join(struct gate *g, struct gate_guest *x)
{
    *x = (struct gate_guest){0};
    pthread_mutex_lock(&g->lock);
    shut(g);
    x->next = g->first;
    g->first = x;
    g->guests++;
    pthread_mutex_unlock(&g->lock);
}

void gate_part(struct gate *g, struct gate_guest *x)
{
    pthread_mutex_lock(&g->lock);
    shut(g);
    struct gate_guest **at = &g->first;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    g->guests--;
    pthread_mutex_unlock(&g->lock);
}
