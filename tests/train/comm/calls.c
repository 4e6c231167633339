/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/comm/calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "train/comm/comm_threads.h"
#include "train/tensor/box.h"

enum { ROW = 3, MOST_ROWS = 4, MOST = 8, BATCH = 35 };

static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16, DTYPE_I32};
enum { DTYPES = sizeof(dtypes) / sizeof(dtypes[0]), CALLS = COMM_KINDS * GROUP_COUNT * DTYPES };

struct mesh calls_mesh(int world, int which)
{
    struct mesh m = mesh_single();
    if (world == 2)
        m = which == 0   ? mesh_dense(2, 1, 1, 1)
            : which == 1 ? mesh_dense(1, 2, 1, 1)
                         : mesh_dense(1, 1, 1, 2);
    if (world == 4)
        m = which == 0   ? mesh_dense(2, 1, 2, 1)
            : which == 1 ? mesh_dense(1, 2, 1, 2)
                         : mesh_dense(1, 1, 1, 4);
    if (world == 8)
        m = which == 0   ? mesh_dense(2, 2, 2, 1)
            : which == 1 ? mesh_dense(2, 1, 2, 2)
                         : mesh_dense(1, 2, 2, 2);
    if (world == 4 && which == 0)
        m.etp = 1;
    if ((which == 0 && world > 2) || (which == 2 && world == 8))
        m.ep = 2;
    m.pp_before_dp = which == 2;
    return m;
}

/* One call as this rank makes it. */
struct made {
    enum comm_kind kind;
    enum group group;
    enum dtype dtype;
    enum reduce reduce;
    uint64_t id;
    int n, me, shift, root;
    bool one_way; /* an exchange in which even ranks give and odd ones take */
    int64_t count;
    struct tensor to, from;
    int64_t give[MOST], take[MOST];
    struct comm_ticket ticket;
};

static uint32_t draw(uint64_t seed, uint64_t id, uint64_t n)
{
    return t_rand(seed * 1000003 + id, n);
}

/* What world rank `rank` gives: magnitudes that make a sum depend on its order. */
static void values(const struct made *m, uint64_t seed, int rank, struct tensor t)
{
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = draw(seed + 17 * (uint64_t)rank, m->id, (uint64_t)i);
        double v = ((double)(bits >> 8) - 0x1p23) * 0x1p-23 * (double)(1 << (bits & 7));
        if (m->dtype == DTYPE_I32)
            ((int32_t *)t.data)[i] = (int32_t)bits >> 4;
        else
            box_cast((char *)t.data + (size_t)i * dtype_size(m->dtype), m->dtype, &v, DTYPE_F64, 1);
    }
}

static void *take_host(size_t bytes)
{
    return mem_new(bytes, 1);
}

static void sync_host(void *arg)
{
    (void)arg;
}

const struct calls_memory calls_host_memory = {take_host, free, sync_host, NULL};

static struct tensor shared_vector(const struct calls_memory *memory, enum dtype d, int64_t n)
{
    return tensor_1d(memory->take(((size_t)n + 1) * dtype_size(d)), d, n);
}

static struct tensor vector(enum dtype d, int64_t n)
{
    return tensor_1d(mem_new((size_t)n + 1, dtype_size(d)), d, n);
}

static int64_t rows_between(uint64_t seed, uint64_t id, int from, int to)
{
    return draw(seed, id, (uint64_t)(1000 + 16 * from + to)) % MOST_ROWS;
}

/* The peers of an exchange of member `k`, COMM_NOBODY among them. */
static int exchange_to(const struct made *m, int k)
{
    if (m->one_way)
        return k % 2 == 0 && k + 1 < m->n ? k + 1 : COMM_NOBODY;
    return (k + m->shift) % m->n;
}

static int exchange_from(const struct made *m, int k)
{
    if (m->one_way)
        return k % 2 ? k - 1 : COMM_NOBODY;
    return (k + m->n - m->shift) % m->n;
}

static void make(struct made *m, const struct comm *c, const struct calls_memory *memory,
                 uint64_t seed, uint64_t id)
{
    /* each kind, group and type once, mixed so that a batch has several calls of one kind and group
     */
    uint64_t cell = id * 37 % CALLS;
    *m = (struct made){.kind = (enum comm_kind)(cell % COMM_KINDS),
                       .group = (enum group)(cell / COMM_KINDS % GROUP_COUNT),
                       .dtype = dtypes[cell / COMM_KINDS / GROUP_COUNT],
                       .reduce = draw(seed, id, 1) % 4 ? REDUCE_SUM : REDUCE_MAX,
                       .id = id,
                       .count = 1 + draw(seed, id, 2) % 700};
    m->n = comm_size(c, m->group);
    m->me = comm_index(c, m->group);
    m->root = (int)(draw(seed, id, 3) % (uint32_t)m->n);
    m->shift = (int)(draw(seed, id, 4) % (uint32_t)m->n);
    m->one_way = draw(seed, id, 5) % 2;
    if (m->kind == COMM_ALL_TO_ALL)
        m->count = MOST_ROWS * MOST * ROW;
    int64_t to = m->count, from = m->count;
    if (m->kind == COMM_ALL_GATHER)
        to *= m->n;
    if (m->kind == COMM_REDUCE_SCATTER)
        from *= m->n;
    if (m->me < 0 || m->kind == COMM_BARRIER)
        return;
    m->to = shared_vector(memory, m->dtype, to);
    m->from = shared_vector(memory, m->dtype, from);
    if (m->kind == COMM_ALL_TO_ALL) {
        int64_t rows[2] = {0, 0};
        for (int k = 0; k < m->n; k++) {
            rows[0] += m->take[k] = rows_between(seed, id, k, m->me);
            rows[1] += m->give[k] = rows_between(seed, id, m->me, k);
        }
        m->to = tensor_2d(m->to.data, m->dtype, rows[0], ROW);
        m->from = tensor_2d(m->from.data, m->dtype, rows[1], ROW);
    }
    values(m, seed, c->rank, m->from);
    if (m->kind == COMM_ALL_REDUCE || (m->kind == COMM_BROADCAST && m->me == m->root))
        memcpy(m->to.data, m->from.data, tensor_bytes(m->from));
}

static void issue(struct made *m, struct comm *c)
{
    struct tensor none = {0};
    int to = exchange_to(m, m->me), from = exchange_from(m, m->me);
    switch (m->kind) {
    case COMM_ALL_REDUCE:
        m->ticket = comm_all_reduce(c, m->group, m->to, m->reduce);
        break;
    case COMM_ALL_GATHER:
        m->ticket = comm_all_gather(c, m->group, m->to, m->from);
        break;
    case COMM_REDUCE_SCATTER:
        m->ticket = comm_reduce_scatter(c, m->group, m->to, m->from, m->reduce);
        break;
    case COMM_BROADCAST:
        m->ticket = comm_broadcast(c, m->group, m->to, m->root);
        break;
    case COMM_EXCHANGE:
        m->ticket = comm_exchange(c, m->group, to == COMM_NOBODY ? none : m->from, to,
                                  from == COMM_NOBODY ? none : m->to, from);
        break;
    case COMM_ALL_TO_ALL:
        m->ticket = comm_all_to_all(c, m->group, m->to, m->take, m->from, m->give);
        break;
    default:
        m->ticket = comm_barrier(c, m->group);
        break;
    }
}

/* ---- what a plain loop says
 * ------------------------------------------------------------------------ */

/* Element i of what `k` members give, one after the other. */
static void add_plainly(const struct made *m, struct tensor *given, int64_t i, char *to)
{
    size_t at = (size_t)i * dtype_size(m->dtype);
    float sum = 0, x;
    double wide = 0, y;
    int64_t whole = 0;
    for (int k = 0; k < m->n; k++) {
        const char *from = (const char *)given[k].data + at;
        bool first = k == 0, most = m->reduce == REDUCE_MAX;
        if (m->dtype == DTYPE_I32) {
            int64_t z = *(const int32_t *)from;
            whole = first ? z : most ? (z > whole ? z : whole) : whole + z;
        } else if (m->dtype == DTYPE_F64) {
            y = *(const double *)from;
            wide = first ? y : most ? (y > wide ? y : wide) : wide + y;
        } else {
            box_cast(&x, DTYPE_F32, from, m->dtype, 1);
            sum = first ? x : most ? (x > sum ? x : sum) : sum + x;
        }
    }
    if (m->dtype == DTYPE_I32)
        *(int32_t *)to = (int32_t)whole;
    else if (m->dtype == DTYPE_F64)
        *(double *)to = wide;
    else
        box_cast(to, m->dtype, &sum, DTYPE_F32, 1);
}

/* Into `want`, of the shape of m->to, from what all members give. */
static void expect(const struct made *m, struct tensor *given, uint64_t seed, struct tensor want)
{
    size_t size = dtype_size(m->dtype), part = (size_t)m->count * size;
    char *to = want.data;
    int64_t skip;
    switch (m->kind) {
    case COMM_ALL_REDUCE:
    case COMM_REDUCE_SCATTER:
        skip = m->kind == COMM_REDUCE_SCATTER ? m->me * m->count : 0;
        for (int64_t i = 0; i < m->count; i++)
            add_plainly(m, given, skip + i, to + (size_t)i * size);
        break;
    case COMM_ALL_GATHER:
        for (int k = 0; k < m->n; k++)
            memcpy(to + (size_t)k * part, given[k].data, part);
        break;
    case COMM_BROADCAST:
        memcpy(to, given[m->root].data, part);
        break;
    case COMM_EXCHANGE:
        if (exchange_from(m, m->me) != COMM_NOBODY)
            memcpy(to, given[exchange_from(m, m->me)].data, part);
        break;
    case COMM_ALL_TO_ALL:
        for (int k = 0; k < m->n; k++) {
            int64_t before = 0;
            for (int j = 0; j < m->me; j++)
                before += rows_between(seed, m->id, k, j);
            size_t bytes = (size_t)m->take[k] * ROW * size;
            memcpy(to, (const char *)given[k].data + (size_t)before * ROW * size, bytes);
            to += bytes;
        }
        break;
    default:
        break;
    }
}

/* FNV-1a */
static uint64_t digest_of(struct tensor t, uint64_t digest)
{
    const unsigned char *p = t.data;
    for (size_t i = 0; i < tensor_bytes(t); i++)
        digest = (digest ^ p[i]) * 0x100000001b3u;
    return digest;
}

static bool verify(const struct made *m, const struct comm *c, uint64_t seed)
{
    struct tensor given[MOST], want = vector(m->dtype, tensor_count(m->to));
    for (int k = 0; k < m->n; k++) {
        given[k] = vector(m->dtype, m->kind == COMM_ALL_TO_ALL ? m->count : tensor_count(m->from));
        values(m, seed, mesh_group_rank(c->mesh, c->rank, m->group, k), given[k]);
    }
    expect(m, given, seed, want);
    bool same = memcmp(m->to.data, want.data, tensor_bytes(want)) == 0;
    for (int k = 0; k < m->n; k++)
        free(given[k].data);
    free(want.data);
    return same;
}

/* ---- a batch in flight
 * ----------------------------------------------------------------------------- */

/* Orders a batch so that calls of one group stay in their order; differs from rank to rank. */
static void mix(const struct comm *c, uint64_t seed, const struct made *all, int *order)
{
    bool issued[BATCH] = {false};
    for (int i = 0; i < BATCH; i++) {
        int start = (int)(draw(seed + 31 * (uint64_t)c->rank, 9, (uint64_t)i) % BATCH),
            pick = start;
        while (issued[pick])
            pick = (pick + 1) % BATCH;
        for (int k = 0; k < BATCH; k++)
            if (!issued[k] && all[k].group == all[pick].group) {
                pick = k; /* the first of its group */
                break;
            }
        issued[pick] = true;
        order[i] = pick;
    }
}

static void wait_in_some_order(struct comm *c, uint64_t seed, struct made *all)
{
    int first = (int)(draw(seed + (uint64_t)c->rank, 10, 0) % BATCH), step = 1 + first % 4 * 11;
    for (int i = 0; i < BATCH; i++) /* the step has no factor in common with 35 */
        comm_wait(c, all[(first + i * step) % BATCH].ticket);
}

static int run_batch(struct comm *c, const struct calls_memory *memory, uint64_t seed,
                     uint64_t first, uint64_t *digest, char *why, size_t size)
{
    struct made all[BATCH];
    int order[BATCH], failed = 0;
    struct err e;
    for (int i = 0; i < BATCH; i++)
        make(&all[i], c, memory, seed, first + (uint64_t)i);
    mix(c, seed, all, order);
    for (int i = 0; i < BATCH; i++)
        if (all[order[i]].me >= 0)
            issue(&all[order[i]], c);
    wait_in_some_order(c, seed + first, all);
    memory->sync(memory->arg);
    if (comm_fault(c, &e)) {
        snprintf(why, size, "rank %d: %s", c->rank, e.msg);
        failed = -1;
    }
    for (int i = 0; i < BATCH; i++) {
        struct made *m = &all[i];
        if (tensor_none(m->to))
            continue;
        if (!failed && !verify(m, c, seed)) {
            snprintf(why, size,
                     "rank %d: call %d: kind %d, %s, %s, reduce %d, %lld elements: wrong", c->rank,
                     (int)m->id, (int)m->kind, mesh_group_name(m->group), dtype_name(m->dtype),
                     (int)m->reduce, (long long)m->count);
            failed = -1;
        }
        *digest = digest_of(m->to, *digest);
        memory->release(m->to.data);
        memory->release(m->from.data);
    }
    return failed;
}

int calls_run(struct comm *c, const struct calls_memory *memory, uint64_t seed, uint64_t *digest,
              char *why, size_t size)
{
    *digest = 0xcbf29ce484222325u;
    for (uint64_t first = 0; first < CALLS; first += BATCH)
        if (run_batch(c, memory, seed, first, digest, why, size))
            return -1;
    return 0;
}

/* ---- all ranks as threads
 * -------------------------------------------------------------------------- */

struct rank_thread {
    pthread_t thread;
    struct comm_threads *all;
    int rank, code;
    uint64_t seed, digest;
    char why[512];
};

static void *run_rank(void *arg)
{
    struct rank_thread *r = arg;
    struct comm c;
    struct err e;
    r->code = comm_threads_open(&c, r->all, r->rank, &e);
    if (r->code)
        return NULL;
    r->code = calls_run(&c, &calls_host_memory, r->seed, &r->digest, r->why, sizeof(r->why));
    if (r->code) { /* the others need not wait for this one */
        err_set(&e, ERR_FAIL, "%s", r->why);
        comm_abort(&c, &e);
    }
    comm_close(&c);
    return NULL;
}

int calls_run_threads(struct mesh m, int64_t delay_us, uint64_t seed, uint64_t *digest, char *why,
                      size_t size)
{
    struct rank_thread rank[MOST] = {0};
    int world = mesh_world(m), code = 0;
    struct comm_options o = {.delay_us = delay_us, .seed = seed, .timeout = 120};
    struct comm_threads *all = comm_threads_create(m, &o);
    for (int i = 0; i < world; i++) {
        rank[i] = (struct rank_thread){.all = all, .rank = i, .seed = seed};
        pthread_create(&rank[i].thread, NULL, run_rank, &rank[i]);
    }
    for (int i = 0; i < world; i++) {
        pthread_join(rank[i].thread, NULL);
        digest[i] = rank[i].digest;
        if (rank[i].code && !code) {
            snprintf(why, size, "%s", rank[i].why);
            code = -1;
        }
    }
    comm_threads_destroy(all);
    return code;
}
