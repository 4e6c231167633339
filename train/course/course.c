/* SPDX-License-Identifier: Apache-2.0 */
#include "train/course/course.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/fault.h"

/* ---- samples of a step ------------------------------------------------------------------- */

static const int64_t RAMP_MAX = 1000000000000000; /* as --train-samples has it */

static int ramp_number(const char *text, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *ret >= 0 && *ret <= RAMP_MAX ? 0 : -1;
}

static int read_ramp(const struct opt_list *l, int64_t divisor, struct ramp *c, struct err *e)
{
    if (!l->n)
        return 0;
    if (l->n != 3 || ramp_number(l->item[0], &c->start) || ramp_number(l->item[1], &c->increment) ||
        ramp_number(l->item[2], &c->samples) || !c->start || !c->increment)
        return err_set(e, ERR_USAGE,
                       "--rampup-batch-size: expected three numbers: START INCREMENT SAMPLES, of "
                       "at most 10^15, the first two of at least 1");
    if (c->start > c->full || (c->full - c->start) % c->increment)
        return err_set(e, ERR_USAGE,
                       "--rampup-batch-size %lld %lld: --global-batch-size %lld cannot be reached "
                       "from there",
                       (long long)c->start, (long long)c->increment, (long long)c->full);
    if (c->start == c->full)
        c->increment = 0;
    else if (c->start % divisor || c->increment % divisor)
        return err_set(e, ERR_USAGE,
                       "--rampup-batch-size %lld %lld: expected multiples of %lld, the micro-batch "
                       "by the data-parallel processes",
                       (long long)c->start, (long long)c->increment, (long long)divisor);
    return 0;
}

/* ---- length ------------------------------------------------------------------------------ */

/* Takes the steps of the ramp that begin with at most `last` samples seen: those of a stage at
 * once, but for the last ones, for which ramp_at's rounding counts. */
static void climb(struct course *c, int64_t last)
{
    const struct ramp *r = &c->ramp;
    if (last > r->samples)
        last = r->samples;
    while (r->increment && c->samples <= last) {
        int64_t size = ramp_at(r, c->samples), stages = (r->full - r->start) / r->increment;
        int64_t stage = (size - r->start) / r->increment;
        double end = (double)(stage + 1) * ((double)r->samples / (double)stages);
        double begin = (double)c->samples, until = end < (double)last ? end : (double)last;
        int64_t n = (int64_t)((until - begin) / (double)size) - 2;
        if (n < 1)
            n = 1;
        c->samples += n * size;
        c->iterations += n;
    }
}

/* Steps of at most `most` samples (whole steps, as Megatron-LM rounds: on the ramp a step is
 * taken while any are left). */
static void steps_within(struct course *c, int64_t most)
{
    const struct ramp *r = &c->ramp;
    climb(c, most);
    if (most > c->samples) {
        int64_t n = (most - c->samples) / r->full;
        c->iterations += n;
        c->samples += n * r->full;
    }
}

/* Steps until so many tokens have been seen. */
static void cut_at_tokens(struct course *c, int64_t tokens, int64_t seq_length)
{
    struct course cut = {.ramp = c->ramp};
    const struct ramp *r = &c->ramp;
    int64_t enough = tokens / seq_length + (tokens % seq_length > 0);
    climb(&cut, enough - 1);
    if (cut.samples < enough) {
        int64_t n = (enough - cut.samples + r->full - 1) / r->full;
        cut.iterations += n;
        cut.samples += n * r->full;
    }
    if (!c->iterations || cut.iterations < c->iterations)
        *c = cut;
}

int64_t course_epoch_steps(const struct course *c)
{
    return c->ramp.epoch ? (c->ramp.epoch - 1) / c->ramp.full + 1 : 0;
}

/* As transformers' Trainer: an epoch has as many steps as its samples need, its last one may be
 * short, and the whole run is rounded up to a step. */
static int epochs_length(const struct course_flags *f, const struct course_units *u,
                         struct course *c, struct err *e)
{
    bool other = f->train_iters || f->train_samples || f->train_tokens;
    if (other)
        return err_set(e, ERR_USAGE, "--num-train-epochs and --train-%s exclude each other",
                       f->train_iters     ? "iters"
                       : f->train_samples ? "samples"
                                          : "tokens");
    if (f->ramp.n)
        return err_set(e, ERR_USAGE,
                       "--num-train-epochs and --rampup-batch-size exclude each other: steps of an "
                       "epoch have one length, but for the last");
    if (!u->epoch)
        return 0;
    c->ramp.epoch = u->epoch;
    int64_t each = course_epoch_steps(c);
    double steps = ceil(f->epochs * (double)each);
    if (steps * (double)c->ramp.full > (double)RAMP_MAX)
        return err_set(e, ERR_USAGE, "--num-train-epochs %g of %lld samples are too many",
                       f->epochs, (long long)u->epoch);
    c->iterations = (int64_t)steps;
    c->samples = c->iterations / each * u->epoch + c->iterations % each * c->ramp.full;
    return 0;
}

static int course_length(const struct course_flags *f, int64_t seq_length, struct course *c,
                         struct err *e)
{
    int64_t batch = c->ramp.full;
    if (f->train_iters && f->train_samples)
        return err_set(e, ERR_USAGE, "--train-iters and --train-samples exclude each other");
    if (f->train_iters && c->ramp.increment)
        return err_set(e, ERR_USAGE,
                       "--rampup-batch-size: expected --train-samples or --train-tokens, not "
                       "--train-iters, which would be steps of different lengths");
    if (f->train_samples && f->train_samples < (c->ramp.increment ? c->ramp.start : batch))
        return err_set(e, ERR_USAGE, "--train-samples %lld is less than one batch of %lld",
                       (long long)f->train_samples, (long long)batch);
    if (f->train_iters > INT64_MAX / batch)
        return err_set(e, ERR_USAGE, "--train-iters %lld of %lld samples are too many",
                       (long long)f->train_iters, (long long)batch);
    if (f->train_samples)
        steps_within(c, f->train_samples);
    else if (f->train_iters)
        *c = (struct course){
            .ramp = c->ramp, .iterations = f->train_iters, .samples = f->train_iters * batch};
    if (f->train_tokens)
        cut_at_tokens(c, f->train_tokens, seq_length);
    return 0;
}

/* ---- rates ------------------------------------------------------------------------------- */

/* One length of the schedule, of the three ways to give it the one that is given; else 0. */
static double samples_of(int64_t iters, int64_t samples, int64_t tokens, int64_t batch,
                         int64_t seq_length)
{
    if (tokens)
        return (double)tokens / (double)(FAULT("lr_tokens") ? 1 : seq_length);
    return samples ? (double)samples : (double)iters * (double)batch;
}

static void course_rates(const struct course_flags *f, int64_t batch, int64_t seq_length,
                         struct course *c)
{
    double run = samples_of(f->train_iters, f->train_samples, 0, batch, seq_length);
    double decay = samples_of(f->decay_iters, f->decay_samples, f->decay_tokens, batch, seq_length);
    if (run <= 0)
        run = f->epochs > 0 ? (double)c->samples : (double)f->train_tokens / (double)seq_length;
    c->lr =
        (struct lr){.style = (enum lr_style)f->style,
                    .rules = (enum lr_rules)f->rules,
                    .wsd_style = (enum wsd_style)f->wsd_style,
                    .max = f->lr,
                    .min = f->min_lr,
                    .init = f->warmup_init,
                    .warmup = samples_of(f->warmup_iters, f->warmup_samples, f->warmup_tokens,
                                         batch, seq_length),
                    .decay = decay > 0 ? decay : run,
                    .wsd_decay = samples_of(f->wsd_iters, f->wsd_samples, 0, batch, seq_length)};
    if (f->rules == LR_HF) {
        c->lr.warmup = (double)f->warmup_iters;
        c->lr.decay = (double)(f->decay_iters ? f->decay_iters : c->iterations);
    }
    if (f->warmup_fraction > 0)
        c->lr.warmup = f->warmup_fraction * c->lr.decay;
    if (f->rules == LR_HF)
        c->lr.warmup = ceil(c->lr.warmup);
    bool grows = f->decay_style != DECAY_CONSTANT;
    c->decay = (struct decay){.style = (enum decay_style)f->decay_style,
                              .start = grows ? f->start_decay : f->weight_decay,
                              .end = grows ? f->end_decay : f->weight_decay,
                              .samples = run};
}

int course_settle(const struct course_flags *f, const struct course_units *u, struct course *ret,
                  struct err *e)
{
    *ret = (struct course){.ramp.full = u->global_batch};
    int code = f->epochs > 0 ? epochs_length(f, u, ret, e)
                             : read_ramp(&f->ramp, u->divisor, &ret->ramp, e);
    if (!code && f->epochs <= 0)
        code = course_length(f, u->seq_length, ret, e);
    if (!code)
        course_rates(f, u->global_batch, u->seq_length, ret);
    return code;
}

int64_t course_eval_interval(const struct course *c, int64_t given)
{
    int64_t epoch = course_epoch_steps(c);
    return given ? given : epoch ? epoch : 1000;
}

int64_t course_step_of(const struct course *c, int64_t sample)
{
    struct course before = {.ramp = c->ramp};
    int64_t epoch = c->ramp.epoch;
    if (sample >= c->samples)
        return 0;
    if (epoch)
        return sample / epoch * course_epoch_steps(c) + sample % epoch / c->ramp.full + 1;
    cut_at_tokens(&before, sample + 1, 1);
    return before.iterations;
}

/* ---- what Megatron-LM asserts ------------------------------------------------------------ */

/* Lengths are given in samples, or in tokens, which are samples of one length; else in steps. */
static bool in_samples(const struct course_flags *f)
{
    return !f->train_iters && f->epochs <= 0;
}

/* In the unit that the user gave. */
static int warmup_too_long(const struct course_flags *f, struct err *e)
{
    bool samples = in_samples(f);
    const char *unit = f->warmup_tokens ? "tokens" : samples ? "samples" : "iters";
    long long warmup = f->warmup_tokens ? f->warmup_tokens
                       : samples        ? f->warmup_samples
                                        : f->warmup_iters;
    const struct {
        const char *name;
        int64_t n;
    } end[] = {{"lr-decay-tokens", f->decay_tokens}, {"lr-decay-samples", f->decay_samples},
               {"lr-decay-iters", f->decay_iters},   {"train-samples", f->train_samples},
               {"train-iters", f->train_iters},      {"train-tokens", f->train_tokens}};
    size_t i = 0;
    if (f->warmup_fraction > 0)
        return err_set(e, ERR_USAGE,
                       "--lr-warmup-fraction %g leaves the learning rate nothing to decay over",
                       f->warmup_fraction);
    while (i + 1 < sizeof(end) / sizeof(end[0]) && !end[i].n)
        i++;
    if (!end[i].n)
        return err_set(e, ERR_USAGE,
                       "--lr-warmup-%s %lld leaves the %g epochs of --num-train-epochs nothing to "
                       "decay over",
                       unit, warmup, f->epochs);
    return err_set(e, ERR_USAGE, "--lr-warmup-%s %lld must be below --%s %lld", unit, warmup,
                   end[i].name, (long long)end[i].n);
}

/* Counted in updates, from 0 and down to 0. */
static int check_hf(const struct course_flags *f, struct err *e)
{
    const struct {
        bool given;
        const char *name;
    } without[] = {{f->decay_samples, "lr-decay-samples"},
                   {f->decay_tokens, "lr-decay-tokens"},
                   {f->warmup_samples, "lr-warmup-samples"},
                   {f->warmup_tokens, "lr-warmup-tokens"},
                   {f->min_lr > 0, "min-lr"},
                   {f->warmup_init > 0, "lr-warmup-init"}};
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        if (without[i].given)
            return err_set(e, ERR_USAGE,
                           "--%s: the rates of --lr-rules hf are counted in updates, rise from 0 "
                           "and end at 0",
                           without[i].name);
    if (f->style != LR_LINEAR && f->style != LR_COSINE && f->style != LR_CONSTANT)
        return err_set(e, ERR_USAGE,
                       "--lr-rules hf: expected --lr-decay-style linear, cosine or constant");
    if (f->warmup_fraction > 0 && f->warmup_iters)
        return err_set(e, ERR_USAGE,
                       "--lr-warmup-fraction and --lr-warmup-iters exclude each "
                       "other");
    return 0;
}

static int check_units(const struct course_flags *f, struct err *e)
{
    bool samples = in_samples(f);
    bool wsd = f->style == LR_WSD;
    if (samples ? f->decay_iters || f->warmup_iters || (wsd && f->wsd_iters)
                : f->decay_samples || f->warmup_samples || (wsd && f->wsd_samples))
        return err_set(e, ERR_USAGE,
                       "with --%s the learning rate is in %s: --lr-decay-%s, --lr-warmup-%s",
                       f->train_samples ? "train-samples"
                       : samples        ? "train-tokens"
                       : f->train_iters ? "train-iters"
                                        : "num-train-epochs",
                       samples ? "samples" : "iterations", samples ? "samples" : "iters",
                       samples ? "samples" : "iters");
    if (f->decay_tokens && (f->decay_iters || f->decay_samples))
        return err_set(e, ERR_USAGE, "--lr-decay-tokens and --lr-decay-%s exclude each other",
                       f->decay_iters ? "iters" : "samples");
    if (f->warmup_tokens && (f->warmup_iters || f->warmup_samples))
        return err_set(e, ERR_USAGE, "--lr-warmup-tokens and --lr-warmup-%s exclude each other",
                       f->warmup_iters ? "iters" : "samples");
    if (f->warmup_fraction > 0 && (f->warmup_iters || f->warmup_samples || f->warmup_tokens))
        return err_set(e, ERR_USAGE, "--lr-warmup-fraction and --lr-warmup-%s exclude each other",
                       f->warmup_tokens ? "tokens"
                       : samples        ? "samples"
                                        : "iters");
    return 0;
}

static int check_decay(const struct course_flags *f, struct err *e)
{
    bool grows = f->decay_style != DECAY_CONSTANT;
    bool some = f->start_decay >= 0 || f->end_decay >= 0;
    bool both = f->start_decay >= 0 && f->end_decay >= 0;
    if (!grows && some)
        return err_set(e, ERR_USAGE,
                       "--start-weight-decay and --end-weight-decay: expected "
                       "--weight-decay-incr-style linear or cosine");
    if (grows && !both)
        return err_set(e, ERR_USAGE,
                       "--weight-decay-incr-style: expected --start-weight-decay and "
                       "--end-weight-decay");
    if (grows && f->end_decay < f->start_decay)
        return err_set(e, ERR_USAGE, "--end-weight-decay %g is below --start-weight-decay %g",
                       f->end_decay, f->start_decay);
    return 0;
}

static int check_style(const struct course_flags *f, const struct lr *lr, struct err *e)
{
    if (f->rules == LR_V1 && (f->style == LR_WSD || f->style == LR_INVERSE_SQRT))
        return err_set(e, ERR_USAGE,
                       "--lr-decay-style %s: Megatron-LM v1.1.5 (--lr-rules v1) has "
                       "no such shape",
                       f->style == LR_WSD ? "WSD" : "inverse-square-root");
    if (f->style == LR_WSD && lr->wsd_decay <= 0)
        return err_set(e, ERR_USAGE, "--lr-decay-style WSD: expected --lr-wsd-decay-%s",
                       in_samples(f) ? "samples" : "iters");
    if (f->style == LR_WSD && lr->wsd_decay > lr->decay)
        return err_set(e, ERR_USAGE, "--lr-wsd-decay-%s %lld is longer than the whole schedule",
                       in_samples(f) ? "samples" : "iters",
                       (long long)(in_samples(f) ? f->wsd_samples : f->wsd_iters));
    return 0;
}

int course_check(const struct course_flags *f, const struct course *c, struct err *e)
{
    const struct lr *lr = &c->lr;
    bool hf = f->rules == LR_HF;
    int code = hf ? check_hf(f, e) : check_units(f, e);
    if (!code)
        code = check_decay(f, e);
    if (!code)
        code = check_style(f, lr, e);
    if (code)
        return code;
    if (lr->min > lr->max)
        return err_set(e, ERR_USAGE, "--min-lr %g is above --lr %g", lr->min, lr->max);
    if (lr->init > lr->max)
        return err_set(e, ERR_USAGE, "--lr-warmup-init %g is above --lr %g", lr->init, lr->max);
    if (lr->warmup > 0 && lr->warmup >= lr->decay && !hf) /* theirs may be all warm-up */
        return warmup_too_long(f, e);
    return 0;
}
