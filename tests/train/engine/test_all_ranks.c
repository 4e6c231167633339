/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/all_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"
#include "train/comm/comm_threads.h"

/* Ranks that are threads; the last one may say another size than it has bytes, as a rank of another
 * program could. */

enum { RANKS = 3, TIMEOUT = 60 };

struct one {
    pthread_t thread;
    struct comm comm;
    struct comm_threads *threads;
    int index;
    const int32_t *says; /* what the last one says in place of its size; NULL: as it is */
    struct buf all;
    size_t size[RANKS];
    int code, agreed, most;
    struct err e;
};

static const char *const words[RANKS] = {"first", "", "the third"};

static void *gather(void *arg)
{
    struct one *r = arg;
    int32_t sizes[RANKS], mine = r->says ? *r->says : 0;
    r->code = comm_threads_open(&r->comm, r->threads, r->index, &r->e);
    if (r->code)
        return NULL;
    if (r->says && r->index == RANKS - 1)
        comm_wait(&r->comm,
                  comm_all_gather(&r->comm, GROUP_WORLD, tensor_1d(sizes, DTYPE_I32, RANKS),
                                  tensor_1d(&mine, DTYPE_I32, 1)));
    else
        r->code = all_ranks_gather(&r->comm, words[r->index], strlen(words[r->index]), &r->all,
                                   r->size, &r->e);
    return NULL;
}

static void *agree(void *arg)
{
    struct one *r = arg;
    r->code = comm_threads_open(&r->comm, r->threads, r->index, &r->e);
    if (r->code)
        return NULL;
    r->most = all_ranks_max(&r->comm, 10 * r->index);
    int code = r->index == 1 ? err_set(&r->e, ERR_DATA, "the second cannot") : 0;
    r->agreed = all_ranks_agree(&r->comm, code, &r->e);
    return NULL;
}

static void run(struct one r[RANKS], void *(*fn)(void *), const int32_t *says)
{
    static const struct comm_options o = {.timeout = TIMEOUT};
    struct comm_threads *threads = comm_threads_create(mesh_dense(1, 1, RANKS, 1), &o);
    for (int i = 0; i < RANKS; i++) {
        r[i] = (struct one){.threads = threads, .index = i, .says = says};
        T_EQ(pthread_create(&r[i].thread, NULL, fn, &r[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(r[i].thread, NULL);
    for (int i = 0; i < RANKS; i++)
        comm_close(&r[i].comm);
    comm_threads_destroy(threads);
}

static void bytes_of_all_come_in_their_order(void)
{
    struct one r[RANKS];
    run(r, gather, NULL);
    for (int i = 0; i < RANKS; i++) {
        T_OK(r[i].code, &r[i].e);
        T_STR(buf_str(&r[i].all), "firstthe third");
        for (int k = 0; k < RANKS; k++)
            T_EQ(r[i].size[k], strlen(words[k]));
        buf_finish(&r[i].all);
    }
}

/* Before anything is allocated for it, and without a call that the other does not make. */
static void a_size_that_no_rank_has_is_refused(void)
{
    static const int32_t says[] = {-1, INT32_MIN, (1 << 28) + 1, INT32_MAX};
    for (size_t k = 0; k < sizeof(says) / sizeof(*says); k++) {
        struct one r[RANKS];
        char want[128];
        snprintf(want, sizeof(want), "rank 2 has %d bytes for all ranks: expected 0 to %d", says[k],
                 1 << 28);
        run(r, gather, &says[k]);
        for (int i = 0; i + 1 < RANKS; i++) {
            T_ERR(r[i].code, &r[i].e, ERR_FAULT, want);
            T_EQ(r[i].all.len, 0);
            buf_finish(&r[i].all);
        }
    }
}

static void one_that_fails_ends_all(void)
{
    struct one r[RANKS];
    run(r, agree, NULL);
    for (int i = 0; i < RANKS; i++) {
        T_EQ(r[i].most, 20);
        T_EQ(r[i].agreed, ERR_DATA);
        T_STR(r[i].e.msg, i == 1 ? "the second cannot" : "");
    }
}

T_MAIN(T_CASE(bytes_of_all_come_in_their_order), T_CASE(a_size_that_no_rank_has_is_refused),
       T_CASE(one_that_fails_ends_all))
