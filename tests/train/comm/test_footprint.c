/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/footprint.h"

#include <stdlib.h>

#include "tests/t.h"

static struct tensor bytes_at(void *at, int64_t n)
{
    return tensor_1d(at, DTYPE_F32, n / 4);
}

/* What one call of a group of four may need. */
static void calls(void)
{
    static char here;
    struct comm c = {.mesh = mesh_dense(1, 1, 4, 1), .world = 4};
    struct comm_call sum = {.kind = COMM_ALL_REDUCE, .group = GROUP_DP};
    sum.to = bytes_at(&here, 4096);
    struct comm_staged s = comm_wire_staged(&c, &sum);
    T_EQ(s.scratch, 4096);
    T_EQ(s.early, 4096);
    sum.to = bytes_at(&here, 1 << 24);
    s = comm_wire_staged(&c, &sum);
    T_EQ(s.scratch, WIRE_SCRATCH);
    T_EQ(s.early, WIRE_SCRATCH);
    struct comm_call gather = {.kind = COMM_ALL_GATHER,
                               .group = GROUP_DP,
                               .to = bytes_at(&here, 1 << 24),
                               .from = bytes_at(&here, 1 << 22)};
    s = comm_wire_staged(&c, &gather);
    T_EQ(s.scratch, 0);
    T_EQ(s.early, 3 << 22);
    gather.group = GROUP_TP; /* alone */
    s = comm_wire_staged(&c, &gather);
    T_EQ(s.scratch + s.early, 0);
}

/* The most at any time: calls that are waited for, or 64 calls old, need nothing any more. */
static void in_flight(void)
{
    static struct comm_staging s;
    struct comm_ticket a = comm_staging_issue(&s, (struct comm_staged){10, 100});
    T_EQ(s.most, 110);
    struct comm_ticket b = comm_staging_issue(&s, (struct comm_staged){5, 50});
    T_EQ(s.most, 165);
    comm_staging_wait(&s, a);
    comm_staging_wait(&s, a);
    comm_staging_wait(&s, (struct comm_ticket){0});
    comm_staging_issue(&s, (struct comm_staged){1, 1});
    T_EQ(s.most, 165);
    comm_staging_wait(&s, b);
    T_EQ(s.sum.scratch + s.sum.early, 2);
    for (int i = 0; i < 2 * COMM_IN_FLIGHT; i++)
        comm_staging_issue(&s, (struct comm_staged){0, 2});
    T_EQ(s.sum.scratch, 0);
    T_EQ(s.sum.early, 2 * COMM_IN_FLIGHT);
    comm_staging_wait(&s, a); /* another call has its place */
    T_EQ(s.sum.early, 2 * COMM_IN_FLIGHT);
    comm_staging_issue(&s, (struct comm_staged){7, 2 * (uint64_t)WIRE_EARLY});
    T_EQ(s.most, 7 + (uint64_t)WIRE_EARLY); /* then senders wait */
}

static void nccl(void)
{
    unsetenv("NCCL_BUFFSIZE");
    unsetenv("NCCL_MAX_NCHANNELS");
    struct nccl_buffers b = nccl_buffers();
    uint64_t one = (4 << 20) + (512 << 10) + 4915200, ring = 24 * one, message = 32 * one;
    T_EQ(b.connection, one);
    T_EQ(comm_nccl_bytes(mesh_single(), 0, b), 0);
    /* data, data and context, shard, experts' data, world: two ranks have one connection each */
    T_EQ(comm_nccl_bytes(mesh_dense(1, 1, 2, 1), 1, b), 5 * ring);
    T_EQ(comm_nccl_bytes(mesh_dense(1, 1, 8, 1), 3, b), 5 * 2 * ring);
    /* pipeline, ends, world; messages of the pipeline's, and of two more of two ranks */
    T_EQ(comm_nccl_bytes(mesh_dense(1, 1, 1, 2), 0, b), 3 * ring + message + 2 * (ring + message));
    /* a stage between is at no end */
    uint64_t first = comm_nccl_bytes(mesh_dense(1, 1, 1, 4), 0, b);
    T_EQ(first - comm_nccl_bytes(mesh_dense(1, 1, 1, 4), 1, b), ring);
    setenv("NCCL_BUFFSIZE", "1048576", 1);
    setenv("NCCL_MAX_NCHANNELS", "4", 1);
    b = nccl_buffers();
    T_EQ(comm_nccl_bytes(mesh_dense(1, 1, 2, 1), 1, b), 5 * 4 * (one - (3 << 20)));
    setenv("NCCL_BUFFSIZE", "many", 1);
    T_EQ(nccl_buffers().connection, one);
}

T_MAIN(T_CASE(calls), T_CASE(in_flight), T_CASE(nccl))
