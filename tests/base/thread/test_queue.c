/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "tests/t.h"

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS = 3000 };

static void first_in_first_out(void)
{
    struct queue *q = queue_create(3);
    int item[7];
    void *got;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            T_CHECK(queue_push(q, &item[i]));
        for (int i = 0; i < 2; i++) {
            T_CHECK(queue_pop(q, &got));
            T_CHECK(got == &item[i]);
        }
        T_CHECK(queue_push(q, &item[3]));
        T_CHECK(queue_pop(q, &got) && got == &item[2]);
        T_CHECK(queue_pop(q, &got) && got == &item[3]);
    }
    queue_destroy(q);
    queue_destroy(NULL);
}

static void closed_drains_then_fails(void)
{
    struct queue *q = queue_create(4);
    int a, b;
    void *got;
    T_CHECK(queue_push(q, &a) && queue_push(q, &b));
    queue_close(q);
    queue_close(q);
    T_CHECK(!queue_push(q, &a));
    T_CHECK(queue_pop(q, &got) && got == &a);
    T_CHECK(queue_pop(q, &got) && got == &b);
    T_CHECK(!queue_pop(q, &got));
    T_CHECK(!queue_pop(q, &got));
    queue_destroy(q);
}

static void *push_one(void *arg)
{
    return (void *)(intptr_t)queue_push(arg, arg);
}

static void *pop_one(void *arg)
{
    void *got;
    return (void *)(intptr_t)queue_pop(arg, &got);
}

static void closing_wakes_who_waits(void)
{
    for (int full = 0; full < 2; full++) {
        struct queue *q = queue_create(1);
        pthread_t id[3];
        if (full)
            T_CHECK(queue_push(q, q));
        for (int i = 0; i < 3; i++)
            T_EQ(pthread_create(&id[i], NULL, full ? push_one : pop_one, q), 0);
        usleep(20000);
        queue_close(q);
        for (int i = 0; i < 3; i++) {
            void *done;
            pthread_join(id[i], &done);
            T_CHECK(!done);
        }
        queue_destroy(q);
    }
}

struct crowd {
    struct queue *q;
    atomic_int producer;
    _Atomic int64_t sum, count;
    atomic_int out_of_order;
};

static void *produce(void *arg)
{
    struct crowd *c = arg;
    int me = atomic_fetch_add(&c->producer, 1);
    for (intptr_t i = 0; i < ITEMS; i++)
        if (!queue_push(c->q, (void *)(i * PRODUCERS + me + 1)))
            break;
    return NULL;
}

static void *consume(void *arg)
{
    struct crowd *c = arg;
    intptr_t last[PRODUCERS] = {0};
    void *got;
    while (queue_pop(c->q, &got)) {
        intptr_t v = (intptr_t)got;
        if (v <= last[(v - 1) % PRODUCERS]) /* one producer's items arrive in their order */
            atomic_fetch_add(&c->out_of_order, 1);
        last[(v - 1) % PRODUCERS] = v;
        atomic_fetch_add(&c->sum, v);
        atomic_fetch_add(&c->count, 1);
    }
    return NULL;
}

static void crowds_at_both_ends(void)
{
    struct crowd c = {.q = queue_create(5)};
    pthread_t in[PRODUCERS], out[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        T_EQ(pthread_create(&out[i], NULL, consume, &c), 0);
    for (int i = 0; i < PRODUCERS; i++)
        T_EQ(pthread_create(&in[i], NULL, produce, &c), 0);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(in[i], NULL);
    queue_close(c.q);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(out[i], NULL);
    int64_t n = PRODUCERS * ITEMS;
    T_EQ(c.count, n);
    T_EQ(c.sum, n * (n + 1) / 2);
    T_EQ(c.out_of_order, 0);
    queue_destroy(c.q);
}

T_MAIN(T_CASE(first_in_first_out), T_CASE(closed_drains_then_fails),
       T_CASE(closing_wakes_who_waits), T_CASE(crowds_at_both_ends))
