/* SPDX-License-Identifier: Apache-2.0 */
#include "base/behind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    SLOTS = 32,
    TO_DISK = 8 << 20 /* bytes that the disk is told of at once */
};

struct behind {
    int fd, failed; /* errno */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    struct buf slot[SLOTS]; /* a ring; those between nwritten and ngiven have bytes */
    uint64_t ngiven, nwritten;
    bool end;
};

int write_told(int fd, const void *p, size_t n, uint64_t *told)
{
    const char *s = p;
    while (n) {
        ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno;
        s += k;
        n -= (size_t)k;
        *told += (uint64_t)k;
    }
    if (*told >= TO_DISK) {
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        *told = 0;
    }
    return 0;
}

static void *writer_main(void *arg)
{
    struct behind *w = arg;
    uint64_t told = 0;
    int failed = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->end || w->nwritten != w->ngiven) {
        if (w->nwritten == w->ngiven) {
            pthread_cond_wait(&w->given, &w->lock);
            continue;
        }
        const struct buf *b = &w->slot[w->nwritten % SLOTS];
        pthread_mutex_unlock(&w->lock);
        if (!failed)
            failed = write_told(w->fd, b->data, b->len, &told);
        pthread_mutex_lock(&w->lock);
        w->failed = failed;
        w->nwritten++;
        pthread_cond_signal(&w->written);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int behind_create(int fd, struct behind **ret, struct err *e)
{
    struct behind *w = mem_new(1, sizeof(*w));
    w->fd = fd;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    pthread_cond_init(&w->written, NULL);
    int failed = thread_start(&w->thread, writer_main, w);
    if (!failed) {
        *ret = w;
        return 0;
    }
    free(w);
    return err_set(e, ERR_RESOURCE, "cannot start a thread that writes: %s", strerror(failed));
}

void behind_give(struct behind *w, struct buf *b)
{
    pthread_mutex_lock(&w->lock);
    while (w->ngiven - w->nwritten == SLOTS)
        pthread_cond_wait(&w->written, &w->lock);
    struct buf *slot = &w->slot[w->ngiven++ % SLOTS], spare = *slot;
    *slot = *b;
    *b = spare;
    b->len = 0;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
}

int behind_wait(struct behind *w)
{
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
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->given);
    pthread_cond_destroy(&w->written);
    for (size_t i = 0; i < SLOTS; i++)
        buf_finish(&w->slot[i]);
    free(w);
}
