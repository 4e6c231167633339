/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"

#include <stdio.h>

#include "train/plan_report.h"

/* The data are looked at for the tokenizer that they were made with, and whether they are packed.
 */
static bool names_data(const struct train_options *o)
{
    const struct data_flags *d = &o->data;
    return d->path.n || d->args_path || d->parts_path || d->part[PART_TRAIN].n ||
           d->part[PART_VALID].n || d->part[PART_TEST].n;
}

/*
 * `train plan`: what the options would need, by running the step's code over unbound memory. What
 * does not fit here is planned and printed all the same, and then is the error.
 */
int verb_plan(struct opts *opts, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    struct buf b = {0};
    int code = job_open_world(&j, e);
    if (!code && names_data(j.o))
        code = job_open_manifest(&j, e);
    if (!code)
        code = job_open_tokenizer(&j, e);
    if (!code)
        code = job_spec(&j, false, e);
    if (!code)
        code = job_plan_rank(&j, e);
    struct plan_report p = {0};
    if (!code)
        code = plan_report_make(&p, &j, e);
    if (!code) {
        if (j.o->json)
            plan_report_json(&p, &b);
        else
            plan_report_text(&p, &b);
        fputs(buf_str(&b), stdout);
        code = plan_report_fit(&p, e);
    }
    plan_report_close(&p);
    buf_finish(&b);
    job_close(&j);
    return code;
}
