/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/map.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"

enum { PAGE = 4096, SIZE = 40 * PAGE + 123 };

static const char *make_file(const char *name, size_t n)
{
    struct err e;
    unsigned char *p = mem_new(n, 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i % 251 + 1);
    const char *path = t_path(name);
    T_OK(file_replace(path, p, n, &e), &e);
    free(p);
    return path;
}

static size_t count_zeros(const struct map *m)
{
    size_t zeros = 0;
    for (size_t i = 0; i < m->size; i++)
        zeros += ((const volatile unsigned char *)m->data)[i] == 0;
    return zeros;
}

static void whole_file(void)
{
    struct err e;
    struct map m;
    T_OK(map_open(&m, make_file("a", SIZE), &e), &e);
    T_EQ(m.size, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        T_EQ(m.data[i], i % 251 + 1);
    map_random(&m);
    map_soon(&m, 0, SIZE);
    map_soon(&m, PAGE + 1, 5);
    map_soon(&m, SIZE - 1, 2); /* not in the file, and not requested */
    map_soon(&m, (size_t)-1, 2);
    T_OK(map_check(&m, &e), &e);
    map_close(&m);
    T_CHECK(!m.data && m.slot == -1);
    map_close(&m);
    m = (struct map){0};
    map_close(&m);
}

/* Looked at first, mapped when it is wanted, if it is still the same file. */
static void in_two_steps(void)
{
    struct err e;
    struct map m;
    const char *path = make_file("late", SIZE);
    int fd;
    T_OK(map_later(&m, path, &fd, &e), &e);
    T_CHECK(!m.data && m.slot == -1);
    T_EQ(m.size, SIZE);
    T_EQ(lseek(fd, 0, SEEK_END), SIZE);
    T_EQ(close(fd), 0);
    T_OK(map_check(&m, &e), &e);
    T_OK(map_now(&m, &e), &e);
    T_OK(map_now(&m, &e), &e);
    T_EQ(m.data[1], 2);
    map_close(&m);
    T_OK(map_later(&m, path, NULL, &e), &e);
    T_EQ(truncate(path, PAGE), 0);
    T_ERR(map_now(&m, &e), &e, ERR_IO, "late: was replaced, or no longer has the 163963 bytes");
    map_close(&m);
    T_OK(map_later(&m, path, NULL, &e), &e);
    T_EQ(remove(path), 0);
    T_ERR(map_now(&m, &e), &e, ERR_IO, "late: cannot open");
    map_close(&m);
    T_ERR(map_later(&m, path, NULL, &e), &e, ERR_IO, "late: cannot open");
}

static void empty_file(void)
{
    struct err e;
    struct map m;
    T_OK(map_open(&m, make_file("a", 0), &e), &e);
    T_EQ(m.size, 0);
    T_CHECK(m.data != NULL);
    T_OK(map_check(&m, &e), &e);
    map_random(&m);
    map_close(&m);
}

static void not_a_file(void)
{
    struct err e;
    struct map m;
    T_ERR(map_open(&m, t_path("missing"), &e), &e, ERR_IO, "missing: cannot open");
    T_ERR(map_open(&m, t_dir(), &e), &e, ERR_IO, "not a regular file");
    T_EQ(mkfifo(t_path("pipe"), 0600), 0);
    T_ERR(map_open(&m, t_path("pipe"), &e), &e, ERR_IO, "pipe: is not a regular file");
    map_close(&m);
}

static void the_file_shrinks(void)
{
    struct err e;
    struct map m, other;
    const char *path = make_file("a", SIZE);
    T_OK(map_open(&other, make_file("b", SIZE), &e), &e);
    T_OK(map_open(&m, path, &e), &e);
    T_EQ(truncate(path, 10 * PAGE), 0);
    T_OK(map_check(&m, &e), &e); /* nothing has been read yet */
    T_EQ(count_zeros(&m), SIZE - 10 * PAGE);
    T_ERR(map_check(&m, &e), &e, ERR_IO, "a: shrank below the 163963 bytes");
    T_EQ(truncate(path, 0), 0);
    T_EQ(count_zeros(&m), SIZE);
    T_EQ(count_zeros(&other), 0);
    T_OK(map_check(&other, &e), &e);
    map_close(&m);
    T_OK(map_open(&m, make_file("a", SIZE), &e), &e); /* the slot is used again, and clean */
    T_OK(map_check(&m, &e), &e);
    map_close(&m);
    map_close(&other);
}

/* A read of the rest of the last page, past the file's end, is guarded too. */
static void the_last_page(void)
{
    struct err e;
    struct map m;
    const char *path = make_file("a", 2 * PAGE + 1);
    T_OK(map_open(&m, path, &e), &e);
    T_EQ(truncate(path, PAGE), 0);
    T_EQ(((const volatile unsigned char *)m.data)[3 * PAGE - 1], 0);
    T_ERR(map_check(&m, &e), &e, ERR_IO, "shrank below");
    map_close(&m);
}

static void many_maps(void)
{
    enum { N = 700 }; /* more than two blocks of slots */
    struct err e;
    struct map *m = mem_new(N, sizeof(*m));
    const char *path = make_file("a", PAGE), *victim = make_file("v", 3 * PAGE);
    for (int i = 0; i < N; i++)
        T_OK(map_open(&m[i], i == N - 1 ? victim : path, &e), &e);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i && i < 20; j++)
            T_CHECK(m[i].slot != m[j].slot);
    T_EQ(truncate(victim, PAGE), 0);
    T_EQ(count_zeros(&m[N - 1]), 2 * PAGE);
    for (int i = 0; i < N; i++) {
        T_EQ(map_check(&m[i], &e), i == N - 1 ? ERR_IO : 0);
        map_close(&m[i]);
    }
    free(m);
}

struct reader {
    const struct map *m;
    atomic_int *go;
    size_t zeros;
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(r->go))
        ;
    r->zeros = count_zeros(r->m);
    return NULL;
}

static void *open_and_close(void *arg)
{
    struct err e;
    struct map m;
    for (int i = 0; i < 300; i++) {
        if (map_open(&m, arg, &e) || map_check(&m, &e))
            return arg;
        map_close(&m);
    }
    return NULL;
}

/* Four threads fault on one map while two others open and close theirs. */
static void threads_fault_together(void)
{
    enum { READERS = 4, OPENERS = 2 };
    struct err e;
    for (int round = 0; round < 5; round++) {
        struct map m;
        struct reader r[READERS];
        pthread_t id[READERS + OPENERS];
        atomic_int go = 0;
        const char *path = make_file("a", SIZE), *calm = make_file("b", PAGE);
        T_OK(map_open(&m, path, &e), &e);
        for (int i = 0; i < READERS; i++) {
            r[i] = (struct reader){.m = &m, .go = &go};
            T_EQ(pthread_create(&id[i], NULL, read_all, &r[i]), 0);
        }
        for (int i = READERS; i < READERS + OPENERS; i++)
            T_EQ(pthread_create(&id[i], NULL, open_and_close, (void *)(uintptr_t)calm), 0);
        T_EQ(truncate(path, 3 * PAGE), 0);
        atomic_store(&go, 1);
        for (int i = 0; i < READERS + OPENERS; i++) {
            void *failed;
            pthread_join(id[i], &failed);
            T_CHECK(!failed);
        }
        for (int i = 0; i < READERS; i++)
            T_EQ(r[i].zeros, SIZE - 3 * PAGE);
        T_ERR(map_check(&m, &e), &e, ERR_IO, "shrank below");
        map_close(&m);
    }
}

/* ---- other signals go to the previous handler ------------------------------------ */

static void leave_with_9(int sig)
{
    (void)sig;
    _exit(9);
}

static void leave_with_8(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    _exit(info->si_code > 0 ? 8 : 7);
}

static void foreign_fault(void)
{
    const char *path = t_path("foreign");
    FILE *f = fopen(path, "w+");
    if (!f || ftruncate(fileno(f), PAGE))
        _exit(99);
    volatile char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    if (ftruncate(fileno(f), 0))
        _exit(99);
    (void)p[0];
    _exit(98);
}

static void sent(void)
{
    raise(SIGBUS);
    _exit(97);
}

/* The guard is installed over `before` in a child of its own, which then gets a SIGBUS that is not
 * the guard's. */
static int fate(const struct sigaction *before, void (*cause)(void))
{
    const char *path = make_file("a", PAGE);
    pid_t child = fork();
    if (!child) {
        struct map m;
        if (before)
            sigaction(SIGBUS, before, NULL);
        if (map_open(&m, path, NULL))
            _exit(96);
        cause();
    }
    int status = 0;
    T_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Must run before this process maps anything: the guard looks for its forerunner once. */
static void other_faults_are_passed_on(void)
{
    struct sigaction plain = {.sa_handler = leave_with_9};
    struct sigaction info = {.sa_sigaction = leave_with_8, .sa_flags = SA_SIGINFO};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, deflt = {.sa_handler = SIG_DFL};
    T_EQ(fate(&plain, foreign_fault), 9);
    T_EQ(fate(&plain, sent), 9);
    T_EQ(fate(&info, foreign_fault), 8);
    T_EQ(fate(&info, sent), 7);
    T_EQ(fate(&deflt, foreign_fault), -SIGBUS);
    T_EQ(fate(&deflt, sent), -SIGBUS);
    T_EQ(fate(&ignore, sent), 97);
    T_EQ(fate(&ignore, foreign_fault), -SIGBUS);
}

/* The kernel's limit, if it can be read. */
static void most_maps(void)
{
    struct err e;
    struct buf b = {0};
    T_CHECK(map_most() > 0);
    if (file_read("/proc/sys/vm/max_map_count", 100, &b, &e))
        t_skip("there is no limit to be read");
    uint64_t limit = strtoull(b.data, NULL, 10);
    T_CHECK(map_most() == limit || (limit > 1000000 && map_most() > 1000000));
    buf_finish(&b);
}

T_MAIN(T_CASE(other_faults_are_passed_on), T_CASE(whole_file), T_CASE(in_two_steps),
       T_CASE(empty_file), T_CASE(not_a_file), T_CASE(the_file_shrinks), T_CASE(the_last_page),
       T_CASE(many_maps), T_CASE(most_maps), T_CASE(threads_fault_together))
