/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/map_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/core/mem.h"

/*
 * The pooled maps that are mapped now. What is mapped while less than 7/8 of the limit is used
 * stays for good, the rest is evicted in FIFO order: blends use their datasets in turn, where the
 * oldest is the next one needed, and first of all those that they take most of.
 */
struct map_pool {
    pthread_mutex_t lock; /* protects all this, and mapping and unmapping */
    struct pooled_maps **stay;
    size_t nstay;
    struct pooled_maps **ring; /* the oldest at `first` */
    size_t room, first, n;
    uint64_t most, maps;
};

void pooled_maps_init(struct pooled_maps *h, uint32_t maps, void *self,
                      int (*touch)(void *, struct err *), void (*leave)(void *))
{
    *h = (struct pooled_maps){.maps = maps, .self = self, .touch = touch, .leave = leave};
    atomic_init(&h->users, -1);
}

struct map_pool *map_pool_create(uint64_t most, size_t n)
{
    struct map_pool *p = mem_new(1, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    p->stay = mem_new(n ? n : 1, sizeof(struct pooled_maps *));
    p->ring = mem_new(n ? n : 1, sizeof(struct pooled_maps *));
    p->room = n;
    p->most = most;
    return p;
}

static struct pooled_maps *map_pool_pop(struct map_pool *p)
{
    struct pooled_maps *h = p->ring[p->first];
    p->first = (p->first + 1) % p->room;
    p->n--;
    return h;
}

static void map_pool_push(struct map_pool *p, struct pooled_maps *h)
{
    BUG_ON(p->n == p->room, "more than %zu sets of maps", p->room);
    p->ring[(p->first + p->n++) % p->room] = h;
}

static void leave(struct map_pool *p, struct pooled_maps *h)
{
    h->leave(h->self);
    p->maps -= h->maps;
}

void map_pool_destroy(struct map_pool *p)
{
    if (!p)
        return;
    while (p->n)
        leave(p, map_pool_pop(p));
    while (p->nstay)
        leave(p, p->stay[--p->nstay]);
    pthread_mutex_destroy(&p->lock);
    free(p->ring);
    free(p->stay);
    free(p);
}

static bool leave_unused(struct map_pool *p, struct pooled_maps *h)
{
    int unused = 0;
    bool goes = atomic_compare_exchange_strong(&h->users, &unused, -1);
    if (goes)
        leave(p, h);
    return goes;
}

/* Evicts an unused one, the oldest of the ring first; false if all are in use. */
static bool give_up(struct map_pool *p)
{
    for (size_t k = p->n; k; k--) {
        struct pooled_maps *h = map_pool_pop(p);
        if (leave_unused(p, h))
            return true;
        map_pool_push(p, h);
    }
    for (size_t k = p->nstay; k; k--) {
        if (leave_unused(p, p->stay[k - 1])) {
            p->stay[k - 1] = p->stay[--p->nstay];
            return true;
        }
    }
    return false;
}

static int touch(struct map_pool *p, struct pooled_maps *h, struct err *e)
{
    while (p->maps + h->maps > p->most && give_up(p))
        ;
    int code = h->touch(h->self, e);
    while (code == ERR_RESOURCE && give_up(p)) /* the kernel allows fewer maps than expected */
        code = h->touch(h->self, e);
    if (code) {
        h->leave(h->self);
        return code;
    }
    p->maps += h->maps;
    if (p->maps <= p->most / 8 * 7)
        p->stay[p->nstay++] = h;
    else
        map_pool_push(p, h);
    atomic_store_explicit(&h->users, 1, memory_order_release);
    return 0;
}

int map_pool_acquire(struct map_pool *p, struct pooled_maps *h, struct err *e)
{
    int code = 0, users = atomic_load_explicit(&h->users, memory_order_relaxed);
    while (users >= 0)
        if (atomic_compare_exchange_weak_explicit(&h->users, &users, users + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return 0;
    pthread_mutex_lock(&p->lock);
    if (atomic_load_explicit(&h->users, memory_order_acquire) >= 0)
        atomic_fetch_add_explicit(&h->users, 1, memory_order_acquire);
    else
        code = touch(p, h, e);
    pthread_mutex_unlock(&p->lock);
    return code;
}

void map_pool_release(struct pooled_maps *h)
{
    atomic_fetch_sub_explicit(&h->users, 1, memory_order_release);
}
