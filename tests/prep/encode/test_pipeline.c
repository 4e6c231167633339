/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "prep/encode/pipeline.h"
#include "tests/t.h"

enum { ITEMS = 9 };

struct item {
    uint64_t n, twice, thrice, stored;
};

struct job {
    uint64_t total, filled, drained;
    uint64_t stop_at; /* drain refuses this one */
    uint64_t followed;
    uint64_t alone; /* follow returns true for every Nth item; 0: for none */
    bool ordered, delay, follows, stores;
    int hang[2]; /* a pipe without a writer; the fill waits there after three items */
    int ticks, stop_tick;
    uint64_t most; /* items in flight */
    bool meet;     /* the first item's store waits for the second one's */
    _Atomic uint64_t in_flight, worked, stored, storing;
    _Atomic bool met;
    struct item item[ITEMS];
};

static bool fill(void *arg, void *item, uint64_t *ret_bytes)
{
    struct job *j = arg;
    struct item *it = item;
    if (j->hang[0] && j->filled == 3) {
        char c;
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        if (read(j->hang[0], &c, 1) < 0)
            return false;
    }
    if (j->filled == j->total)
        return false;
    uint64_t now = atomic_fetch_add(&j->in_flight, 1) + 1;
    if (now > j->most)
        j->most = now;
    it->n = j->filled++;
    *ret_bytes = 100 + it->n % 7;
    return true;
}

static void work(void *arg, int worker, void *item)
{
    struct job *j = arg;
    struct item *it = item;
    (void)worker;
    if (j->delay)
        usleep((useconds_t)(t_rand(5, it->n) % 500));
    it->twice = 2 * it->n;
    atomic_fetch_add(&j->worked, 1);
}

static bool follow(void *arg, void *item)
{
    struct job *j = arg;
    struct item *it = item;
    uint64_t n = j->followed++;
    it->thrice = it->n == n ? it->twice + n : 0;
    it->stored = 0;
    if (j->alone && n && (n - 1) % j->alone == 0 && j->drained != n)
        j->ordered = false;
    return j->alone && n % j->alone == 0;
}

static void store(void *arg, void *item)
{
    struct job *j = arg;
    struct item *it = item;
    atomic_fetch_add(&j->storing, 1);
    if (it->n == 1)
        j->met = true;
    while (j->meet && !it->n && !j->met)
        usleep(100);
    if (j->delay)
        usleep((useconds_t)(t_rand(6, it->n) % 700));
    it->stored += it->thrice + it->n;
    atomic_fetch_add(&j->stored, 1);
    atomic_fetch_sub(&j->storing, 1);
}

static int drain(void *arg, void *item)
{
    struct job *j = arg;
    struct item *it = item;
    if (it->n != j->drained || it->twice != 2 * it->n || (j->follows && it->thrice != 3 * it->n))
        j->ordered = false;
    if (j->stores && it->stored != 4 * it->n)
        j->ordered = false;
    if (it->n == j->stop_at)
        return ERR_DATA;
    j->drained++;
    atomic_fetch_sub(&j->in_flight, 1);
    return 0;
}

static int tick(void *arg)
{
    struct job *j = arg;
    return ++j->ticks == j->stop_tick ? ERR_FAIL : 0;
}

static int run(struct job *j, int workers, uint64_t budget)
{
    struct err e;
    void *item[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        item[i] = &j->item[i];
    struct pipeline p = {.arg = j,
                         .item = item,
                         .nitems = ITEMS,
                         .workers = workers,
                         .budget = budget,
                         .fill = fill,
                         .work = work,
                         .follow = j->follows ? follow : NULL,
                         .store = j->stores ? store : NULL,
                         .drain = drain,
                         .tick = tick};
    return pipeline_run(&p, &e);
}

static void order_is_kept(void)
{
    static const int workers[] = {1, 2, 7};
    for (int k = 0; k < 3; k++) {
        for (int s = 0; s < 2; s++) {
            struct job j = {.total = 500,
                            .ordered = true,
                            .delay = true,
                            .follows = k > 0 || s,
                            .stores = s,
                            .stop_at = UINT64_MAX};
            T_EQ(run(&j, workers[k], UINT64_MAX), 0);
            T_EQ(j.drained, 500);
            T_EQ(j.worked, 500);
            T_EQ(j.followed, k > 0 || s ? 500 : 0);
            T_EQ(j.stored, s ? 500 : 0);
            T_CHECK(j.ordered);
            T_CHECK(j.most <= ITEMS);
        }
    }
}

/* Hangs if not. */
static void items_are_stored_side_by_side(void)
{
    for (int workers = 2; workers < 5; workers++) {
        struct job j = {.total = 50,
                        .ordered = true,
                        .follows = true,
                        .stores = true,
                        .meet = true,
                        .stop_at = UINT64_MAX};
        T_EQ(run(&j, workers, UINT64_MAX), 0);
        T_EQ(j.stored, 50);
        T_CHECK(j.ordered && j.met);
    }
}

/* An item for which follow returned true is drained before the next one is followed. */
static void some_are_followed_alone(void)
{
    for (int workers = 1; workers < 8; workers += 3) {
        struct job j = {.total = 500,
                        .ordered = true,
                        .delay = true,
                        .follows = true,
                        .stores = true,
                        .alone = 1 + (uint64_t)workers,
                        .stop_at = UINT64_MAX};
        T_EQ(run(&j, workers, UINT64_MAX), 0);
        T_EQ(j.drained, 500);
        T_CHECK(j.ordered);
    }
}

/* One worker takes each item through all steps before it begins the next, in the same memory. */
static void one_worker_needs_one_item(void)
{
    struct job j = {
        .total = 100, .ordered = true, .follows = true, .stores = true, .stop_at = UINT64_MAX};
    T_EQ(run(&j, 1, UINT64_MAX), 0);
    T_EQ(j.drained, 100);
    T_EQ(j.most, 1);
    T_EQ(j.item[ITEMS - 1].n, 99);
    T_EQ(j.item[0].n, 0);
}

static void nothing_to_do(void)
{
    struct job j = {.total = 0, .ordered = true};
    T_EQ(run(&j, 2, UINT64_MAX), 0);
    T_EQ(j.drained, 0);
}

static void the_budget_holds(void)
{
    struct job j = {.total = 200, .ordered = true, .delay = true, .stop_at = UINT64_MAX};
    T_EQ(run(&j, 4, 250), 0);
    T_EQ(j.drained, 200);
    T_CHECK(j.ordered);
    T_CHECK(j.most <= 3); /* the third crosses 250 */
    struct job one = {.total = 50, .ordered = true, .stop_at = UINT64_MAX};
    T_EQ(run(&one, 4, 1), 0); /* an item above the budget still passes, on its own */
    T_EQ(one.drained, 50);
    T_CHECK(one.most == 1);
}

static void drain_stops_the_line(void)
{
    for (int workers = 1; workers < 5; workers++) {
        struct job j = {.total = UINT64_MAX,
                        .ordered = true,
                        .follows = true,
                        .delay = workers > 2,
                        .stores = workers > 1,
                        .stop_at = 77};
        T_EQ(run(&j, workers, UINT64_MAX), ERR_DATA);
        T_EQ(j.drained, 77);
        T_EQ(j.storing, 0);
        T_CHECK(j.ordered);
    }
}

static void a_waiting_fill_is_cancelled(void)
{
    struct job j = {
        .total = UINT64_MAX, .ordered = true, .follows = true, .stores = true, .stop_at = 2};
    T_EQ(pipe(j.hang), 0);
    T_EQ(run(&j, 2, UINT64_MAX), ERR_DATA);
    struct job k = {.total = UINT64_MAX,
                    .ordered = true,
                    .follows = true,
                    .stores = true,
                    .stop_at = UINT64_MAX,
                    .stop_tick = 2,
                    .hang = {j.hang[0], j.hang[1]}};
    T_EQ(run(&k, 2, UINT64_MAX), ERR_FAIL);
    T_EQ(k.drained, 3);
    T_EQ(k.stored, 3);
    close(j.hang[0]);
    close(j.hang[1]);
}

T_MAIN(T_CASE(order_is_kept), T_CASE(items_are_stored_side_by_side),
       T_CASE(some_are_followed_alone), T_CASE(one_worker_needs_one_item), T_CASE(nothing_to_do),
       T_CASE(the_budget_holds), T_CASE(drain_stops_the_line), T_CASE(a_waiting_fill_is_cancelled))
