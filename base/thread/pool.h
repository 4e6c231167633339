/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_POOL_H
#define BASE_THREAD_POOL_H

/*
 * A fixed set of threads with a static partition of work. pool_run does not split work itself: the
 * caller gives a number of tasks that depends on the size of the work only, and task i always is
 * the same work, so results do not depend on the number of threads. Tasks go to threads in
 * contiguous runs, by index; the calling thread takes part. pool_run returns when all tasks are
 * done.
 *
 * One pool_run at a time per pool; tasks must not call pool_run on their own pool. A pool of one
 * thread runs everything in the caller. Waiting threads spin for a short while before they sleep.
 */

struct pool;

typedef void pool_fn(void *arg, int task, int thread);

/*
 * threads >= 1; 0 means one per processor that this process may use. Never NULL; if the system
 * refuses threads, a warning says how many there are.
 */
struct pool *pool_create(int threads);
void pool_destroy(struct pool *p);
int pool_threads(const struct pool *p);
void pool_run(struct pool *p, int tasks, pool_fn *fn, void *arg);

/* Processors that this process may use (affinity and quota considered), at least 1. */
int pool_cpus(void);

/*
 * Processors granted by cgroup v2's cpu.max, rounded down, at least 1; INT_MAX for no limit: the
 * lowest quota from the group that the file `groups` (/proc/self/cgroup) names up to `root`
 * (/sys/fs/cgroup).
 */
int pool_quota(const char *groups, const char *root);

#endif
