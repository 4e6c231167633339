/* SPDX-License-Identifier: Apache-2.0 */
#include "train/agree/agree.h"

#include <pthread.h>
#include <string.h>

#include "base/cli/opt_row.h"
#include "tests/t.h"
#include "train/agree/build.h"
#include "train/comm/comm_threads.h"
#include "train/options/options.h"

enum { RANKS = 4 };

struct one {
    pthread_t thread;
    struct comm_threads *all;
    void (*fill)(struct buf *list, int rank);
    int rank, code;
    struct err e;
    struct agree_host host[RANKS];
};

static void *be_rank(void *arg)
{
    static const char *const machine[RANKS] = {"a", "a", "b\x1b", "a-name-of-a-machine"};
    struct one *r = arg;
    struct comm c;
    struct buf list = {0};
    r->code = comm_threads_open(&c, r->all, r->rank, &r->e);
    if (r->code)
        return NULL;
    r->fill(&list, r->rank);
    r->code = agree_compare(&c, &list, &r->e);
    if (!r->code)
        r->code = agree_hosts(&c, machine[r->rank], r->host, &r->e);
    buf_finish(&list);
    comm_close(&c);
    return NULL;
}

static void run(struct one *r, void (*fill)(struct buf *, int))
{
    static const struct comm_options o = {.timeout = 120};
    struct comm_threads *all = comm_threads_create(mesh_dense(1, 1, RANKS, 1), &o);
    for (int i = 0; i < RANKS; i++) {
        r[i] = (struct one){.all = all, .fill = fill, .rank = i};
        pthread_create(&r[i].thread, NULL, be_rank, &r[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(r[i].thread, NULL);
    comm_threads_destroy(all);
}

/* All ranks end with the same sentence. */
static void says(void (*fill)(struct buf *, int), const char *sentence)
{
    struct one r[RANKS];
    run(r, fill);
    for (int i = 0; i < RANKS; i++) {
        T_EQ(r[i].code, ERR_USAGE);
        T_STR(r[i].e.msg, sentence);
    }
}

static void alike(struct buf *list, int rank)
{
    (void)rank;
    agree_add(list, "--seed", "1234");
    agree_add(list, "--lr", NULL);
}

static void nothing(struct buf *list, int rank)
{
    (void)list;
    (void)rank;
}

static void the_same_settings_pass(void)
{
    struct one r[RANKS];
    run(r, alike);
    for (int i = 0; i < RANKS; i++)
        T_OK(r[i].code, &r[i].e);
    run(r, nothing);
    for (int i = 0; i < RANKS; i++)
        T_OK(r[i].code, &r[i].e);
}

static void one_value(struct buf *list, int rank)
{
    agree_add(list, "--seed", "1234");
    agree_addf(list, "--lr", "%d", rank == 2 ? 7 : 3);
}

static void several_values(struct buf *list, int rank)
{
    agree_addf(list, "--seed", "%d", rank < 2 ? 1 : rank);
    agree_add(list, "--lr", rank == 1 ? NULL : "3");
    agree_add(list, "--split", rank == 3 ? "" : "9,1");
    agree_add(list, "--tp", "2");
}

static void the_first_that_differs_is_named_with_values_and_ranks(void)
{
    says(one_value, "--lr is 3 on ranks 0-1, 3 and 7 on rank 2");
    says(several_values, "--seed is 1 on ranks 0-1 and 2 on rank 2; 2 other settings differ, too");
}

/* Ranks of one program may have lists of other lengths: of data, of a model. */
static void other_names(struct buf *list, int rank)
{
    agree_add(list, "--seed", "1");
    if (rank != 1)
        agree_add(list, "the model's num-experts", "4");
    agree_add(list, "--lr", "3");
}

static void more_names(struct buf *list, int rank)
{
    agree_add(list, "--seed", "1");
    if (rank == 3)
        agree_add(list, "the model's num-experts", "4");
}

static void other_order(struct buf *list, int rank)
{
    agree_add(list, rank ? "a" : "b", "1");
    agree_add(list, rank ? "b" : "a", "1");
}

static void a_setting_that_a_rank_lacks_is_unset(void)
{
    says(other_names, "the model's num-experts is 4 on ranks 0, 2-3 and unset on rank 1");
    says(more_names, "the model's num-experts is unset on ranks 0-2 and 4 on rank 3");
    says(other_order, "the ranks have the same settings in another order: they run other programs");
}

static void long_value(struct buf *list, int rank)
{
    char text[301] = {0};
    memset(text, 'x', 300);
    memcpy(text + 150, rank ? "one" : "two", 3);
    agree_add(list, "--list", text);
    agree_add(list, "--escape", rank ? "\x1b[2J" : "none");
}

static void escapes(struct buf *list, int rank)
{
    agree_add(list, "--escape", rank ? "\x1b[2J" : "none");
}

static void long_values_are_cut_and_nothing_reaches_the_terminal(void)
{
    struct one r[RANKS];
    run(r, long_value);
    T_CHECK(strstr(r[0].e.msg, "...xxxxxxxxxxxxxxxxxxxxtwoxxxx") != NULL);
    T_CHECK(strstr(r[0].e.msg, "...xxxxxxxxxxxxxxxxxxxxonexxxx") != NULL);
    T_CHECK(strlen(r[0].e.msg) < 400);
    says(escapes, "--escape is none on rank 0 and ?[2J on ranks 1-3");
}

static void machines_and_places_are_told(void)
{
    struct one r[RANKS];
    struct buf b = {0};
    run(r, alike);
    for (int i = 0; i < RANKS; i++)
        T_EQ(memcmp(r[i].host, r[0].host, sizeof(r[0].host)), 0);
    const bool first[RANKS] = {true, false, true, true};
    for (int i = 0; i < RANKS; i++)
        T_EQ(agree_is_first_of_host(r[0].host, i), first[i]);
    agree_describe(r[0].host, mesh_dense(2, 1, 2, 1), &b);
    T_STR(buf_str(&b), "4 processes on 3 machines (a: 0-1, b?: 2, a-name-of-a-machine: 3): "
                       "2 tensor-parallel x 2 data-parallel");
    buf_reset(&b);
    agree_table(r[0].host, mesh_dense(2, 1, 1, 2), &b);
    T_STR(buf_str(&b), "rank  machine                tp    pp\n"
                       "   0  a                       0     0\n"
                       "   1  a                       1     0\n"
                       "   2  b?                      0     1\n"
                       "   3  a-name-of-a-machine     1     1\n");
    buf_reset(&b);
    agree_table(r[0].host, mesh_dense(1, 2, 2, 1), &b);
    T_STR(buf_str(&b), "rank  machine                cp    dp\n"
                       "   0  a                       0     0\n"
                       "   1  a                       1     0\n"
                       "   2  b?                      0     1\n"
                       "   3  a-name-of-a-machine     1     1\n");
    struct mesh experts = mesh_dense(1, 1, 4, 1);
    experts.ep = 2;
    buf_reset(&b);
    agree_describe(r[0].host, experts, &b);
    T_CHECK(strstr(buf_str(&b), ": 4 data-parallel; experts 2 expert-parallel x 2 "
                                "expert-data-parallel") != NULL);
    buf_reset(&b);
    agree_table(r[0].host, experts, &b);
    T_STR(buf_str(&b), "rank  machine                dp    ep   edp\n"
                       "   0  a                       0     0     0\n"
                       "   1  a                       1     1     0\n"
                       "   2  b?                      2     0     1\n"
                       "   3  a-name-of-a-machine     3     1     1\n");
    buf_finish(&b);
}

static bool is_named(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

/* Of those that a resumed run holds against its checkpoint only names of files are free. */
static void what_shapes_a_run_is_compared(void)
{
    static const char *const files[] = {
        "hf-config",       "tokenizer",      "tokenizer-model",          "vocab-file",
        "merge-file",      "data-path",      "data-args-path",           "train-data-path",
        "valid-data-path", "test-data-path", "per-split-data-args-path", NULL};
    static const char *const shape[] = {"tensor-model-parallel-size", "zero-stage",
                                        "ddp-bucket-size", "eval-interval", "save-interval"};
    int compared = 0, local = 0, shapes = 0;
    const struct opt *o;
    for (int row = 0; (o = opt_row(&train_table, row)) != NULL; row++) {
        if (!opt_for_verb(o, VERB_RUN) || opt_role(&train_table, row) != OPT_ROLE_VALUE)
            continue;
        bool state = o->resumed != RESUMED_FREE;
        if (state && o->local && !is_named(files, o->name))
            t_fail(__FILE__, __LINE__, "--%s may differ between ranks", o->name);
        compared += state && !o->local;
        local += o->local;
        for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++)
            shapes += !strcmp(shape[i], o->name) && !o->local;
    }
    T_CHECK(compared > 100);
    T_CHECK(local > 50);
    T_EQ(shapes, sizeof(shape) / sizeof(*shape));
}

static void a_build_has_one_digest(void)
{
    char one[SHA_TEXT], again[SHA_TEXT], none[SHA_TEXT];
    agree_build(one);
    agree_build(again);
    sha_once("", 0, none);
    T_STR(again, one);
    T_CHECK(strcmp(one, none) != 0); /* there is code in it */
}

T_MAIN(T_CASE(a_build_has_one_digest), T_CASE(the_same_settings_pass),
       T_CASE(the_first_that_differs_is_named_with_values_and_ranks),
       T_CASE(a_setting_that_a_rank_lacks_is_unset),
       T_CASE(long_values_are_cut_and_nothing_reaches_the_terminal),
       T_CASE(machines_and_places_are_told), T_CASE(what_shapes_a_run_is_compared))
