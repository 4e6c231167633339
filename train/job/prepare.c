/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/core/log.h"
#include "train/options/earlier.h"
#include "train/job/watchdog.h"
#include "train/job/job.h"
#include "train/job/checkpoint.h"

/* Samples of a share: those that the run asks for, and those in which no token comes twice. */
struct supply {
    uint64_t wanted, once;
    int64_t repeats; /* the step in which its data begin again; 0: none does */
};

/* Step in which the evaluation reads the first sample that was read before. */
static int64_t valid_repeats(const struct job *j, uint64_t once)
{
    const struct train_options *o = j->o;
    int64_t each = o->eval_iters * j->global_batch, end = j->course.iterations;
    uint64_t turn = once / (uint64_t)each; /* the evaluation that is the first to do so, from 0 */
    if (turn > (uint64_t)((end - 1) / j->eval_interval))
        return 0;
    int64_t step = ((int64_t)turn + 1) * j->eval_interval;
    return step < end ? step : end;
}

static struct supply supply_of(const struct job *j, enum part p, uint64_t wanted)
{
    struct supply s = {.wanted = wanted, .once = job_there(j, p)};
    bool all = wanted == SAMPLES_ALL;
    if (all) /* in each evaluation */
        s.wanted = s.once;
    if (p == PART_TRAIN)
        s.repeats = course_step_of(&j->course, (int64_t)s.once);
    else if (p == PART_VALID && !all)
        s.repeats = valid_repeats(j, s.once);
    else if (p == PART_TEST && s.once < s.wanted)
        s.repeats = j->course.iterations;
    return s;
}

/* A line for each share that is read. */
static void tell_supply(const struct job *j, const uint64_t wanted[PARTS])
{
    log_info("data    samples wanted  without repeats   epochs  repeats from");
    for (enum part p = 0; p < PARTS; p++) {
        struct supply s = job_ready(j, p) ? supply_of(j, p, wanted[p]) : (struct supply){0};
        char epochs[32] = "-", from[32] = "-";
        if (s.once)
            snprintf(epochs, sizeof(epochs), "%.2f", (double)s.wanted / (double)s.once);
        if (s.repeats)
            snprintf(from, sizeof(from), "step %lld", (long long)s.repeats);
        if (job_ready(j, p))
            log_info("%-6s %15llu  %15llu  %7s  %s", part_name(p), (unsigned long long)s.wanted,
                     (unsigned long long)s.once, epochs, from);
        else
            log_info("%-6s            none", part_name(p));
    }
}

/* Epochs ask for it where there is some; their run's config.toml says so, too. */
static bool needs_validation(const struct job *j)
{
    const struct train_options *o = j->o;
    bool epochs = j->course.ramp.epoch && opts_origin(j->opts, "full-validation") != FROM_FLAG;
    return (o->full_validation && !epochs) || o->keep_best || o->patience;
}

/* The shares that the run asks for. A test share that is empty is left out, as in Megatron-LM. */
static int need_shares(struct job *j, struct err *e)
{
    struct err why = {0};
    int code = job_need(j, PART_TRAIN, e);
    if (!code && job_empty(j, PART_VALID))
        code = job_need(j, PART_VALID, e);
    if (!code && needs_validation(j))
        code = job_need(j, PART_VALID, e);
    if (!code && job_empty(j, PART_TEST) && job_need(j, PART_TEST, &why))
        log_warn("%s%s%s%s; the run ends without an evaluation on it", why.msg,
                 why.hint[0] ? " (" : "", why.hint, why.hint[0] ? ")" : "");
    return code;
}

static int open_data(struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    uint64_t n[PARTS];
    int code = gpt_samples((uint64_t)j->course.iterations, (uint64_t)j->eval_interval,
                           (uint64_t)o->eval_iters, (uint64_t)j->global_batch, n, e);
    if (!code) /* what a last batch would lack counts, too: Megatron-LM's order of the samples */
        n[PART_TRAIN] =
            (uint64_t)(o->course.train_samples > j->course.samples ? o->course.train_samples
                                                                   : j->course.samples);
    if (o->full_validation)
        n[PART_VALID] = SAMPLES_ALL;
    if (!code)
        code = job_open_data(j, n, e);
    if (!code)
        code = need_shares(j, e);
    if (!code && job_is_first(j))
        tell_supply(j, n);
    return code;
}

/* Until the model is known. */
static int prepare_model(struct job *j, struct err *e)
{
    int code = job_open_manifest(j, e);
    if (!code && job_is_first(j))
        code = checkpoint_lock(j, e);
    code = job_agree(j, code, e); /* the lock makes the folder that all look into */
    if (!code)
        code = checkpoint_find(j, false, e);
    if (!code)
        code = job_open_tokenizer(j, e);
    code = job_same_start(j, code, e);
    if (!code)
        code = job_spec(j, false, e);
    if (!code)
        code = job_read_kept(j, e);
    return job_same_model(j, code, e);
}

/* The first process makes the index maps that the others find. */
static int open_data_in_turn(struct job *j, struct err *e)
{
    watchdog_enter(j, WATCH_INDEX);
    int code = job_is_first(j) ? open_data(j, e) : 0;
    code = job_agree(j, code, e);
    if (!code && !job_is_first(j))
        code = open_data(j, e);
    return job_agree(j, code, e);
}

int job_prepare(struct job *j, struct err *e)
{
    int code = job_open_world(j, e);
    if (!code)
        code = job_agree(j, watchdog_open(j, e), e);
    if (!code)
        code = job_agree(j, job_check_options(j, e), e);
    if (!code)
        code = prepare_model(j, e);
    if (!code)
        code = job_agree(j, export_check(j, e), e);
    if (!code)
        code = job_agree(j, job_count_epoch(j, e), e);
    watchdog_enter(j, WATCH_LOAD);
    if (!code)
        code = job_open_rank(j, MODEL_TRAIN, e);
    if (!code && j->ckpt && (j->ckpt_is_own || !j->o->finetune))
        code = job_agree(j,
                         earlier_compare(j->opts, j->ckpt,
                                         j->o->override_schedule || j->o->checkpoint_schedule, e),
                         e);
    if (!code)
        code = open_data_in_turn(j, e);
    bool writes = job_is_first(j) && !j->o->dry_run;
    if (!code && writes)
        code = checkpoint_set_aside(j, e);
    if (!code && writes)
        code = checkpoint_write_config(j, e);
    return job_agree(j, code, e);
}
