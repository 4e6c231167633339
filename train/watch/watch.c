/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/watch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/thread/thread.h"

struct watch {
    struct comm comm; /* a copy: the rank's may move */
    struct watch_options options;
    struct watch_state state;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closing, expired;
    int64_t steps;     /* begun */
    uint64_t progress; /* of the comm, at the last look */
    struct err fault;
    double fault_since;
};

static double watch_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *watch_phase_name(enum watch_phase p)
{
    static const char *const names[WATCH_PHASES] = {
        [WATCH_START] = "starting",
        [WATCH_INDEX] = "index maps",
        [WATCH_LOAD] = "loading",
        [WATCH_DATA] = "waiting for data",
        [WATCH_MICRO] = "forward and backward",
        [WATCH_UPDATE] = "update",
        [WATCH_EVAL] = "evaluation",
        [WATCH_SAVE] = "saving",
    };
    return (unsigned)p < WATCH_PHASES ? names[p] : "unknown phase";
}

struct watch_limits watch_usual(double step)
{
    struct watch_limits l = {.grace = 10};
    for (int p = 0; p < WATCH_PHASES; p++)
        l.seconds[p] = step;
    l.first = fmax(300, 3 * step);
    l.seconds[WATCH_START] = fmax(300, 3 * step);
    l.seconds[WATCH_LOAD] = l.seconds[WATCH_SAVE] = fmax(600, 6 * step);
    l.seconds[WATCH_INDEX] = fmax(3600, 6 * step);
    return l;
}

double watch_left(const struct watch_state *s, const struct watch_limits *l, double now,
                  bool in_call)
{
    double limit = l->seconds[s->phase];
    if (limit <= 0)
        return INFINITY;
    if (s->first_step && s->phase >= WATCH_DATA && s->phase <= WATCH_UPDATE)
        limit = fmax(limit, l->first);
    if (in_call)
        limit *= 1.5;
    return s->since + limit - now;
}

static void describe_state(const struct watch *w, char *ret, size_t size)
{
    int n = snprintf(ret, size, "rank %d", w->comm.rank);
    if (w->state.step > 0)
        n += snprintf(ret + n, size - (size_t)n, ", step %lld", (long long)w->state.step);
    snprintf(ret + n, size - (size_t)n, ", %s", watch_phase_name(w->state.phase));
}

/* With the lock held. Seconds until the next look. */
static double look(struct watch *w)
{
    char where[128], missing[64] = "";
    double now = watch_clock();
    struct comm_state s;
    comm_look(&w->comm, &s);
    if (s.progress != w->progress)
        w->state.since = now;
    w->progress = s.progress;
    double left = watch_left(&w->state, &w->options.limits, now, s.in_call);
    if (s.fault && !w->fault.code) { /* of another rank */
        err_set(&w->fault, s.fault, "%s", s.text);
        w->fault.step = s.step;
        w->fault_since = now;
    }
    if (w->fault.code && w->fault_since + w->options.limits.grace < now && !w->expired) {
        w->expired = true;
        if (w->options.expire)
            w->options.expire(w->options.arg, &w->fault);
    }
    if (w->fault.code || left >= 0)
        return w->fault.code || left > 1 ? 1 : left;
    describe_state(w, where, sizeof(where));
    if (s.in_call && s.missing != COMM_NOBODY)
        snprintf(missing, sizeof(missing), ", which waits for rank %d", s.missing);
    err_set(&w->fault, ERR_FAULT, "%s: no progress for %.3g s%s%s%s", where, now - w->state.since,
            s.in_call ? ", in " : "", s.in_call ? s.call : "", missing);
    w->fault.step = w->state.step > 0 ? w->state.step : 0;
    w->fault_since = now;
    comm_interrupt(&w->comm, &w->fault);
    return 1;
}

static void *run(void *arg)
{
    struct watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->closing) {
        double seconds = look(w), until;
        seconds = w->fault.code && w->options.limits.grace < 1 ? w->options.limits.grace : seconds;
        until = watch_clock() + (seconds < 0.001 ? 0.001 : seconds);
        struct timespec t = {.tv_sec = (time_t)until,
                             .tv_nsec = (long)((until - floor(until)) * 1e9)};
        pthread_cond_timedwait(&w->changed, &w->lock, &t);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int watch_open(struct watch **ret, const struct comm *c, const struct watch_options *o,
               struct err *e)
{
    struct watch *w = mem_new(1, sizeof(*w));
    pthread_condattr_t a;
    w->comm = *c;
    w->options = *o;
    w->state.since = watch_clock();
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &a);
    pthread_condattr_destroy(&a);
    int error = thread_start(&w->thread, run, w);
    if (error) {
        free(w);
        return err_set(e, ERR_RESOURCE, "no watchdog thread could be started: %s", strerror(error));
    }
    *ret = w;
    return 0;
}

void watch_close(struct watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void watch_enter(struct watch *w, enum watch_phase p, int64_t step)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    bool more = step != w->state.step && p >= WATCH_DATA && p <= WATCH_UPDATE;
    bool again = FAULT("watch_again") && p == w->state.phase;
    w->steps += more;
    w->state = (struct watch_state){.phase = p,
                                    .step = step,
                                    .first_step = w->steps <= 1,
                                    .since = again ? w->state.since : watch_clock()};
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}
