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

enum {
    SLOTS = 3,        /* one is written, one filled, and one is between them */
    SLOT = 2 << 20,   /* also where it begins in the file, for what goes past the page cache */
    TO_DISK = 8 << 20 /* bytes that the disk is told of at once */
};

/* Bytes [at, at + n) of the file. */
struct slot {
    char *data; /* NULL before it is used */
    size_t n;
    uint64_t at;
};

struct behind {
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given, written;
    struct slot slot[SLOTS]; /* a ring; those between nwritten and ngiven are the thread's */
    uint64_t ngiven, nwritten;
    int failed; /* errno */
    bool end;

    uint64_t at;  /* who adds: where the slot at hand begins */
    bool filling; /* it has it in hand */

    bool can, direct; /* the thread: past the page cache, the descriptor is set so */
    uint64_t told;
};

/* ---- the thread ----------------------------------------------------------------------------- */

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

/* Whether the descriptor passes the page cache by. */
static bool set_direct(struct behind *w, bool on)
{
    if (w->direct == on)
        return true;
    int flags = fcntl(w->fd, F_GETFL);
    if (flags < 0 || fcntl(w->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT))
        return false;
    w->direct = on;
    return true;
}

static int write_slot(struct behind *w, const struct slot *s)
{
    w->can = w->can && (s->n < SLOT || set_direct(w, true));
    if ((!w->can || s->n < SLOT) && !set_direct(w, false))
        return errno;
    bool direct = w->direct;
    for (size_t done = 0; done < s->n;) {
        ssize_t k = pwrite(w->fd, s->data + done, s->n - done, (off_t)(s->at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EINVAL && w->direct) { /* not here, or not from such a place */
            w->can = direct = false;
            if (set_direct(w, false))
                continue;
        }
        if (k < 0)
            return errno;
        done += (size_t)k;
    }
    if (!direct)
        tell(w->fd, s->n, &w->told);
    return 0;
}

static void *writer_main(void *arg)
{
    struct behind *w = arg;
    int failed = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->end || w->nwritten != w->ngiven) {
        if (w->nwritten == w->ngiven) {
            pthread_cond_wait(&w->given, &w->lock);
            continue;
        }
        const struct slot *s = &w->slot[w->nwritten % SLOTS];
        pthread_mutex_unlock(&w->lock);
        if (!failed)
            failed = write_slot(w, s);
        pthread_mutex_lock(&w->lock);
        w->failed = failed;
        w->nwritten++;
        pthread_cond_signal(&w->written);
    }
    pthread_mutex_unlock(&w->lock);
    set_direct(w, false);
    return NULL;
}

/* ---- who adds ------------------------------------------------------------------------------- */

int behind_create(int fd, uint64_t at, struct behind **ret, struct err *e)
{
    struct behind *w = mem_new(1, sizeof(*w));
    w->fd = fd;
    w->at = at;
    w->can = true;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    pthread_cond_init(&w->written, NULL);
    int failed = pthread_create(&w->thread, NULL, writer_main, w);
    if (!failed) {
        *ret = w;
        return 0;
    }
    free(w);
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
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->given);
    pthread_cond_destroy(&w->written);
    for (size_t i = 0; i < SLOTS; i++)
        free(w->slot[i].data);
    free(w);
}
