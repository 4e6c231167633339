/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/replica.h"

#include <pthread.h>
#include <string.h>

#include "tests/t.h"
#include "train/comm/comm_threads.h"

enum { RANKS = 4, N = 1000 };

struct rank {
    pthread_t thread;
    struct comm_threads *all;
    int rank;
    enum group group;
    unsigned wrong; /* bits: ranks with another value in the second tensor */
    int code;
    struct err e;
};

static void *be_rank(void *arg)
{
    struct rank *r = arg;
    struct comm c;
    float a[N], b[N];
    struct replica list[2] = {{"norm.weight", a, sizeof(a)}, {"head.weight", b, sizeof(b)}};
    r->code = comm_threads_open(&c, r->all, r->rank, &r->e);
    if (r->code)
        return NULL;
    for (int i = 0; i < N; i++)
        a[i] = b[i] = (float)i;
    if (r->wrong >> r->rank & 1)
        memset((char *)b + 4 * N - 2, 0x41, 1); /* one byte */
    r->code = replicas_compare(&c, r->group, list, 2, &r->e);
    comm_close(&c);
    return NULL;
}

static void run_ranks(struct rank *r, struct mesh m, enum group g, unsigned wrong)
{
    struct comm_threads *all = comm_threads_create(m, NULL);
    for (int i = 0; i < RANKS; i++) {
        r[i] = (struct rank){.all = all, .rank = i, .group = g, .wrong = wrong};
        pthread_create(&r[i].thread, NULL, be_rank, &r[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(r[i].thread, NULL);
    comm_threads_destroy(all);
}

static void equal_replicas_pass(void)
{
    struct rank r[RANKS];
    run_ranks(r, mesh_dense(1, 1, RANKS, 1), GROUP_DP, 0);
    for (int i = 0; i < RANKS; i++)
        T_OK(r[i].code, &r[i].e);
}

static void a_rank_that_differs_is_named(void)
{
    struct rank r[RANKS];
    run_ranks(r, mesh_dense(1, 1, RANKS, 1), GROUP_DP, 1 << 0);
    for (int i = 0; i < RANKS; i++)
        T_ERR(r[i].code, &r[i].e, ERR_FAULT,
              "head.weight differs between replicas: rank 0 has other values than rank 1");
    run_ranks(r, mesh_dense(1, 1, RANKS, 1), GROUP_DP, 1 << 2 | 1 << 3);
    T_ERR(r[3].code, &r[3].e, ERR_FAULT, "ranks 2, 3 have other values than rank 0");
}

/* Ranks are named by their number in the world, and groups do not look at each other. */
static void groups_are_apart(void)
{
    struct rank r[RANKS];
    run_ranks(r, mesh_dense(2, 1, 2, 1), GROUP_DP, 1 << 3);
    T_OK(r[0].code, &r[0].e);
    T_OK(r[2].code, &r[2].e);
    T_ERR(r[1].code, &r[1].e, ERR_FAULT, "rank 3 has other values than rank 1");
    T_ERR(r[3].code, &r[3].e, ERR_FAULT, "rank 3 has other values than rank 1");
}

T_MAIN(T_CASE(equal_replicas_pass), T_CASE(a_rank_that_differs_is_named), T_CASE(groups_are_apart))
