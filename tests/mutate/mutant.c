/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/mutant.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const enum group other[GROUP_COUNT][2] = {
    [GROUP_TP] = {GROUP_ETP, GROUP_DP_CP},   [GROUP_CP] = {GROUP_DP_CP, GROUP_TP},
    [GROUP_DP] = {GROUP_DP_CP, GROUP_TP},    [GROUP_DP_CP] = {GROUP_DP, GROUP_CP},
    [GROUP_PP] = {GROUP_ENDS, GROUP_DP_CP},  [GROUP_EP] = {GROUP_ETP, GROUP_EDP},
    [GROUP_ETP] = {GROUP_TP, GROUP_EP},      [GROUP_EDP] = {GROUP_DP_CP, GROUP_SHARD},
    [GROUP_SHARD] = {GROUP_DP_CP, GROUP_DP}, [GROUP_REPLICA] = {GROUP_DP_CP, GROUP_SHARD},
    [GROUP_ENDS] = {GROUP_PP, GROUP_DP_CP},  [GROUP_WORLD] = {GROUP_DP_CP, GROUP_TP}};

/* Written before main. */
static int chosen = -1, mutants;
static size_t reached_size;
static unsigned char *reached;

/* Of the cell, or of the process. */
static _Atomic size_t first;
static struct {
    pthread_mutex_t lock;
    struct mesh mesh;
    atomic_bool known, world, differs[GROUP_COUNT][2];
} at = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __attribute__((constructor)) void read_environment(void)
{
    const char *text = getenv("WEFT_MUTANT"), *path = getenv("WEFT_MUTANT_REACHED");
    const char *count = getenv("WEFT_MUTANTS");
    struct stat st;
    chosen = text && text[0] ? atoi(text) : -1;
    mutants = count ? atoi(count) : 0;
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        reached = map == MAP_FAILED ? NULL : map;
        reached_size = (size_t)st.st_size;
    }
    close(fd);
}

bool mutant(int n, bool differs)
{
    size_t i = atomic_load_explicit(&first, memory_order_relaxed) + (size_t)n;
    unsigned char level = differs ? 2 : 1;
    if (reached && i < reached_size && reached[i] < level)
        reached[i] = level;
    return n == chosen;
}

void mutant_cell(uint64_t number)
{
    if (getenv("WEFT_MUTANT_CELLS"))
        atomic_store(&first, number * (size_t)mutants);
}

static bool same_members(struct mesh m, int rank, enum group a, enum group b)
{
    int n = mesh_group_size(m, a), me = mesh_group_index(m, rank, a);
    if (n != mesh_group_size(m, b) || me != mesh_group_index(m, rank, b))
        return false;
    for (int k = 0; me >= 0 && k < n; k++)
        if (mesh_group_rank(m, rank, a, k) != mesh_group_rank(m, rank, b, k))
            return false;
    return true;
}

void mutant_mesh(struct mesh m)
{
    pthread_mutex_lock(&at.lock);
    if (!at.known || !mesh_equal(at.mesh, m)) {
        int n = mesh_world(m);
        at.mesh = m;
        at.world = n > 1;
        for (int g = 0; g < GROUP_COUNT; g++)
            for (int k = 0; k < 2; k++) {
                bool differs = false;
                for (int rank = 0; rank < n && !differs; rank++)
                    differs = !same_members(m, rank, (enum group)g, other[g][k]);
                at.differs[g][k] = differs;
            }
        at.known = true;
    }
    pthread_mutex_unlock(&at.lock);
}

bool mutant_world(void)
{
    return !at.known || at.world;
}

enum group mutant_group(int n, enum group g)
{
    bool one = mutant(n, !at.known || at.differs[g][0]);
    bool two = mutant(n + 1, !at.known || at.differs[g][1]);
    return one ? other[g][0] : two ? other[g][1] : g;
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
    bool many = comm_size(c, g) > 1;
    if (mutant(n, many))
        return (struct comm_ticket){0};
    if (mutant(n + 2, many))
        t = half(t);
    return comm_all_reduce(c, g, t, mutant(n + 1, many) ? another(r) : r);
}

struct comm_ticket mutant_reduce_scatter(int n, struct comm *c, enum group g, struct tensor part,
                                         struct tensor whole, enum reduce r)
{
    if (mutant(n, true))
        return (struct comm_ticket){0};
    if (mutant(n + 2, true)) {
        part = half(part);
        whole = tensor_rows(whole, 0, part.size[0] * comm_size(c, g));
    }
    return comm_reduce_scatter(c, g, part, whole,
                               mutant(n + 1, comm_size(c, g) > 1) ? another(r) : r);
}

struct comm_ticket mutant_all_gather(int n, struct comm *c, enum group g, struct tensor whole,
                                     struct tensor part)
{
    if (mutant(n, true))
        return (struct comm_ticket){0};
    if (mutant(n + 1, true)) {
        part = half(part);
        whole = tensor_rows(whole, 0, part.size[0] * comm_size(c, g));
    }
    return comm_all_gather(c, g, whole, part);
}

struct comm_ticket mutant_exchange(int n, struct comm *c, enum group g, struct tensor give, int to,
                                   struct tensor take, int from)
{
    int size = comm_size(c, g);
    if (mutant(n, true))
        return (struct comm_ticket){0};
    if (mutant(n + 1, true)) {
        to = to < 0 ? to : (to + 1) % size;
        from = from < 0 ? from : (from + size - 1) % size;
    }
    if (mutant(n + 2, true)) {
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
    if (mutant(n, true))
        return (struct comm_ticket){0};
    if (mutant(n + 1, true)) {
        for (int k = 0; k < comm_size(c, g); k++) {
            rows[0][k] = take_rows[k] / 2;
            rows[1][k] = give_rows[k] / 2;
        }
        take_rows = rows[0];
        give_rows = rows[1];
    }
    return comm_all_to_all(c, g, take, take_rows, give, give_rows);
}
