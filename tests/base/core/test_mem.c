/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/mem.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/path.h"
#include "tests/t.h"

static void new_memory_is_zeroed(void)
{
    unsigned char *p = mem_new(100, 7);
    for (int i = 0; i < 700; i++)
        T_EQ(p[i], 0);
    free(p);
    p = mem_new(0, 8);
    T_CHECK(p != NULL);
    free(p);
}

static void growing_keeps(void)
{
    uint32_t *p = NULL;
    for (size_t n = 1; n < 100000; n *= 2) {
        p = mem_grow(p, n, sizeof(*p));
        p[n - 1] = (uint32_t)n;
        for (size_t k = 1; k <= n; k *= 2)
            T_EQ(p[k - 1], k);
    }
    free(p);
}

static void hostile_sizes_are_refused(void)
{
    struct err e;
    void *p = NULL;
    T_ERR(mem_try(SIZE_MAX / 2, 16, "ids of x.model", &p, &e), &e, ERR_RESOURCE, "ids of x.model");
    T_CHECK(p == NULL);
    T_ERR(mem_try(SIZE_MAX / 4, 1, "ids of x.model", &p, &e), &e, ERR_RESOURCE, "ids of x.model");
    T_CHECK(p == NULL);
    T_OK(mem_try(3, 5, "ids", &p, &e), &e);
    T_MEM(p, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    free(p);
}

/* A failed allocation of our own code ends the process with a message and code 5. */
static void exhaustion_ends_with_5(void)
{
    for (int way = 0; way < 3; way++) {
        struct err e;
        struct buf said = {0};
        const char *path = t_path("stderr");
        pid_t child = fork();
        if (!child) {
            dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
            free(way == 0   ? mem_new(SIZE_MAX / 2, 16)
                 : way == 1 ? mem_grow(NULL, SIZE_MAX / 2, 16)
                            : mem_grow(NULL, SIZE_MAX / 4, 1));
            _exit(0);
        }
        int status;
        T_EQ(waitpid(child, &status, 0), child);
        T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ERR_RESOURCE);
        T_OK(file_read(path, 100000, &said, &e), &e);
        T_CHECK(strstr(said.data, "error: out of memory: "));
        buf_finish(&said);
    }
}

static void texts(void)
{
    char *s = mem_printf("%s-%d", "shard", 12), *d = mem_strdup("abc"), *n = mem_strndup("abc", 2);
    T_STR(s, "shard-12");
    T_STR(d, "abc");
    T_STR(n, "ab");
    free(s);
    free(d);
    free(n);
}

/* Wishes: what is in memory stays, also where they reach beyond whole pages. */
static void pages_that_are_had_at_once(void)
{
    enum { N = 5 << 20 };
    char *p = mem_new(N, 1);
    p[0] = p[N - 1] = 7;
    mem_large_pages(p + 1, N - 2);
    mem_all_pages(p + 1, N - 2);
    mem_all_pages(p, 100);
    size_t set = 0;
    for (size_t i = 0; i < N; i++)
        set += p[i] != 0;
    T_EQ(set, 2);
    T_EQ(p[N - 1], 7);
    free(p);
}

static void blocks_can_be_written_and_grown(void)
{
    static const size_t size[] = {1, 4096, 1 << 20, (1 << 20) + 1, (3 << 20) - 1, (4 << 20) + 5};
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        char *p = mem_block(size[i]);
        memset(p, 7, size[i]);
        p = mem_grow(p, size[i] * 2, 1);
        T_CHECK(p[0] == 7 && p[size[i] - 1] == 7);
        free(p);
    }
}

static void pages_of_their_own_are_zeroed(void)
{
    static const size_t size[] = {4096, 2 << 20, (5 << 20) + 4096};
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        char *p = mem_pages(size[i]);
        T_EQ((uintptr_t)p % (size[i] < (2 << 20) ? 4096 : 2 << 20), 0);
        T_CHECK(p[0] == 0 && p[size[i] - 1] == 0);
        memset(p, 7, size[i]);
        T_EQ(munmap(p, size[i]), 0);
    }
}

static void pages_grow(void)
{
    const size_t few = 2 << 20, more = 6 << 20;
    char *p = mem_pages(few);
    memset(p, 7, few);
    p = mem_pages_grow(p, few, more);
    T_EQ((uintptr_t)p % (2 << 20), 0);
    T_CHECK(p[0] == 7 && p[few - 1] == 7 && p[few] == 0 && p[more - 1] == 0);
    T_EQ(munmap(p, more), 0);
}

static void pages_of_two_kinds_grow(void)
{
    const size_t few = 2 << 20, more = 6 << 20, part = 64 << 10;
    char *p = mem_pages(few);
    memset(p, 7, few);
    T_EQ(madvise(p + part, part, MADV_DONTFORK), 0);
    p = mem_pages_grow(p, few, more);
    T_CHECK(p[0] == 7 && p[few - 1] == 7 && p[few] == 0 && p[more - 1] == 0);
    T_EQ(munmap(p, more), 0);
}

static void copies_past_the_caches(void)
{
    enum { N = 9000 };
    static char from[N], to[N + 2];
    for (size_t i = 0; i < N; i++)
        from[i] = (char)(i % 251 + 1);
    for (size_t at = 0; at < 70; at++)
        for (size_t n = 0; at + n <= N; n = n < 70 ? n + 1 : n * 2 - at) {
            memset(to, 0, sizeof(to));
            mem_copy_past(to + at + 1, from + at, n);
            T_CHECK(memcmp(to + at + 1, from + at, n) == 0);
            T_CHECK(to[at] == 0 && to[at + n + 1] == 0);
        }
}

T_MAIN(T_CASE(pages_grow), T_CASE(pages_of_two_kinds_grow), T_CASE(copies_past_the_caches),
       T_CASE(pages_of_their_own_are_zeroed), T_CASE(pages_that_are_had_at_once),
       T_CASE(blocks_can_be_written_and_grown), T_CASE(new_memory_is_zeroed), T_CASE(growing_keeps),
       T_CASE(hostile_sizes_are_refused), T_CASE(exhaustion_ends_with_5), T_CASE(texts))
