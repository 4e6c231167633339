/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/scale.h"

#include "base/core/fault.h"

struct loss_scale_state loss_scale_begin(const struct loss_scale *c)
{
    return (struct loss_scale_state){.scale = c->first > 0 ? c->first : 1, .left = c->hysteresis};
}

static void lower(const struct loss_scale *c, struct loss_scale_state *s)
{
    s->scale = s->scale / 2 > c->least ? s->scale / 2 : c->least;
}

static void overflow_megatron(const struct loss_scale *c, struct loss_scale_state *s)
{
    s->left--;
    if (s->left <= 0 || FAULT("scale_hysteresis"))
        lower(c, s);
}

static int overflow_deepspeed(const struct loss_scale *c, struct loss_scale_state *s, struct err *e)
{
    if (s->left > 1) {
        s->left--;
        return 0;
    }
    if (s->scale <= c->least && !FAULT("scale_least"))
        return err_set(e, ERR_FAIL,
                       "gradients overflow at a loss scale of %g, which is the least "
                       "(--min-loss-scale)",
                       s->scale);
    lower(c, s);
    return 0;
}

int loss_scale_step(const struct loss_scale *c, struct loss_scale_state *s, bool overflow,
                    struct err *e)
{
    bool megatron = c->rule == SCALE_MEGATRON;
    if (!c->dynamic)
        return 0;
    if (overflow) {
        s->good = FAULT("scale_window") ? s->good : 0;
        if (!megatron)
            return overflow_deepspeed(c, s, e);
        overflow_megatron(c, s);
        return 0;
    }
    if (c->consecutive && !megatron && !FAULT("scale_consecutive"))
        s->left = c->hysteresis;
    if (++s->good < c->window)
        return 0;
    s->good = 0;
    s->scale *= 2;
    s->left = c->hysteresis;
    return 0;
}
