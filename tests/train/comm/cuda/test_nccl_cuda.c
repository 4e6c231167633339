/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/cuda/comm_nccl.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/train/comm/job_calls.h"
#include "train/comm/comm_tcp.h"
#include "train/launch/meet.h"
#include "train/launch/spawn.h"
#include "train/launch/token.h"
#include "train/tensor/cuda/dev_cuda.h"

/*
 * The collectives of two GPUs: the program starts itself as two ranks for each case. Tensors are in
 * managed memory, so that the calls of calls.h can fill and read them; a sum of two has one order,
 * so its bits are those of the other backends.
 */

extern char **environ;

enum { RANKS = 2 };

struct gpu_job {
    struct comm_tcp *tcp;
    struct dev dev;
    struct comm_options options;
    bool messages; /* in every group */
};

static void *take_managed(size_t bytes)
{
    void *p = NULL;
    if (cudaMallocManaged(&p, bytes, cudaMemAttachGlobal) != cudaSuccess)
        abort();
    memset(p, 0, bytes);
    return p;
}

static void release_managed(void *p)
{
    cudaFree(p);
}

static void sync_gpu(void *arg)
{
    (void)arg;
    cudaDeviceSynchronize();
}

static int open_comm(struct comm *ret, void *job, struct mesh m, struct err *e)
{
    struct gpu_job *j = job;
    int code = comm_tcp_open(ret, j->tcp, m, e);
    struct comm_nccl_options o = {.timeout = j->options.timeout, .rings = j->messages ? ~0u : 0};
    return code ? code : comm_nccl_open(ret, &j->dev, &o, e);
}

static int be_rank(const char *what, struct err *e)
{
    static const struct calls_memory memory = {take_managed, release_managed, sync_gpu, NULL};
    struct launch_place p;
    struct job_token token;
    int fd[RANKS], code = launch_place(&p, environ, e);
    struct gpu_job g = {.options = job_calls_options(what), .messages = !*what};
    struct comm_options host = job_calls_options("");
    if (!code)
        code = dev_cuda_open(&g.dev, p.rank, e);
    if (!code)
        code = token_find(&token, &p, environ, &(struct token_wish){0}, e);
    if (!code)
        code = meet_all(&p, &token, 60, fd, e);
    if (!code)
        code = comm_tcp_join(&g.tcp, p.rank, p.world, fd, &host, e);
    if (code)
        return code;
    struct job_calls j = {
        .job = &g, .open = open_comm, .rank = p.rank, .world = p.world, .memory = &memory};
    code = job_calls_run(&j, what, e);
    comm_tcp_leave(g.tcp);
    return code;
}

static int start(const char *program, const char *what, int *ret_exit, struct err *e)
{
    char made[TOKEN_TEXT];
    token_make(made);
    struct spawn s = {.per_node = RANKS, .nodes = 1, .grace = 5, .made_token = made};
    char *argv[] = {strdup(program), strdup(what), NULL};
    int code = spawn_ranks(&s, "/proc/self/exe", argv, ret_exit, e);
    free(argv[0]);
    free(argv[1]);
    return code;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *what;
        int code;
    } cases[] = {{"calls_of_two_GPUs_have_the_bits_of_threads", "", 0},
                 {"a_GPU_that_stays_away_is_a_fault", "late", ERR_FAULT},
                 {"an_abort_reaches_the_other_GPU", "abort", ERR_IO},
                 {"a_killed_rank_ends_the_other", "die", 128 + 9}};
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    struct err e = {0};
    int gpus = 0, failed = 0;
    if (getenv("RANK")) {
        int code = be_rank(argc > 1 ? argv[1] : "", &e);
        if (code)
            fprintf(stderr, "# rank %s: %s\n", getenv("RANK"), e.msg);
        return code;
    }
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < RANKS) {
        printf("1..%d\n", CASES);
        for (int i = 0; i < CASES; i++)
            printf("ok %d - %s # SKIP needs two GPUs\n", i + 1, cases[i].name);
        return 0;
    }
    printf("1..%d\n", CASES);
    for (int i = 0; i < CASES; i++) {
        int ended = 0;
        fflush(stdout);
        bool good = !start(argv[0], cases[i].what, &ended, &e) && ended == cases[i].code;
        failed += !good;
        printf("%sok %d - %s\n", good ? "" : "not ", i + 1, cases[i].name);
        if (!good)
            printf("# exit code %d, expected %d: %s\n", ended, cases[i].code, e.msg);
    }
    return failed > 0;
}
