/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/precision.h"

enum { FP32, BF16, FP16, FP8 };

static int check_type(const char *name, int type, struct err *e)
{
    if (type == FP32 || type == BF16)
        return 0;
    return err_set(e, ERR_USAGE,
                   "--%s %s: scaled 8- and 16-bit states are not implemented; "
                   "expected fp32 or bf16",
                   name, type == FP16 ? "fp16" : "fp8");
}

static int check_optimizer(const struct precision_flags *f, bool adam, struct err *e)
{
    int code = check_type("main-grads-dtype", f->main_grads, e);
    if (!code)
        code = check_type("main-params-dtype", f->main_params, e);
    if (!code)
        code = check_type("exp-avg-dtype", f->exp_avg, e);
    if (!code)
        code = check_type("exp-avg-sq-dtype", f->exp_avg_sq, e);
    if (code)
        return code;
    if (!adam && (f->exp_avg == BF16 || f->exp_avg_sq == BF16))
        return err_set(e, ERR_USAGE,
                       "--exp-avg-dtype and --exp-avg-sq-dtype bf16: expected --optimizer adam "
                       "(others keep their momentum in --main-params-dtype)");
    if (f->main_grads == BF16 && !(f->bf16 && f->grads_bf16))
        return err_set(e, ERR_USAGE,
                       "--main-grads-dtype bf16: expected --bf16 --grad-reduce-in-bf16 with it");
    if (f->main_params == BF16 && !f->bf16)
        return err_set(e, ERR_USAGE, "--main-params-dtype bf16: expected --bf16 with it");
    return 0;
}

/* Larger scales leave no finite gradient in fp32. */
static int check_scale(const struct precision_flags *f, struct err *e)
{
    const struct {
        const char *name;
        double value;
    } scale[] = {{"loss-scale", f->static_scale},
                 {"initial-loss-scale", f->first},
                 {"min-loss-scale", f->least}};
    for (size_t i = 0; i < sizeof(scale) / sizeof(scale[0]); i++)
        if (scale[i].value > 0x1p100)
            return err_set(e, ERR_USAGE, "--%s %g: expected at most 2^100, 1.27e+30", scale[i].name,
                           scale[i].value);
    return 0;
}

static struct loss_scale scale_of(const struct precision_flags *f)
{
    if (f->static_scale > 0)
        return (struct loss_scale){.first = f->static_scale};
    if (!f->fp16)
        return (struct loss_scale){0};
    return (struct loss_scale){.first = f->first > f->least ? f->first : f->least,
                               .dynamic = true,
                               .rule = (enum scale_rule)f->rule,
                               .least = f->least,
                               .window = f->window,
                               .hysteresis = f->hysteresis,
                               .consecutive = f->consecutive};
}

int precision_of(const struct precision_flags *f, bool adam, struct precision *ret, struct err *e)
{
    bool narrow = f->aware;
    if (f->bf16 && f->fp16)
        return err_set(e, ERR_USAGE, "--bf16 and --fp16: expected one of them");
    int code = check_scale(f, e);
    if (!code && f->aware)
        code = check_optimizer(f, adam, e);
    if (code)
        return code;
    bool master = narrow && f->main_params == BF16; /* others than Adam keep moments as it, too */
    bool moment[2] = {adam ? narrow && f->exp_avg == BF16 : master,
                      adam ? narrow && f->exp_avg_sq == BF16 : master};
    *ret = (struct precision){.real = f->bf16   ? DTYPE_BF16
                                      : f->fp16 ? DTYPE_F16
                                                : DTYPE_F32,
                              .narrow = {.grad = f->bf16 && f->grads_bf16,
                                         .master = master,
                                         .moment = {moment[0], moment[1]}},
                              .round = f->stochastic && (master || moment[0] || moment[1]),
                              .scale = scale_of(f)};
    return 0;
}
