/* SPDX-License-Identifier: Apache-2.0 */
#include "train/agree/own.h"

#include <stddef.h>
#include <string.h>

const char *const agree_own_options[] = {
    /* names of files: of tokenizer, data, model and checkpoint the contents are compared */
    "hf-config", "tokenizer", "tokenizer-model", "vocab-file", "merge-file", "data-path",
    "data-args-path", "train-data-path", "valid-data-path", "test-data-path",
    "per-split-data-args-path", "load", "job-token-file",
    /* and folders: whether there is a --save is compared */
    "save", "data-cache-path", "library-path", "tune-gemm", "export-hf",
    /* where values come from: they are compared */
    "preset", "deepspeed", "deepspeed_config", "dry-run",
    /* the machine */
    "nproc-per-node", "nnodes", "node-rank", "master-addr", "master-port", "threads", "kernels",
    "distributed-timeout-minutes", "no-index-cache", "exit-duration-in-mins",
    /* what one process does, or says */
    "no-save", "keep-checkpoints", "save-retain-interval", "override-opt_param-scheduler",
    "exit-on-missing-checkpoint", "log-dir", "log-interval", "log-throughput", "log-format",
    "metrics", "tensorboard-dir", "tensorboard-log-interval", "log-loss-scale-to-tensorboard",
    "log-timers-to-tensorboard", "log-validation-ppl-to-tensorboard", "log-memory-to-tensorboard",
    "log-world-size-to-tensorboard", "log-batch-size-to-tensorboard", "wandb-project",
    "wandb-exp-name", "wandb-entity", "wandb-group", "sample-prompt", "sample-tokens",
    "control-file", "quiet", "verbose", NULL};

bool agree_is_own(const char *option)
{
    for (const char *const *own = agree_own_options; *own; own++)
        if (!strcmp(*own, option))
            return true;
    return false;
}
