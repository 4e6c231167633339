/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/mutant.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Written once, before main. */
static int chosen = -1;
static const char *met_path;
static atomic_bool met;

static __attribute__((constructor)) void read_environment(void)
{
    const char *text = getenv("WEFT_MUTANT");
    chosen = text && text[0] ? atoi(text) : -1;
    met_path = getenv("WEFT_MUTANT_MET");
}

bool mutant(int n)
{
    if (n != chosen)
        return false;
    if (met_path && !atomic_exchange(&met, true)) {
        int fd = open(met_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    return true;
}

enum group mutant_group(int n, enum group g)
{
    static const enum group other[GROUP_COUNT][2] = {
        [GROUP_TP] = {GROUP_ETP, GROUP_DP_CP},   [GROUP_CP] = {GROUP_DP_CP, GROUP_TP},
        [GROUP_DP] = {GROUP_DP_CP, GROUP_TP},    [GROUP_DP_CP] = {GROUP_DP, GROUP_CP},
        [GROUP_PP] = {GROUP_ENDS, GROUP_DP_CP},  [GROUP_EP] = {GROUP_ETP, GROUP_EDP},
        [GROUP_ETP] = {GROUP_TP, GROUP_EP},      [GROUP_EDP] = {GROUP_DP_CP, GROUP_SHARD},
        [GROUP_SHARD] = {GROUP_DP_CP, GROUP_DP}, [GROUP_REPLICA] = {GROUP_DP_CP, GROUP_SHARD},
        [GROUP_ENDS] = {GROUP_PP, GROUP_DP_CP},  [GROUP_WORLD] = {GROUP_DP_CP, GROUP_TP}};
    return mutant(n) ? other[g][0] : mutant(n + 1) ? other[g][1] : g;
}

static struct tensor half(struct tensor t)
{
    return tensor_none(t) ? t : tensor_rows(t, 0, t.size[0] / 2);
}

static enum reduce another(enum reduce r)
{
    return r == REDUCE_SUM ? REDUCE_MAX : REDUCE_SUM;
}

struct comm_ticket mutant_all_reduce(int n, struct comm *c, enum group g, struct tensor t,
                                     enum reduce r)
{
    if (mutant(n))
        return (struct comm_ticket){0};
    if (mutant(n + 2))
        t = half(t);
    return comm_all_reduce(c, g, t, mutant(n + 1) ? another(r) : r);
}

struct comm_ticket mutant_reduce_scatter(int n, struct comm *c, enum group g, struct tensor part,
                                         struct tensor whole, enum reduce r)
{
    if (mutant(n))
        return (struct comm_ticket){0};
    if (mutant(n + 2)) {
        part = half(part);
        whole = tensor_rows(whole, 0, part.size[0] * comm_size(c, g));
    }
    return comm_reduce_scatter(c, g, part, whole, mutant(n + 1) ? another(r) : r);
}

struct comm_ticket mutant_all_gather(int n, struct comm *c, enum group g, struct tensor whole,
                                     struct tensor part)
{
    if (mutant(n))
        return (struct comm_ticket){0};
    if (mutant(n + 1)) {
        part = half(part);
        whole = tensor_rows(whole, 0, part.size[0] * comm_size(c, g));
    }
    return comm_all_gather(c, g, whole, part);
}

struct comm_ticket mutant_exchange(int n, struct comm *c, enum group g, struct tensor give, int to,
                                   struct tensor take, int from)
{
    int size = comm_size(c, g);
    if (mutant(n))
        return (struct comm_ticket){0};
    if (mutant(n + 1)) {
        to = to < 0 ? to : (to + 1) % size;
        from = from < 0 ? from : (from + size - 1) % size;
    }
    if (mutant(n + 2)) {
        give = half(give);
        take = half(take);
    }
    return comm_exchange(c, g, give, to, take, from);
}

struct comm_ticket mutant_all_to_all(int n, struct comm *c, enum group g, struct tensor take,
                                     const int64_t *take_rows, struct tensor give,
                                     const int64_t *give_rows)
{
    static _Thread_local int64_t rows[2][64];
    if (mutant(n))
        return (struct comm_ticket){0};
    if (mutant(n + 1)) {
        for (int k = 0; k < comm_size(c, g); k++) {
            rows[0][k] = take_rows[k] / 2;
            rows[1][k] = give_rows[k] / 2;
        }
        take_rows = rows[0];
        give_rows = rows[1];
    }
    return comm_all_to_all(c, g, take, take_rows, give, give_rows);
}
