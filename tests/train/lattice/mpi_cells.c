/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_cells N: the first N cells of a sample of the lattice that have as many ranks as this MPI job
 * has processes. Exit code 0: each process agrees with the single rank in all of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "tests/train/lattice/space.h"
#include "train/comm/comm_mpi.h"

enum { SEED = 12, SAMPLE = 400 };

static int run_process(void *arg, const struct cell *c, const struct cell_single *single,
                       double tolerance, struct cell_why *why)
{
    struct comm comm;
    struct err e;
    if (comm_mpi_open(&comm, arg, c->layout.mesh, &e)) {
        snprintf(why->text, sizeof(why->text), "%.590s", e.msg);
        return -1;
    }
    return cell_run_process(c, single, tolerance, &comm, why->text, sizeof(why->text));
}

int main(int argc, char **argv)
{
    struct comm_mpi *job;
    struct space all;
    struct err e;
    size_t number[SAMPLE], pairs, missing, n = 0;
    size_t most = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    int code = comm_mpi_join(&job, NULL, &e);
    if (code)
        return log_err(&e);
    space_open(&all);
    size_t cells = space_sample(&all, SEED, SAMPLE, number, &pairs, &missing);
    size_t mine[SAMPLE];
    for (size_t i = 0; i < cells && n < most; i++) { /* spread over the sample */
        size_t k = number[i * 37 % cells];
        if (mesh_world(all.at[k].layout.mesh) == comm_mpi_world(job))
            mine[n++] = k;
    }
    code = space_run_by(&all, mine, n, run_process, job) || n != most;
    if (!code && comm_mpi_rank(job) == 0)
        printf("%zu cells\n", n);
    space_close(&all);
    comm_mpi_leave(job);
    return code;
}
