/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/rwlock.h"

#include <stddef.h>

#include "tests/t.h"

enum { THREADS = 4, VISITS = 20000, EVERY = 50 };

/* Plain numbers, changed only under exclusive access: the thread sanitizer would see a race. */
struct room {
    struct rwlock gate;
    unsigned changes[2];
};

struct visitor {
    struct room *room;
    unsigned number, torn, changes;
};

static void enter(struct visitor *v, struct rwlock_reader *x)
{
    struct room *r = v->room;
    if (!rwlock_enter(&r->gate, x))
        return;
    r->changes[0]++;
    r->changes[1]++;
    v->changes++;
    rwlock_end_exclusive(&r->gate, x);
}

static void *visit(void *arg)
{
    struct visitor *v = arg;
    struct rwlock_reader x;
    rwlock_register(&v->room->gate, &x);
    for (unsigned i = 0; i < VISITS; i++) {
        enter(v, &x);
        v->torn += v->room->changes[0] != v->room->changes[1];
        v->torn += v->room->gate.guests == 0;
        if (i % EVERY == v->number)
            rwlock_request_exclusive(&v->room->gate);
        rwlock_leave(&x);
        if (i % 1000 == 0) {
            rwlock_unregister(&v->room->gate, &x);
            rwlock_register(&v->room->gate, &x);
        }
    }
    rwlock_unregister(&v->room->gate, &x);
    return NULL;
}

static void one_is_alone(void)
{
    struct room r = {0};
    struct visitor v[THREADS];
    pthread_t thread[THREADS];
    unsigned changes = 0;
    rwlock_init(&r.gate);
    for (unsigned i = 0; i < THREADS; i++) {
        v[i] = (struct visitor){.room = &r, .number = i};
        T_EQ(pthread_create(&thread[i], NULL, visit, &v[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        T_EQ(v[i].torn, 0);
        changes += v[i].changes;
    }
    T_CHECK(changes >= VISITS / EVERY);
    T_EQ(r.changes[0], changes);
    T_EQ(r.gate.guests, 0);
    rwlock_finish(&r.gate);
}

/* No thread waits for a reader that is outside. */
static void guests_may_idle(void)
{
    struct rwlock g;
    struct rwlock_reader idle, x;
    rwlock_init(&g);
    rwlock_register(&g, &idle);
    rwlock_register(&g, &x);
    for (int i = 0; i < 3; i++) {
        rwlock_request_exclusive(&g);
        T_CHECK(rwlock_enter(&g, &x));
        rwlock_end_exclusive(&g, &x);
        rwlock_leave(&x);
        T_CHECK(!rwlock_enter(&g, &x));
        rwlock_leave(&x);
    }
    rwlock_unregister(&g, &x);
    rwlock_unregister(&g, &idle);
    rwlock_finish(&g);
}

T_MAIN(T_CASE(one_is_alone), T_CASE(guests_may_idle))
