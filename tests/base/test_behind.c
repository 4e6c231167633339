/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/behind.h"
#include "base/file.h"
#include "tests/t.h"

static void all_is_written_in_order(void)
{
    struct err e;
    struct behind *w;
    struct buf b = {0}, want = {0}, got = {0};
    int fd = open(t_path("all"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    T_CHECK(fd >= 0);
    T_OK(behind_create(fd, &w, &e), &e);
    T_EQ(behind_wait(w), 0);
    for (int i = 0; i < 5000; i++) {
        for (int k = 0; k < i % 700; k++)
            buf_addf(&b, "%d ", i * k);
        buf_add(&want, b.data, b.len);
        behind_give(w, &b);
        T_EQ(b.len, 0);
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

static void the_first_failure_is_told(void)
{
    struct err e;
    struct behind *w;
    struct buf b = {0};
    int fd = open("/dev/full", O_WRONLY);
    T_CHECK(fd >= 0);
    T_OK(behind_create(fd, &w, &e), &e);
    for (int i = 0; i < 100; i++) {
        buf_adds(&b, "x");
        behind_give(w, &b);
    }
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

T_MAIN(T_CASE(all_is_written_in_order), T_CASE(the_first_failure_is_told),
       T_CASE(bytes_are_counted_until_the_disk_is_told))
