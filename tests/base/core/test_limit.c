/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/limit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/core/cgroup.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static struct mem_limit l[MEM_LIMITS];

static void put(const char *name, const char *text)
{
    struct err e;
    char *path = path_join(t_dir(), name), *dir = path_dir(path);
    T_OK(file_mkdirs(dir, &e), &e);
    T_OK(file_replace(path, text, strlen(text), &e), &e);
    free(path);
    free(dir);
}

static int read_all(void)
{
    char *proc = path_join(t_dir(), "proc"), *cgroup = path_join(t_dir(), "cg");
    int n = mem_limits(proc, cgroup, l);
    free(proc);
    free(cgroup);
    return n;
}

static void clear(void)
{
    struct err e;
    T_OK(file_remove_tree(t_path("proc"), &e), &e);
    T_OK(file_remove_tree(t_path("cg"), &e), &e);
}

static const char meminfo[] = "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  600 kB\n"
                              "SwapTotal:  100 kB\nSwapFree:  50 kB\nCommitLimit: 700 kB\n"
                              "Committed_AS: 500 kB\n";

/* Without /proc the total comes from the system call, and no run that fits is rejected. */
static void the_machine_without_proc(void)
{
    struct sysinfo s;
    clear();
    T_EQ(sysinfo(&s), 0);
    T_EQ(read_all(), 1);
    T_STR(l[0].name, "the machine");
    T_EQ(l[0].total, (s.totalram + s.totalswap) * s.mem_unit);
    T_CHECK(l[0].free <= l[0].total && !l[0].addresses);
    T_EQ(sysinfo(&s), 0);
    T_CHECK(l[0].free > 0 && l[0].free >= s.freeram * s.mem_unit / 2);
}

/* Neither is ulimit -v forgotten there, of which nothing counts as used then. */
static void ulimit_v_without_proc(void)
{
    struct rlimit was, now;
    clear();
    T_EQ(getrlimit(RLIMIT_AS, &was), 0);
    now = was;
    now.rlim_cur = UINT64_C(1) << 45;
    if (now.rlim_cur > was.rlim_max || setrlimit(RLIMIT_AS, &now))
        t_skip("the address space is bound already");
    int n = read_all();
    setrlimit(RLIMIT_AS, &was);
    T_EQ(n, 2);
    T_STR(l[1].name, "ulimit -v");
    T_CHECK(l[1].addresses);
    T_EQ(l[1].total, UINT64_C(1) << 45);
    T_EQ(l[1].free, UINT64_C(1) << 45);
}

static void the_machine_with_its_swap(void)
{
    clear();
    put("proc/meminfo", meminfo);
    T_EQ(read_all(), 1);
    T_STR(l[0].name, "the machine");
    T_EQ(l[0].total, 1100 * 1024);
    T_EQ(l[0].free, 650 * 1024);
    put("proc/sys/vm/overcommit_memory", "2\n");
    T_EQ(read_all(), 2);
    T_EQ(l[1].total, 700 * 1024);
    T_EQ(l[1].free, 200 * 1024);
    T_CHECK(l[1].addresses && !l[0].addresses);
    put("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nCached: 5 kB\n");
    T_EQ(read_all(), 1);
    T_EQ(l[0].free, 15 * 1024);
}

static void the_tightest_group_of_v2(void)
{
    clear();
    put("proc/meminfo", meminfo);
    put("proc/self/cgroup", "1:cpu:/x\n0::/a/b\n");
    put("cg/a/b/memory.max", "max\n");
    put("cg/a/b/memory.current", "5\n");
    T_EQ(read_all(), 1);
    put("cg/a/memory.max", "1000\n");
    put("cg/a/memory.current", "900\n");
    put("cg/a/memory.stat", "anon 500\nactive_file 300\ninactive_file 50\n");
    put("cg/a/memory.swap.max", "0\n");
    put("cg/memory.max", "4000\n");
    put("cg/memory.current", "1000\n");
    T_EQ(read_all(), 2);
    T_EQ(l[1].total, 1000);
    T_EQ(l[1].free, 450);
    T_CHECK(strstr(l[1].name, "the cgroup ") && strstr(l[1].name, "cg/a"));
    put("cg/a/memory.swap.max", "200\n");
    put("cg/a/memory.swap.current", "30\n");
    T_EQ(read_all(), 2);
    T_EQ(l[1].total, 1170);
    T_EQ(l[1].free, 620);
    put("cg/a/memory.current", "9000\n");
    put("cg/a/memory.swap.max", "0\n");
    T_EQ(read_all(), 2);
    T_EQ(l[1].free, 0);
}

static void groups_of_v1(void)
{
    clear();
    put("proc/meminfo", meminfo);
    put("proc/self/cgroup", "5:cpu,memory:/x/y\n1:memoryless:/z\n");
    put("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("cg/memory/memory.usage_in_bytes", "100\n");
    put("cg/memory/z/memory.limit_in_bytes", "1\n");
    put("cg/memory/z/memory.usage_in_bytes", "1\n");
    T_EQ(read_all(), 1);
    put("cg/memory/x/y/memory.limit_in_bytes", "5000\n");
    put("cg/memory/x/y/memory.usage_in_bytes", "2000\n");
    put("cg/memory/x/y/memory.stat", "total_inactive_file 400\ntotal_active_file 100\n");
    T_EQ(read_all(), 2);
    T_EQ(l[1].total, 5000);
    T_EQ(l[1].free, 3500);
    put("cg/memory/memory.limit_in_bytes", "2100\n"); /* of the container, seen as the root */
    T_EQ(read_all(), 2);
    T_EQ(l[1].free, 2000);
}

/* What is reported as free can be mapped, and no more. */
static void ulimit_v_is_exact(void)
{
    struct rlimit was, now;
    if (access("/proc/self/statm", R_OK))
        t_skip("/proc is not mounted: what is used of the address space cannot be told");
    T_EQ(getrlimit(RLIMIT_AS, &was), 0);
    now = was;
    now.rlim_cur = UINT64_C(1) << 40;
    if (now.rlim_cur > was.rlim_max || setrlimit(RLIMIT_AS, &now))
        t_skip("the address space is bound already");
    int n = mem_limits("/proc", "/sys/fs/cgroup", l), k = 0;
    while (k < n && strcmp(l[k].name, "ulimit -v") != 0)
        k++;
    T_CHECK(k < n && l[k].addresses);
    size_t most = l[k].free / 4096 * 4096;
    if (!most) {
        setrlimit(RLIMIT_AS, &was);
        t_skip("a sanitizer has mapped more than that");
    }
    void *more = mmap(NULL, most + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *all = mmap(NULL, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setrlimit(RLIMIT_AS, &was);
    T_CHECK(more == MAP_FAILED);
    T_CHECK(all != MAP_FAILED);
    munmap(all, most);
    T_EQ(l[k].total, UINT64_C(1) << 40);
}

T_MAIN(T_CASE(the_machine_without_proc), T_CASE(ulimit_v_without_proc),
       T_CASE(the_machine_with_its_swap), T_CASE(the_tightest_group_of_v2), T_CASE(groups_of_v1),
       T_CASE(ulimit_v_is_exact))
