/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/encode/pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "base/thread/thread.h"

enum { TICK_NS = 100 * 1000 * 1000 };

/* What an item waits for, or is in. */
enum stage { WORK, FOLLOW, STORE, STORING, DRAIN };

struct place {
    void *item;
    uint64_t size;
    int worker; /* the worker that worked on it */
    enum stage stage;
};

/*
 * The items in flight form a ring; three counters only grow, each the number of items that are done
 * with a step. Items between followed and filled are in work, or wait for follow; those between
 * drained and followed are being stored, or wait for store or drain.
 */
struct line {
    const struct pipeline *p;
    pthread_mutex_t lock;
    pthread_cond_t change; /* one more worker has something to do, or all is over */
    pthread_cond_t over;   /* for the caller */
    uint64_t filled, followed, drained;
    bool filling, following, draining; /* a thread is in this step */
    bool alone;     /* the last followed item must be drained before the next follow */
    int waiting;    /* workers */
    uint64_t bytes; /* in flight */
    struct place *ring;
    void **free; /* a stack of nfree: the last one drained is still in caches */
    size_t nfree;
    bool ended; /* nothing more to fill */
    bool stopped;
    int code; /* the reason to stop */
};

struct worker {
    struct line *l;
    int index;
    pthread_t thread;
};

/* ---- steps; called under the lock, released during the work --------------------------------- */

static bool is_over(const struct line *l)
{
    return l->stopped || (l->ended && l->drained == l->filled);
}

/* After progress: wakes the caller if all is over, or a worker if there is more to do. */
static void pipeline_notify(struct line *l)
{
    if (is_over(l)) {
        pthread_cond_broadcast(&l->change);
        pthread_cond_signal(&l->over);
    } else if (l->waiting) {
        pthread_cond_signal(&l->change);
    }
}

static void stop(struct line *l, int code)
{
    l->code = l->code ? l->code : code;
    l->stopped = true;
    pipeline_notify(l);
}

static struct place *place_of(struct line *l, uint64_t n)
{
    return &l->ring[n % l->p->nitems];
}

static bool drain_one(struct line *l)
{
    const struct pipeline *p = l->p;
    struct place *at = place_of(l, l->drained);
    if (l->draining || l->drained == l->followed || at->stage != DRAIN)
        return false;
    l->draining = true;
    pthread_mutex_unlock(&l->lock);
    int code = p->drain(p->arg, at->item);
    pthread_mutex_lock(&l->lock);
    l->draining = false;
    if (code) {
        stop(l, code);
        return true;
    }
    l->bytes -= at->size;
    l->drained++;
    l->free[l->nfree++] = at->item;
    pipeline_notify(l);
    return true;
}

static bool follow_one(struct line *l)
{
    const struct pipeline *p = l->p;
    struct place *at = place_of(l, l->followed);
    if (l->following || l->followed == l->filled || at->stage != FOLLOW)
        return false;
    if (l->alone && l->drained != l->followed)
        return false;
    if (p->follow) {
        l->following = true;
        pthread_mutex_unlock(&l->lock);
        bool alone = p->follow(p->arg, at->item);
        pthread_mutex_lock(&l->lock);
        l->following = false;
        l->alone = alone;
    }
    at->stage = p->store ? STORE : DRAIN;
    l->followed++;
    pipeline_notify(l);
    return true;
}

/* Stores the oldest item of this worker (-1: of any). */
static bool store_one(struct line *l, int worker)
{
    const struct pipeline *p = l->p;
    for (uint64_t n = l->drained; n < l->followed; n++) {
        struct place *at = place_of(l, n);
        if (at->stage != STORE || (worker >= 0 && at->worker != worker))
            continue;
        at->stage = STORING;
        pthread_mutex_unlock(&l->lock);
        p->store(p->arg, at->item);
        pthread_mutex_lock(&l->lock);
        at->stage = DRAIN;
        return true;
    }
    return false;
}

/* Whether one more item may be filled: a free item, and budget left (or nothing in flight). */
static bool has_room(const struct line *l)
{
    return l->nfree && (l->filled == l->drained || l->bytes < l->p->budget);
}

static bool fill_and_work(struct line *l, int worker)
{
    const struct pipeline *p = l->p;
    if (l->filling || l->ended || !has_room(l))
        return false;
    void *item = l->free[--l->nfree];
    uint64_t bytes = 0;
    l->filling = true;
    pthread_mutex_unlock(&l->lock);
    bool more = p->fill(p->arg, item, &bytes);
    pthread_mutex_lock(&l->lock);
    l->filling = false;
    l->ended = !more;
    struct place *at = place_of(l, l->filled);
    if (more) {
        *at = (struct place){.item = item, .size = bytes, .worker = worker, .stage = WORK};
        l->bytes += bytes;
        l->filled++;
    }
    pipeline_notify(l);
    if (!more)
        return true;
    pthread_mutex_unlock(&l->lock);
    p->work(p->arg, worker, item);
    pthread_mutex_lock(&l->lock);
    at->stage = FOLLOW;
    return true;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct line *l = w->l;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_mutex_lock(&l->lock);
    while (!is_over(l)) {
        if (drain_one(l) || follow_one(l) || store_one(l, w->index) || fill_and_work(l, w->index) ||
            store_one(l, -1))
            continue;
        l->waiting++;
        pthread_cond_wait(&l->change, &l->lock);
        l->waiting--;
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

/* Waits until all is over. Drain notices a stop, too, so ticks may be skipped. */
static void watch(struct line *l)
{
    const struct pipeline *p = l->p;
    pthread_mutex_lock(&l->lock);
    while (!is_over(l)) {
        struct timespec until = tick_from_now();
        if (!pthread_cond_timedwait(&l->over, &l->lock, &until) || l->draining)
            continue;
        l->draining = true;
        pthread_mutex_unlock(&l->lock);
        int code = p->tick(p->arg);
        pthread_mutex_lock(&l->lock);
        l->draining = false;
        if (code)
            stop(l, code);
        else
            pipeline_notify(l); /* an item may be waiting */
    }
    pthread_mutex_unlock(&l->lock);
}

static void line_init(struct line *l, const struct pipeline *p)
{
    *l = (struct line){.p = p, .nfree = p->nitems};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->change, NULL);
    pthread_cond_init(&l->over, &attr);
    pthread_condattr_destroy(&attr);
    l->ring = mem_new(p->nitems, sizeof(*l->ring));
    l->free = mem_new(p->nitems, sizeof(*l->free));
    memcpy(l->free, p->item, p->nitems * sizeof(*l->free));
}

static void line_finish(struct line *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->change);
    pthread_cond_destroy(&l->over);
    free(l->ring);
    free(l->free);
}

/* Starts the workers; *ret is how many run. */
static int start(struct line *l, struct worker *w, int *ret, struct err *e)
{
    int failed = 0;
    for (*ret = 0; *ret < l->p->workers && !failed; *ret += !failed) {
        w[*ret] = (struct worker){.l = l, .index = *ret};
        failed = thread_start(&w[*ret].thread, worker_main, &w[*ret]);
    }
    if (!failed)
        return 0;
    pthread_mutex_lock(&l->lock);
    stop(l, ERR_RESOURCE);
    pthread_mutex_unlock(&l->lock);
    return err_set(e, ERR_RESOURCE, "cannot start %d worker threads: %s", l->p->workers,
                   strerror(failed));
}

int pipeline_run(const struct pipeline *p, struct err *e)
{
    BUG_ON(p->workers < 1 || p->nitems < 1, "%d workers, %zu items", p->workers, p->nitems);
    struct line l;
    line_init(&l, p);
    struct worker *w = mem_new((size_t)p->workers, sizeof(*w));
    int started, code = start(&l, w, &started, e);
    if (!code)
        watch(&l);
    for (int i = 0; i < started; i++) {
        if (l.stopped)
            pthread_cancel(w[i].thread);
        pthread_join(w[i].thread, NULL);
    }
    code = code ? code : l.code;
    free(w);
    line_finish(&l);
    return code;
}
