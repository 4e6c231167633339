/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_LIMIT_H
#define BASE_CORE_LIMIT_H

/*
 * How much memory this process may still take, by everything that bounds it: the machine (with its
 * swap), the cgroups of v1 and v2 that it is in, ulimit -v and ulimit -d, and the system's commit
 * limit where it does not overcommit. Memory that the kernel gives back when asked (the page cache)
 * counts as free. Without /proc (a chroot that has not mounted it) there are the machine, by
 * sysinfo(2), and ulimit, of both of which all counts as free that is not known to be in use.
 */

#include <stdbool.h>
#include <stdint.h>

struct mem_limit {
    char name[128];       /* "the machine", "the cgroup /sys/fs/cgroup/a", "ulimit -v" */
    uint64_t total, free; /* bytes */
    bool addresses;       /* counts all that is mapped, files too, not what is touched */
};

enum { MEM_LIMITS = 6 };

/*
 * Fills `ret` and returns how many there are; what sets no limit is left out. `proc` and `cgroup`
 * are /proc and /sys/fs/cgroup, or folders like these for a test.
 */
int mem_limits(const char *proc, const char *cgroup, struct mem_limit ret[MEM_LIMITS]);

#endif
