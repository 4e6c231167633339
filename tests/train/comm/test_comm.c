/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/comm/calls.h"
#include "train/comm/comm_threads.h"

static void one_rank_alone(void)
{
    struct comm c;
    char why[512];
    uint64_t digest, other;
    comm_self_open(&c);
    if (calls_run(&c, &calls_host_memory, 1, &digest, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    comm_close(&c);
    if (calls_run_threads(mesh_single(), 0, 1, &other, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    T_CHECK(digest == other);
}

/* On each mesh the bits do not depend on who comes first. */
static void threads(int world)
{
    for (int which = 0; which < CALLS_MESHES; which++) {
        char why[512];
        uint64_t digest[2][8];
        for (int delayed = 0; delayed < 2; delayed++)
            if (calls_run_threads(calls_mesh(world, which), delayed ? 50 : 0, 1, digest[delayed],
                                  why, sizeof(why)))
                t_fail(__FILE__, __LINE__, "%d ranks, mesh %d: %s", world, which, why);
        T_MEM(digest[0], digest[1], (size_t)world * sizeof(digest[0][0]));
    }
}

static void two_threads(void)
{
    threads(2);
}

static void four_threads(void)
{
    threads(4);
}

static void eight_threads(void)
{
    threads(8);
}

/* ---- faults
 * ---------------------------------------------------------------------------------------- */

struct faulty {
    pthread_t thread;
    struct comm_threads *all;
    void (*act)(struct comm *c);
    bool faults; /* whether the world comes to one */
    int rank, code;
    struct err e;
};

/* Makes no call: it hears of the fault in a wait. One that never comes fails the case. */
static void wait_for_a_fault(struct comm *c)
{
    for (int i = 0; i < 12000 && !c->fault; i++) {
        usleep(5000);
        comm_wait(c, (struct comm_ticket){0});
    }
}

static void *run_faulty(void *arg)
{
    struct faulty *f = arg;
    struct comm c;
    f->code = comm_threads_open(&c, f->all, f->rank, &f->e);
    if (f->code)
        return NULL;
    f->act(&c);
    if (f->faults)
        wait_for_a_fault(&c); /* this rank's own calls may be done before another's fault */
    f->code = comm_fault(&c, &f->e);
    comm_close(&c);
    return NULL;
}

/* Four ranks. */
static void run_world(void (*act)(struct comm *c), double timeout, bool faults,
                      struct faulty rank[4])
{
    struct comm_options o = {.timeout = timeout};
    struct comm_threads *all = comm_threads_create(mesh_dense(2, 1, 2, 1), &o);
    for (int i = 0; i < 4; i++) {
        rank[i] = (struct faulty){.all = all, .act = act, .faults = faults, .rank = i};
        pthread_create(&rank[i].thread, NULL, run_faulty, &rank[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(rank[i].thread, NULL);
    comm_threads_destroy(all);
}

/* All of them must hear `words`. */
static void check_fault(void (*act)(struct comm *c), double timeout, int code, const char *words)
{
    struct faulty rank[4];
    run_world(act, timeout, true, rank);
    for (int i = 0; i < 4; i++) {
        T_ERR(rank[i].code, &rank[i].e, code, words);
        T_STR(rank[i].e.msg, rank[0].e.msg);
    }
}

/* Messages to a rank that is slow to take them arrive in their order, whatever slots they use. */
static void send_many(struct comm *c)
{
    enum { MANY = 50, BEFORE = 30, ASIDE = 7 };
    float v[MANY] = {0}, aside[1] = {0};
    struct tensor none = {0}, t = tensor_1d(v, DTYPE_F32, MANY);
    struct tensor u = tensor_1d(aside, DTYPE_F32, 1);
    struct comm_ticket ticket[MANY];
    bool gives = comm_index(c, GROUP_TP) == 0;
    bool first = comm_index(c, GROUP_DP) == 0;
    for (int i = 0; i < ASIDE && !gives; i++) /* so that the two number their calls differently */
        comm_wait(c, comm_exchange(c, GROUP_DP, first ? u : none, first ? 1 : COMM_NOBODY,
                                   first ? none : u, first ? COMM_NOBODY : 0));
    for (int round = 0; round < 2; round++) {
        int n = round ? MANY : BEFORE;
        usleep(round && !gives ? 30000 : 0);
        for (int i = 0; i < n; i++) {
            struct tensor one = tensor_rows(t, i, 1);
            if (gives)
                v[i] = (float)(i + 1);
            ticket[i] = gives ? comm_exchange(c, GROUP_TP, one, 1, none, COMM_NOBODY)
                              : comm_exchange(c, GROUP_TP, none, COMM_NOBODY, one, 0);
        }
        for (int i = 0; i < n; i++)
            comm_wait(c, ticket[i]);
    }
    struct err why = {.code = ERR_FAIL, .msg = "messages came in another order"};
    for (int i = 0; i < MANY; i++)
        if (v[i] != (float)(i + 1))
            comm_abort(c, &why);
    comm_wait(c, comm_barrier(c, GROUP_WORLD));
}

static void messages_stay_in_their_order(void)
{
    struct faulty rank[4];
    run_world(send_many, 60, false, rank);
    for (int i = 0; i < 4; i++)
        T_OK(rank[i].code, &rank[i].e);
}

/* One call of each kind, each of which is missed if it is left out (tests/fault: comm_skip). */
static void call_each_kind(struct comm *c)
{
    enum { N = 4 };
    float one[N], all[4 * N] = {0}, sum[1] = {0}, other[N] = {0};
    float own = (float)(c->rank + 1);
    const int64_t rows[4] = {1, 1, 1, 1};
    struct tensor t = tensor_1d(one, DTYPE_F32, N), whole = tensor_1d(all, DTYPE_F32, 4 * N);
    struct err why = {.code = ERR_FAIL, .msg = "a result is not the one of all ranks"};
    for (int i = 0; i < N; i++)
        one[i] = own;
    comm_wait(c, comm_all_gather(c, GROUP_WORLD, whole, t));
    bool good = all[0] == 1 && all[N] == 2 && all[2 * N] == 3 && all[3 * N] == 4;
    comm_wait(c, comm_reduce_scatter(c, GROUP_WORLD, tensor_1d(sum, DTYPE_F32, 1), t, REDUCE_SUM));
    good = good && sum[0] == 10;
    comm_wait(c, comm_all_to_all(c, GROUP_WORLD, tensor_1d(other, DTYPE_F32, N), rows, t, rows));
    good = good && other[0] == 1 && other[3] == 4;
    comm_wait(c, comm_all_reduce(c, GROUP_TP, t, REDUCE_SUM));
    good = good && one[0] == (c->rank < 2 ? 3 : 7);
    comm_wait(c, comm_broadcast(c, GROUP_DP, t, 1));
    good = good && one[0] == 7;
    for (int i = 0; i < N; i++)
        other[i] = 0;
    int next = 1 - comm_index(c, GROUP_TP);
    one[0] = own;
    comm_wait(c, comm_exchange(c, GROUP_TP, t, next, tensor_1d(other, DTYPE_F32, N), next));
    if (!good || other[0] != (float)(c->rank + (next ? 2 : 0)))
        comm_abort(c, &why);
    comm_wait(c, comm_barrier(c, GROUP_WORLD));
}

static void each_kind_gives_its_result(void)
{
    struct faulty rank[4];
    run_world(call_each_kind, 60, false, rank);
    for (int i = 0; i < 4; i++)
        T_OK(rank[i].code, &rank[i].e);
}

/* Rank 2 stays away from the second call until the others have given up. */
static void leave_one_out(struct comm *c)
{
    float v[5] = {0};
    struct tensor t = tensor_1d(v, DTYPE_F32, 5);
    comm_wait(c, comm_barrier(c, GROUP_WORLD));
    if (c->rank == 2)
        wait_for_a_fault(c);
    else
        comm_wait(c, comm_all_reduce(c, GROUP_WORLD, t, REDUCE_SUM));
}

static void a_missing_rank_is_named(void)
{
    check_fault(leave_one_out, 0.3, ERR_FAULT,
                "for rank 2 in call 2 of the world's group (all-reduce)");
}

static void give_to_one_who_does_not_take(struct comm *c)
{
    float v[5] = {0};
    struct tensor t = tensor_1d(v, DTYPE_F32, 5), none = {0};
    if (c->rank == 0)
        comm_wait(c, comm_exchange(c, GROUP_DP, t, 1, none, COMM_NOBODY));
    else
        wait_for_a_fault(c);
}

static void a_receiver_that_is_missing_is_named(void)
{
    check_fault(give_to_one_who_does_not_take, 0.3, ERR_FAULT,
                "rank 0 waited 0.3 s for rank 2 in call 1 of the data-parallel group (exchange)");
}

static void wait_for_rank_3(struct comm *c)
{
    float v[6] = {0};
    struct tensor t = tensor_1d(v, DTYPE_F32, 6);
    struct err why = {.code = ERR_IO, .msg = "rank 3: the disk is full"};
    struct comm_ticket last = {0};
    if (c->rank == 3)
        comm_abort(c, &why);
    else
        for (int i = 0; i < 2 * COMM_IN_FLIGHT; i++)
            last = comm_all_reduce(c, GROUP_WORLD, t, REDUCE_SUM);
    comm_wait(c, last);
}

static void an_abort_frees_all(void)
{
    check_fault(wait_for_rank_3, 60, ERR_IO, "rank 3: the disk is full");
}

static void other_sizes(struct comm *c)
{
    float v[9] = {0};
    comm_wait(c, comm_all_reduce(c, GROUP_WORLD, tensor_1d(v, DTYPE_F32, c->rank == 1 ? 8 : 9),
                                 REDUCE_SUM));
}

static void other_calls(struct comm *c)
{
    float v[9] = {0};
    struct tensor t = tensor_1d(v, DTYPE_F32, 9);
    comm_wait(c, c->rank == 1 ? comm_broadcast(c, GROUP_WORLD, t, 0)
                              : comm_all_reduce(c, GROUP_WORLD, t, REDUCE_SUM));
}

static void other_rows(struct comm *c)
{
    float v[4] = {0}, w[4];
    const int64_t even[2] = {2, 2}, odd[2] = {1, 3}, *rows = c->rank == 1 ? odd : even;
    struct tensor from = tensor_1d(v, DTYPE_F32, 4), to = tensor_1d(w, DTYPE_F32, 4);
    comm_wait(c, comm_all_to_all(c, GROUP_TP, to, rows, from, rows));
}

/* Ranks 1 and 2 disagree, and another joins last. */
static void other_rows_of_two(struct comm *c)
{
    float v[5] = {0}, w[5];
    int64_t give[4] = {1, 1, 1, 1}, take[4] = {1, 1, 1, 1};
    give[2] += c->rank == 1;
    struct tensor from = tensor_1d(v, DTYPE_F32, c->rank == 1 ? 5 : 4);
    struct tensor to = tensor_1d(w, DTYPE_F32, 4);
    usleep(c->rank == 1 || c->rank == 2 ? 0 : 50000);
    comm_wait(c, comm_all_to_all(c, GROUP_WORLD, to, take, from, give));
}

static void calls_that_do_not_fit_are_named(void)
{
    check_fault(other_sizes, 60, ERR_FAULT, "all-reduce of 8 F32");
    check_fault(other_calls, 60, ERR_FAULT, "rank 1 calls broadcast of 9 F32 from its rank 0");
    check_fault(other_rows, 60, ERR_FAULT, "all-to-all of 1 F32");
    check_fault(other_rows_of_two, 60, ERR_FAULT,
                "rank 1 calls all-to-all of 2 F32, rank 2 calls all-to-all of 1 F32");
}

/* Large gathers until rank 3 aborts: what a rank writes after its wait stays as it is. */
static void write_after_the_abort(struct comm *c)
{
    enum { COUNT = 1 << 19 };
    struct err why = {.code = ERR_IO, .msg = "rank 3: the disk is full"};
    float *all = mem_new(4 * COUNT, sizeof(*all));
    struct tensor whole = tensor_1d(all, DTYPE_F32, 4 * COUNT);
    struct tensor part = tensor_rows(whole, c->rank * COUNT, COUNT);
    for (int i = 0; i < 3 || c->rank != 3; i++) {
        struct comm_ticket t = comm_all_gather(c, GROUP_WORLD, whole, part);
        if (i == 2 && c->rank == 3) {
            usleep(300); /* the others are copying */
            comm_abort(c, &why);
        }
        comm_wait(c, t);
        if (c->fault)
            break;
    }
    memset(all, 0x55, 4 * COUNT * sizeof(*all));
    usleep(2000);
    for (size_t i = 0; i < 4 * COUNT * sizeof(*all); i++)
        if (((unsigned char *)all)[i] != 0x55) {
            err_set(&why, ERR_FAIL, "written by another rank after the wait");
            snprintf(c->fault_text, sizeof(c->fault_text), "%s", why.msg);
        }
    free(all);
}

static void nothing_arrives_after_an_abort(void)
{
    for (int i = 0; i < 10; i++)
        check_fault(write_after_the_abort, 60, ERR_IO, "rank 3: the disk is full");
}

T_MAIN(T_CASE(one_rank_alone), T_CASE(two_threads), T_CASE(four_threads), T_CASE(eight_threads),
       T_CASE(messages_stay_in_their_order), T_CASE(each_kind_gives_its_result),
       T_CASE(a_missing_rank_is_named), T_CASE(a_receiver_that_is_missing_is_named),
       T_CASE(an_abort_frees_all), T_CASE(nothing_arrives_after_an_abort),
       T_CASE(calls_that_do_not_fit_are_named))
