/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Training with weights and moments in bf16 alone, at a learning rate whose updates are less than
 * half of the spacing of most weights: to the nearest they are lost, stochastically they add up.
 */

#include <stdio.h>

#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/step.h"

enum { STEPS = 60 };

/* The loss of one batch before and after STEPS of it; computed in fp32, of the weights kept. */
static double gain(enum optim_kind kind, bool narrow, bool round)
{
    static struct rank r;
    struct err e;
    struct batch in;
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F32);
    double rate = kind == OPTIM_ADAM ? 2e-5 : 1e-4;
    c.spec.hidden_dropout = c.spec.attention_dropout = 0;
    c.narrow = (struct ops_narrow){.master = narrow, .moment = {narrow, narrow}};
    c.optimizer = kind;
    c.momentum = 0.9;
    c.round = round;
    T_OK(rank_open(&r, &c, &e), &e);
    tiny_batch(&in, 3);
    double before = tiny_loss(&r, &in, false);
    for (int i = 0; i < STEPS; i++) {
        tiny_values(&r, rate, 0, i + 1);
        tiny_loss(&r, &in, true);
        step_issue_update(&r);
    }
    double after = tiny_loss(&r, &in, false);
    batch_finish(&in);
    rank_close(&r);
    return before - after;
}

static void stalls_to_the_nearest_and_not_at_random(enum optim_kind kind)
{
    double exact = gain(kind, false, false), nearest = gain(kind, true, false);
    double random = gain(kind, true, true);
    printf("# the loss falls by %g in fp32, %g to the nearest, %g stochastically\n", exact, nearest,
           random);
    T_CHECK(exact > 0);
    T_CHECK(nearest < 0.5 * exact);
    T_NEAR(random, exact, 0.2 * exact);
}

static void adam(void)
{
    stalls_to_the_nearest_and_not_at_random(OPTIM_ADAM);
}

static void sgd(void)
{
    stalls_to_the_nearest_and_not_at_random(OPTIM_SGD);
}

T_MAIN(T_CASE(adam), T_CASE(sgd))
