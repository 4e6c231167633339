/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_LIMIT_H
#define BASE_CORE_LIMIT_H

/*
 * How much memory this process may still allocate, by every limit: the machine (with its swap), the
 * cgroups of v1 and v2 that it is in, ulimit -v and ulimit -d, and the system's commit limit where
 * it does not overcommit. Reclaimable memory (the page cache) counts as free. Without /proc (a
 * chroot that has not mounted it) the limits are the machine, by sysinfo(2), and ulimit, and memory
 * counts as free unless it is known to be in use.
 */

#include <stdbool.h>
#include <stdint.h>

struct mem_limit {
    char name[128];       /* "the machine", "the cgroup /sys/fs/cgroup/a", "ulimit -v" */
    uint64_t total, free; /* bytes */
    bool addresses;       /* counts all mappings, files too, rather than touched pages */
};

enum { MEM_LIMITS = 6 };

/*
 * Fills `ret` and returns how many there are; absent limits are left out. `proc` and `cgroup`
 * are /proc and /sys/fs/cgroup, or folders like these for a test.
 */
int mem_limits(const char *proc, const char *cgroup, struct mem_limit ret[MEM_LIMITS]);

#endif
