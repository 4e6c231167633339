/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *launch_variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return (*environment)[n + 1] ? *environment + n + 1 : NULL;
    return NULL;
}

const char *launch_by_name(enum launch_by by)
{
    static const char *const names[] = {"nobody", "Open MPI", "Slurm", "torchrun"};
    return names[by];
}

/* The number of a variable in [least, most]; `usual` if it is not set and that is not negative. */
static int number(char *const *environment, const char *name, long least, long most, int usual,
                  int *ret, struct err *e)
{
    const char *text = launch_variable(environment, name);
    char *end;
    if (!text && usual >= 0) {
        *ret = usual;
        return 0;
    }
    if (!text)
        return err_set(e, ERR_USAGE, "the environment lacks %s", name);
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < least || n > most)
        return err_set(e, ERR_USAGE,
                       "the environment has %s=%.64s: expected a number from %ld to %ld", name,
                       text, least, most);
    *ret = (int)n;
    return 0;
}

/* Names of one launcher's variables. */
struct variables {
    enum launch_by by;
    const char *mark; /* set by this launcher alone */
    const char *rank, *world, *local_rank, *local_world;
};

/* How many tasks a node has, of a list as Slurm writes it, 4(x2),3; -1: it does not say. */
static int tasks_of_node(const char *list, int node)
{
    long tasks = -1, times = 0;
    for (const char *at = list; node >= 0; node -= (int)times) {
        char *end;
        tasks = strtol(at, &end, 10);
        bool many = end > at && !strncmp(end, "(x", 2);
        times = many ? strtol(end + 2, &end, 10) : 1;
        if (end == at || tasks < 1 || tasks > LAUNCH_WORLD_MOST || times < 1 ||
            times > LAUNCH_WORLD_MOST || (many && *end++ != ')') || (*end && *end != ','))
            return -1;
        if (!*end && node >= times)
            return -1;
        at = end + 1;
    }
    return (int)tasks;
}

static int read_slurm_local(struct launch_place *p, char *const *environment, struct err *e)
{
    const char *list = launch_variable(environment, "SLURM_STEP_TASKS_PER_NODE");
    int node = 0, code = number(environment, "SLURM_NODEID", 0, LAUNCH_WORLD_MOST, 0, &node, e);
    p->local_world = list ? tasks_of_node(list, node) : -1;
    if (p->local_world > p->world)
        p->local_world = -1;
    return code;
}

static int read_ranks(struct launch_place *p, char *const *environment, const struct variables *v,
                      struct err *e)
{
    int code = number(environment, v->world, 1, LAUNCH_WORLD_MOST, -1, &p->world, e);
    if (!code)
        code = number(environment, v->rank, 0, p->world - 1L, -1, &p->rank, e);
    p->local_rank = p->local_world = -1;
    if (!code && launch_variable(environment, v->local_rank))
        code = number(environment, v->local_rank, 0, p->world - 1L, -1, &p->local_rank, e);
    if (!code && !v->local_world)
        return read_slurm_local(p, environment, e);
    if (!code && launch_variable(environment, v->local_world))
        code = number(environment, v->local_world, 1, p->world, -1, &p->local_world, e);
    return code;
}

bool launch_first_host(const char *list, char *ret, size_t size)
{
    size_t head = strcspn(list, "[,"), digits = 0;
    if (list[head] == '[')
        digits = strspn(list + head + 1, "0123456789");
    if (head + digits == 0 || head + digits >= size || (list[head] == '[' && !digits))
        return false;
    snprintf(ret, size, "%.*s%.*s", (int)head, list, (int)digits, digits ? list + head + 1 : "");
    return true;
}

/* Rank 0's address: MASTER_ADDR and MASTER_PORT, else what the launcher says of it. */
static int read_address(struct launch_place *p, char *const *environment, struct err *e)
{
    const char *host = launch_variable(environment, "MASTER_ADDR");
    const char *nodes = launch_variable(environment, "SLURM_STEP_NODELIST");
    int job = 0, port = LAUNCH_PORT;
    if (host)
        snprintf(p->host, sizeof(p->host), "%s", host);
    else if (p->local_world == p->world)
        snprintf(p->host, sizeof(p->host), "127.0.0.1");
    else if (p->by == LAUNCH_SLURM && nodes && !launch_first_host(nodes, p->host, sizeof(p->host)))
        return err_set(e, ERR_USAGE,
                       "the environment has SLURM_STEP_NODELIST=%.64s: expected hosts", nodes);
    if (p->by == LAUNCH_SLURM && launch_variable(environment, "SLURM_JOB_ID")) {
        int code = number(environment, "SLURM_JOB_ID", 0, 2147483647, -1, &job, e);
        if (code)
            return code;
        port = 10000 + job % 50000;
    }
    int code = number(environment, "MASTER_PORT", 1, 65535, port, &p->port, e);
    p->listen_fd = -1;
    p->spawned = p->by == LAUNCH_TORCHRUN && launch_variable(environment, "WEFT_LISTEN_FD");
    if (!code && p->rank == 0 && p->spawned)
        code = number(environment, "WEFT_LISTEN_FD", -1, 1 << 20, -1, &p->listen_fd, e);
    return code;
}

int launch_place(struct launch_place *ret, char *const *environment, struct err *e)
{
    static const struct variables known[] = {
        {LAUNCH_TORCHRUN, "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        {LAUNCH_OPEN_MPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
         "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        /* a batch script outside a job step has SLURM_PROCID and SLURM_NTASKS, too */
        {LAUNCH_SLURM, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
         "SLURM_LOCALID", NULL},
    };
    *ret =
        (struct launch_place){.world = 1, .local_world = 1, .port = LAUNCH_PORT, .listen_fd = -1};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!launch_variable(environment, known[i].mark))
            continue;
        ret->by = known[i].by;
        int code = read_ranks(ret, environment, &known[i], e);
        if (!code)
            code = read_address(ret, environment, e);
        return code ? err_wrap(e, "started by %s", launch_by_name(ret->by)) : 0;
    }
    return 0;
}
