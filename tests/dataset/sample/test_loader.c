/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "dataset/sample/batch.h"
#include "dataset/sample/gpt.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

enum { T = 5 };

static void open_fixture(struct gpt_data *d, int64_t limit)
{
    struct err e;
    write_counting(t_path("b"), (uint32_t[]){30, 41, 52, 3, 64}, 5);
    struct gpt_config c = {.prefix = t_path("b"),
                           .split = "1",
                           .seq_length = T,
                           .seed = 3,
                           .samples = {100, 0, 0},
                           .limit = limit,
                           .pad = -1};
    T_OK(gpt_open(d, &c, &e), &e);
}

static void same_batches_in_the_same_order(void)
{
    struct err e;
    struct gpt_data d;
    struct batch want;
    open_fixture(&d, 1000);
    struct feed f = gpt_feed(&d.part[0]);
    batch_init(&want, 3, T);
    for (uint32_t depth = 1; depth <= 4; depth++) {
        struct loader *l;
        struct batch_layout layout = {.rows = 3, .rank = 1, .ranks = 2};
        T_OK(loader_create(&f, &layout, 6, depth, &l, &e), &e);
        for (uint64_t m = 0; m < 12; m++) {
            const struct batch *b;
            T_OK(loader_next(l, &b, &e), &e);
            T_OK(batch_fill(&f, &layout, 6, m, &want, &e), &e);
            T_EQ(b->first, want.first);
            T_MEM(b->tokens, want.tokens, 3 * T * 4);
            T_MEM(b->labels, want.labels, 3 * T * 4);
            T_MEM(b->loss_mask, want.loss_mask, 3 * T * 4);
        }
        loader_destroy(l);
    }
    batch_finish(&want);
    gpt_close(&d);
}

/* A loader that starts at a later cursor continues where another one would be. */
static void a_cursor_is_all_the_state(void)
{
    struct err e;
    struct gpt_data d;
    struct loader *a, *b;
    const struct batch *x, *y;
    struct batch_layout layout = {.rows = 2, .rank = 0, .ranks = 1};
    open_fixture(&d, 1000);
    struct feed f = gpt_feed(&d.part[0]);
    T_OK(loader_create(&f, &layout, 0, 3, &a, &e), &e);
    for (int i = 0; i < 7; i++)
        T_OK(loader_next(a, &x, &e), &e);
    T_OK(loader_create(&f, &layout, 12, 2, &b, &e), &e);
    for (int i = 0; i < 10; i++) {
        T_OK(loader_next(b, &y, &e), &e);
        T_EQ(x->first, y->first);
        T_MEM(x->tokens, y->tokens, 2 * T * 4);
        T_OK(loader_next(a, &x, &e), &e);
    }
    loader_destroy(a);
    loader_destroy(b);
    gpt_close(&d);
}

static void the_end_comes_in_its_place(void)
{
    struct err e;
    struct gpt_data d;
    struct loader *l;
    const struct batch *b;
    struct batch_layout layout = {.rows = 4, .rank = 0, .ranks = 1};
    open_fixture(&d, 1000);
    struct feed f = gpt_feed(&d.part[0]);
    T_OK(loader_create(&f, &layout, UINT64_MAX - 40, 4, &l, &e), &e);
    for (uint64_t i = 0; i < 10; i++) {
        T_OK(loader_next(l, &b, &e), &e);
        T_EQ(b->first, UINT64_MAX - 40 + 4 * i);
    }
    T_ERR(loader_next(l, &b, &e), &e, ERR_USAGE, "samples, none for");
    T_CHECK(!b);
    T_ERR(loader_next(l, &b, &e), &e, ERR_USAGE, "samples, none for");
    loader_destroy(l);
    gpt_close(&d);
}

static void a_bad_id_comes_in_its_place(void)
{
    struct err e;
    struct gpt_data d;
    struct loader *l;
    const struct batch *b;
    struct batch want;
    struct batch_layout layout = {.rows = 1, .rank = 0, .ranks = 1};
    open_fixture(&d, 100);
    struct feed f = gpt_feed(&d.part[0]);
    batch_init(&want, 1, T);
    T_OK(loader_create(&f, &layout, 0, 4, &l, &e), &e);
    for (uint64_t m = 0; m < 60; m++) {
        int code = batch_fill(&f, &layout, 0, m, &want, &e);
        T_EQ(loader_next(l, &b, &e), code);
        if (!code)
            continue;
        T_CHECK(m > 0);
        T_EQ(code, ERR_DATA);
        break;
    }
    T_ERR(loader_next(l, &b, &e), &e, ERR_DATA, "is not in 0..99");
    loader_destroy(l);
    batch_finish(&want);
    gpt_close(&d);
}

/* The guard of the maps works in the loader's thread, too. */
static void data_that_shrinks_is_told(void)
{
    struct err e;
    struct gpt_data d;
    struct loader *l;
    const struct batch *b;
    struct batch_layout layout = {.rows = 1, .rank = 0, .ranks = 1};
    open_fixture(&d, 1000);
    struct feed f = gpt_feed(&d.part[0]);
    T_EQ(truncate(t_path("b.bin"), 0), 0);
    T_OK(loader_create(&f, &layout, 0, 2, &l, &e), &e);
    T_ERR(loader_next(l, &b, &e), &e, ERR_IO, "b.bin");
    loader_destroy(l);
    gpt_close(&d);
}

static void it_may_be_destroyed_at_any_time(void)
{
    struct err e;
    struct gpt_data d;
    struct batch_layout layout = {.rows = 2, .rank = 0, .ranks = 1};
    open_fixture(&d, 1000);
    struct feed f = gpt_feed(&d.part[0]);
    for (int taken = 0; taken < 6; taken++)
        for (int wait = 0; wait < 3; wait++) {
            struct loader *l;
            const struct batch *b;
            T_OK(loader_create(&f, &layout, 0, 2, &l, &e), &e);
            for (int i = 0; i < taken; i++)
                T_OK(loader_next(l, &b, &e), &e);
            usleep((useconds_t)wait * 300);
            loader_destroy(l);
        }
    loader_destroy(NULL);
    gpt_close(&d);
}

T_MAIN(T_CASE(same_batches_in_the_same_order), T_CASE(a_cursor_is_all_the_state),
       T_CASE(the_end_comes_in_its_place), T_CASE(a_bad_id_comes_in_its_place),
       T_CASE(data_that_shrinks_is_told), T_CASE(it_may_be_destroyed_at_any_time))
