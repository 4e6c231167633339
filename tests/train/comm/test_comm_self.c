/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm.h"

#include <string.h>

#include "tests/t.h"

static void a_group_of_one_changes_nothing(void)
{
    struct comm c;
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8}, w[8] = {0};
    const float kept[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    comm_self_open(&c);
    struct tensor t = tensor_2d(v, DTYPE_F32, 2, 4), u = tensor_2d(w, DTYPE_F32, 2, 4);
    comm_all_reduce(&c, GROUP_TP, t, REDUCE_SUM);
    comm_wait(&c, GROUP_TP);
    c.fn->broadcast(&c, GROUP_WORLD, t, 0);
    T_MEM(v, kept, sizeof(v));
    c.fn->all_gather(&c, GROUP_DP, u, t);
    T_MEM(w, kept, sizeof(v));
    memset(w, 0, sizeof(w));
    c.fn->reduce_scatter(&c, GROUP_DP, u, t);
    T_MEM(w, kept, sizeof(v));
    T_EQ(comm_size(&c, GROUP_WORLD), 1);
    comm_close(&c);
}

T_MAIN(T_CASE(a_group_of_one_changes_nothing))
