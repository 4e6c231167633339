/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static void run(struct trace *t, int (*fn)(void *), void *arg)
{
    if (!trace_run(t, fn, arg))
        t_skip("processes may not be traced and changed here");
}

/* create, write 10, pwrite 6, ftruncate, fsync, close, rename, unlink; a pipe is not a file */
static int work(void *arg)
{
    const char *path = arg;
    char other[512];
    int fd = open(path, O_RDWR | O_CREAT, 0666), p[2];
    snprintf(other, sizeof(other), "%s.new", path);
    bool fine = fd >= 0 && write(fd, "0123456789", 10) == 10 && pwrite(fd, "abcdef", 6, 2) == 6 &&
                !ftruncate(fd, 9) && !fsync(fd);
    fine = !close(fd) && fine;
    fine = !pipe(p) && write(p[1], "x", 1) == 1 && fine;
    return !fine || rename(path, other) || unlink(other);
}

static int put_ten(void *arg)
{
    int fd = open(arg, O_WRONLY | O_CREAT, 0666);
    return (int)write(fd, "0123456789", 10);
}

static void counts_what_changes_files(void)
{
    struct trace t = {.fault = TRACE_COUNT};
    run(&t, work, (void *)(uintptr_t)t_path("a"));
    T_CHECK(WIFEXITED(t.status) && !WEXITSTATUS(t.status));
    T_EQ(t.calls, 8);
    T_EQ(t.unknown, -1);
    T_CHECK(!t.struck);
}

static uint64_t size_of(const char *path)
{
    struct err e;
    uint64_t n = 0;
    T_OK(file_size(path, &n, &e), &e);
    return n;
}

static void strikes_the_call_that_was_named(void)
{
    struct trace t = {.fault = TRACE_KILL_BEFORE, .at = 2};
    run(&t, work, (void *)(uintptr_t)t_path("before"));
    T_CHECK(t.struck && t.struck_data && WIFSIGNALED(t.status));
    T_EQ(size_of(t_path("before")), 0);
    t = (struct trace){.fault = TRACE_KILL_AFTER, .at = 2};
    run(&t, work, (void *)(uintptr_t)t_path("after"));
    T_CHECK(t.struck && t.struck_data && WIFSIGNALED(t.status));
    T_EQ(size_of(t_path("after")), 10);
    t = (struct trace){.fault = TRACE_TEAR, .at = 1};
    run(&t, work, (void *)(uintptr_t)t_path("torn"));
    T_CHECK(t.struck && t.struck_data && WIFSIGNALED(t.status));
    T_EQ(size_of(t_path("torn")), 5);
    t = (struct trace){.fault = TRACE_TEAR, .at = 3}; /* there are but two data writes */
    run(&t, work, (void *)(uintptr_t)t_path("whole"));
    T_CHECK(!t.struck && WIFEXITED(t.status));
    t = (struct trace){.fault = TRACE_SHORT, .at = 1};
    run(&t, put_ten, (void *)(uintptr_t)t_path("short"));
    T_CHECK(t.struck && WIFEXITED(t.status));
    T_EQ(WEXITSTATUS(t.status), 5);
    t = (struct trace){.fault = TRACE_FAIL, .at = 7, .errnum = EIO};
    run(&t, work, (void *)(uintptr_t)t_path("stays"));
    T_CHECK(t.struck && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 1);
    T_CHECK(file_exists(t_path("stays")));
}

static int exchange(void *arg)
{
    (void)arg;
    return renameat2(AT_FDCWD, "/nowhere/a", AT_FDCWD, "/nowhere/b", RENAME_NOREPLACE) ? errno : 0;
}

static void a_file_system_without_exchange(void)
{
    struct trace t = {.fault = TRACE_COUNT};
    run(&t, exchange, NULL);
    T_EQ(WEXITSTATUS(t.status), ENOENT);
    t = (struct trace){.fault = TRACE_COUNT, .no_exchange = true};
    run(&t, exchange, NULL);
    T_EQ(WEXITSTATUS(t.status), EINVAL);
}

static int map_shared(void *arg)
{
    int fd = open(arg, O_RDWR | O_CREAT, 0666);
    return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED;
}

static int map_to_read(void *arg)
{
    int fd = open(arg, O_RDONLY);
    return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED;
}

static int ring(void *arg)
{
    (void)arg;
    return syscall(SYS_io_uring_setup, 0, NULL) < 0 ? 0 : 1;
}

static int none(void *arg)
{
    (void)arg;
    syscall(100000);
    return 0;
}

static void what_it_does_not_know_is_told(void)
{
    struct trace t = {.fault = TRACE_COUNT};
    run(&t, map_shared, (void *)(uintptr_t)t_path("map"));
    T_EQ(t.unknown, SYS_mmap);
    run(&t, map_to_read, (void *)(uintptr_t)t_path("map"));
    T_EQ(t.unknown, -1);
    run(&t, ring, NULL);
    T_EQ(t.unknown, SYS_io_uring_setup);
    run(&t, none, NULL);
    T_EQ(t.unknown, 100000);
}

T_MAIN(T_CASE(counts_what_changes_files), T_CASE(strikes_the_call_that_was_named),
       T_CASE(a_file_system_without_exchange), T_CASE(what_it_does_not_know_is_told))
