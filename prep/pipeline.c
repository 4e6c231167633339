/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"

enum { TICK_NS = 100 * 1000 * 1000 };

/*
 * The items at hand form a ring; four counters only ever grow: `filled` (by the reader), `taken`
 * (by the workers), `followed`, `drained` (by the caller). Items between taken and filled wait for
 * a worker; those between followed and taken are at work or ready; those between drained and
 * followed are done. Of the free items the one drained last is filled next, because its memory is
 * still in somebody's cache.
 */
struct line {
    const struct pipeline *p;
    pthread_mutex_t lock;
    pthread_cond_t room, work, follow, done;
    uint64_t filled, taken, followed, drained;
    uint64_t bytes; /* in flight */
    void **item;    /* each place of the ring */
    void **free;    /* a stack of nfree */
    size_t nfree;
    uint64_t *size; /* of each item in the ring */
    bool *ready;    /* each item: a worker is through with it */
    bool ended, stopped;
};

struct worker {
    struct line *l;
    int index;
    pthread_t thread;
};

/* ---- the reader ----------------------------------------------------------------------------- */

/* So many items may wait for a worker: what is ahead of them has no use but takes up caches. */
static uint64_t ahead(const struct line *l)
{
    return l->p->nitems / 4 + 1;
}

/* Waits until one more item may be filled: a free place, and bytes left (or nothing in flight). */
static bool wait_for_room(struct line *l)
{
    const struct pipeline *p = l->p;
    pthread_mutex_lock(&l->lock);
    while (!l->stopped && (l->filled - l->drained == p->nitems || l->filled - l->taken > ahead(l) ||
                           (l->filled != l->drained && l->bytes >= p->budget)))
        pthread_cond_wait(&l->room, &l->lock);
    bool go = !l->stopped;
    if (go)
        l->item[l->filled % p->nitems] = l->free[--l->nfree];
    pthread_mutex_unlock(&l->lock);
    return go;
}

static void publish(struct line *l, bool more, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    if (more) {
        size_t i = l->filled % l->p->nitems;
        l->size[i] = bytes;
        l->ready[i] = false;
        l->bytes += bytes;
        l->filled++;
        pthread_cond_signal(&l->work);
    } else {
        l->ended = true;
        pthread_cond_broadcast(&l->work);
        pthread_cond_signal(&l->follow);
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
}

static void *reader_main(void *arg)
{
    struct line *l = arg;
    const struct pipeline *p = l->p;
    bool more = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    while (more && wait_for_room(l)) {
        uint64_t bytes = 0;
        more = p->fill(p->arg, l->item[l->filled % p->nitems], &bytes);
        publish(l, more, bytes);
    }
    return NULL;
}

/* ---- the workers ---------------------------------------------------------------------------- */

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct line *l = w->l;
    const struct pipeline *p = l->p;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stopped && !l->ended && l->taken == l->filled)
            pthread_cond_wait(&l->work, &l->lock);
        if (l->stopped || l->taken == l->filled)
            break;
        size_t i = l->taken++ % p->nitems;
        if (l->filled - l->taken == ahead(l) / 2)
            pthread_cond_signal(&l->room);
        pthread_mutex_unlock(&l->lock);
        p->work(p->arg, w->index, l->item[i]);
        pthread_mutex_lock(&l->lock);
        l->ready[i] = true;
        if (i == l->followed % p->nitems)
            pthread_cond_signal(&l->follow);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- who follows ---------------------------------------------------------------------------- */

static void *follower_main(void *arg)
{
    struct line *l = arg;
    const struct pipeline *p = l->p;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        size_t i = l->followed % p->nitems;
        bool any = l->followed != l->filled;
        if (l->stopped || (l->ended && !any))
            break;
        if (!any || !l->ready[i]) {
            pthread_cond_wait(&l->follow, &l->lock);
            continue;
        }
        pthread_mutex_unlock(&l->lock);
        if (p->follow)
            p->follow(p->arg, l->item[i]);
        pthread_mutex_lock(&l->lock);
        l->followed++;
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static struct timespec tick_from_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += TICK_NS;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

/* Under the lock. True: the oldest item is ready. False: all is drained, or tick said stop. */
static bool wait_for_done(struct line *l, int *ret_code)
{
    const struct pipeline *p = l->p;
    for (;;) {
        if (l->drained != l->followed)
            return true;
        if (l->ended && l->drained == l->filled)
            return false;
        struct timespec until = tick_from_now();
        if (pthread_cond_timedwait(&l->done, &l->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&l->lock);
        *ret_code = p->tick(p->arg);
        pthread_mutex_lock(&l->lock);
        if (*ret_code)
            return false;
    }
}

static void stop_locked(struct line *l)
{
    l->stopped = true;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->room);
    pthread_cond_broadcast(&l->follow);
}

/* Once there is room for several items, since to wake a thread costs about as much as to fill one.
 */
static void wake_reader(struct line *l)
{
    const struct pipeline *p = l->p;
    if (l->filled - l->drained <= p->nitems - (p->nitems + 3) / 4 &&
        l->bytes <= p->budget - p->budget / 4)
        pthread_cond_signal(&l->room);
}

static int drain_all(struct line *l)
{
    const struct pipeline *p = l->p;
    int code = 0;
    pthread_mutex_lock(&l->lock);
    while (!code && wait_for_done(l, &code)) {
        size_t i = l->drained % p->nitems;
        pthread_mutex_unlock(&l->lock);
        code = p->drain(p->arg, l->item[i]);
        pthread_mutex_lock(&l->lock);
        l->bytes -= l->size[i];
        l->drained++;
        l->free[l->nfree++] = l->item[i];
        wake_reader(l);
    }
    stop_locked(l);
    pthread_mutex_unlock(&l->lock);
    return code;
}

static void line_init(struct line *l, const struct pipeline *p)
{
    *l = (struct line){.p = p};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->follow, NULL);
    pthread_cond_init(&l->done, &attr);
    pthread_condattr_destroy(&attr);
    l->item = mem_new(p->nitems, sizeof(*l->item));
    l->free = mem_new(p->nitems, sizeof(*l->free));
    memcpy(l->free, p->item, p->nitems * sizeof(*l->free));
    l->nfree = p->nitems;
    l->size = mem_new(p->nitems, sizeof(*l->size));
    l->ready = mem_new(p->nitems, sizeof(*l->ready));
}

static void line_finish(struct line *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->room);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->follow);
    pthread_cond_destroy(&l->done);
    free(l->item);
    free(l->free);
    free(l->size);
    free(l->ready);
}

/* The threads of a line, as far as they run. */
struct crew {
    pthread_t reader, follower;
    bool reading, following;
    struct worker *worker;
    int started;
};

static int start(struct line *l, struct crew *c, struct err *e)
{
    int failed = pthread_create(&c->reader, NULL, reader_main, l);
    c->reading = !failed;
    if (!failed)
        failed = pthread_create(&c->follower, NULL, follower_main, l);
    c->following = !failed;
    for (int i = 0; i < l->p->workers && !failed; i++) {
        c->worker[i] = (struct worker){.l = l, .index = i};
        failed = pthread_create(&c->worker[i].thread, NULL, worker_main, &c->worker[i]);
        c->started += !failed;
    }
    if (!failed)
        return 0;
    pthread_mutex_lock(&l->lock);
    stop_locked(l);
    pthread_mutex_unlock(&l->lock);
    return err_set(e, ERR_RESOURCE, "cannot start %d worker threads: %s", l->p->workers,
                   strerror(failed));
}

int pipeline_run(const struct pipeline *p, struct err *e)
{
    BUG_ON(p->workers < 1 || p->nitems < 1, "%d workers, %zu items", p->workers, p->nitems);
    struct line l;
    line_init(&l, p);
    struct crew c = {.worker = mem_new((size_t)p->workers, sizeof(*c.worker))};
    int code = start(&l, &c, e);
    if (!code)
        code = drain_all(&l);
    if (c.reading) {
        pthread_cancel(c.reader);
        pthread_join(c.reader, NULL);
    }
    if (c.following)
        pthread_join(c.follower, NULL);
    for (int i = 0; i < c.started; i++)
        pthread_join(c.worker[i].thread, NULL);
    free(c.worker);
    line_finish(&l);
    return code;
}
