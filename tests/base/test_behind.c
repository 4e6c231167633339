/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/behind.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "tests/t.h"

static int add(struct behind *w, const void *p, size_t n)
{
    int failed = 0;
    for (const char *from = p; n && !failed;) {
        size_t room;
        char *to = behind_room(w, &room);
        T_CHECK(room);
        size_t k = n < room ? n : room;
        memcpy(to, from, k);
        from += k;
        n -= k;
        failed = behind_took(w, k);
    }
    return failed;
}

static void all_is_written_in_order(void)
{
    struct err e;
    struct behind *w;
    struct buf b = {0}, want = {0}, got = {0};
    int fd = open(t_path("all"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    T_CHECK(fd >= 0);
    T_OK(behind_create(fd, 0, &w, &e), &e);
    T_EQ(behind_wait(w), 0);
    for (int i = 0; i < 5000; i++) {
        for (int k = 0; k < i % 700; k++)
            buf_addf(&b, "%d ", i * k);
        buf_add(&want, b.data, b.len);
        T_EQ(add(w, b.data, b.len), 0);
        buf_reset(&b);
        if (i % 1000 == 7) {
            uint64_t size;
            T_EQ(behind_wait(w), 0);
            T_OK(file_size(t_path("all"), &size, &e), &e);
            T_EQ(size, want.len);
        }
    }
    behind_destroy(w); /* writes what is left */
    close(fd);
    T_OK(file_read(t_path("all"), 1 << 30, &got, &e), &e);
    T_CHECK(got.len == want.len && want.len > (8 << 20));
    T_MEM(got.data, want.data, want.len);
    buf_finish(&b);
    buf_finish(&want);
    buf_finish(&got);
}

/* Begun at any place and waited for at any place: what goes past the page cache and what does not
 * stand side by side. */
static void pieces_stand_where_they_belong(void)
{
    enum { ALL = 9 << 20 };
    char *want = mem_new(ALL, 1);
    for (uint64_t i = 0; i < ALL; i += 4) {
        uint32_t v = t_rand(3, i);
        memcpy(want + i, &v, 4);
    }
    static const size_t begin[] = {0, 5, 4096, (2 << 20) - 1, 2 << 20, (4 << 20) + 4096};
    for (size_t k = 0; k < sizeof(begin) / sizeof(*begin); k++) {
        struct err e;
        struct behind *w;
        struct buf got = {0};
        size_t at = begin[k];
        int fd = open(t_path("pieces"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        T_EQ(pwrite(fd, want, at, 0), (ssize_t)at);
        T_OK(behind_create(fd, at, &w, &e), &e);
        for (uint64_t i = 0; at < ALL; i++) {
            size_t n = t_rand(4, i * 8 + k) % (i % 5 ? 70000 : 3 << 20);
            n = n < ALL - at ? n : ALL - at;
            T_EQ(add(w, want + at, n), 0);
            at += n;
            if (t_rand(5, i * 8 + k) % 9 == 0)
                T_EQ(behind_wait(w), 0);
        }
        behind_destroy(w);
        T_EQ(fcntl(fd, F_GETFL) & O_DIRECT, 0);
        close(fd);
        T_OK(file_read(t_path("pieces"), 1 << 30, &got, &e), &e);
        T_EQ(got.len, ALL);
        T_MEM(got.data, want, ALL);
        buf_finish(&got);
    }
    free(want);
}

static void the_first_failure_is_told(void)
{
    struct err e;
    struct behind *w;
    struct buf b = {0};
    int fd = open("/dev/full", O_WRONLY);
    T_CHECK(fd >= 0);
    T_OK(behind_create(fd, 0, &w, &e), &e);
    for (int i = 0; i < 100; i++) {
        buf_adds(&b, "x");
        T_EQ(add(w, b.data, b.len), 0);
        buf_reset(&b);
    }
    T_EQ(behind_wait(w), ENOSPC);
    T_EQ(add(w, "", 0), 0);
    T_EQ(behind_wait(w), ENOSPC);
    behind_destroy(w);
    behind_destroy(NULL);
    close(fd);
    buf_finish(&b);
}

static void bytes_are_counted_until_the_disk_is_told(void)
{
    uint64_t told = 0;
    int fd = open(t_path("told"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    static char zero[1 << 20];
    T_EQ(write_told(fd, zero, 5, &told), 0);
    T_EQ(told, 5);
    for (int i = 0; i < 8; i++)
        T_EQ(write_told(fd, zero, sizeof(zero), &told), 0);
    T_EQ(told, 0);
    close(fd);
    T_EQ(write_told(fd, zero, 1, &told), EBADF);
}

T_MAIN(T_CASE(all_is_written_in_order), T_CASE(pieces_stand_where_they_belong),
       T_CASE(the_first_failure_is_told), T_CASE(bytes_are_counted_until_the_disk_is_told))
