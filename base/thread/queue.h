/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_QUEUE_H
#define BASE_THREAD_QUEUE_H

/*
 * A bounded first-in-first-out queue of pointers between threads. push waits while it is full, pop
 * while it is empty. After queue_close, push fails at once and pop drains what is left, then fails.
 * The queue does not own what the pointers point to.
 */

#include <stdbool.h>
#include <stddef.h>

struct queue;

struct queue *queue_create(size_t capacity);
void queue_destroy(struct queue *q);
bool queue_push(struct queue *q, void *item); /* false: closed */
bool queue_pop(struct queue *q, void **ret);  /* false: closed and empty */
void queue_close(struct queue *q);

#endif
