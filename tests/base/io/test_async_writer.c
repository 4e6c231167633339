/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/async_writer.h"
#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"

static struct async_writer *begin(int fd, uint64_t at)
{
    struct async_writer *w = async_create(fd, at, 4096);
    T_EQ(async_threads(w), 0);
    return w;
}

static void all_is_written_in_order(void)
{
    struct err e;
    struct async_writer *w;
    struct buf b = {0}, want = {0}, got = {0};
    int fd = open(t_path("all"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    T_CHECK(fd >= 0);
    w = begin(fd, 0);
    T_EQ(async_wait(w), 0);
    for (int i = 0; i < 5000; i++) {
        for (int k = 0; k < i % 700; k++)
            buf_addf(&b, "%d ", i * k);
        buf_add(&want, b.data, b.len);
        T_EQ(async_write(w, b.data, b.len), 0);
        buf_reset(&b);
        if (i % 1000 == 7) {
            uint64_t size;
            T_EQ(async_wait(w), 0);
            T_OK(file_size(t_path("all"), &size, &e), &e);
            T_EQ(size, want.len);
        }
    }
    T_EQ(async_wait(w), 0);
    async_destroy(w);
    close(fd);
    T_OK(file_read(t_path("all"), 1 << 30, &got, &e), &e);
    T_CHECK(got.len == want.len && want.len > (8 << 20));
    T_MEM(got.data, want.data, want.len);
    buf_finish(&b);
    buf_finish(&want);
    buf_finish(&got);
}

/* Started and waited for at any place: direct and buffered writes are mixed. */
static void pieces_stand_where_they_belong(void)
{
    enum { ALL = 9 << 20 };
    char *want = mem_new(ALL, 1);
    for (uint64_t i = 0; i < ALL; i += 4) {
        uint32_t v = t_rand(3, i);
        memcpy(want + i, &v, 4);
    }
    static const size_t first[] = {0, 5, 4096, (2 << 20) - 1, 2 << 20, (4 << 20) + 4096};
    for (size_t k = 0; k < sizeof(first) / sizeof(*first); k++) {
        struct err e;
        struct buf got = {0};
        size_t at = first[k];
        int fd = open(t_path("pieces"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        T_EQ(pwrite(fd, want, at, 0), (ssize_t)at);
        struct async_writer *w = begin(fd, at);
        for (uint64_t i = 0; at < ALL; i++) {
            size_t n = t_rand(4, i * 8 + k) % (i % 5 ? 70000 : 3 << 20);
            n = n < ALL - at ? n : ALL - at;
            T_EQ(async_write(w, want + at, n), 0);
            at += n;
            if (t_rand(5, i * 8 + k) % 9 == 0)
                T_EQ(async_wait(w), 0);
        }
        T_EQ(async_wait(w), 0);
        async_destroy(w);
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
    int fd = open("/dev/full", O_WRONLY);
    T_CHECK(fd >= 0);
    for (int threads = 0; threads < 2; threads++) {
        struct async_writer *w = threads ? begin(fd, 0) : async_create(fd, 0, 4096);
        for (int i = 0; i < 100; i++)
            T_EQ(async_write(w, "xxxxx", 5), 0);
        T_EQ(async_wait(w), ENOSPC);
        T_EQ(async_write(w, "", 0), 0);
        T_EQ(async_wait(w), ENOSPC);
        async_destroy(w);
    }
    async_destroy(NULL);
    close(fd);
}

/* ---- places ahead --------------------------------------------------------------------------- */

struct part {
    char *to;
    size_t at, n;
};

/* Gives places for the next n bytes from `at` on, and appends them. */
static void place(struct async_writer *w, size_t at, size_t n, struct buf *ret)
{
    while (n) {
        struct part p = {.at = at, .n = n};
        p.to = async_place(w, &p.n);
        T_CHECK(p.n && p.n <= n);
        buf_add(ret, &p, sizeof(p));
        at += p.n;
        n -= p.n;
    }
}

static const struct part *parts_of(const struct buf *b, size_t *ret_n)
{
    *ret_n = b->len / sizeof(struct part);
    return (const struct part *)(const void *)b->data;
}

static char *some_bytes(size_t n)
{
    char *p = mem_new(n, 1);
    for (uint64_t i = 0; i < n; i += 4) {
        uint32_t v = t_rand(7, i);
        memcpy(p + i, &v, 4);
    }
    return p;
}

/* More than is kept at a time, filled from the last place to the first; what is waited for is what
 * was taken, wherever the places are. */
static void places_are_filled_in_any_order(void)
{
    enum { ALL = 40 << 20 };
    char *want = some_bytes(ALL);
    for (int threads = 0; threads < 2; threads++) {
        struct err e;
        struct buf got = {0}, parts = {0};
        int fd = open(t_path("places"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        struct async_writer *w = threads ? begin(fd, 0) : async_create(fd, 0, 100000);
        for (size_t at = 0, n; at < ALL; at += n) {
            n = 1 + t_rand(8, at) % 300000;
            n = n < ALL - at ? n : ALL - at;
            place(w, at, n, &parts);
        }
        size_t n, taken = 0;
        const struct part *p = parts_of(&parts, &n);
        for (size_t i = n; i--;)
            memcpy(p[i].to, want + p[i].at, p[i].n);
        for (size_t i = 0; i < n; i++) {
            T_EQ(async_took(w, p[i].n), 0);
            taken += p[i].n;
            if (i % 40 == 3) {
                uint64_t size;
                T_EQ(async_wait(w), 0);
                T_OK(file_size(t_path("places"), &size, &e), &e);
                T_EQ(size, taken);
            }
        }
        T_EQ(async_wait(w), 0);
        async_destroy(w);
        close(fd);
        T_OK(file_read(t_path("places"), 1 << 30, &got, &e), &e);
        T_EQ(got.len, ALL);
        T_MEM(got.data, want, ALL);
        buf_finish(&got);
        buf_finish(&parts);
    }
    free(want);
}

struct pair {
    struct async_writer *w;
    const char *want;
    size_t all;
    pthread_mutex_t lock;
    pthread_cond_t more;
    size_t ready; /* bytes with a place, and filled */
    size_t taken;
};

static void *takes(void *arg)
{
    struct pair *p = arg;
    while (p->taken < p->all) {
        pthread_mutex_lock(&p->lock);
        while (p->ready == p->taken)
            pthread_cond_wait(&p->more, &p->lock);
        size_t n = p->ready - p->taken;
        pthread_mutex_unlock(&p->lock);
        T_EQ(async_took(p->w, n), 0);
        p->taken += n;
        if (p->taken % 7 == 0)
            T_EQ(async_wait(p->w), 0);
    }
    return NULL;
}

/* One thread gives places while the other one takes and waits. */
static void two_threads_have_it(void)
{
    enum { ALL = 70 << 20 };
    char *want = some_bytes(ALL);
    for (int threads = 0; threads < 2; threads++) {
        struct err e;
        struct buf got = {0}, parts = {0};
        pthread_t t;
        int fd = open(t_path("two"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        struct pair x = {.w = threads ? begin(fd, 0) : async_create(fd, 0, 50000),
                         .want = want,
                         .all = ALL,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .more = PTHREAD_COND_INITIALIZER};
        T_EQ(pthread_create(&t, NULL, takes, &x), 0);
        for (size_t at = 0, n, k; at < ALL; at += n) {
            n = 1 + t_rand(9, at) % 300000;
            n = n < ALL - at ? n : ALL - at;
            buf_reset(&parts);
            place(x.w, at, n, &parts);
            const struct part *p = parts_of(&parts, &k);
            for (size_t i = 0; i < k; i++)
                memcpy(p[i].to, want + p[i].at, p[i].n);
            pthread_mutex_lock(&x.lock);
            x.ready = at + n;
            pthread_cond_signal(&x.more);
            pthread_mutex_unlock(&x.lock);
        }
        T_EQ(pthread_join(t, NULL), 0);
        T_EQ(async_wait(x.w), 0);
        async_destroy(x.w);
        close(fd);
        T_OK(file_read(t_path("two"), 1 << 30, &got, &e), &e);
        T_EQ(got.len, ALL);
        T_MEM(got.data, want, ALL);
        buf_finish(&got);
        buf_finish(&parts);
    }
    free(want);
}

/* Small and large amounts, pieces of another size, and pieces given back between. */
static void without_threads_all_is_written_too(void)
{
    enum { ALL = 3 << 20 };
    struct err e;
    struct buf got = {0};
    char *want = some_bytes(ALL);
    int fd = open(t_path("none"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    struct async_writer *w = async_create(fd, 0, 4096);
    for (size_t at = 0, n; at < ALL; at += n) {
        uint32_t r = t_rand(10, at);
        n = r % (r % 5 ? 3000 : 400000);
        n = n < ALL - at ? n : ALL - at;
        T_EQ(async_write(w, want + at, n), 0);
        if (r % 11 == 0)
            T_EQ(async_pieces(w, 8 + r % 9000), 0);
        if (r % 13 == 0) {
            T_EQ(async_wait(w), 0);
            async_rest(w);
        }
    }
    T_EQ(async_wait(w), 0);
    async_destroy(w);
    close(fd);
    T_OK(file_read(t_path("none"), 1 << 30, &got, &e), &e);
    T_EQ(got.len, ALL);
    T_MEM(got.data, want, ALL);
    buf_finish(&got);
    free(want);
}

T_MAIN(T_CASE(all_is_written_in_order), T_CASE(pieces_stand_where_they_belong),
       T_CASE(the_first_failure_is_told), T_CASE(places_are_filled_in_any_order),
       T_CASE(two_threads_have_it), T_CASE(without_threads_all_is_written_too))
