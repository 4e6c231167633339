/* SPDX-License-Identifier: Apache-2.0 */
#include "base/behind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    THREADS = 2,      /* a fast disk takes more than one piece at a time */
    SLOTS = 4,        /* one for each, one filled, and one is between them */
    SLOT = 2 << 20,   /* also where it begins in the file, for what goes past the page cache */
    TO_DISK = 8 << 20 /* bytes that the disk is told of at once */
};

/* Bytes [at, at + n) of the file. */
struct slot {
    char *data; /* NULL before it is used */
    size_t n;
    uint64_t at;
    bool done;
};

struct behind {
    int fd, direct; /* the file twice: the other way is past the page cache, or -1 */
    pthread_t thread[THREADS];
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    /* a ring: those before nwritten are done, those before ntaken are a thread's */
    struct slot slot[SLOTS];
    uint64_t ngiven, ntaken, nwritten;
    int failed; /* errno */
    bool end;

    uint64_t at;  /* who adds: where the slot at hand begins */
    bool filling; /* it has it in hand */
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
        struct slot *s = &w->slot[w->ntaken++ % SLOTS];
        int failed = w->failed;
        pthread_mutex_unlock(&w->lock);
        if (!failed)
            failed = write_slot(w, s, &told);
        pthread_mutex_lock(&w->lock);
        w->failed = w->failed ? w->failed : failed;
        s->done = true;
        while (w->nwritten != w->ntaken && w->slot[w->nwritten % SLOTS].done)
            w->slot[w->nwritten++ % SLOTS].done = false;
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

/* The slot that is filled next, once it is free. */
static struct slot *at_hand(struct behind *w)
{
    struct slot *s = &w->slot[w->ngiven % SLOTS];
    if (w->filling)
        return s;
    pthread_mutex_lock(&w->lock);
    while (w->ngiven - w->nwritten == SLOTS)
        pthread_cond_wait(&w->written, &w->lock);
    pthread_mutex_unlock(&w->lock);
    w->filling = true;
    s->at = w->at;
    s->n = 0;
    if (!s->data) {
        s->data = aligned_alloc(SLOT, SLOT);
        BUG_ON(!s->data, "no memory for %d bytes to write", SLOT);
        mem_large_pages(s->data, SLOT);
    }
    return s;
}

/* The slot at hand is the thread's. Returns its first failure so far. */
static int give(struct behind *w)
{
    w->filling = false;
    w->at += w->slot[w->ngiven % SLOTS].n;
    pthread_mutex_lock(&w->lock);
    w->ngiven++;
    int failed = w->failed;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
    return failed;
}

int behind_add(struct behind *w, const void *p, size_t n)
{
    int failed = 0;
    for (const char *from = p; n && !failed;) {
        struct slot *s = at_hand(w);
        size_t room = SLOT - s->at % SLOT - s->n, k = n < room ? n : room;
        memcpy(s->data + s->n, from, k);
        s->n += k;
        from += k;
        n -= k;
        if (k == room)
            failed = give(w);
    }
    return failed;
}

int behind_wait(struct behind *w)
{
    if (w->filling)
        give(w);
    pthread_mutex_lock(&w->lock);
    while (w->nwritten != w->ngiven)
        pthread_cond_wait(&w->written, &w->lock);
    int failed = w->failed;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

void behind_destroy(struct behind *w)
{
    if (!w)
        return;
    if (w->filling)
        give(w);
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
