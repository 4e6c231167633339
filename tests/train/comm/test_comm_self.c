/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/t.h"
#include "train/comm/comm.h"

static const float kept[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void a_group_of_one_copies_at_most(void)
{
    struct comm c;
    float v[8], w[8] = {0};
    const int64_t rows[1] = {2};
    memcpy(v, kept, sizeof(v));
    comm_self_open(&c);
    struct tensor t = tensor_2d(v, DTYPE_F32, 2, 4), u = tensor_2d(w, DTYPE_F32, 2, 4);
    struct tensor none = {0};
    comm_wait(&c, comm_all_reduce(&c, GROUP_TP, t, REDUCE_SUM));
    comm_wait(&c, comm_broadcast(&c, GROUP_WORLD, t, 0));
    comm_wait(&c, comm_barrier(&c, GROUP_PP));
    comm_wait(&c, comm_exchange(&c, GROUP_PP, none, COMM_NOBODY, none, COMM_NOBODY));
    comm_wait(&c, comm_all_gather(&c, GROUP_DP, t, t));
    T_MEM(v, kept, sizeof(v));
    T_EQ(w[0], 0);
    comm_wait(&c, comm_all_gather(&c, GROUP_DP, u, t));
    T_MEM(w, kept, sizeof(v));
    memset(w, 0, sizeof(w));
    comm_wait(&c, comm_reduce_scatter(&c, GROUP_DP, u, t, REDUCE_SUM));
    T_MEM(w, kept, sizeof(v));
    memset(w, 0, sizeof(w));
    comm_wait(&c, comm_exchange(&c, GROUP_CP, t, 0, u, 0));
    T_MEM(w, kept, sizeof(v));
    memset(w, 0, sizeof(w));
    comm_wait(&c, comm_all_to_all(&c, GROUP_EP, u, rows, t, rows));
    T_MEM(w, kept, sizeof(v));
    T_EQ(comm_size(&c, GROUP_WORLD), 1);
    comm_close(&c);
}

static void the_first_fault_is_kept(void)
{
    struct comm c;
    struct err e, first = {.code = ERR_FAULT, .msg = "the first"};
    struct err second = {.code = ERR_IO, .msg = "the second"};
    comm_self_open(&c);
    T_OK(comm_fault(&c, &e), &e);
    comm_abort(&c, &first);
    comm_abort(&c, &second);
    T_ERR(comm_fault(&c, &e), &e, ERR_FAULT, "the first");
    comm_close(&c);
    comm_close(&c);
}

T_MAIN(T_CASE(a_group_of_one_copies_at_most), T_CASE(the_first_fault_is_kept))
