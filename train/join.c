/* SPDX-License-Identifier: Apache-2.0 */
#include "train/join.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/comm/comm_tcp.h"
#include "train/launch/meet.h"
#include "train/launch/spawn.h"
#if WEFT_MPI
#include "train/comm/comm_mpi.h"
#endif

static const struct comm_options endless = {.timeout = INFINITY};

int join_start(const struct train_options *o, const struct launch_place *p, char **argv,
               int *ret_exit, struct err *e)
{
    struct spawn s = {.per_node = o->per_node ? (int)o->per_node : 1,
                      .nodes = o->nodes ? (int)o->nodes : 1,
                      .node_rank = (int)o->node_rank,
                      .master_addr = o->master_addr,
                      .master_port = (int)o->master_port,
                      .log_folder = o->log_dir};
    *ret_exit = -1;
    bool asked = s.per_node > 1 || s.nodes > 1;
    if (asked && p->by != LAUNCH_ALONE && p->by != LAUNCH_TORCHRUN && p->rank == 0)
        log_warn("--nproc-per-node and --nnodes have no effect: %s has started this process",
                 launch_by_name(p->by));
    if (s.log_folder && p->by != LAUNCH_ALONE && !p->spawned && p->rank == 0)
        log_warn("--log-dir has no effect: %s has started this process, and keeps its own logs",
                 launch_by_name(p->by));
    if (!asked || p->by != LAUNCH_ALONE)
        return 0;
    return spawn_ranks(&s, "/proc/self/exe", argv, ret_exit, e);
}

#if WEFT_MPI
static int open_mpi(struct comm *ret, void *state, struct mesh m, struct err *e)
{
    return comm_mpi_open(ret, state, m, e);
}

static int join_mpi(struct join *j, struct job_world *ret, struct err *e)
{
    int code = comm_mpi_join(&j->mpi, &endless, e);
    if (!code)
        *ret = (struct job_world){.rank = comm_mpi_rank(j->mpi),
                                  .ranks = comm_mpi_world(j->mpi),
                                  .open = open_mpi,
                                  .state = j->mpi};
    return code;
}
#endif

static int open_tcp(struct comm *ret, void *state, struct mesh m, struct err *e)
{
    return comm_tcp_open(ret, state, m, e);
}

static int join_tcp(struct join *j, double seconds, const struct launch_place *p,
                    struct job_world *ret, struct err *e)
{
    int *fd = mem_new((size_t)p->world, sizeof(*fd));
    int code = meet_all(p, seconds, fd, e);
    if (!code)
        code = comm_tcp_join(&j->tcp, p->rank, p->world, fd, &endless, e);
    free(fd);
    if (!code)
        *ret = (struct job_world){
            .rank = p->rank, .ranks = p->world, .open = open_tcp, .state = j->tcp};
    return code;
}

static int join_any(struct join *j, double seconds, const struct launch_place *p,
                    struct job_world *ret, struct err *e)
{
#if WEFT_MPI
    if (p->by == LAUNCH_OPEN_MPI)
        return join_mpi(j, ret, e);
#endif
    int code = join_tcp(j, seconds, p, ret, e);
    if (code == ERR_USAGE && p->by == LAUNCH_OPEN_MPI)
        err_hint(e, "or build with MPI: apt-get install libopenmpi-dev");
    return code;
}

int join_world(struct join *j, const struct train_options *o, const struct launch_place *p,
               struct job_world *ret, struct err *e)
{
    *ret = (struct job_world){.rank = p->rank, .ranks = p->world};
    int code = p->world == 1 ? 0 : join_any(j, o->timeout_minutes * 60, p, ret, e);
    ret->one_output = p->by == LAUNCH_OPEN_MPI || p->by == LAUNCH_SLURM;
    return code;
}

void join_leave(struct join *j)
{
#if WEFT_MPI
    if (j->mpi)
        comm_mpi_leave(j->mpi);
#endif
    if (j->tcp)
        comm_tcp_leave(j->tcp);
    *j = (struct join){0};
}
