/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/place.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"

#define PLACE(p, ...) launch_place(&(p), (char *const[]){__VA_ARGS__, NULL}, &e)

static void nobody_started_it(void)
{
    struct launch_place p;
    struct err e;
    T_OK(PLACE(p, "HOME=/root", "RANKS=3", "SLURM_PROCID=0", "SLURM_NTASKS=8"), &e);
    T_EQ(p.by, LAUNCH_ALONE);
    T_EQ(p.rank, 0);
    T_EQ(p.world, 1);
    T_EQ(p.listen_fd, -1);
}

static void torchrun(void)
{
    struct launch_place p;
    struct err e;
    T_OK(PLACE(p, "RANK=5", "WORLD_SIZE=16", "LOCAL_RANK=5", "LOCAL_WORLD_SIZE=8",
               "MASTER_ADDR=node-0", "MASTER_PORT=1234", "OMPI_COMM_WORLD_SIZE=3"),
         &e);
    T_EQ(p.by, LAUNCH_TORCHRUN);
    T_EQ(p.rank, 5);
    T_EQ(p.world, 16);
    T_EQ(p.local_rank, 5);
    T_EQ(p.local_world, 8);
    T_STR(p.host, "node-0");
    T_EQ(p.port, 1234);
    T_OK(PLACE(p, "RANK=0", "WORLD_SIZE=2", "WEFT_LISTEN_FD=7"), &e);
    T_EQ(p.listen_fd, 7);
    T_EQ(p.local_rank, -1);
    T_STR(p.host, "");
    T_EQ(p.port, LAUNCH_PORT);
    T_OK(PLACE(p, "RANK=1", "WORLD_SIZE=2", "WEFT_LISTEN_FD=-1"), &e);
    T_EQ(p.listen_fd, -1);
}

static void open_mpi(void)
{
    struct launch_place p;
    struct err e;
    T_OK(PLACE(p, "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
               "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=4"),
         &e);
    T_EQ(p.by, LAUNCH_OPEN_MPI);
    T_EQ(p.rank, 2);
    T_STR(p.host, "127.0.0.1"); /* all on one machine */
    T_OK(PLACE(p, "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
               "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
         &e);
    T_STR(p.host, "");
}

static void slurm(void)
{
    struct launch_place p;
    struct err e;
    T_OK(PLACE(p, "SLURM_PROCID=9", "SLURM_STEP_NUM_TASKS=16", "SLURM_LOCALID=1",
               "SLURM_STEP_NODELIST=gpu[003-006,9],x1", "SLURM_JOB_ID=123456"),
         &e);
    T_EQ(p.by, LAUNCH_SLURM);
    T_EQ(p.rank, 9);
    T_EQ(p.world, 16);
    T_EQ(p.local_rank, 1);
    T_STR(p.host, "gpu003");
    T_EQ(p.port, 10000 + 123456 % 50000);
    T_OK(PLACE(p, "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=7", "MASTER_PORT=99",
               "MASTER_ADDR=10.0.0.1"),
         &e);
    T_STR(p.host, "10.0.0.1");
    T_EQ(p.port, 99);
    T_EQ(p.local_world, -1);
}

static void slurm_tasks_of_a_node(void)
{
    static const struct {
        const char *list;
        char *node;
        int want;
    } row[] = {{"4(x2),3", "SLURM_NODEID=0", 4}, {"4(x2),3", "SLURM_NODEID=1", 4},
               {"4(x2),3", "SLURM_NODEID=2", 3}, {"4(x2),3", "SLURM_NODEID=3", -1},
               {"1,2", "SLURM_NODEID=1", 2},     {"8", "SLURM_PROCID=0", 8},
               {"4(x2", "SLURM_NODEID=0", -1},   {"4(y2)", "SLURM_NODEID=0", -1},
               {"", "SLURM_NODEID=0", -1},       {"0", "SLURM_NODEID=0", -1},
               {"17", "SLURM_NODEID=0", -1}};
    struct launch_place p;
    struct err e;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char list[64];
        snprintf(list, sizeof(list), "SLURM_STEP_TASKS_PER_NODE=%s", row[i].list);
        T_OK(PLACE(p, "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=16", row[i].node, list), &e);
        T_EQ(p.local_world, row[i].want);
    }
}

static void what_makes_no_sense_is_named(void)
{
    struct launch_place p;
    struct err e;
    T_ERR(PLACE(p, "RANK=1"), &e, ERR_USAGE, "started by torchrun: the environment lacks WORLD_SI");
    T_ERR(PLACE(p, "RANK=4", "WORLD_SIZE=4"), &e, ERR_USAGE,
          "has RANK=4: expected a number from 0");
    T_ERR(PLACE(p, "RANK=1x", "WORLD_SIZE=4"), &e, ERR_USAGE, "RANK=1x");
    T_ERR(PLACE(p, "RANK=0", "WORLD_SIZE=0"), &e, ERR_USAGE, "WORLD_SIZE=0");
    T_ERR(PLACE(p, "RANK=0", "WORLD_SIZE=99999999999999999999"), &e, ERR_USAGE, "WORLD_SIZE=999");
    T_ERR(PLACE(p, "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=70000"), &e, ERR_USAGE, "MASTER_PORT");
    T_ERR(PLACE(p, "OMPI_COMM_WORLD_SIZE=2"), &e, ERR_USAGE,
          "started by Open MPI: the environment lacks OMPI_COMM_WORLD_RANK");
    T_ERR(PLACE(p, "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=[,"), &e,
          ERR_USAGE, "expected hosts");
}

static void first_hosts(void)
{
    static const char *const rows[][2] = {{"a", "a"},
                                          {"a,b", "a"},
                                          {"n[1-3]", "n1"},
                                          {"n[007,9]", "n007"},
                                          {"a-b[10-11]", "a-b10"},
                                          {"n[3]", "n3"}};
    char host[16];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CHECK(launch_first_host(rows[i][0], host, sizeof(host)));
        T_STR(host, rows[i][1]);
    }
    T_CHECK(!launch_first_host("", host, sizeof(host)));
    T_CHECK(!launch_first_host(",a", host, sizeof(host)));
    T_CHECK(!launch_first_host("n[x]", host, sizeof(host)));
    T_CHECK(!launch_first_host("a-very-long-name-of-a-host", host, sizeof(host)));
}

T_MAIN(T_CASE(nobody_started_it), T_CASE(torchrun), T_CASE(open_mpi), T_CASE(slurm),
       T_CASE(slurm_tasks_of_a_node), T_CASE(what_makes_no_sense_is_named), T_CASE(first_hosts))
