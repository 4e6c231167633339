/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/queue.h"
#include "base/thread/thread.h"
#include "dataset/sample/batch.h"

struct slot {
    struct batch batch;
    struct err e;
    int code;
};

/* Slots circulate: free -> thread -> full -> user -> free. */
struct loader {
    struct feed feed;
    struct batch_layout layout;
    uint64_t consumed;
    pthread_t thread;
    struct queue *free, *full;
    struct slot *slots;
    uint32_t nslots;
    struct slot *out; /* with the user, or the one that failed */
};

static void *read_ahead(void *arg)
{
    struct loader *l = arg;
    void *item;
    uint32_t cold = 0;
    int64_t faults = 0;
    for (uint64_t micro = 0; queue_pop(l->free, &item); micro++) {
        struct slot *s = item;
        s->batch.cold = cold; /* read-ahead state is shared by all slots */
        s->batch.faults = faults;
        s->code = batch_fill(&l->feed, &l->layout, l->consumed, micro, &s->batch, &s->e);
        cold = s->batch.cold;
        faults = s->batch.faults;
        int code = s->code; /* the slot is the user's once it is pushed */
        if (!queue_push(l->full, s) || code)
            break;
    }
    return NULL;
}

static void dismantle(struct loader *l)
{
    for (uint32_t i = 0; i < l->nslots; i++)
        batch_finish(&l->slots[i].batch);
    queue_destroy(l->free);
    queue_destroy(l->full);
    free(l->slots);
    free(l);
}

int loader_create(const struct feed *f, const struct batch_layout *layout, uint64_t consumed,
                  uint32_t depth, struct loader **ret, struct err *e)
{
    BUG_ON(!depth || !layout->rows || layout->rank >= layout->ranks,
           "depth %u, %u rows, rank %u of %u", depth, layout->rows, layout->rank, layout->ranks);
    struct loader *l = mem_new(1, sizeof(*l));
    l->feed = *f;
    l->layout = *layout;
    l->consumed = consumed;
    l->nslots = depth + 1; /* one is with the user */
    l->free = queue_create(l->nslots);
    l->full = queue_create(l->nslots);
    l->slots = mem_new(l->nslots, sizeof(*l->slots));
    for (uint32_t i = 0; i < l->nslots; i++) {
        batch_init(&l->slots[i].batch, layout->rows, f->seq_length);
        queue_push(l->free, &l->slots[i]);
    }
    int errnum = thread_start(&l->thread, read_ahead, l);
    if (errnum) {
        dismantle(l);
        return err_set(e, ERR_RESOURCE, "cannot start the thread that reads data ahead: %s",
                       strerror(errnum));
    }
    *ret = l;
    return 0;
}

int loader_next(struct loader *l, const struct batch **ret, struct err *e)
{
    if (!l->out || !l->out->code) {
        if (l->out)
            queue_push(l->free, l->out);
        void *item;
        bool got = queue_pop(l->full, &item);
        BUG_ON(!got, "the loader's queue is closed");
        l->out = item;
    }
    if (l->out->code && e)
        *e = l->out->e;
    *ret = l->out->code ? NULL : &l->out->batch;
    return l->out->code;
}

const struct batch *loader_blank(struct loader *l)
{
    struct batch *b = &l->out->batch;
    BUG_ON(!l->out->code, "no batch has failed");
    batch_finish(b);
    batch_init(b, l->layout.rows, l->feed.seq_length);
    return b;
}

void loader_destroy(struct loader *l)
{
    if (!l)
        return;
    queue_close(l->free);
    queue_close(l->full);
    pthread_join(l->thread, NULL);
    dismantle(l);
}
