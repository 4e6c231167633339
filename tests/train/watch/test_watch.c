/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/watch.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/t.h"
#include "train/comm/comm_threads.h"

/* ---- the rule ----------------------------------------------------------------------------------
 */

static void limits_of_phases(void)
{
    struct watch_limits l = watch_usual(30);
    struct watch_state s = {.phase = WATCH_MICRO, .step = 5, .since = 100};
    T_NEAR(watch_left(&s, &l, 110, false), 20, 1e-9);
    T_NEAR(watch_left(&s, &l, 131, false), -1, 1e-9);
    T_NEAR(watch_left(&s, &l, 131, true), 14, 1e-9); /* waits for another, who speaks first */
    s.first_step = true;
    T_NEAR(watch_left(&s, &l, 131, false), 269, 1e-9);
    s.phase = WATCH_SAVE;
    T_NEAR(watch_left(&s, &l, 131, false), 569, 1e-9);
    s.phase = WATCH_INDEX;
    T_NEAR(watch_left(&s, &l, 131, false), 3569, 1e-9);
    l = watch_usual(3600);
    s.phase = WATCH_START;
    T_NEAR(watch_left(&s, &l, 100, false), 3 * 3600, 1e-9);
    s.phase = WATCH_LOAD;
    T_NEAR(watch_left(&s, &l, 100, true), 9 * 3600, 1e-9);
    s.phase = WATCH_INDEX;
    l.seconds[WATCH_INDEX] = 0;
    T_CHECK(watch_left(&s, &l, 1e12, false) == INFINITY);
}

/* ---- ranks -------------------------------------------------------------------------------------
 */

enum { RANKS = 3 };

struct rank {
    pthread_t thread;
    struct comm_threads *all;
    int rank;
    void (*act)(struct rank *r, struct comm *c, struct watch *w);
    double limit, grace;
    int code;
    struct err e;
    atomic_int expired;
    char why[256];
};

static void expire(void *arg, const struct err *why)
{
    struct rank *r = arg;
    snprintf(r->why, sizeof(r->why), "%s", why->msg);
    atomic_fetch_add(&r->expired, 1);
}

static void *be_rank(void *arg)
{
    struct rank *r = arg;
    struct comm c;
    struct watch *w = NULL;
    struct watch_options o = {.limits = watch_usual(r->limit), .expire = expire, .arg = r};
    o.limits.grace = r->grace;
    r->code = comm_threads_open(&c, r->all, r->rank, &r->e);
    if (!r->code)
        r->code = watch_open(&w, &c, &o, &r->e);
    if (r->code)
        return NULL;
    r->act(r, &c, w);
    watch_close(w);
    r->code = comm_fault(&c, &r->e);
    comm_close(&c);
    return NULL;
}

static void run_ranks(struct rank *r, void (*act)(struct rank *, struct comm *, struct watch *),
                      double limit, double grace)
{
    struct comm_threads *all = comm_threads_create(mesh_dense(1, 1, RANKS, 1), NULL);
    for (int i = 0; i < RANKS; i++) {
        memset(&r[i], 0, sizeof(r[i]));
        r[i].all = all;
        r[i].rank = i;
        r[i].act = act;
        r[i].limit = limit;
        r[i].grace = grace;
        pthread_create(&r[i].thread, NULL, be_rank, &r[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(r[i].thread, NULL);
    comm_threads_destroy(all);
}

static bool faulty(struct comm *c)
{
    comm_wait(c, (struct comm_ticket){0});
    return c->fault != 0;
}

/* Two steps so that the next is not the first, whose limit is longer. */
static void two_steps(struct comm *c, struct watch *w)
{
    for (int step = 1; step <= 2; step++) {
        watch_enter(w, WATCH_MICRO, step);
        comm_wait(c, comm_barrier(c, GROUP_DP));
    }
}

/* Rank 1 hangs in its data, the others in the all-reduce that it does not make. */
static void one_hangs(struct rank *r, struct comm *c, struct watch *w)
{
    float v[4] = {0};
    two_steps(c, w);
    watch_enter(w, r->rank == 1 ? WATCH_DATA : WATCH_UPDATE, 3);
    while (r->rank == 1 && !faulty(c))
        usleep(2000);
    if (r->rank != 1)
        comm_wait(c, comm_all_reduce(c, GROUP_DP, tensor_1d(v, DTYPE_F32, 4), REDUCE_SUM));
}

static void a_rank_that_hangs_is_named(void)
{
    struct rank r[RANKS];
    run_ranks(r, one_hangs, 4, 60);
    for (int i = 0; i < RANKS; i++) {
        T_ERR(r[i].code, &r[i].e, ERR_FAULT, "rank 1, step 3, waiting for data: no progress for 4");
        T_EQ(r[i].e.step, 3);
        T_EQ(r[i].expired, 0);
    }
}

/* All wait: rank 2 has left without a word, and has no watchdog of its own in the way. */
static void one_is_away(struct rank *r, struct comm *c, struct watch *w)
{
    two_steps(c, w);
    watch_enter(w, r->rank == 2 ? WATCH_INDEX : WATCH_UPDATE, 3);
    while (r->rank == 2 && !faulty(c))
        usleep(2000);
    if (r->rank != 2)
        comm_wait(c, comm_barrier(c, GROUP_DP));
}

static void the_collective_is_named(void)
{
    struct rank r[RANKS];
    run_ranks(r, one_is_away, 3, 60);
    for (int i = 0; i < RANKS; i++)
        T_ERR(r[i].code, &r[i].e, ERR_FAULT, "in call 3 of the data-parallel group (barrier)");
    T_CHECK(strstr(r[0].e.msg, ", step 3, update: no progress for "));
}

/* Enters its phase again and again until the clock that the others hang by has long run out. */
static void one_is_slow(struct rank *r, struct comm *c, struct watch *w)
{
    two_steps(c, w);
    watch_enter(w, WATCH_EVAL, 3);
    for (int i = 0; i < 150 && r->rank == 0 && !faulty(c); i++) {
        usleep(20000);
        watch_enter(w, WATCH_EVAL, 3);
    }
    watch_enter(w, WATCH_INDEX, 3); /* a long limit: for the slow one to come */
    comm_wait(c, comm_barrier(c, GROUP_DP));
}

static void a_phase_again_is_progress(void)
{
    struct rank r[RANKS];
    run_ranks(r, one_is_slow, 2, 60);
    for (int i = 0; i < RANKS; i++)
        T_OK(r[i].code, &r[i].e);
}

/* Rank 1 does not even come back after the fault, until its watchdog has told the program. */
static void one_is_stuck(struct rank *r, struct comm *c, struct watch *w)
{
    two_steps(c, w);
    watch_enter(w, WATCH_SAVE, 4);
    if (r->rank == 0)
        comm_abort(c, &(struct err){.code = ERR_IO, .msg = "rank 0: the disk is full"});
    while (r->rank == 1 && !r->expired)
        usleep(2000);
    while (!faulty(c))
        usleep(2000);
}

static void a_rank_that_is_stuck_is_ended(void)
{
    struct rank r[RANKS];
    run_ranks(r, one_is_stuck, 100, 0.2);
    for (int i = 0; i < RANKS; i++)
        T_ERR(r[i].code, &r[i].e, ERR_IO, "rank 0: the disk is full");
    T_EQ(r[1].expired, 1);
    T_STR(r[1].why, "rank 0: the disk is full");
}

/* A rank alone has nobody to interrupt; its own watchdog ends it. */
static void a_rank_alone(void)
{
    struct rank r = {0};
    struct comm c;
    struct err e;
    struct watch *w;
    struct watch_options o = {.limits = watch_usual(0.02), .expire = expire, .arg = &r};
    o.limits.grace = 0.02;
    comm_self_open(&c);
    T_OK(watch_open(&w, &c, &o, &e), &e);
    watch_enter(w, WATCH_EVAL, 7);
    while (!r.expired)
        usleep(1000);
    watch_close(w);
    T_CHECK(strstr(r.why, "rank 0, step 7, evaluation: no progress for 0.0"));
    watch_enter(NULL, WATCH_EVAL, 7);
    watch_close(NULL);
}

T_MAIN(T_CASE(limits_of_phases), T_CASE(a_rank_that_hangs_is_named),
       T_CASE(the_collective_is_named), T_CASE(a_phase_again_is_progress),
       T_CASE(a_rank_that_is_stuck_is_ended), T_CASE(a_rank_alone))
