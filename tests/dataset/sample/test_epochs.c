/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/epochs.h"

#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/batch.h"
#include "tests/t.h"

enum { N = 10, T = 4, EPOCHS = 3 };

/* Sample k of N is the ids 10 k + 1 and on. */
static int number_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    (void)self;
    (void)e;
    T_CHECK(k < N);
    for (int t = 0; t <= T; t++)
        ret[t] = (int32_t)k * 10 + 1 + t;
    return 0;
}

static int number_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    int32_t text[T + 1];
    int code = number_sample(self, k, text, e);
    for (int t = 0; t < T; t++) {
        ret->tokens[t] = text[t];
        ret->labels[t] = text[t + 1];
        ret->loss_mask[t] = 1;
        ret->position[t] = t % 2;
    }
    ret->ends[0] = 2;
    ret->ends[1] = T;
    ret->nends = 2;
    return code;
}

static struct epochs numbers(bool rows)
{
    struct feed f = {.count = N, .seq_length = T, .pad = -1, .name = "numbers", .part = "train"};
    f.sample = rows ? NULL : number_sample;
    f.row = rows ? number_row : NULL;
    return (struct epochs){.of = f, .n = N, .samples = N * EPOCHS, .seed = 5};
}

/* Each sample once in an epoch, in another order in each, and by another seed and part. */
static void each_epoch_has_an_order(void)
{
    uint64_t same[3] = {0};
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        char seen[N] = {0};
        for (uint64_t k = 0; k < N; k++) {
            uint64_t at = epochs_order(5, PART_TRAIN, N, epoch * N + k);
            T_CHECK(at < N && !seen[at]);
            seen[at] = 1;
            same[0] += at == epochs_order(5, PART_TRAIN, N, (epoch + 1) * N + k);
            same[1] += at == epochs_order(6, PART_TRAIN, N, epoch * N + k);
            same[2] += at == epochs_order(5, PART_VALID, N, epoch * N + k);
        }
    }
    for (int i = 0; i < 3; i++) /* a tenth by chance */
        T_CHECK(same[i] > 0 && same[i] < 50 * N / 4);
}

static void the_last_step_is_short(void)
{
    T_EQ(epochs_steps(10, 4), 3);
    T_EQ(epochs_steps(8, 4), 2);
    T_EQ(epochs_steps(3, 4), 1);
    static const uint64_t want[] = {0, 4, 8, 10, 14, 18, 20, 24};
    for (uint64_t from = 0; from < 8; from++)
        for (uint64_t steps = 0; from + steps < 8; steps++)
            T_EQ(epochs_after(10, 4, want[from], steps), want[from + steps]);
    T_EQ(epochs_after(3, 4, 0, 5), 15);
    T_EQ(epochs_after(8, 4, 4, 3), 16);
}

static void check_row(const struct batch *b, uint32_t q, uint64_t sample, bool rows)
{
    const int32_t *row = b->tokens + q * T, *label = b->labels + q * T;
    for (int t = 0; t < T; t++) {
        T_EQ(row[t], sample * 10 + 1 + (uint64_t)t);
        T_EQ(label[t], row[t] + 1);
        T_NEAR(b->loss_mask[q * T + (uint32_t)t], 1, 0);
        T_EQ(b->position[q * T + (uint32_t)t], rows ? t % 2 : t);
    }
}

static void check_missing(const struct batch *b, uint32_t q)
{
    for (uint32_t i = q * T; i < q * T + T; i++) {
        T_EQ(b->tokens[i], 0);
        T_EQ(b->labels[i], 0);
        T_NEAR(b->loss_mask[i], 0, 0);
        T_EQ(b->position[i], i % T);
    }
}

/* One micro-batch of a step whose samples are begin .. begin + there - 1. */
static void check_batch(const struct batch *b, const struct epochs *p, uint64_t begin,
                        uint64_t there)
{
    uint32_t s = 0;
    T_EQ(b->there, there);
    for (uint32_t q = 0; q < b->rows; q++) {
        uint64_t k = b->first + q;
        bool missing = k >= begin + there;
        if (missing)
            check_missing(b, q);
        else
            check_row(b, q, epochs_order(p->seed, p->part, N, k), p->of.row != NULL);
        s += p->of.row && !missing ? 2 : 1;
        T_EQ(b->start[s], (q + 1) * T);
    }
    T_EQ(b->nstretch, s);
}

/*
 * Steps of 4, of which every third has 2, on any ranks and micro-batches, from the beginning and
 * from any step on: each row is the sample of its number or missing.
 */
static void all_layouts_share_out_an_epoch(void)
{
    static const struct batch_layout layout[] = {{.rows = 4, .ranks = 1, .micros = 1},
                                                 {.rows = 2, .ranks = 1, .micros = 2},
                                                 {.rows = 1, .ranks = 4, .micros = 1},
                                                 {.rows = 1, .ranks = 2, .micros = 2},
                                                 {.rows = 2, .ranks = 2, .micros = 1}};
    static const uint64_t begin[] = {0, 4, 8, 10, 14, 18, 20, 24, 28};
    for (size_t i = 0; i < 2 * sizeof(layout) / sizeof(*layout); i++) {
        struct batch_layout l = layout[i / 2];
        struct epochs p = numbers(i % 2);
        struct feed f = epochs_feed(&p);
        struct batch b;
        struct err e;
        l.epoch = N;
        batch_init(&b, l.rows, T);
        for (uint64_t from = 0; from < 9; from++)
            for (uint64_t m = 0; m < (9 - from) * l.micros; m++)
                for (l.rank = 0; l.rank < l.ranks; l.rank++) {
                    uint64_t step = from + m / l.micros, at = begin[step];
                    T_OK(batch_fill(&f, &l, begin[from], m, &b, &e), &e);
                    T_EQ(b.first, at + (m % l.micros * l.ranks + l.rank) * l.rows);
                    check_batch(&b, &p, at, step % 3 == 2 ? 2 : 4);
                }
        batch_finish(&b);
    }
}

T_MAIN(T_CASE(each_epoch_has_an_order), T_CASE(the_last_step_is_short),
       T_CASE(all_layouts_share_out_an_epoch))
