/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"

#include <stdio.h>

#include "train/engine/fit.h"

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
    if (!code) {
        double tokens = (double)j.global_batch * (double)j.seq_length;
        rank_describe(&j.rank, &b);
        printf("parameters      %lld\n", (long long)j.rank.params.parameters);
        if (j.layout.mesh.pp > 1) {
            struct buf stages = {0};
            stages_describe(&j.layout, j.spec.layers, &stages);
            printf("stages          %s layers on %d processes\n", buf_str(&stages),
                   j.layout.mesh.pp);
            buf_finish(&stages);
        }
        printf("memory          %s\n", buf_str(&b));
        printf("step            %lld sequences of %lld tokens in %lld micro-batches\n",
               (long long)j.global_batch, (long long)j.seq_length, (long long)j.micros);
        printf("operations      %.3f GFLOP a step, %.3f GFLOP a token\n",
               plan_flops(&j.rank.plan) / 1e9, plan_flops(&j.rank.plan) / 1e9 / tokens);
        for (int i = 0; i < OP_COUNT; i++)
            if (j.rank.plan.op[i].calls)
                printf("  %-14s%8llu calls %12.3f GFLOP %10.3f GB\n", op_name((enum op)i),
                       (unsigned long long)j.rank.plan.op[i].calls, j.rank.plan.op[i].flops / 1e9,
                       j.rank.plan.op[i].bytes / 1e9);
        struct mem_limit limit[MEM_LIMITS];
        code = fit_check(&j.rank, limit, mem_limits("/proc", "/sys/fs/cgroup", limit), e);
    }
    buf_finish(&b);
    job_close(&j);
    return code;
}
