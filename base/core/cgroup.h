/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_CGROUP_H
#define BASE_CORE_CGROUP_H

/* The control groups that this process is in, cgroup v1 and v2 (man 7 cgroups). */

#include <stdbool.h>

/*
 * Calls look(folder, arg) for each folder of control files from the process's own group up to
 * `root`. `groups` is /proc/self/cgroup or a file of its form; `controller` is NULL for v2, else
 * one of v1 ("memory"). Inside a container the group may have no folder below `root`: folders are
 * not checked.
 */
void cgroup_walk(const char *groups, const char *controller, const char *root,
                 void (*look)(const char *folder, void *arg), void *arg);

#endif
