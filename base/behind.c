/* SPDX-License-Identifier: Apache-2.0 */
#include "base/behind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    THREADS = 2,       /* a fast disk takes more than one piece at a time */
    SLOTS = 16,        /* so that no short wait of the disk is felt */
    SLOT = 2 << 20,    /* also where it begins in the file, for what goes past the page cache */
    TO_DISK = 8 << 20, /* bytes that the disk is told of at once */
    AHEAD = 64 << 20,  /* bytes that the file gets at once, while the disk has FREE_TIMES as many */
    FREE_TIMES = 16
};

/* Bytes [at, at + n) of the file. */
struct slot {
    char *data; /* NULL before it is used */
    size_t n;
    uint64_t at;
};

struct behind {
    int fd, direct; /* the file twice: the other way is past the page cache, or -1 */
    pthread_t thread[THREADS];
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    struct slot slot[SLOTS];
    struct slot *spare[SLOTS]; /* a stack: the last one written is still in caches */
    struct slot *queue[SLOTS]; /* a ring of those between ntaken and ngiven */
    size_t nspare;
    uint64_t ngiven, ntaken;
    int failed; /* errno */
    bool end;

    /* who adds */
    struct slot *hand; /* what is filled; NULL: none */
    uint64_t at;       /* where the next slot begins */
    uint64_t size; /* of the file: more than was added, so that pieces are written side by side */
    bool grows;    /* it can be more */
};

/* ---- the threads ---------------------------------------------------------------------------- */

static void tell(int fd, size_t n, uint64_t *told)
{
    *told += n;
    if (*told < TO_DISK)
        return;
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    *told = 0;
}

int write_told(int fd, const void *p, size_t n, uint64_t *told)
{
    const char *s = p;
    for (size_t left = n; left;) {
        ssize_t k = write(fd, s, left);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno;
        s += k;
        left -= (size_t)k;
    }
    tell(fd, n, told);
    return 0;
}

static int write_slot(const struct behind *w, const struct slot *s, uint64_t *told)
{
    int fd = w->direct < 0 || s->n < SLOT ? w->fd : w->direct;
    for (size_t done = 0; done < s->n;) {
        ssize_t k = pwrite(fd, s->data + done, s->n - done, (off_t)(s->at + done));
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
        tell(fd, s->n, told);
    return 0;
}

static void *writer_main(void *arg)
{
    struct behind *w = arg;
    uint64_t told = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->end || w->ntaken != w->ngiven) {
        if (w->ntaken == w->ngiven) {
            pthread_cond_wait(&w->given, &w->lock);
            continue;
        }
        struct slot *s = w->queue[w->ntaken++ % SLOTS];
        int failed = w->failed;
        pthread_mutex_unlock(&w->lock);
        if (!failed)
            failed = write_slot(w, s, &told);
        pthread_mutex_lock(&w->lock);
        w->failed = w->failed ? w->failed : failed;
        w->spare[w->nspare++] = s;
        pthread_cond_signal(&w->written);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void end_threads(struct behind *w)
{
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_broadcast(&w->given);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
}

/* ---- who adds ------------------------------------------------------------------------------- */

/* The file of a descriptor once more, past the page cache; -1 where that cannot be. */
static int open_direct(int fd)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

int behind_create(int fd, uint64_t at, struct behind **ret, struct err *e)
{
    struct behind *w = mem_new(1, sizeof(*w));
    w->fd = fd;
    w->direct = open_direct(fd);
    w->at = at;
    w->grows = w->direct >= 0;
    for (; w->nspare < SLOTS; w->nspare++)
        w->spare[w->nspare] = &w->slot[w->nspare];
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    pthread_cond_init(&w->written, NULL);
    int failed = 0;
    while (w->threads < THREADS && !failed) {
        failed = thread_start(&w->thread[w->threads], writer_main, w);
        w->threads += !failed;
    }
    if (!failed) {
        *ret = w;
        return 0;
    }
    behind_destroy(w);
    return err_set(e, ERR_RESOURCE, "cannot start a thread that writes: %s", strerror(failed));
}

/*
 * Writes at the end of a file follow one another, those inside it go side by side: so it grows
 * ahead of them by much, unless that would take what others need.
 */
static void grow(struct behind *w)
{
    struct statvfs v;
    if (!w->grows || w->size >= w->at + SLOT)
        return;
    w->size = w->at + AHEAD;
    w->grows = !fstatvfs(w->fd, &v) && v.f_bavail / FREE_TIMES > AHEAD / v.f_bsize &&
               !fallocate(w->fd, 0, (off_t)w->at, AHEAD);
}

/* The slot that is filled next, once one is free. */
static struct slot *at_hand(struct behind *w)
{
    if (w->hand)
        return w->hand;
    pthread_mutex_lock(&w->lock);
    while (!w->nspare)
        pthread_cond_wait(&w->written, &w->lock);
    struct slot *s = w->spare[--w->nspare];
    pthread_mutex_unlock(&w->lock);
    s->at = w->at;
    s->n = 0;
    if (!s->data) {
        s->data = aligned_alloc(SLOT, SLOT);
        BUG_ON(!s->data, "no memory for %d bytes to write", SLOT);
        mem_large_pages(s->data, SLOT);
    }
    return w->hand = s;
}

/* The slot at hand is the threads'. Returns the first failure so far. */
static int give(struct behind *w)
{
    struct slot *s = w->hand;
    w->hand = NULL;
    w->at += s->n;
    if (s->n == SLOT)
        grow(w);
    pthread_mutex_lock(&w->lock);
    w->queue[w->ngiven++ % SLOTS] = s;
    int failed = w->failed;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
    return failed;
}

void *behind_room(struct behind *w, size_t *ret_n)
{
    struct slot *s = at_hand(w);
    *ret_n = SLOT - s->at % SLOT - s->n;
    return s->data + s->n;
}

int behind_took(struct behind *w, size_t n)
{
    struct slot *s = w->hand;
    s->n += n;
    return s->n == SLOT - s->at % SLOT ? give(w) : 0;
}

int behind_wait(struct behind *w)
{
    if (w->hand)
        give(w);
    pthread_mutex_lock(&w->lock);
    while (w->nspare != SLOTS)
        pthread_cond_wait(&w->written, &w->lock);
    int failed = w->failed;
    pthread_mutex_unlock(&w->lock);
    if (w->size > w->at && ftruncate(w->fd, (off_t)w->at) && !failed)
        failed = errno;
    w->size = 0;
    return failed;
}

void behind_destroy(struct behind *w)
{
    if (!w)
        return;
    behind_wait(w);
    end_threads(w);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->given);
    pthread_cond_destroy(&w->written);
    for (size_t i = 0; i < SLOTS; i++)
        free(w->slot[i].data);
    if (w->direct >= 0)
        close(w->direct);
    free(w);
}
