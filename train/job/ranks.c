/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/ranks.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "train/comm/comm_tcp.h"
#include "train/launch/meet.h"
#include "train/launch/spawn.h"
#include "train/launch/token.h"
#if WEFT_MPI
#include "train/comm/comm_mpi.h"
#endif

static const struct comm_options endless = {.timeout = INFINITY};

static struct token_wish wish_of(const struct train_options *o)
{
    return (struct token_wish){.file = o->job_token_file, .none = o->no_job_token};
}

/* On one machine it is made unless it is given; on several it must be known to all. */
static int check_token(const struct spawn *s, const struct token_wish *wish,
                       const struct launch_place *p, bool *ret_make, struct err *e)
{
    struct job_token t;
    *ret_make = s->nodes == 1 && !token_is_given(environ, wish);
    return *ret_make ? 0 : token_find(&t, p, environ, wish, e);
}

/* The folder of the ranks' logs; in a dry run, whether it could be made. */
static int open_logs(const char *folder, bool dry_run, struct err *e)
{
    char *first = path_join(folder, "rank_0000.log");
    int code = file_try(first, e);
    free(first);
    return code || dry_run ? code : file_mkdirs(folder, e);
}

int ranks_start(const struct train_options *o, const struct launch_place *p, char **argv,
                int *ret_exit, struct err *e)
{
    struct spawn s = {.per_node = o->per_node ? (int)o->per_node : 1,
                      .nodes = o->nodes ? (int)o->nodes : 1,
                      .node_rank = (int)o->node_rank,
                      .master_addr = o->master_addr,
                      .master_port = (int)o->master_port,
                      .log_folder = o->log_dir};
    *ret_exit = -1;
    signal(SIGPIPE, SIG_IGN); /* a run goes on when nobody reads what it prints */
    bool asked = s.per_node > 1 || s.nodes > 1;
    if (asked && p->by != LAUNCH_ALONE && p->by != LAUNCH_TORCHRUN && p->rank == 0)
        log_warn("--nproc-per-node and --nnodes have no effect: %s has started this process",
                 launch_by_name(p->by));
    if (s.log_folder && p->by != LAUNCH_ALONE && !p->spawned && p->rank == 0)
        log_warn("--log-dir has no effect: %s has started this process, and keeps its own logs",
                 launch_by_name(p->by));
    if (!asked || p->by != LAUNCH_ALONE)
        return 0;
    char token[TOKEN_TEXT];
    bool make;
    struct token_wish wish = wish_of(o);
    int code = spawn_check(&s, e);
    if (!code)
        code = check_token(&s, &wish, p, &make, e);
    if (!code && o->log_dir)
        code = open_logs(o->log_dir, o->dry_run, e);
    if (code)
        return code;
    if (make)
        token_make(token);
    s.made_token = make ? token : NULL;
    if (o->dry_run)
        s.log_folder = NULL;
    return spawn_ranks(&s, "/proc/self/exe", argv, ret_exit, e);
}

#if WEFT_MPI
static int open_mpi(struct comm *ret, void *state, struct mesh m, struct err *e)
{
    return comm_mpi_open(ret, state, m, e);
}

static int join_mpi(struct ranks *j, struct job_world *ret, struct err *e)
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

/* The first lines of a run say how its processes know each other. */
static void tell_token(const struct launch_place *p, const struct job_token *t)
{
    char where[300];
    snprintf(where, sizeof(where), "%d processes meet at %s port %d", p->world, meet_host(p),
             p->port);
    if (p->rank)
        return;
    if (t->kind == TOKEN_NONE)
        log_warn("%s without a job token: anybody who reaches the port may join", where);
    else if (t->kind == TOKEN_DERIVED)
        log_info("%s; job token: derived from %s, which keeps jobs apart, but not a person who can "
                 "guess it",
                 where, t->source);
    else
        log_info("%s; job token: %s%s", where,
                 t->kind == TOKEN_MADE ? "made for this job" : "from ", t->source);
}

static int join_tcp(struct ranks *j, const struct train_options *o, const struct launch_place *p,
                    struct job_world *ret, struct err *e)
{
    struct job_token token;
    struct token_wish wish = wish_of(o);
    int code = token_find(&token, p, environ, &wish, e);
    if (code && p->local_rank > 0) /* the same on each machine: its first process says it */
        e->msg[0] = '\0';
    if (code)
        return code;
    int *fd = mem_new((size_t)p->world, sizeof(*fd));
    tell_token(p, &token);
    code = meet_all(p, &token, o->timeout_minutes * 60, fd, e);
    if (!code)
        code = comm_tcp_join(&j->tcp, p->rank, p->world, fd, &endless, e);
    free(fd);
    if (!code)
        *ret = (struct job_world){
            .rank = p->rank, .ranks = p->world, .open = open_tcp, .state = j->tcp};
    return code;
}

static int join_any(struct ranks *j, const struct train_options *o, const struct launch_place *p,
                    struct job_world *ret, struct err *e)
{
#if WEFT_MPI
    if (p->by == LAUNCH_OPEN_MPI)
        return join_mpi(j, ret, e);
#endif
    int code = join_tcp(j, o, p, ret, e);
    if (code == ERR_USAGE && p->by == LAUNCH_OPEN_MPI && !p->host[0])
        err_hint(e, "or build with MPI: apt-get install libopenmpi-dev");
    return code;
}

int ranks_meet(struct ranks *j, const struct train_options *o, const struct launch_place *p,
               struct job_world *ret, struct err *e)
{
    *ret = (struct job_world){.rank = p->rank, .ranks = p->world};
    int code = p->world == 1 ? 0 : join_any(j, o, p, ret, e);
    ret->one_output = p->by == LAUNCH_OPEN_MPI || p->by == LAUNCH_SLURM;
    return code;
}

void ranks_leave(struct ranks *j)
{
#if WEFT_MPI
    if (j->mpi)
        comm_mpi_leave(j->mpi);
#endif
    if (j->tcp)
        comm_tcp_leave(j->tcp);
    *j = (struct ranks){0};
}
