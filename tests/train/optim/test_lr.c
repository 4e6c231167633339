/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/lr.h"

#include "tests/t.h"

/* Seed 002's printed values: 1.5e-4 after (it - 15) of 3200 warm-up iterations of 64 samples. */
static void warms_up_as_the_published_log(void)
{
    struct lr c = {
        .style = LR_COSINE, .max = 1.5e-4, .min = 1e-5, .warmup = 3200 * 64, .decay = 320000 * 64};
    T_NEAR(lr_at(&c, 15 * 64) * 1e7, 7.03125, 1e-9);
    T_NEAR(lr_at(&c, 25 * 64) * 1e6, 1.171875, 1e-9);
    T_NEAR(lr_at(&c, 35 * 64) * 1e6, 1.640625, 1e-9);
    T_NEAR(lr_at(&c, 0), 0, 0);
}

static void decays(void)
{
    struct lr c = {.style = LR_LINEAR, .max = 1, .min = 0.1, .decay = 100};
    T_NEAR(lr_at(&c, 0), 1, 0);
    T_NEAR(lr_at(&c, 50), 0.55, 1e-12);
    T_NEAR(lr_at(&c, 100), 0.1, 1e-12);
    T_NEAR(lr_at(&c, 101), 0.1, 0);
    c.style = LR_COSINE;
    T_NEAR(lr_at(&c, 25), 0.1 + 0.9 * 0.5 * (1 + 0.70710678118654752), 1e-12);
    T_NEAR(lr_at(&c, 100), 0.1, 1e-12);
    c.style = LR_CONSTANT;
    T_NEAR(lr_at(&c, 1000), 1, 0);
    c.style = LR_INVERSE_SQRT;
    c.warmup = 4;
    T_NEAR(lr_at(&c, 2), 0.5, 1e-12);
    T_NEAR(lr_at(&c, 64), 0.25, 1e-12);
}

static void all_warm_up_never_divides_by_zero(void)
{
    struct lr c = {.style = LR_LINEAR, .max = 1, .min = 0, .warmup = 10, .decay = 10};
    T_NEAR(lr_at(&c, 10), 1, 0);
    T_NEAR(lr_at(&c, 11), 0, 0);
}

/* transformers 5.23: get_scheduler(NAME, optimizer of lr 3e-4, warm-up steps, training steps). */
static void counts_updates_as_transformers(void)
{
    static const struct {
        enum lr_style style;
        double warmup, decay;
        int64_t at;
        double lr;
    } want[] = {
        {LR_LINEAR, 3, 10, 0, 0},
        {LR_LINEAR, 3, 10, 1, 9.999999999999999e-05},
        {LR_LINEAR, 3, 10, 2, 0.00019999999999999998},
        {LR_LINEAR, 3, 10, 3, 0.0003},
        {LR_LINEAR, 3, 10, 4, 0.0002571428571428571},
        {LR_LINEAR, 3, 10, 9, 4.285714285714285e-05},
        {LR_LINEAR, 3, 10, 10, 0},
        {LR_LINEAR, 0, 7, 0, 0.0003},
        {LR_LINEAR, 0, 7, 6, 4.285714285714285e-05},
        {LR_COSINE, 3, 10, 1, 9.999999999999999e-05},
        {LR_COSINE, 3, 10, 4, 0.0002851453301853628},
        {LR_COSINE, 3, 10, 9, 1.4854669814637143e-05},
        {LR_COSINE, 3, 10, 10, 0},
        {LR_CONSTANT, 3, 10, 0, 0},
        {LR_CONSTANT, 3, 10, 2, 0.00019999999999999998},
        {LR_CONSTANT, 3, 10, 3, 0.0003},
        {LR_CONSTANT, 3, 10, 10, 0.0003},
        {LR_LINEAR, 1, 1, 0, 0},
        {LR_LINEAR, 12, 10, 9, 0.000225},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct lr c = {.style = want[i].style,
                       .rules = LR_HF,
                       .max = 3e-4,
                       .min = 1, /* neither counts */
                       .init = 1,
                       .warmup = want[i].warmup,
                       .decay = want[i].decay};
        T_NEAR(lr_at(&c, want[i].at), want[i].lr, 0);
    }
}

T_MAIN(T_CASE(warms_up_as_the_published_log), T_CASE(decays),
       T_CASE(counts_updates_as_transformers), T_CASE(all_warm_up_never_divides_by_zero))
