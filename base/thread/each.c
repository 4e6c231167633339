/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/each.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/thread/pool.h"
#include "base/thread/thread.h"

struct each {
    size_t n;
    int (*fn)(void *arg, size_t i, struct err *e);
    void *arg;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* protects what follows */
    size_t first;         /* the lowest that failed */
    int code;
    struct err why;
};

static void *each_main(void *arg)
{
    struct each *w = arg;
    size_t i;
    while (!atomic_load(&w->failed) && (i = atomic_fetch_add(&w->next, 1)) < w->n) {
        struct err why = {0};
        int code = w->fn(w->arg, i, &why);
        if (!code)
            continue;
        pthread_mutex_lock(&w->lock);
        if (!w->code || i < w->first) {
            w->code = code;
            w->first = i;
            w->why = why;
        }
        pthread_mutex_unlock(&w->lock);
        atomic_store(&w->failed, true);
    }
    return NULL;
}

int each_threads(int threads)
{
    int n = threads > 0 ? threads : pool_cpus();
    return n < EACH_MOST ? n : EACH_MOST;
}

int each_run(size_t n, int threads, int (*fn)(void *arg, size_t i, struct err *e), void *arg,
             struct err *e)
{
    struct each w = {.n = n, .fn = fn, .arg = arg};
    pthread_t thread[EACH_MOST];
    int started = 0, most = each_threads(threads);
    atomic_init(&w.next, 0);
    atomic_init(&w.failed, false);
    pthread_mutex_init(&w.lock, NULL);
    while (started + 1 < most && (size_t)started + 1 < n &&
           !thread_start(&thread[started], each_main, &w))
        started++;
    each_main(&w);
    while (started)
        pthread_join(thread[--started], NULL);
    pthread_mutex_destroy(&w.lock);
    if (w.code && e)
        *e = w.why;
    return w.code;
}
