/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/core/cgroup.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/thread/thread.h"

/* Longer than the serial code between two parallel sections, short enough not to waste time. */
enum { SPIN_NS = 200 * 1000, PAUSES_PER_LOOK = 32 };

struct worker {
    struct pool *pool;
    pthread_t id;
    int index;
};

/*
 * One round: the caller fills the job, sets `left` and raises `round`; each worker that sees the
 * new round does its run of tasks and lowers `left`; the caller waits for 0. A thread that has spun
 * long enough announces it (`sleepers`, `caller_sleeps`) and sleeps on the word itself, so that the
 * kernel compares it once more; the other side reads these only after it has changed the word. All
 * of that is sequentially consistent: one of the two sees the other.
 */
struct pool {
    int threads;
    bool spin, stop;
    struct worker *worker; /* threads - 1 of them: the caller is thread 0 */
    atomic_bool busy;
    int tasks;
    pool_fn *fn;
    void *arg;
    _Alignas(64) _Atomic uint32_t round;
    _Atomic uint32_t sleepers;
    _Alignas(64) _Atomic uint32_t left;
    _Atomic uint32_t caller_sleeps;
};

/* ---- waiting ----------------------------------------------------------------------------- */

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* True as soon as the word is no longer `value`, false after SPIN_NS. */
static bool spin_while(_Atomic uint32_t *word, uint32_t value)
{
    for (int64_t until = 0;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return true;
            cpu_relax();
        }
        sched_yield(); /* the thread that we wait for may be queued on this processor */
        int64_t now = now_ns();
        if (!until)
            until = now + SPIN_NS;
        else if (now > until)
            return false;
    }
}

static void wait_while(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *asleep, bool spin)
{
    if (spin && spin_while(word, value))
        return;
    atomic_fetch_add(asleep, 1);
    while (atomic_load(word) == value)
        futex_wait(word, value);
    atomic_fetch_sub(asleep, 1);
}

static void wait_for_zero(struct pool *p)
{
    for (uint32_t left; (left = atomic_load(&p->left)) != 0;)
        wait_while(&p->left, left, &p->caller_sleeps, p->spin);
}

/* ---- work -------------------------------------------------------------------------------- */

static void do_run(const struct pool *p, int thread)
{
    int64_t n = p->tasks, threads = p->threads < n ? p->threads : n;
    if (thread >= threads)
        return;
    int end = (int)(n * (thread + 1) / threads);
    for (int i = (int)(n * thread / threads); i < end; i++)
        p->fn(p->arg, i, thread);
}

static void *pool_work(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_while(&p->round, seen, &p->sleepers, p->spin);
        if (p->stop)
            return NULL;
        do_run(p, w->index);
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps))
            futex_wake(&p->left);
    }
}

static void start_round(struct pool *p)
{
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->sleepers))
        futex_wake(&p->round);
}

void pool_run(struct pool *p, int tasks, pool_fn *fn, void *arg)
{
    BUG_ON(tasks < 0, "%d tasks", tasks);
    BUG_ON(atomic_exchange_explicit(&p->busy, true, memory_order_acquire),
           "pool_run while the same pool runs");
    p->tasks = tasks;
    p->fn = fn;
    p->arg = arg;
    if (p->threads == 1 || tasks < 2) {
        for (int i = 0; i < tasks; i++)
            fn(arg, i, 0);
    } else {
        atomic_store_explicit(&p->left, (uint32_t)p->threads - 1, memory_order_relaxed);
        start_round(p);
        do_run(p, 0);
        wait_for_zero(p);
    }
    atomic_store_explicit(&p->busy, false, memory_order_release);
}

/* ---- life -------------------------------------------------------------------------------- */

struct pool *pool_create(int threads)
{
    int cpus = pool_cpus();
    BUG_ON(threads < 0, "pool of %d threads", threads);
    struct pool *p = aligned_alloc(64, sizeof(*p));
    if (!p)
        p = mem_new(1, sizeof(*p)); /* reports out of memory and exits */
    memset(p, 0, sizeof(*p));
    p->threads = threads ? threads : cpus;
    p->spin = p->threads <= cpus; /* with more, spinning threads would displace working ones */
    p->worker = mem_new((size_t)p->threads, sizeof(*p->worker));
    for (int i = 1; i < p->threads; i++) {
        struct worker *w = &p->worker[i - 1];
        *w = (struct worker){.pool = p, .index = i};
        int r = thread_start(&w->id, pool_work, w);
        if (r) {
            log_warn("only %d of %d threads could be started: %s", i, p->threads, strerror(r));
            p->threads = i;
            break;
        }
        char name[16];
        snprintf(name, sizeof(name), "pool-%d", i);
        pthread_setname_np(w->id, name);
    }
    return p;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    p->stop = true;
    start_round(p);
    for (int i = 0; i < p->threads - 1; i++)
        pthread_join(p->worker[i].id, NULL);
    free(p->worker);
    free(p);
}

int pool_threads(const struct pool *p)
{
    return p->threads;
}

/* ---- processors -------------------------------------------------------------------------- */

static int affinity_cpus(void)
{
    for (size_t room = 1024; room <= 1 << 20; room *= 2) {
        cpu_set_t *set = CPU_ALLOC(room);
        if (!set)
            break;
        size_t size = CPU_ALLOC_SIZE(room);
        int r = sched_getaffinity(0, size, set), n = r ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (n > 0)
            return n;
        if (errno != EINVAL) /* EINVAL: the machine has more processors than the set can hold */
            break;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (int)n;
}

/* Lowers *arg to the processors that one group's cpu.max grants, rounded down. */
static void look_at_quota(const char *folder, void *arg)
{
    char path[8300];
    long long quota, period;
    int *least = arg;
    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    int got = fscanf(f, "%lld %lld", &quota, &period); /* "max 100000" has no number: no limit */
    fclose(f);
    if (got != 2 || quota <= 0 || period <= 0 || quota / period >= *least)
        return;
    *least = quota < period ? 1 : (int)(quota / period);
}

int pool_quota(const char *groups, const char *root)
{
    int least = INT_MAX;
    cgroup_walk(groups, NULL, root, look_at_quota, &least);
    return least;
}

int pool_cpus(void)
{
    int n = affinity_cpus(), quota = pool_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota < n ? quota : n;
}
