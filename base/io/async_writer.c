/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/async_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"

enum {
    THREADS = 2,         /* fast disks want more than one write in flight */
    SLOTS = 16,          /* to ride out short stalls of the disk */
    SLOT = 2 << 20,      /* and its alignment in the file, for O_DIRECT */
    SPARE = 2,           /* slots kept without threads */
    AT_ONCE = 128 << 10, /* writes of this size bypass the buffer, if no threads write */
    TO_DISK = 8 << 20,   /* bytes between two requests for writeback */
    FREE_TIMES = 16,     /* allocate ahead only if AHEAD is at most 1/16 of the free space */
    AHEAD = 64 << 20     /* bytes allocated ahead */
};

/* Bytes [at, at + n) of the file. */
struct slot {
    struct slot *next;
    char *data;
    uint64_t at;
    size_t n, taken, written;
};

struct fifo {
    struct slot *first, *last;
};

struct async_writer {
    int fd, direct; /* the same file; direct is opened with O_DIRECT, or -1 */
    size_t piece;
    pthread_t thread[THREADS];
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    struct fifo open;   /* with reserved bytes, in file order; all after hand */
    struct fifo queue;  /* for the threads */
    struct slot *spare; /* a stack: the one written last is still in caches */
    size_t slots, most; /* allocated; kept when idle */
    size_t unwritten;   /* slots that the threads have */
    int failed;         /* errno */
    uint64_t size;      /* of the file, ahead of the data, so that writes run in parallel */
    bool grows;         /* it can still be extended */
    bool end;

    /* the reserving thread */
    char *to;
    size_t left;   /* bytes there */
    uint64_t next; /* where the next slot begins */

    /* the filling side */
    struct slot *hand;    /* being filled; NULL: the first open one */
    uint64_t at;          /* all before it is filled */
    uint64_t unrequested; /* bytes written since writeback was last requested */
};

/* ---- slots, under the lock ------------------------------------------------------------------ */

static void async_push(struct fifo *q, struct slot *s)
{
    s->next = NULL;
    if (q->first)
        q->last->next = s;
    else
        q->first = s;
    q->last = s;
}

static struct slot *async_pop(struct fifo *q)
{
    struct slot *s = q->first;
    if (s)
        q->first = s->next;
    return s;
}

static void drop(struct async_writer *w, struct slot *s)
{
    free(s->data);
    free(s);
    w->slots--;
}

/* Puts an empty slot aside, or frees it. */
static void spare(struct async_writer *w, struct slot *s)
{
    if (w->slots > w->most) {
        drop(w, s);
        return;
    }
    s->next = w->spare;
    w->spare = s;
}

/* ---- writing -------------------------------------------------------------------------------- */

/*
 * Requests writeback every few MiB, so that the final sync of a large file has little left to do
 * (errors surface at that sync).
 */
static void request_writeback(int fd, size_t n, uint64_t *unrequested)
{
    *unrequested += n;
    if (*unrequested < TO_DISK)
        return;
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    *unrequested = 0;
}

/* 0 or errno. */
static int write_at(const struct async_writer *w, int fd, const char *p, size_t n, uint64_t at,
                    uint64_t *unrequested)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EINVAL && fd != w->fd) { /* no O_DIRECT here, or misaligned */
            fd = w->fd;
            continue;
        }
        if (k < 0)
            return errno;
        done += (size_t)k;
    }
    if (fd == w->fd)
        request_writeback(fd, n, unrequested);
    return 0;
}

/* Writes what is filled and not yet written. */
static int write_slot(const struct async_writer *w, struct slot *s, uint64_t *unrequested)
{
    size_t from = s->written;
    s->written = s->taken;
    return write_at(w, w->direct < 0 || s->taken - from < SLOT ? w->fd : w->direct, s->data + from,
                    s->taken - from, s->at + from, unrequested);
}

/*
 * Appending writes are serialized, those inside the file run in parallel: so it is extended well
 * ahead of them, unless that takes too much of the free space. Called under the lock, which is
 * released while it grows. `end` is the end of the current write.
 */
static void async_grow(struct async_writer *w, uint64_t end)
{
    struct statvfs v;
    if (!w->grows || w->size >= end + SLOT)
        return;
    uint64_t from = w->size > end ? w->size : end;
    w->size = from + AHEAD;
    pthread_mutex_unlock(&w->lock);
    bool grown = !fstatvfs(w->fd, &v) && v.f_bavail / FREE_TIMES > AHEAD / v.f_bsize &&
                 !fallocate(w->fd, 0, (off_t)from, AHEAD);
    pthread_mutex_lock(&w->lock);
    w->grows &= grown;
}

static void *writer_main(void *arg)
{
    struct async_writer *w = arg;
    uint64_t unrequested = 0;
    /* on a single processor the waking thread keeps running: others may wait for it */
    pthread_setschedparam(pthread_self(), SCHED_BATCH, &(struct sched_param){0});
    pthread_mutex_lock(&w->lock);
    while (!w->end || w->queue.first) {
        struct slot *s = async_pop(&w->queue);
        if (!s) {
            pthread_cond_wait(&w->given, &w->lock);
            continue;
        }
        int failed = w->failed;
        if (!failed && s->n == SLOT)
            async_grow(w, s->at + SLOT);
        pthread_mutex_unlock(&w->lock);
        if (!failed)
            failed = write_slot(w, s, &unrequested);
        pthread_mutex_lock(&w->lock);
        w->failed = w->failed ? w->failed : failed;
        w->unwritten--;
        spare(w, s);
        pthread_cond_broadcast(&w->written);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void end_threads(struct async_writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_broadcast(&w->given);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
}

/* ---- places --------------------------------------------------------------------------------- */

static struct slot *make_slot(const struct async_writer *w)
{
    struct slot *s = mem_new(1, sizeof(*s));
    s->data = w->threads ? mem_block(SLOT) : mem_grow(NULL, w->piece, 1);
    return s;
}

/*
 * The next slot. There may be more than the usual number when places are reserved far ahead:
 * waiting for a slot to be filled could deadlock, as the filling thread may wait for this one.
 */
static struct slot *open_slot(struct async_writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->spare && w->slots >= w->most && w->unwritten)
        pthread_cond_wait(&w->written, &w->lock);
    struct slot *s = w->spare;
    if (s)
        w->spare = s->next;
    w->slots += !s;
    pthread_mutex_unlock(&w->lock);
    s = s ? s : make_slot(w);
    s->at = w->next;
    s->n = w->piece - s->at % w->piece;
    s->taken = s->written = 0;
    w->next += s->n;
    pthread_mutex_lock(&w->lock);
    async_push(&w->open, s);
    pthread_mutex_unlock(&w->lock);
    return s;
}

void *async_place(struct async_writer *w, size_t *n)
{
    if (!w->left) {
        struct slot *s = open_slot(w);
        w->to = s->data;
        w->left = s->n;
    }
    char *to = w->to;
    *n = *n < w->left ? *n : w->left;
    w->to += *n;
    w->left -= *n;
    return to;
}

/* ---- the filling side
 * ------------------------------------------------------------------------------ */

/* The current slot is full. Returns the first failure so far. */
static int give(struct async_writer *w)
{
    struct slot *s = w->hand;
    int failed = 0;
    w->hand = NULL;
    if (!w->threads)
        failed = w->failed ? w->failed : write_slot(w, s, &w->unrequested);
    pthread_mutex_lock(&w->lock);
    failed = w->failed = w->failed ? w->failed : failed;
    if (w->threads) {
        async_push(&w->queue, s);
        w->unwritten++;
        pthread_cond_signal(&w->given);
    } else {
        spare(w, s);
    }
    pthread_mutex_unlock(&w->lock);
    return failed;
}

int async_took(struct async_writer *w, size_t n)
{
    int failed = 0;
    while (n && !failed) {
        if (!w->hand) {
            pthread_mutex_lock(&w->lock);
            w->hand = async_pop(&w->open);
            pthread_mutex_unlock(&w->lock);
        }
        BUG_ON(!w->hand, "%zu bytes without a place", n);
        size_t left = w->hand->n - w->hand->taken, k = n < left ? n : left;
        w->hand->taken += k;
        w->at += k;
        n -= k;
        failed = k == left ? give(w) : 0;
    }
    return failed;
}

int async_wait(struct async_writer *w)
{
    int failed = 0;
    if (w->hand && w->hand->taken > w->hand->written)
        failed = write_slot(w, w->hand, &w->unrequested);
    pthread_mutex_lock(&w->lock);
    while (w->unwritten)
        pthread_cond_wait(&w->written, &w->lock);
    failed = w->failed = w->failed ? w->failed : failed;
    pthread_mutex_unlock(&w->lock);
    if (w->size > w->at && ftruncate(w->fd, (off_t)w->at) && !failed)
        failed = errno;
    w->size = 0;
    return failed;
}

/* The next reservation starts a new slot. */
static void leave_slot(struct async_writer *w)
{
    BUG_ON(w->next - w->left != w->at, "bytes up to %llu have places, up to %llu are taken",
           (unsigned long long)(w->next - w->left), (unsigned long long)w->at);
    pthread_mutex_lock(&w->lock);
    if (w->hand)
        spare(w, w->hand);
    pthread_mutex_unlock(&w->lock);
    w->hand = NULL;
    w->left = 0;
    w->next = w->at;
}

void async_rest(struct async_writer *w)
{
    leave_slot(w);
    pthread_mutex_lock(&w->lock);
    while (w->spare) {
        struct slot *s = w->spare;
        w->spare = s->next;
        drop(w, s);
    }
    pthread_mutex_unlock(&w->lock);
}

int async_write(struct async_writer *w, const void *p, size_t n)
{
    const char *s = p;
    int failed = 0;
    if (n >= AT_ONCE && !w->threads) {
        failed = async_wait(w);
        failed = failed ? failed : write_at(w, w->fd, s, n, w->at, &w->unrequested);
        leave_slot(w);
        w->at = w->next = w->at + n;
        return w->failed = failed;
    }
    while (n && !failed) {
        size_t k = n;
        char *to = async_place(w, &k);
        memcpy(to, s, k);
        failed = async_took(w, k);
        s += k;
        n -= k;
    }
    return failed;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

struct async_writer *async_create(int fd, uint64_t at, size_t piece)
{
    struct async_writer *w = mem_new(1, sizeof(*w));
    *w = (struct async_writer){
        .fd = fd, .direct = -1, .piece = piece, .most = SPARE, .at = at, .next = at};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    pthread_cond_init(&w->written, NULL);
    return w;
}

int async_pieces(struct async_writer *w, size_t piece)
{
    int failed = async_wait(w);
    async_rest(w);
    w->piece = piece;
    return failed;
}

/* Opens the file of a descriptor again with O_DIRECT; -1 if that is not possible. */
static int open_direct(int fd)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

int async_threads(struct async_writer *w)
{
    int failed = async_pieces(w, SLOT);
    w->most = SLOTS;
    w->direct = open_direct(w->fd);
    w->grows = w->direct >= 0;
    while (w->threads < THREADS && !failed) {
        failed = thread_start(&w->thread[w->threads], writer_main, w);
        w->threads += !failed;
    }
    return failed;
}

void async_destroy(struct async_writer *w)
{
    if (!w)
        return;
    end_threads(w);
    if (w->size > w->at)
        (void)!ftruncate(w->fd, (off_t)w->at);
    for (struct slot *s; (s = async_pop(&w->open));)
        drop(w, s);
    if (w->hand)
        drop(w, w->hand);
    for (struct slot *s; (s = w->spare);) {
        w->spare = s->next;
        drop(w, s);
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->given);
    pthread_cond_destroy(&w->written);
    if (w->direct >= 0)
        close(w->direct);
    free(w);
}
