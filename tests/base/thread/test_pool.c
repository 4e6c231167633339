/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"

enum { MAX_TASKS = 300 };

struct seen {
    int times[MAX_TASKS]; /* one writer each: a second one would be a race */
    int thread[MAX_TASKS];
};

static void note(void *arg, int task, int thread)
{
    struct seen *s = arg;
    s->times[task]++;
    s->thread[task] = thread;
}

static void check_round(struct pool *p, int tasks)
{
    struct seen s = {0};
    pool_run(p, tasks, note, &s);
    int used = tasks < pool_threads(p) ? tasks : pool_threads(p), run = 0;
    for (int i = 0; i < MAX_TASKS; i++)
        T_EQ(s.times[i], i < tasks);
    /* contiguous runs in the order of the threads, as even as can be */
    for (int i = 0; i < tasks; i++) {
        if (i)
            T_CHECK(s.thread[i] == s.thread[i - 1] || s.thread[i] == s.thread[i - 1] + 1);
        run = i && s.thread[i] == s.thread[i - 1] ? run + 1 : 1;
        T_CHECK(run <= (tasks + used - 1) / used);
    }
    if (tasks) {
        T_EQ(s.thread[0], 0);
        T_EQ(s.thread[tasks - 1], used - 1);
    }
}

static void each_task_once_in_runs(void)
{
    static const int counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 100, 299, 300};
    for (int threads = 1; threads <= 9; threads++) {
        struct pool *p = pool_create(threads);
        T_EQ(pool_threads(p), threads);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            check_round(p, counts[i]);
        pool_destroy(p);
    }
    pool_destroy(NULL);
}

struct sum {
    int64_t part[8];
    const int64_t *in;
};

static void add_part(void *arg, int task, int thread)
{
    struct sum *s = arg;
    (void)thread;
    s->part[task] = 0;
    for (int i = 0; i < 16; i++)
        s->part[task] += s->in[16 * task + i];
}

/* What one round wrote the next one reads, round after round, asleep or awake. */
static void rounds_follow_each_other(void)
{
    enum { ROUNDS = 20000 };
    int64_t in[128];
    struct sum s = {.in = in};
    struct pool *p = pool_create(2);
    for (int i = 0; i < 128; i++)
        in[i] = i;
    for (int r = 0; r < ROUNDS; r++) {
        pool_run(p, 8, add_part, &s);
        int64_t total = 0;
        for (int i = 0; i < 8; i++)
            total += s.part[i];
        T_EQ(total, 8128 + 128 * (int64_t)r);
        for (int i = 0; i < 128; i++)
            in[i]++;
        if (r % 2000 == 0)
            usleep(3000); /* all fall asleep */
    }
    pool_destroy(p);
}

static void sleep_unevenly(void *arg, int task, int thread)
{
    (void)thread;
    usleep(task % 2 ? 1500 : 10);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void the_caller_waits_asleep(void)
{
    atomic_int done = 0;
    struct pool *p = pool_create(4);
    for (int r = 0; r < 30; r++) {
        pool_run(p, 4, sleep_unevenly, &done);
        T_EQ(done, 4 * (r + 1));
    }
    pool_destroy(p);
}

/* Each pool has its own threads: several run at once in one process, as ranks that are
 * threads do. */
static void *use_own_pool(void *arg)
{
    struct sum s = {.in = arg};
    struct pool *p = pool_create(3);
    for (int r = 0; r < 500; r++)
        pool_run(p, 8, add_part, &s);
    pool_destroy(p);
    int64_t total = 0;
    for (int i = 0; i < 8; i++)
        total += s.part[i];
    return (void *)(intptr_t)total;
}

static void pools_beside_each_other(void)
{
    int64_t in[128];
    pthread_t id[3];
    for (int i = 0; i < 128; i++)
        in[i] = i;
    for (int i = 0; i < 3; i++)
        T_EQ(pthread_create(&id[i], NULL, use_own_pool, in), 0);
    for (int i = 0; i < 3; i++) {
        void *total;
        pthread_join(id[i], &total);
        T_EQ((intptr_t)total, 8128);
    }
}

static void look_at_mask(void *arg, int task, int thread)
{
    (void)thread;
    pthread_sigmask(SIG_SETMASK, NULL, &((sigset_t *)arg)[task]);
}

static void signals_stay_with_the_caller(void)
{
    sigset_t mask[2], before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    struct pool *p = pool_create(2);
    pool_run(p, 2, look_at_mask, mask);
    pool_destroy(p);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    T_CHECK(sigismember(&mask[1], SIGINT) && sigismember(&mask[1], SIGTERM));
    T_CHECK(!sigismember(&mask[1], SIGBUS) && !sigismember(&mask[1], SIGSEGV));
    T_EQ(sigismember(&mask[0], SIGINT), sigismember(&before, SIGINT));
    T_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

static void affinity_is_respected(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&all);
    T_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    int n = pool_cpus();
    size_t first = 0;
    T_CHECK(n >= 1 && n <= CPU_COUNT(&all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    T_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    int narrow = pool_cpus();
    struct pool *p = pool_create(0);
    int threads = pool_threads(p);
    pool_destroy(p);
    T_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
    T_EQ(narrow, 1);
    T_EQ(threads, 1);
}

static int quota_of(const char *groups, const char *file, const char *max)
{
    struct err e;
    char *path = path_join(t_path("cg"), file), *dir = path_dir(path);
    T_OK(file_remove_tree(t_path("cg"), &e), &e);
    T_OK(file_mkdirs(dir, &e), &e);
    T_OK(file_replace(path, max, strlen(max), &e), &e);
    T_OK(file_replace(t_path("groups"), groups, strlen(groups), &e), &e);
    free(path);
    free(dir);
    return pool_quota(t_path("groups"), t_path("cg"));
}

static void quotas_are_respected(void)
{
    const char *deep = "7:cpu:/x\n0::/a/b\n";
    T_EQ(quota_of(deep, "a/b/cpu.max", "300000 100000\n"), 3);
    T_EQ(quota_of(deep, "a/cpu.max", "250000 100000\n"), 2);
    T_EQ(quota_of(deep, "cpu.max", "50000 100000\n"), 1);
    T_EQ(quota_of(deep, "a/b/cpu.max", "max 100000\n"), INT_MAX);
    T_EQ(quota_of(deep, "x/cpu.max", "100000 100000\n"), INT_MAX);
    T_EQ(quota_of(deep, "a/b/cpu.max", "rubbish"), INT_MAX);
    T_EQ(quota_of(deep, "a/b/cpu.max", "100000 0\n"), INT_MAX);
    T_EQ(quota_of("0::/\n", "cpu.max", "400000 100000\n"), 4);
    T_EQ(pool_quota(t_path("missing"), t_dir()), INT_MAX);
}

T_MAIN(T_CASE(each_task_once_in_runs), T_CASE(rounds_follow_each_other),
       T_CASE(the_caller_waits_asleep), T_CASE(pools_beside_each_other),
       T_CASE(signals_stay_with_the_caller), T_CASE(affinity_is_respected),
       T_CASE(quotas_are_respected))
