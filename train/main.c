/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/cli/stdout.h"
#include "train/comm/comm.h"
#include "train/job.h"
#include "train/ops/ops.h"
#include "train/tensor/dev.h"
#if WEFT_CUDA
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"
#endif
#if WEFT_MPI
#include "train/comm/comm_mpi.h"
#endif

/* What a rank of this program runs on, the fastest first. */
static const struct rank_backends backends[] = {
#if WEFT_CUDA
    {.name = "cuda",
     .describe_device = dev_cuda_describe,
     .open_device = dev_cuda_start,
     .init_ops = ops_cuda_open},
#endif
    {.name = "cpu",
     .describe_device = dev_host_describe,
     .open_device = dev_host_open,
     .init_ops = ops_cpu_open},
};

/* ---- the processes of a job ---------------------------------------------------------------- */

/* How many processes mpirun has started; 1 without it. */
static int started(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE");
    return n && atoi(n) > 1 ? atoi(n) : 1;
}

/* This process's number among them. */
static int started_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank ? atoi(rank) : 0;
}

#if WEFT_MPI
static int open_mpi(struct comm *ret, void *state, struct mesh m, struct err *e)
{
    return comm_mpi_open(ret, state, m, e);
}

static int join(struct job_world *w, struct err *e)
{
    struct comm_mpi *job;
    int code = started() > 1 ? comm_mpi_join(&job, NULL, e) : 0;
    if (code || started() == 1)
        return code;
    *w = (struct job_world){comm_mpi_rank(job), comm_mpi_world(job), open_mpi, job};
    return 0;
}

static void leave(struct job_world *w)
{
    if (w->state)
        comm_mpi_leave(w->state);
}
#else
static int join(struct job_world *w, struct err *e)
{
    (void)w;
    if (started() == 1)
        return 0;
    err_set(e, ERR_USAGE, "mpirun started %d processes, and this program was built without MPI",
            started());
    return err_hint(e, "apt-get install libopenmpi-dev, and build again");
}

static void leave(struct job_world *w)
{
    (void)w;
}
#endif

int main(int argc, char **argv)
{
    static int (*const verb[])(struct opts *, struct err *) = {
        [VERB_RUN] = verb_run,
        [VERB_EVAL] = verb_eval,
        [VERB_GENERATE] = verb_generate,
        [VERB_PLAN] = verb_plan,
    };
    struct job_world world = {.ranks = 1};
    struct train_options values = {.backends = backends,
                                   .nbackends = (int)(sizeof(backends) / sizeof(backends[0])),
                                   .world = &world};
    struct opts o = {0};
    struct err e = {0};
    stdio_begin(false);
    int code = opts_init(&o, &train_table, &values, argc, argv, &e);
    if (!code) {
        spec_flags_note(&values.model, &o);
        code = spec_flags_fill(&values.model, &o, &e);
    }
    bool told = code && started_rank() > 0; /* bad options: the first process says so */
    if (!code && !opts_answer(&o, stdout)) {
        log_set_level(values.common.quiet     ? LOG_WARN
                      : values.common.verbose ? LOG_DEBUG
                                              : LOG_INFO);
        code = join(&world, &e);
        if (world.rank) { /* the first process speaks for all */
            log_set_rank(world.rank);
            log_set_level(LOG_ERROR);
        }
        if (!code)
            code = verb[o.verb](&o, &e);
    }
    if (!code)
        code = stdout_finish(&e);
    if (code && e.msg[0] && !told) /* a run that was asked to stop has said so itself */
        log_err(&e);
    opts_finish(&o);
    leave(&world);
    return code;
}
