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
    THREADS = 2,         /* a fast disk takes more than one piece at a time */
    SLOTS = 16,          /* so that no short wait of the disk is felt */
    SLOT = 2 << 20,      /* also where it begins in the file, for what goes past the page cache */
    SPARE = 2,           /* slots kept without threads */
    AT_ONCE = 128 << 10, /* so many bytes are written as they are, when no threads write */
    TO_DISK = 8 << 20,   /* bytes that the disk is told of at once */
    FREE_TIMES = 16,     /* so many times AHEAD are free on a disk from which it is taken */
    AHEAD = 64 << 20     /* bytes that the file gets at once */
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
    int fd, direct; /* the file twice: the other way is past the page cache, or -1 */
    size_t piece;
    pthread_t thread[THREADS];
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    struct fifo open;   /* with places that were given, in the order of the file; all behind hand */
    struct fifo queue;  /* for the threads */
    struct slot *spare; /* a stack: the last one written is still in caches */
    size_t slots, most; /* all of them; as many as are kept */
    size_t unwritten;   /* the threads have them */
    int failed;         /* errno */
    uint64_t size; /* of the file: more than was taken, so that pieces are written side by side */
    bool grows;    /* it can be more */
    bool end;

    /* who gives places */
    char *to;
    size_t left;   /* bytes there */
    uint64_t next; /* where the next slot begins */

    /* who takes */
    struct slot *hand; /* what is taken from; NULL: the first open one */
    uint64_t at;       /* all before it is taken */
    uint64_t told;     /* bytes written since the disk was told to begin */
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

/* It is empty. */
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
 * Every few MiB the disk is told to begin, so that the sync at the end of a large file finds little
 * left to do (how it went, that sync tells).
 */
static void async_tell(int fd, size_t n, uint64_t *told)
{
    *told += n;
    if (*told < TO_DISK)
        return;
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    *told = 0;
}

/* 0 or errno. */
static int write_at(const struct async_writer *w, int fd, const char *p, size_t n, uint64_t at,
                    uint64_t *told)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EINVAL && fd != w->fd) { /* not here, or not from such a place */
            fd = w->fd;
            continue;
        }
        if (k < 0)
            return errno;
        done += (size_t)k;
    }
    if (fd == w->fd)
        async_tell(fd, n, told);
    return 0;
}

/* What is taken of it, and not yet written. */
static int write_slot(const struct async_writer *w, struct slot *s, uint64_t *told)
{
    size_t from = s->written;
    s->written = s->taken;
    return write_at(w, w->direct < 0 || s->taken - from < SLOT ? w->fd : w->direct, s->data + from,
                    s->taken - from, s->at + from, told);
}

/*
 * Writes at the end of a file follow one another, those inside it go side by side: so it grows
 * ahead of them by much, unless that would take what others need. Under the lock, but while it
 * grows. `end` is that of what is written now.
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
    uint64_t told = 0;
    /* who wakes this goes on where there is but one processor: others may wait for what is taken */
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
            failed = write_slot(w, s, &told);
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
 * The next one. There may be more than are kept when places were given far ahead: what is to be
 * taken is not waited for, since it may wait for who asks here.
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

/* ---- who takes ------------------------------------------------------------------------------ */

/* The slot at hand is full. Returns the first failure so far. */
static int give(struct async_writer *w)
{
    struct slot *s = w->hand;
    int failed = 0;
    w->hand = NULL;
    if (!w->threads)
        failed = w->failed ? w->failed : write_slot(w, s, &w->told);
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
        failed = write_slot(w, w->hand, &w->told);
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

/* The next place is in a new slot. */
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
        failed = failed ? failed : write_at(w, w->fd, s, n, w->at, &w->told);
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

/* The file of a descriptor once more, past the page cache; -1 where that cannot be. */
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
