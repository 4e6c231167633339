/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/core/mem.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    size_t capacity, head, count; /* head: the oldest item */
    bool closed;
    void **item;
};

struct queue *queue_create(size_t capacity)
{
    BUG_ON(!capacity, "queue without room");
    struct queue *q = mem_new(1, sizeof(*q));
    q->item = mem_new(capacity, sizeof(*q->item));
    q->capacity = capacity;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->not_full, NULL);
    pthread_cond_init(&q->not_empty, NULL);
    return q;
}

void queue_destroy(struct queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->not_empty);
    pthread_cond_destroy(&q->not_full);
    pthread_mutex_destroy(&q->lock);
    free(q->item);
    free(q);
}

bool queue_push(struct queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == q->capacity && !q->closed)
        pthread_cond_wait(&q->not_full, &q->lock);
    bool open = !q->closed;
    if (open) {
        q->item[(q->head + q->count) % q->capacity] = item;
        q->count++;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return open;
}

bool queue_pop(struct queue *q, void **ret)
{
    pthread_mutex_lock(&q->lock);
    while (!q->count && !q->closed)
        pthread_cond_wait(&q->not_empty, &q->lock);
    bool got = q->count > 0;
    if (got) {
        *ret = q->item[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->count--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return got;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}
