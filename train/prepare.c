/* SPDX-License-Identifier: Apache-2.0 */
#include "train/earlier.h"
#include "train/guard.h"
#include "train/job.h"
#include "train/start.h"

static int need_full(const struct job *j, struct err *e)
{
    int code = job_need(j, PART_VALID, e);
    if (!code && job_once(j, PART_VALID) < (uint64_t)j->o->micro_batch)
        code = err_set(e, ERR_USAGE,
                       "--full-validation: the validation share has %llu samples, fewer than one "
                       "micro-batch of %lld",
                       (unsigned long long)job_once(j, PART_VALID), (long long)j->o->micro_batch);
    return code;
}

static int open_data(struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    uint64_t n[PARTS];
    int code = gpt_samples((uint64_t)j->course.iterations, (uint64_t)o->eval_interval,
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
        code = job_need(j, PART_TRAIN, e);
    for (enum part p = PART_VALID; !code && p < PARTS; p++)
        if (job_empty(j, p))
            code = job_need(j, p, e);
    if (!code && o->full_validation)
        code = need_full(j, e);
    return code;
}

/* Until the model is known. */
static int prepare_model(struct job *j, struct err *e)
{
    int code = job_open_manifest(j, e);
    if (!code && job_is_first(j))
        code = start_lock(j, e);
    code = job_agree(j, code, e); /* the lock makes the folder that all look into */
    if (!code)
        code = start_find(j, false, e);
    if (!code)
        code = job_open_tokenizer(j, e);
    if (!code)
        code = job_spec(j, false, e);
    if (!code)
        code = job_read_kept(j, e);
    return job_agree(j, code, e);
}

/* The first process makes the index maps that the others find. */
static int open_data_in_turn(struct job *j, struct err *e)
{
    guard_enter(j, WATCH_INDEX);
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
        code = job_agree(j, guard_open(j, e), e);
    if (!code)
        code = job_agree(j, start_need(j, e), e);
    if (!code)
        code = prepare_model(j, e);
    if (!code)
        code = job_agree(j, export_check(j, e), e);
    guard_enter(j, WATCH_LOAD);
    if (!code)
        code = job_open_rank(j, MODEL_TRAIN, e);
    if (!code && j->ckpt && (j->ckpt_is_own || !j->o->finetune))
        code = job_agree(j,
                         earlier_compare(j->opts, j->ckpt,
                                         j->o->override_schedule || j->o->checkpoint_schedule, e),
                         e);
    if (!code)
        code = open_data_in_turn(j, e);
    if (!code && job_is_first(j))
        code = start_set_aside(j, e);
    if (!code && job_is_first(j))
        code = start_write_config(j, e);
    return job_agree(j, code, e);
}
