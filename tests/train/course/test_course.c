/* SPDX-License-Identifier: Apache-2.0 */
#include "train/course/course.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/course/schedules.h"

enum { BATCH = 4, LENGTH = 100, EPOCH = 10 };

static struct course settle(const struct course_flags *f)
{
    struct err e;
    struct course c;
    T_OK(course_settle(f, &(struct course_units){BATCH, 2, LENGTH, EPOCH}, &c, &e), &e);
    return c;
}

/* Every row of the table that Megatron-LM's own schedulers made. */
static void rates_are_megatrons(void)
{
    for (size_t i = 0; i < sizeof(schedules) / sizeof(schedules[0]); i++) {
        struct lr lr = {.style = schedules[i].style,
                        .rules = schedules[i].rules,
                        .wsd_style = schedules[i].wsd_style,
                        .max = schedules[i].max,
                        .min = schedules[i].min,
                        .init = schedules[i].init,
                        .warmup = schedules[i].warmup,
                        .decay = schedules[i].decay,
                        .wsd_decay = schedules[i].wsd};
        struct decay wd = {schedules[i].decay_style, schedules[i].start, schedules[i].end,
                           schedules[i].run};
        T_NEAR(lr_at(&lr, schedules[i].at), schedules[i].lr, 1e-18);
        T_NEAR(decay_at(&wd, schedules[i].at), schedules[i].weight_decay, 1e-15);
    }
}

static void tokens_are_megatron_deepspeeds(void)
{
    for (size_t i = 0; i < sizeof(by_tokens) / sizeof(by_tokens[0]); i++) {
        struct course_flags f = {.train_samples = 400,
                                 .lr = 1.5e-4,
                                 .min_lr = 1e-5,
                                 .style = (int)by_tokens[i].style,
                                 .decay_tokens = by_tokens[i].decay_tokens,
                                 .warmup_samples = by_tokens[i].warmup_samples,
                                 .warmup_tokens = by_tokens[i].warmup_tokens};
        struct course c;
        struct err e;
        T_OK(course_settle(&f, &(struct course_units){BATCH, 2, by_tokens[i].length, 0}, &c, &e),
             &e);
        T_NEAR(lr_at(&c.lr, by_tokens[i].at), by_tokens[i].lr, 1e-18);
    }
}

static void lengths_are_samples(void)
{
    struct course c = settle(&(struct course_flags){.train_iters = 10, .warmup_iters = 2});
    T_EQ(c.iterations, 10);
    T_EQ(c.samples, 40);
    T_NEAR(c.lr.warmup, 8, 0);
    T_NEAR(c.lr.decay, 40, 0);
    c = settle(&(struct course_flags){.train_samples = 43, .warmup_fraction = 0.1});
    T_EQ(c.iterations, 10);
    T_NEAR(c.lr.decay, 43, 0);
    T_NEAR(c.lr.warmup, 4.3, 1e-12);
    c = settle(&(struct course_flags){.train_tokens = 4001}); /* 41 samples: 11 steps */
    T_EQ(c.iterations, 11);
    T_NEAR(c.lr.decay, 40.01, 1e-12);
    c = settle(&(struct course_flags){.train_iters = 100, .train_tokens = 4000});
    T_EQ(c.iterations, 10);
    T_NEAR(c.lr.decay, 400, 0);
    c = settle(&(struct course_flags){.train_iters = 3, .train_tokens = 4000});
    T_EQ(c.iterations, 3);
}

/* Three steps to an epoch of ten samples, the third of two; the whole is rounded up to a step. */
static void epochs_are_transformers(void)
{
    static const struct {
        double epochs;
        int64_t iterations, samples;
    } want[] = {{1, 3, 10}, {2, 6, 20}, {0.1, 1, 4}, {0.5, 2, 8}, {2.5, 8, 28}, {2.7, 9, 30}};
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct course c = settle(&(struct course_flags){.epochs = want[i].epochs});
        T_EQ(c.iterations, want[i].iterations);
        T_EQ(c.samples, want[i].samples);
        T_EQ(course_epoch_steps(&c), 3);
    }
    struct course c = settle(&(struct course_flags){.epochs = 3, .warmup_iters = 2});
    T_NEAR(c.lr.warmup, 8, 0);
    T_NEAR(c.lr.decay, 30, 0);
    T_EQ(ramp_at(&c.ramp, 4), 4);
    T_EQ(ramp_at(&c.ramp, 8), 2);
    T_EQ(ramp_at(&c.ramp, 10), 4);
    T_EQ(ramp_at(&c.ramp, 28), 2);
    T_EQ(course_step_of(&c, 9), 3);
    T_EQ(course_step_of(&c, 10), 4);
    T_EQ(course_step_of(&c, 29), 9);
    T_EQ(course_step_of(&c, 30), 0);
    struct err e; /* train plan does not know the data */
    struct course_flags f = {.epochs = 2};
    T_OK(course_settle(&f, &(struct course_units){BATCH, 2, LENGTH, 0}, &c, &e), &e);
    T_EQ(c.iterations, 0);
}

/* Updates, of which a fraction is rounded up. */
static void rates_of_transformers_are_in_updates(void)
{
    static const struct {
        struct course_flags f;
        double warmup, decay;
    } want[] = {{{.epochs = 3, .warmup_fraction = 0.1}, 1, 9},
                {{.epochs = 3, .warmup_fraction = 0.34}, 4, 9},
                {{.epochs = 2.5, .warmup_iters = 2}, 2, 8},
                {{.train_samples = 43, .warmup_fraction = 0.25}, 3, 10},
                {{.train_iters = 10, .warmup_fraction = 0.3}, 3, 10},
                {{.train_iters = 10, .decay_iters = 7, .warmup_fraction = 0.5}, 4, 7},
                {{.train_iters = 1, .warmup_iters = 5}, 5, 1}};
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct course_flags f = want[i].f;
        struct err e;
        f.rules = LR_HF;
        f.lr = 1;
        f.start_decay = f.end_decay = -1;
        struct course c = settle(&f);
        T_NEAR(c.lr.warmup, want[i].warmup, 0);
        T_NEAR(c.lr.decay, want[i].decay, 0);
        T_OK(course_check(&f, &c, &e), &e);
    }
}

/* Sizes by Megatron-LM core's rule: 2 to 8 by 2 over 30 samples, 10 for each size; the last one
 * that begins at a whole share comes a step early. */
static void the_batch_grows(void)
{
    const char *item[] = {"2", "2", "30"};
    static const int64_t want[] = {2, 2, 2, 2, 2, 4, 4, 4, 6, 6, 8, 8};
    struct course_flags f = {.train_samples = 70, .ramp = {item, 3}};
    struct course c;
    struct err e;
    int64_t seen = 0, steps = 0;
    T_OK(course_settle(&f, &(struct course_units){8, 2, LENGTH, 0}, &c, &e), &e);
    for (; steps < 12; steps++) {
        T_EQ(ramp_at(&c.ramp, seen), want[steps]);
        seen += want[steps];
    }
    T_EQ(c.iterations, 14); /* 34 samples in 10 steps, then 4 of 8 */
    T_EQ(c.samples, 66);
    f.train_samples = 0;
    f.train_tokens = 1500; /* 15 samples */
    T_OK(course_settle(&f, &(struct course_units){8, 2, LENGTH, 0}, &c, &e), &e);
    T_EQ(c.iterations, 7);
    T_EQ(c.samples, 18);
}

/* A ramp of stages that are counted at once takes the steps that are counted one by one. */
static void long_ramps_are_counted(void)
{
    const char *item[] = {"2", "2", "1000000000000000"}, *some[] = {"2", "2", "99991"};
    struct course_flags f = {.train_samples = 1000000000000000, .ramp = {item, 3}};
    struct course c;
    struct err e;
    int64_t steps = 0, seen = 0;
    T_OK(course_settle(&f, &(struct course_units){8, 2, LENGTH, 0}, &c, &e), &e);
    T_CHECK(c.iterations > 200000000000000 && c.samples >= f.train_samples);
    for (f = (struct course_flags){.train_samples = 120001, .ramp = {some, 3}}; seen <= 99991;
         steps++)
        seen += ramp_at(&(struct ramp){2, 2, 99991, 8}, seen);
    T_OK(course_settle(&f, &(struct course_units){8, 2, LENGTH, 0}, &c, &e), &e);
    T_EQ(c.iterations, steps + (f.train_samples - seen) / 8);
    T_EQ(c.samples, seen + (f.train_samples - seen) / 8 * 8);
}

static void refuses(const struct course_flags *f, const char *words)
{
    struct err e;
    struct course c;
    struct course_flags given = *f;
    given.lr = 1;
    given.start_decay = f->start_decay > 0 ? f->start_decay : -1;
    given.end_decay = f->end_decay > 0 ? f->end_decay : -1;
    int code = course_settle(&given, &(struct course_units){BATCH, 2, LENGTH, EPOCH}, &c, &e);
    if (!code)
        code = course_check(&given, &c, &e);
    T_EQ(code, ERR_USAGE);
    T_CHECK(strstr(e.msg, words));
}

#define REFUSES(words, ...) refuses(&(struct course_flags){__VA_ARGS__}, words)

static void what_does_not_go_together_is_refused(void)
{
    const char *odd[] = {"3", "1", "30"}, *two[] = {"2", "2"}, *far[] = {"2", "4", "30"},
               *ramp[] = {"2", "2", "30"}, *large[] = {"2", "2", "1000000000000001"},
               *huge[] = {"2", "2", "99999999999999999999"};
    REFUSES("exclude each other", .train_iters = 1, .train_samples = 8);
    REFUSES("--num-train-epochs and --train-iters exclude", .epochs = 1, .train_iters = 1);
    REFUSES("--num-train-epochs and --train-samples exclude", .epochs = 1, .train_samples = 4);
    REFUSES("--num-train-epochs and --train-tokens exclude", .epochs = 1, .train_tokens = 400);
    REFUSES("--num-train-epochs and --rampup-batch-size exclude", .epochs = 1, .ramp = {ramp, 3});
    REFUSES("are too many", .epochs = 1e15);
    REFUSES("with --num-train-epochs the learning rate is in iterations", .epochs = 1,
            .warmup_samples = 4);
    REFUSES("--lr-warmup-iters 3 leaves the 1 epochs", .epochs = 1, .warmup_iters = 3);
    REFUSES("--min-lr: the rates of --lr-rules hf", .train_iters = 9, .rules = LR_HF, .min_lr = 1);
    REFUSES("--lr-warmup-init: the rates", .train_iters = 9, .rules = LR_HF, .warmup_init = 1);
    REFUSES("--lr-warmup-samples: the rates", .epochs = 1, .rules = LR_HF, .warmup_samples = 1);
    REFUSES("--lr-decay-tokens: the rates", .epochs = 1, .rules = LR_HF, .decay_tokens = 1);
    REFUSES("expected --lr-decay-style linear, cosine or constant", .epochs = 1, .rules = LR_HF,
            .style = LR_WSD);
    REFUSES("--lr-warmup-fraction and --lr-warmup-iters", .epochs = 1, .rules = LR_HF,
            .warmup_fraction = 0.1, .warmup_iters = 1);
    REFUSES("in iterations", .train_iters = 9, .style = LR_WSD, .wsd_samples = 8);
    REFUSES("in samples", .train_samples = 9, .decay_iters = 8);
    REFUSES("--lr-decay-tokens and", .train_samples = 9, .decay_tokens = 8, .decay_samples = 4);
    REFUSES("--lr-warmup-tokens and", .train_samples = 9, .warmup_tokens = 8, .warmup_samples = 4);
    REFUSES("must be below --lr-decay-tokens 800", .train_samples = 90, .warmup_tokens = 800,
            .decay_tokens = 800);
    REFUSES("has no such shape", .train_iters = 9, .rules = LR_V1, .style = LR_WSD, .wsd_iters = 1);
    REFUSES("expected --lr-wsd-decay-iters", .train_iters = 9, .style = LR_WSD);
    REFUSES("longer than the whole", .train_iters = 9, .style = LR_WSD, .wsd_iters = 10);
    REFUSES("incr-style linear or cosine", .train_iters = 9, .end_decay = 0.1);
    REFUSES("expected --start-weight-decay", .train_iters = 9, .decay_style = DECAY_LINEAR);
    REFUSES("is below", .train_iters = 9, .decay_style = DECAY_LINEAR, .start_decay = 1,
            .end_decay = 0.5);
    REFUSES("--lr-warmup-init 2 is above", .train_iters = 9, .warmup_init = 2, .warmup_iters = 1);
    REFUSES("not --train-iters", .train_iters = 9, .ramp = {ramp, 3});
    REFUSES("expected multiples of 2", .train_samples = 90, .ramp = {odd, 3});
    REFUSES("three numbers", .train_samples = 90, .ramp = {two, 2});
    REFUSES("at most 10^15", .train_samples = 90, .ramp = {large, 3});
    REFUSES("at most 10^15", .train_samples = 90, .ramp = {huge, 3});
    REFUSES("cannot be reached", .train_samples = 90, .ramp = {far, 3});
}

T_MAIN(T_CASE(rates_are_megatrons), T_CASE(tokens_are_megatron_deepspeeds),
       T_CASE(lengths_are_samples), T_CASE(epochs_are_transformers),
       T_CASE(rates_of_transformers_are_in_updates), T_CASE(the_batch_grows),
       T_CASE(long_ramps_are_counted), T_CASE(what_does_not_go_together_is_refused))
