/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/t.h"
#include "train/engine/precision.h"
#include "train/optim/scale.h"

/* One letter a step, o an overflow, g none; the scales after each. */
static void follow(const struct loss_scale *c, const char *steps, const double *scale)
{
    struct loss_scale_state s = loss_scale_begin(c);
    struct err e;
    for (int i = 0; steps[i]; i++) {
        T_OK(loss_scale_step(c, &s, steps[i] == 'o', &e), &e);
        if (s.scale != scale[i])
            t_fail(__FILE__, __LINE__, "after step %d of %s the scale is %g, expected %g", i + 1,
                   steps, s.scale, scale[i]);
    }
}

/* Fifteen overflows from 2^32 with hysteresis 2 end at 2^18. */
static void megatron(void)
{
    struct loss_scale c = {
        .first = 0x1p32, .dynamic = true, .least = 1, .window = 1000, .hysteresis = 2};
    struct loss_scale_state s = loss_scale_begin(&c);
    struct err e;
    for (int i = 0; i < 15; i++)
        T_OK(loss_scale_step(&c, &s, true, &e), &e);
    T_CHECK(s.scale == 262144);
    for (int i = 0; i < 999; i++)
        T_OK(loss_scale_step(&c, &s, false, &e), &e);
    T_CHECK(s.scale == 262144);
    T_OK(loss_scale_step(&c, &s, false, &e), &e);
    T_CHECK(s.scale == 524288);
    T_EQ(s.left, 2);
    /* hysteresis is not refilled by good steps, and an overflow starts their count anew */
    c = (struct loss_scale){.first = 8, .dynamic = true, .least = 2, .window = 3, .hysteresis = 2};
    follow(&c, "ogogg", (const double[]){8, 8, 4, 4, 4});
    follow(&c, "gggogog", (const double[]){8, 8, 16, 16, 16, 8, 8});
    follow(&c, "ggoggg", (const double[]){8, 8, 8, 8, 8, 16});
    follow(&c, "ooooooggg", (const double[]){8, 4, 2, 2, 2, 2, 2, 2, 4});
}

static void deepspeed(void)
{
    struct loss_scale c = {.first = 8,
                           .dynamic = true,
                           .rule = SCALE_DEEPSPEED,
                           .least = 2,
                           .window = 3,
                           .hysteresis = 2};
    struct loss_scale_state s = loss_scale_begin(&c);
    struct err e;
    follow(&c, "ogogg", (const double[]){8, 8, 4, 4, 4});
    follow(&c, "ogggoog", (const double[]){8, 8, 8, 16, 16, 8, 8});
    follow(&c, "ggggggo", (const double[]){8, 8, 16, 16, 16, 32, 32});
    c.consecutive = true;
    follow(&c, "ogogogoo", (const double[]){8, 8, 8, 8, 8, 8, 8, 4});
    c.consecutive = false;
    for (int i = 0; i < 3; i++)
        T_OK(loss_scale_step(&c, &s, true, &e), &e);
    T_CHECK(s.scale == 2);
    T_ERR(loss_scale_step(&c, &s, true, &e), &e, ERR_FAIL, "loss scale of 2");
}

static void fixed(void)
{
    struct loss_scale c = {.first = 64};
    follow(&c, "oogg", (const double[]){64, 64, 64, 64});
    c.first = 0;
    follow(&c, "og", (const double[]){1, 1});
}

static void options(void)
{
    struct precision_flags f = {
        .fp16 = true, .first = 0x1p11, .least = 1, .window = 500, .hysteresis = 2};
    struct precision p;
    struct err e;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_EQ(p.real, DTYPE_F16);
    T_CHECK(p.scale.dynamic && p.scale.first == 2048 && p.scale.window == 500);
    f.static_scale = 128;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_CHECK(!p.scale.dynamic && p.scale.first == 128);
    f.bf16 = true;
    T_ERR(precision_of(&f, true, &p, &e), &e, ERR_USAGE, "--bf16 and --fp16");
    f = (struct precision_flags){.bf16 = true, .exp_avg = 1, .exp_avg_sq = 3};
    T_OK(precision_of(&f, true, &p, &e), &e); /* without --use-precision-aware-optimizer */
    T_CHECK(!p.narrow.moment[0] && p.scale.first == 0);
    f.aware = true;
    T_ERR(precision_of(&f, true, &p, &e), &e, ERR_USAGE, "--exp-avg-sq-dtype fp8");
    f.exp_avg_sq = 0;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_CHECK(p.narrow.moment[0] && !p.narrow.moment[1] && !p.narrow.master);
    T_ERR(precision_of(&f, false, &p, &e), &e, ERR_USAGE, "--optimizer adam");
    f.stochastic = true;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_CHECK(p.round);
    f.exp_avg = 0;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_CHECK(!p.round); /* nothing is kept in bf16 */
    f.main_grads = 1;
    T_ERR(precision_of(&f, true, &p, &e), &e, ERR_USAGE, "--grad-reduce-in-bf16");
    f.grads_bf16 = true;
    f.main_params = 1;
    T_OK(precision_of(&f, true, &p, &e), &e);
    T_CHECK(p.narrow.grad && p.narrow.master && !p.narrow.moment[0] && p.round);
    T_OK(precision_of(&f, false, &p, &e), &e); /* momentum is of the type of the weights */
    T_CHECK(p.narrow.master && p.narrow.moment[0] && p.narrow.moment[1]);
}

T_MAIN(T_CASE(megatron), T_CASE(deepspeed), T_CASE(fixed), T_CASE(options))
