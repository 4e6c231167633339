/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/core/cgroup.h"

struct found {
    struct mem_limit *at;
    int n;
    uint64_t swap; /* the machine's free swap */
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static struct mem_limit *limit_add(struct found *f, uint64_t total, uint64_t free)
{
    struct mem_limit *l = &f->at[f->n++];
    *l = (struct mem_limit){.total = total, .free = free < total ? free : total};
    return l;
}

/* The number of a line "KEY  123" or "KEY: 123 kB" of a file; false if there is none. */
static bool field(const char *path, const char *key, uint64_t *ret)
{
    char line[512];
    size_t n = strlen(key);
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = !strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':') &&
                sscanf(line + n + 1, "%" SCNu64, ret) == 1;
    if (f)
        fclose(f);
    return found;
}

/* The number that a file consists of; false for "max" or a missing file. */
static bool limit_number(const char *folder, const char *name, uint64_t *ret)
{
    char path[8300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    bool got = f && fscanf(f, "%" SCNu64, ret) == 1;
    if (f)
        fclose(f);
    return got;
}

/* ---- the machine -------------------------------------------------------------------------- */

static uint64_t kib(const char *path, const char *key)
{
    uint64_t v;
    return field(path, key, &v) ? v * 1024 : 0;
}

/* Without /proc. How much of the page cache could be freed is unknown, so everything but shared
 * memory counts as free: a run that fits is never rejected. */
static void ask_system(struct found *f)
{
    struct sysinfo s;
    if (sysinfo(&s))
        return;
    uint64_t unit = s.mem_unit ? s.mem_unit : 1;
    f->swap = s.freeswap * unit;
    uint64_t free = less(s.totalram, s.sharedram) * unit + f->swap;
    snprintf(limit_add(f, (s.totalram + s.totalswap) * unit, free)->name, sizeof(f->at->name),
             "the machine");
}

static void look_at_machine(struct found *f, const char *proc)
{
    char path[512];
    uint64_t strict = 0;
    snprintf(path, sizeof(path), "%s/meminfo", proc);
    uint64_t total = kib(path, "MemTotal"), free = kib(path, "MemAvailable");
    if (!free)
        free = kib(path, "MemFree") + kib(path, "Cached");
    f->swap = kib(path, "SwapFree");
    if (!total) {
        ask_system(f);
        return;
    }
    snprintf(limit_add(f, total + kib(path, "SwapTotal"), free + f->swap)->name,
             sizeof(f->at->name), "the machine");
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/sys/vm", proc);
    uint64_t commit = kib(path, "CommitLimit");
    if (!limit_number(folder, "overcommit_memory", &strict) || strict != 2 || !commit)
        return;
    struct mem_limit *l = limit_add(f, commit, less(commit, kib(path, "Committed_AS")));
    snprintf(l->name, sizeof(l->name), "the system's commit limit (vm.overcommit_memory 2)");
    l->addresses = true;
}

/* ---- cgroups ------------------------------------------------------------------------------ */

/* Keeps the tightest of the groups on the way up. */
struct group {
    const struct found *f;
    struct mem_limit best;
};

static void limit_weigh(struct group *g, const char *folder, uint64_t total, uint64_t free)
{
    free = free < total ? free : total;
    if (g->best.total && g->best.free <= free)
        return;
    g->best.total = total;
    g->best.free = free;
    snprintf(g->best.name, sizeof(g->best.name), "the cgroup %.110s", folder);
}

/* File pages, which the kernel reclaims before an allocation fails. */
static uint64_t reclaimable(const char *folder, const char *active, const char *inactive)
{
    char path[8300];
    uint64_t a = 0, b = 0;
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    field(path, active, &a);
    field(path, inactive, &b);
    return a + b;
}

static void look_v2(const char *folder, void *arg)
{
    struct group *g = arg;
    uint64_t max, used, swap_max, swap_used = 0, swap = g->f->swap;
    if (!limit_number(folder, "memory.max", &max) || !limit_number(folder, "memory.current", &used))
        return;
    limit_number(folder, "memory.swap.current", &swap_used);
    if (limit_number(folder, "memory.swap.max", &swap_max) && less(swap_max, swap_used) < swap)
        swap = less(swap_max, swap_used);
    used = less(used, reclaimable(folder, "active_file", "inactive_file"));
    limit_weigh(g, folder, max + swap, less(max, used) + swap);
}

static void look_v1(const char *folder, void *arg)
{
    const uint64_t none = UINT64_C(1) << 62; /* without a limit the file has a larger number */
    struct group *g = arg;
    uint64_t max, used;
    if (!limit_number(folder, "memory.limit_in_bytes", &max) || max >= none ||
        !limit_number(folder, "memory.usage_in_bytes", &used))
        return;
    used = less(used, reclaimable(folder, "total_active_file", "total_inactive_file"));
    limit_weigh(g, folder, max, less(max, used));
}

static void look_at_cgroups(struct found *f, const char *proc, const char *cgroup)
{
    char groups[512], root[512];
    struct group v2 = {.f = f}, v1 = {.f = f};
    snprintf(groups, sizeof(groups), "%s/self/cgroup", proc);
    snprintf(root, sizeof(root), "%s/memory", cgroup);
    cgroup_walk(groups, NULL, cgroup, look_v2, &v2);
    cgroup_walk(groups, "memory", root, look_v1, &v1);
    if (v2.best.total)
        f->at[f->n++] = v2.best;
    if (v1.best.total)
        f->at[f->n++] = v1.best;
}

/* ---- ulimit ------------------------------------------------------------------------------- */

static void look_at_rlimit(struct found *f, bool addresses, const char *name, uint64_t used)
{
    struct rlimit r;
    int code = addresses ? getrlimit(RLIMIT_AS, &r) : getrlimit(RLIMIT_DATA, &r);
    if (code || r.rlim_cur == RLIM_INFINITY)
        return;
    struct mem_limit *l = limit_add(f, r.rlim_cur, less(r.rlim_cur, used));
    snprintf(l->name, sizeof(l->name), "%s", name);
    l->addresses = addresses;
}

static void look_at_rlimits(struct found *f, const char *proc)
{
    char path[512];
    uint64_t size = 0, data = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(path, sizeof(path), "%s/self/statm", proc);
    FILE *s = fopen(path, "re");
    if (s && fscanf(s, "%" SCNu64 " %*u %*u %*u %*u %" SCNu64, &size, &data) != 2)
        size = data = 0;
    if (s)
        fclose(s);
    look_at_rlimit(f, true, "ulimit -v", size * page);
    look_at_rlimit(f, false, "ulimit -d", data * page);
}

int mem_limits(const char *proc, const char *cgroup, struct mem_limit ret[MEM_LIMITS])
{
    struct found f = {.at = ret};
    look_at_machine(&f, proc);
    look_at_cgroups(&f, proc, cgroup);
    look_at_rlimits(&f, proc);
    return f.n;
}
