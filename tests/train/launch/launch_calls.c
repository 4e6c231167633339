/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "tests/train/comm/job_calls.h"
#include "train/comm/comm_tcp.h"
#include "train/launch/meet.h"
#include "train/launch/spawn.h"
#include "train/launch/token.h"

/*
 * Ranks over sockets, started by this program itself or by whatever sets the environment:
 *
 *     launch_calls WHAT                                    a rank of torchrun, mpirun or srun
 *     launch_calls WHAT N [FOLDER]                         starts N ranks, logs go to FOLDER
 *     launch_calls WHAT N NODES NODE ADDRESS PORT          those of one machine of several
 *
 * WHAT: "calls", what job_calls.h has, "where" (prints what it is), "exit" (the last rank ends with
 * code 9 before it meets the others), "alone" (only rank 0 comes), "wait" (until a signal comes),
 * "meet" (and no more, within five minutes), "slow" (the same, but the last rank comes when the
 * file that WEFT_TEST_GO names is there).
 */

extern char **environ;

static int open_comm(struct comm *ret, void *job, struct mesh m, struct err *e)
{
    return comm_tcp_open(ret, job, m, e);
}

static int be_rank(const struct launch_place *p, const char *what, struct err *e)
{
    struct comm_options o = job_calls_options(what);
    struct comm_tcp *job;
    struct job_token token;
    if (token_find(&token, p, environ, &(struct token_wish){0}, e))
        return e->code;
    int *fd = mem_new((size_t)p->world, sizeof(*fd));
    const char *go = getenv("WEFT_TEST_GO");
    if (go && strcmp(what, "slow") == 0 && p->rank == p->world - 1)
        while (access(go, F_OK))
            usleep(10000);
    int code = meet_all(p, &token, strcmp(what, "alone") ? 300 : 0.5, fd, e);
    if (!strcmp(what, "meet") || !strcmp(what, "slow")) {
        free(fd);
        return code;
    }
    if (!code)
        code = comm_tcp_join(&job, p->rank, p->world, fd, &o, e);
    free(fd);
    if (code)
        return code;
    struct job_calls j = {.job = job, .open = open_comm, .rank = p->rank, .world = p->world};
    code = job_calls_run(&j, strcmp(what, "calls") ? what : "", e);
    comm_tcp_leave(job);
    return code;
}

static int do_rank(const char *what, struct err *e)
{
    struct launch_place p;
    int code = launch_place(&p, environ, e);
    if (code)
        return code;
    if (strcmp(what, "where") == 0) {
        printf("%s %d of %d, local %d of %d, %s %d\n", launch_by_name(p.by), p.rank, p.world,
               p.local_rank, p.local_world, p.host, p.port);
        return 0;
    }
    if (strcmp(what, "exit") == 0 && p.rank == p.world - 1)
        return err_set(e, 9, "the last rank has had enough");
    if (strcmp(what, "alone") == 0 && p.rank)
        return 0;
    if (strcmp(what, "wait") == 0) {
        fprintf(stderr, "rank %d waits\n", p.rank);
        pause();
    }
    return be_rank(&p, what, e);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    int code;
    if (argc > 2 && !getenv("RANK")) {
        struct spawn s = {.per_node = atoi(argv[2]), .nodes = 1, .grace = 1};
        char made[TOKEN_TEXT];
        token_make(made);
        s.made_token = argc > 6 ? NULL : made;
        if (argc == 4)
            s.log_folder = argv[3];
        if (argc > 6) {
            s.nodes = atoi(argv[3]);
            s.node_rank = atoi(argv[4]);
            s.master_addr = argv[5];
            s.master_port = atoi(argv[6]);
        }
        int ended = 0;
        code = spawn_ranks(&s, "/proc/self/exe", argv, &ended, &e);
        if (!code)
            return ended;
        fprintf(stderr, "error: %s\n", e.msg);
        return code;
    }
    code = do_rank(argc > 1 ? argv[1] : "calls", &e);
    if (code)
        fprintf(stderr, "error: %s\n", e.msg);
    return code;
}
