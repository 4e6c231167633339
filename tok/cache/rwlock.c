/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/rwlock.h"

#include <sched.h>

void rwlock_init(struct rwlock *g)
{
    *g = (struct rwlock){0};
    pthread_mutex_init(&g->lock, NULL);
}

void rwlock_finish(struct rwlock *g)
{
    pthread_mutex_destroy(&g->lock);
}

/* Takes exclusive access, with the mutex held: waits until no thread is inside; others then block
 * on the mutex until rwlock_end_exclusive. */
static void shut(struct rwlock *g)
{
    atomic_store(&g->wanted, true);
    for (struct rwlock_reader *x = g->first; x; x = x->next)
        while (atomic_load(&x->inside))
            sched_yield();
}

bool rwlock_enter_contended(struct rwlock *g, struct rwlock_reader *x)
{
    rwlock_leave(x);
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

void rwlock_end_exclusive(struct rwlock *g, struct rwlock_reader *x)
{
    atomic_store(&x->inside, true);
    atomic_store(&g->wanted, false);
    pthread_mutex_unlock(&g->lock);
}

void rwlock_register(struct rwlock *g, struct rwlock_reader *x)
{
    *x = (struct rwlock_reader){0};
    pthread_mutex_lock(&g->lock);
    shut(g);
    x->next = g->first;
    g->first = x;
    g->guests++;
    pthread_mutex_unlock(&g->lock);
}

void rwlock_unregister(struct rwlock *g, struct rwlock_reader *x)
{
    pthread_mutex_lock(&g->lock);
    shut(g);
    struct rwlock_reader **at = &g->first;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    g->guests--;
    pthread_mutex_unlock(&g->lock);
}
