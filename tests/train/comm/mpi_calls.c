/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/train/comm/calls.h"
#include "train/comm/comm_mpi.h"

/*
 * One rank of an MPI job: the calls of calls.h over MPI. Rank 0 makes them over threads, too, and
 * the bits of every rank must be the same.
 *
 *     mpirun -n N mpi_calls            N: 2, 4 or 8
 *     mpirun -n N mpi_calls late       the last rank stays away: exit 70 after its sentence
 *     mpirun -n N mpi_calls other      the last rank gives more: exit 70 after a sentence on both
 * calls mpirun -n N mpi_calls abort      the last rank aborts: exit 4 after its sentence
 */

static int same_as_threads(struct comm *c, struct mesh m, uint64_t digest)
{
    uint64_t all[8], want[8];
    char why[512];
    struct tensor whole = tensor_1d(all, DTYPE_F64, c->world); /* bits, which nobody adds */
    struct tensor part = tensor_1d(&digest, DTYPE_F64, 1);
    comm_wait(c, comm_all_gather(c, GROUP_WORLD, whole, part));
    if (c->rank)
        return 0;
    if (calls_run_threads(m, 0, 1, want, why, sizeof(why))) {
        fprintf(stderr, "threads: %s\n", why);
        return 1;
    }
    for (int i = 0; i < c->world; i++)
        if (all[i] != want[i]) {
            fprintf(stderr, "rank %d: MPI has %016" PRIx64 ", threads %016" PRIx64 "\n", i, all[i],
                    want[i]);
            return 1;
        }
    return 0;
}

static int run_calls(struct comm_mpi *job, struct err *e)
{
    char why[512];
    int failed = 0;
    for (int which = 0; which < CALLS_MESHES; which++) {
        struct mesh m = calls_mesh(comm_mpi_world(job), which);
        struct comm c;
        uint64_t digest;
        int code = comm_mpi_open(&c, job, m, e);
        if (code)
            return code;
        if (calls_run(&c, 1, &digest, why, sizeof(why))) {
            comm_abort(&c, &(struct err){.code = ERR_FAIL});
            comm_close(&c);
            return err_set(e, ERR_FAIL, "mesh %d: %s", which, why);
        }
        failed |= same_as_threads(&c, m, digest);
        comm_close(&c);
    }
    return failed ? err_set(e, ERR_FAIL, "the bits of MPI and of threads differ") : 0;
}

static int run_fault(struct comm_mpi *job, const char *what, struct err *e)
{
    struct comm c;
    float v[6] = {0};
    bool aborts = strcmp(what, "abort") == 0, late = strcmp(what, "late") == 0;
    struct err why = {.code = ERR_IO, .msg = "the last rank: the disk is full"};
    int code = comm_mpi_open(&c, job, mesh_dense(1, 1, comm_mpi_world(job), 1), e);
    if (code)
        return code;
    comm_wait(&c, comm_barrier(&c, GROUP_WORLD));
    bool last = c.rank == c.world - 1;
    if (last && aborts)
        comm_abort(&c, &why);
    while (last && late && !c.fault) {
        usleep(5000);
        comm_wait(&c, (struct comm_ticket){0});
    }
    struct tensor t = tensor_1d(v, DTYPE_F32, last ? 6 : 5);
    comm_wait(&c, comm_all_reduce(&c, GROUP_DP, t, REDUCE_SUM));
    code = comm_fault(&c, e);
    comm_close(&c);
    return code;
}

int main(int argc, char **argv)
{
    /* messages of 64 bytes: every call takes several rounds */
    const char *what = argc > 1 ? argv[1] : "";
    struct comm_options o = {.timeout = strcmp(what, "late") ? 120 : 0.5, .message = 64};
    struct comm_mpi *job;
    struct err e;
    int code = comm_mpi_join(&job, &o, &e);
    if (!code) {
        code = *what ? run_fault(job, what, &e) : run_calls(job, &e);
        if (code)
            fprintf(stderr, "rank %d: %s\n", comm_mpi_rank(job), e.msg);
        usleep(code ? 300000 : 0); /* mpirun ends the others as soon as one fails */
        comm_mpi_leave(job);
    } else {
        fprintf(stderr, "%s\n", e.msg);
    }
    return code;
}
