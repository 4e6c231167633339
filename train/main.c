/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/cli/stdout.h"
#include "train/comm/comm.h"
#include "train/deepspeed/deepspeed.h"
#include "train/verbs.h"
#include "train/job/ranks.h"
#include "train/options/rules.h"
#include "train/ops/ops.h"
#include "train/tensor/dev.h"
#if WEFT_CUDA
#include "train/comm/cuda/comm_nccl.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"
#endif

#if WEFT_CUDA
static int open_nccl(struct comm *c, struct dev *d, const char *library_path, struct err *e)
{
    return comm_nccl_open(c, d, &(struct comm_nccl_options){.library_path = library_path}, e);
}
#endif

/* What a rank of this program runs on, the fastest first. */
static const struct rank_backends backends[] = {
#if WEFT_CUDA
    {.name = "cuda",
     .describe_device = dev_cuda_describe,
     .open_device = dev_cuda_start,
     .assume_device = dev_cuda_assume,
     .init_ops = ops_cuda_open,
     .open_comm = open_nccl},
#endif
    {.name = "cpu",
     .describe_device = dev_host_describe,
     .open_device = dev_host_start,
     .init_ops = ops_cpu_open},
};

/*
 * A published patch of Megatron-LM puts SGD-SaI where its --optimizer sgd was. Scripts for it have
 * Adam's options, too, and no momentum of SGD's.
 */
static void tell_sgd(const struct opts *o, const struct train_options *v)
{
    bool given = o->verb == VERB_RUN && opts_origin(o, "optimizer") == FROM_FLAG;
    if (given && v->optimizer == OPTIMIZER_SGD && opts_origin(o, "sgd-momentum") == FROM_DEFAULT &&
        (opts_origin(o, "adam-beta1") == FROM_FLAG || opts_origin(o, "adam-beta2") == FROM_FLAG))
        log_warn("--optimizer sgd, beside options of Adam, is SGD with momentum: where a patch of "
                 "Megatron-LM puts SGD-SaI in its place, that is --optimizer sgd-sai here");
}

/* What names of other programs mean here, told by the first process or its launcher. */
static void tell_names(const struct opts *o, const struct train_options *v,
                       const struct launch_place *place)
{
    if (place->rank || place->spawned)
        return;
    opts_tell_dialect(o);
    tell_sgd(o, v);
}

/* A file of DeepSpeed's may say what options do not; a dry run tells of both. */
static int read_deepspeed(struct opts *o, const struct train_options *v, bool tells, struct err *e)
{
    bool asked =
        v->deepspeed && v->deepspeed_config && (o->verb == VERB_RUN || o->verb == VERB_PLAN);
    int code = asked ? deepspeed_apply(o, v->deepspeed_config, tells ? stdout : NULL, e) : 0;
    if (!tells)
        return code;
    tell_names(o, v, &(struct launch_place){.world = 1});
    struct err other;
    int failed = opts_dry_run(o, NULL, NULL, stdout, code ? &other : e);
    return code ? code : failed;
}

static struct train_options no_options(int argc, char **argv, const struct job_world *world)
{
    return (struct train_options){.backends = backends,
                                  .nbackends = (int)(sizeof(backends) / sizeof(backends[0])),
                                  .world = world,
                                  .argc = argc,
                                  .argv = argv};
}

#define NAME_FUNCTION(verb, function) [VERB_##verb] = (function),

int main(int argc, char **argv)
{
    static int (*const verb[])(struct opts *, struct err *) = {VERB_LIST(NAME_FUNCTION)};
    struct job_world world = {.ranks = 1};
    struct launch_place place = {.world = 1};
    struct ranks ranks = {0};
    int ended = -1;
    struct train_options values = no_options(argc, argv, &world);
    struct opts o = {0};
    struct err e = {0};
    signal(SIGUSR2, SIG_IGN); /* asks for a checkpoint: ignored until there is a loop to save one */
    stdio_begin(false);
    int code = launch_place(&place, environ, &e);
    if (place.rank || place.spawned) /* of options, the first process or its launcher warns */
        log_set_level(LOG_ERROR);
    if (!code)
        code = opts_init(&o, &train_table, &values, argc, argv, &e);
    if (!code) {
        spec_flags_note(&values.model, &o);
        code = spec_flags_fill(&values.model, &o, &e);
    }
    if (!code)
        code = rules_apply(&o, &e);
    bool told = code && place.rank > 0; /* bad options: the first process says so */
    if (!code)
        code = read_deepspeed(&o, &values, values.dry_run && !place.rank && !place.spawned, &e);
    if (!code && !opts_answer(&o, stdout)) {
        if (!values.dry_run) /* which has said more of them */
            opts_warn_foreign(&o);
        log_set_level(values.common.quiet     ? LOG_WARN
                      : values.common.verbose ? LOG_DEBUG
                                              : LOG_INFO);
        tell_names(&o, &values, &place);
        if (o.verb == VERB_RUN)
            code = ranks_start(&values, &place, argv, &ended, &e);
        if (!code && ended < 0)
            code = ranks_meet(&ranks, &values, &place, &world, &e);
        world.local = place.local_rank < 0 ? world.rank : place.local_rank;
        world.locals = place.local_world < 0 ? world.ranks : place.local_world;
        if (world.rank) { /* the first process speaks for all */
            log_set_rank(world.rank);
            if (!values.log_dir || !place.spawned) /* else to its file alone */
                log_set_level(LOG_ERROR);
        }
        if (!code && ended < 0)
            code = verb[o.verb](&o, &e);
    }
    if (!code)
        code = stdout_finish(&e);
    if (code && e.msg[0] && !told) /* a run that was asked to stop has said so itself */
        log_err(&e);
    opts_finish(&o);
    ranks_leave(&ranks);
    return ended > 0 ? ended : code;
}
