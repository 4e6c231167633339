/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"

#include <math.h>
#include <stdio.h>

#include "train/earlier.h"
#include "train/engine/step.h"
#include "train/start.h"

/*
 * `train eval`: the mean loss of a checkpoint over a share of the data, in the data's own shuffled
 * order, at most
 * --eval-iters batches and each token at most once.
 */

static int open_share(struct job *j, enum part part, int64_t *ret_iters, struct err *e)
{
    uint64_t n[PARTS] = {0};
    n[part] = (uint64_t)(j->o->eval_iters * j->global_batch);
    int code = n[part] ? job_open_data(j, n, e)
                       : err_set(e, ERR_USAGE, "--eval-iters 0 evaluates nothing");
    if (!code)
        code = job_need(j, part, e);
    if (code)
        return code;
    /* each token at most once: what one epoch gives, of a blend what its smallest share allows */
    uint64_t length = (uint64_t)j->seq_length, once = job_once(j, part);
    int64_t iters = (int64_t)once / j->global_batch;
    *ret_iters = iters < j->o->eval_iters ? iters : j->o->eval_iters;
    if (*ret_iters < 1)
        return err_set(e, ERR_USAGE,
                       "%s: the %s share has %llu samples of %llu tokens, fewer than one batch of "
                       "%lld",
                       j->data_name, part_name(part), (unsigned long long)once,
                       (unsigned long long)length, (long long)j->global_batch);
    return 0;
}

static void answer(const struct job *j, enum part part, int64_t iters, double loss)
{
    double ppl = exp(loss < 20 ? loss : 20);
    int64_t tokens = iters * j->global_batch * j->seq_length;
    printf("%s loss %.6f, perplexity %.4f, over %lld tokens of %s\n", part_name(part), loss, ppl,
           (long long)tokens, j->data_name);
}

int verb_eval(struct opts *opts, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    enum part part = (enum part)j.o->part;
    struct loader *in = NULL;
    int64_t iters = 0;
    double loss = 0;
    int code = job_open_manifest(&j, e);
    if (!code)
        code = start_find(&j, true, e);
    if (!code)
        code = earlier_adopt(opts, j.ckpt, e);
    if (!code)
        code = job_open_tokenizer(&j, e);
    if (!code)
        code = job_spec(&j, true, e);
    if (!code)
        code = job_open_rank(&j, MODEL_EVAL, e);
    if (!code)
        code = open_share(&j, part, &iters, e);
    if (!code) {
        struct batch_layout l = job_layout(&j);
        struct feed f = job_feed(&j, part);
        code = loader_create(&f, &l, 0, 4, &in, e);
    }
    if (!code)
        code = step_evaluate(&j.rank, in, iters * j.rank.config.micros, &loss, e);
    if (!code)
        answer(&j, part, iters, loss);
    loader_destroy(in);
    job_close(&j);
    return code;
}
