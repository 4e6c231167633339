/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_PLACE_H
#define TRAIN_LAUNCH_PLACE_H

/*
 * Which rank of a job this process is: what its launcher has put into the environment. Known are
 * Open MPI's mpirun (OMPI_COMM_WORLD_*), Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS), and
 * torchrun's variables (RANK, WORLD_SIZE, ...), which `train --nproc-per-node` gives its processes,
 * too.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"

enum launch_by { LAUNCH_ALONE, LAUNCH_OPEN_MPI, LAUNCH_SLURM, LAUNCH_TORCHRUN };

enum { LAUNCH_PORT = 29500, LAUNCH_WORLD_MOST = 1 << 20 };

struct launch_place {
    enum launch_by by;
    int rank, world;             /* LAUNCH_ALONE: 0 of 1 */
    int local_rank, local_world; /* among those of this machine; -1: not known */
    char host[256];              /* of rank 0, where the others find it; "": not known */
    int port;
    int listen_fd; /* rank 0: a socket that its launcher has opened for that; -1: none */
    bool spawned;  /* by this program (spawn.h) */
};

/*
 * `environment`: NAME=VALUE strings and NULL, as environ. ERR_USAGE names the variable that is
 * missing or makes no sense. Of several launchers the innermost counts: torchrun's variables, then
 * Open MPI's, then Slurm's.
 */
int launch_place(struct launch_place *ret, char *const *environment, struct err *e);

/* Its value; NULL: it is not set, or empty. */
const char *launch_variable(char *const *environment, const char *name);

/* "Open MPI" */
const char *launch_by_name(enum launch_by by);

/* The first host of a list as Slurm writes it, gpu[003-006,9],x1: "gpu003". False: it is none. */
bool launch_first_host(const char *list, char *ret, size_t size);

#endif
