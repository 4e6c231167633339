/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/comm/job_calls.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/train/comm/calls.h"

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
            fprintf(stderr, "rank %d: processes have %016" PRIx64 ", threads have %016" PRIx64 "\n",
                    i, all[i], want[i]);
            return 1;
        }
    return 0;
}

static const struct calls_memory *memory_of(const struct job_calls *j)
{
    return j->memory ? j->memory : &calls_host_memory;
}

static int run_calls(const struct job_calls *j, struct err *e)
{
    char why[512];
    int failed = 0;
    for (int which = 0; which < CALLS_MESHES; which++) {
        struct mesh m = calls_mesh(j->world, which);
        struct comm c;
        uint64_t digest;
        int code = j->open(&c, j->job, m, e);
        if (code)
            return code;
        if (calls_run(&c, memory_of(j), 1, &digest, why, sizeof(why))) {
            comm_abort(&c, &(struct err){.code = ERR_FAIL});
            comm_close(&c);
            return err_set(e, ERR_FAIL, "mesh %d: %s", which, why);
        }
        failed |= same_as_threads(&c, m, digest);
        comm_close(&c);
    }
    return failed ? err_set(e, ERR_FAIL, "the bits of processes and of threads differ") : 0;
}

static int run_fault(const struct job_calls *j, const char *what, struct err *e)
{
    struct comm c;
    const struct calls_memory *memory = memory_of(j);
    bool aborts = strcmp(what, "abort") == 0, late = strcmp(what, "late") == 0;
    struct err why = {.code = ERR_IO, .msg = "the last rank: the disk is full"};
    int code = j->open(&c, j->job, mesh_dense(1, 1, j->world, 1), e);
    if (code)
        return code;
    comm_wait(&c, comm_barrier(&c, GROUP_WORLD));
    bool last = c.rank == c.world - 1;
    if (last && aborts)
        comm_abort(&c, &why);
    if (last && strcmp(what, "die") == 0)
        kill(getpid(), SIGKILL);
    while (last && late && !c.fault) {
        usleep(5000);
        comm_wait(&c, (struct comm_ticket){0});
    }
    float *v = memory->take(6 * sizeof(*v));
    struct tensor t = tensor_1d(v, DTYPE_F32, last ? 6 : 5);
    comm_wait(&c, comm_all_reduce(&c, GROUP_DP, t, REDUCE_SUM));
    memory->sync(memory->arg);
    comm_wait(&c, (struct comm_ticket){0}); /* what happened meanwhile */
    code = comm_fault(&c, e);
    comm_close(&c);
    memory->release(v);
    return code;
}

int job_calls_run(const struct job_calls *j, const char *what, struct err *e)
{
    return *what ? run_fault(j, what, e) : run_calls(j, e);
}

struct comm_options job_calls_options(const char *what)
{
    return (struct comm_options){
        .timeout = strcmp(what, "late") ? 120 : 5, .early = 2048, .message = 64};
}
