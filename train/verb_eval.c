/* SPDX-License-Identifier: Apache-2.0 */
#include "train/verbs.h"

#include <math.h>
#include <stdio.h>

#include "train/options/earlier.h"
#include "train/engine/step.h"
#include "train/job/checkpoint.h"

/*
 * `train eval`: the mean loss of a checkpoint over a share of the data. With the data and batches
 * of its run, which it takes over, it evaluates what the run did at that step, and repeats its
 * number. With others: at most --eval-iters batches in the data's own shuffled order, each token at
 * most once.
 */

struct share {
    enum part part;
    struct stretch at;
    bool repeats; /* what the run evaluated */
};

/* The data as the run had them: in their order, which depends on how many samples are taken. */
static int open_as_run(struct job *j, const struct earlier_run *was, struct share *s, struct err *e)
{
    uint64_t all[PARTS], n[PARTS] = {0};
    int code = gpt_samples((uint64_t)was->iterations, (uint64_t)was->eval_interval,
                           (uint64_t)j->o->eval_iters, (uint64_t)j->global_batch, all, e);
    if (code)
        return code;
    n[s->part] = s->part == PART_VALID && was->full_validation ? SAMPLES_ALL : all[s->part];
    code = job_open_data(j, n, e);
    if (!code)
        code = job_need(j, s->part, e);
    if (!code)
        s->at = job_stretch(j, s->part, ckpt_meta(j->ckpt)->iteration, was->eval_interval,
                            was->full_validation);
    return code;
}

static int open_once(struct job *j, struct share *s, struct err *e)
{
    uint64_t n[PARTS] = {0};
    n[s->part] = (uint64_t)(j->o->eval_iters * j->global_batch);
    int code = job_open_data(j, n, e);
    if (!code)
        code = job_need(j, s->part, e);
    if (code)
        return code;
    /* each token at most once: what one epoch gives, of a blend what its smallest share allows */
    uint64_t length = (uint64_t)j->seq_length, once = job_once(j, s->part);
    int64_t iters = (int64_t)once / j->global_batch;
    iters = iters < j->o->eval_iters ? iters : j->o->eval_iters;
    s->at = (struct stretch){.passes = iters * j->micros};
    if (iters < 1)
        return err_set(e, ERR_USAGE,
                       "%s: the %s share has %llu samples of %llu tokens, fewer than one batch of "
                       "%lld",
                       j->data_name, part_name(s->part), (unsigned long long)once,
                       (unsigned long long)length, (long long)j->global_batch);
    return 0;
}

static int open_share(struct job *j, struct share *s, struct err *e)
{
    struct earlier_run was;
    const struct earlier_now now = {j->data_digest, j->global_batch, j->o->micro_batch,
                                    j->seq_length, j->epoch};
    if (!j->o->eval_iters)
        return err_set(e, ERR_USAGE, "--eval-iters 0 evaluates nothing");
    if (!j->ckpt) /* a model of Hugging Face, which no run evaluated */
        return open_once(j, s, e);
    int code = earlier_evaluated(j->opts, j->ckpt, &now, &was, e);
    if (code)
        return code;
    s->repeats = was.same && s->part != PART_TRAIN;
    return s->repeats ? open_as_run(j, &was, s, e) : open_once(j, s, e);
}

static void answer(const struct job *j, const struct share *s, double loss)
{
    double ppl = exp(loss < 20 ? loss : 20);
    int64_t rows = s->at.passes * j->o->micro_batch;
    int64_t tokens = (s->at.all ? (int64_t)s->at.all : rows) * j->seq_length;
    printf("%s loss %.6f, perplexity %.4f, over %lld tokens of %s%s\n", part_name(s->part), loss,
           ppl, (long long)tokens, j->data_name, s->repeats ? ", as the run evaluated them" : "");
}

static int prepare(struct job *j, struct err *e)
{
    int code = job_open_world(j, e);
    if (!code)
        code = checkpoint_find(j, true, e);
    if (!code && j->ckpt)
        code = earlier_adopt(j->opts, j->ckpt, e);
    if (!code)
        code = job_open_manifest(j, e);
    if (!code)
        code = job_open_tokenizer(j, e);
    if (!code)
        code = job_spec(j, true, e);
    return code ? code : job_open_rank(j, MODEL_EVAL, e);
}

int verb_eval(struct opts *opts, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    struct share s = {.part = (enum part)j.o->part};
    struct loader *in = NULL;
    double loss = 0;
    int code = prepare(&j, e);
    if (!code)
        code = open_share(&j, &s, e);
    if (!code) {
        struct batch_layout l = job_stretch_layout(&j, &s.at);
        struct feed f = job_feed(&j, s.part);
        code = loader_create(&f, &l, s.at.from, 4, &in, e);
    }
    if (!code)
        code = step_evaluate(&j.rank, in, s.at.passes, &loss, e);
    if (!code)
        answer(&j, &s, loss);
    loader_destroy(in);
    job_close(&j);
    return code;
}
