/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/comm/comm_threads.h"
#include "train/engine/state.h"

/*
 * One of two ranks fails where the others would next gather weights: all of them end with its exit
 * code, it alone has the sentence, and no collective is left waiting.
 */

enum { RANKS = 2, FAILS = 1, TIMEOUT = 20 };

struct kind {
    const char *name;
    enum dtype real;
    int zero;
};

/* Weights that are a copy of others of a wider type are gathered under ZeRO 1, too. */
static const struct kind kinds[] = {{"fp64, ZeRO 3", DTYPE_F64, 3},
                                    {"fp32, ZeRO 3", DTYPE_F32, 3},
                                    {"fp32, ZeRO 1", DTYPE_F32, 1},
                                    {"bf16, ZeRO 1", DTYPE_BF16, 1}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct one {
    pthread_t thread;
    struct comm_threads *threads;
    struct rank_config config;
    struct rank rank;
    struct comm comm;
    struct ckpt *ckpt; /* NULL: weights of another program */
    int code;
    struct err e;
};

static struct one ranks[RANKS];

/* Whether the CPU computes in the type. */
static bool can_run(const struct kind *k)
{
    static struct rank r;
    struct rank_config config = tiny_config(tiny_gpt(), k->real);
    struct dev_desc desc;
    struct err e;
    T_OK(dev_host_describe(&desc, 0, 1, &e), &e);
    int code = rank_plan(&r, &config, &desc, &e);
    rank_close(&r);
    return !code;
}

static void run(void *(*fn)(void *), const struct kind *t, const struct rank_backends *b)
{
    static const struct comm_options o = {.timeout = TIMEOUT};
    struct mesh m = mesh_dense(1, 1, RANKS, 1);
    struct comm_threads *threads = comm_threads_create(m, &o);
    for (int i = 0; i < RANKS; i++) {
        struct one *r = &ranks[i];
        struct ckpt *c = r->ckpt;
        *r = (struct one){.threads = threads, .ckpt = c};
        r->config = tiny_config(tiny_gpt(), t->real);
        r->config.layout = layout_plain(m);
        r->config.layout.zero = t->zero;
        r->config.backends = b ? b : r->config.backends;
        r->config.rank = r->config.device = i;
        r->config.threads = 1;
        pthread_create(&r->thread, NULL, fn, r);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < RANKS; i++) {
        rank_close(&ranks[i].rank);
        comm_close(&ranks[i].comm);
    }
    comm_threads_destroy(threads);
}

static void check(const struct kind *t, int want, const char *words)
{
    for (int i = 0; i < RANKS; i++) {
        const struct one *r = &ranks[i];
        if (r->code != want || (i != FAILS && r->e.msg[0]))
            t_fail(__FILE__, __LINE__, "%s: rank %d ends with %d, '%s'", t->name, i, r->code,
                   r->e.msg);
    }
    T_ERR(ranks[FAILS].code, &ranks[FAILS].e, want, words);
}

static void *open_one(void *arg)
{
    struct one *r = arg;
    r->code = comm_threads_open(&r->comm, r->threads, r->config.rank, &r->e);
    r->config.comm = &r->comm;
    if (!r->code)
        r->code = rank_open(&r->rank, &r->config, &r->e);
    return NULL;
}

static int no_device(struct dev *ret, int which, int threads, struct err *e)
{
    return which == FAILS ? err_set(e, ERR_RESOURCE, "this device does not open")
                          : dev_host_start(ret, which, threads, e);
}

static int no_description(struct dev_desc *ret, int which, int threads, struct err *e)
{
    return which == FAILS ? err_set(e, ERR_RESOURCE, "this device is not there")
                          : dev_host_describe(ret, which, threads, e);
}

static void a_rank_that_does_not_open_ends_all(void)
{
    const struct rank_backends b = {
        .describe_device = dev_host_describe, .open_device = no_device, .init_ops = ops_cpu_open};
    for (int i = 0; i < KINDS && can_run(&kinds[i]); i++) {
        run(open_one, &kinds[i], &b);
        check(&kinds[i], ERR_RESOURCE, "this device does not open");
    }
}

static void a_rank_that_is_not_planned_ends_all(void)
{
    const struct rank_backends b = {
        .describe_device = no_description, .open_device = dev_host_start, .init_ops = ops_cpu_open};
    run(open_one, &kinds[0], &b);
    check(&kinds[0], ERR_RESOURCE, "this device is not there");
}

static int read_nothing(const void *from, const char *name, int rank, const int64_t *size,
                        struct box_mem to, struct err *e)
{
    const struct one *r = from;
    (void)rank;
    (void)size;
    (void)to;
    return r->config.rank == FAILS ? err_set(e, ERR_DATA, "%s cannot be read", name) : 0;
}

static void *load_one(void *arg)
{
    struct one *r = arg;
    open_one(r);
    if (r->code)
        return NULL;
    r->code = r->ckpt ? state_load(&r->rank, r->ckpt, true, &r->e)
                      : state_load_weights(&r->rank, read_nothing, r, &r->e);
    return NULL;
}

static void a_rank_that_cannot_read_weights_ends_all(void)
{
    for (int i = 0; i < KINDS && can_run(&kinds[i]); i++) {
        run(load_one, &kinds[i], NULL);
        check(&kinds[i], ERR_DATA, "cannot be read");
    }
}

/* A checkpoint of one rank and the model `s`. */
static struct ckpt *saved(struct spec s, enum dtype real, const char *name)
{
    static struct rank r;
    struct err e;
    struct ckpt *ret;
    struct ckpt_writer *w;
    struct state_pairs pairs;
    struct buf model = {0};
    struct rank_config config = tiny_config(s, real);
    T_OK(rank_open(&r, &config, &e), &e);
    state_pairs(&r, &pairs);
    spec_to_json(&s, &model);
    struct ckpt_meta m = {
        .model = buf_str(&model), .eod = -1, .state = pairs.pair, .nstate = pairs.n};
    T_OK(ckpt_writer_open(t_path(name), 0, &w, &e), &e);
    T_OK(state_save(&r, w, 1, &e), &e);
    T_OK(ckpt_commit(w, &m, &e), &e);
    ckpt_writer_close(w);
    buf_finish(&model);
    rank_close(&r);
    T_OK(ckpt_open_newest(t_path(name), &ret, NULL, &e), &e);
    return ret;
}

static void a_rank_that_cannot_load_ends_all(void)
{
    struct spec other = tiny_gpt();
    other.ffn = 24;
    for (int i = 0; i < KINDS && can_run(&kinds[i]); i++) {
        char name[2][16] = {"good0", "other0"};
        name[0][4] = name[1][5] = (char)('0' + i);
        ranks[!FAILS].ckpt = saved(tiny_gpt(), kinds[i].real, name[0]);
        ranks[FAILS].ckpt = saved(other, kinds[i].real, name[1]);
        run(load_one, &kinds[i], NULL);
        check(&kinds[i], ERR_USAGE, "mlp.up");
        for (int k = 0; k < RANKS; k++) {
            ckpt_close(ranks[k].ckpt);
            ranks[k].ckpt = NULL;
        }
    }
}

T_MAIN(T_CASE(a_rank_that_does_not_open_ends_all), T_CASE(a_rank_that_is_not_planned_ends_all),
       T_CASE(a_rank_that_cannot_read_weights_ends_all), T_CASE(a_rank_that_cannot_load_ends_all))
