/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/compat.h"

/*
 * A mark is a name that its version has and Megatron core does not (tests/cli/seeds has the lists),
 * and that is not the name of an option here: the meaning of our own names does not depend on
 * others. --deepspeed excepted, by which a script says whose it is.
 */

/* --batch-size is a name that people of many trainers write: it counts beside another one of
 * v1.1.5's scripts. */
static const char *const v115_marks[][2] = {
    {"model-parallel-size", NULL},
    {"pipe-parallel-size", NULL},
    {"warmup", NULL},
    {"min-scale", NULL},
    {"batch-size", "data-impl"},
    {"batch-size", "checkpoint-activations"},
    {"batch-size", "distributed-backend"},
    {"num-unique-layers", NULL},
    {"param-sharing-style", NULL},
    {"fp32-allreduce", NULL},
    {"bias-dropout-fusion", NULL},
    {"scaled-masked-softmax-fusion", NULL},
    {"scaled-upper-triang-masked-softmax-fusion", NULL},
    {NULL, NULL},
};

/* Those that v1.1.5's scripts for DeepSpeed have, too, are known by v1.1.5's marks beside them. */
static const char *const deepspeed_marks[][2] = {
    {"deepspeed", NULL},
    {"deepscale", NULL},
    {"no-pipeline-parallel", NULL},
    {"deepspeed-activation-checkpointing", NULL},
    {"partition-activations", NULL},
    {"contigious-checkpointing", NULL},
    {"checkpoint-in-cpu", NULL},
    {"synchronize-each-layer", NULL},
    {"profile-backward", NULL},
    {"zero-allgather-bucket-size", NULL},
    {"zero-contigious-gradients", NULL},
    {"zero-reduce-bucket-size", NULL},
    {"zero-reduce-scatter", NULL},
    {"use-flash-attn-v1", NULL},
    {"use-flash-attn-v2", NULL},
    {"use-flash-attn-triton", NULL},
    {"log-optimizer-states-to-tensorboard", NULL},
    {"no-log-learnig-rate-to-tensorboard", NULL},
    {"universal-checkpoint", NULL},
    {"no-load-lr-state", NULL},
    {"reset-iteration", NULL},
    {"disable-mem-efficient-ln", NULL},
    {"ds-sequence-parallel-size", NULL},
    {"force-ds-sequence-parallel", NULL},
    {"moe-expert-parallel-size", NULL},
    {"moe-loss-coeff", NULL},
    {"moe-train-capacity-factor", NULL},
    {"moe-eval-capacity-factor", NULL},
    {"moe-min-capacity", NULL},
    {"mlp-type", NULL},
    {"topk", NULL},
    {"expert-interval", NULL},
    {"disable-moe-token-dropping", NULL},
    {"create-moe-param-group", NULL},
    {"enable-expert-tensor-parallelism", NULL},
    {"use-tutel", NULL},
    {"random-ltd", NULL},
    {"data-efficiency-curriculum-learning", NULL},
    {"return-data-index", NULL},
    {"aml-data-download-path", NULL},
    {"ds-inference", NULL},
    {"remote-device", NULL},
    {"use-pin-memory", NULL},
    {"scattered-embeddings", NULL},
    {"split-transformers", NULL},
    {"memory-centric-tiled-linear", NULL},
    {"tile-factor", NULL},
    {"kd", NULL},
    {"mos", NULL},
    {NULL, NULL},
};

static const char *const core[][2] = {
    {"lr-rules", "core"}, {"data-rules", "core"}, {"log-format", "megatron-core"}, {NULL, NULL}};
static const char *const v115[][2] = {
    {"lr-rules", "v1"}, {"data-rules", "v1"}, {"log-format", "megatron-v1"}, {NULL, NULL}};
static const char *const deepspeed[][2] = {{"lr-rules", "core"},
                                           {"data-rules", "deepspeed"},
                                           {"log-format", "megatron-deepspeed"},
                                           {NULL, NULL}};

const struct opt_dialect train_dialects[] = {
    {"core", "Megatron core", NULL, core},
    {"v1.1.5", "Megatron-LM v1.1.5", v115_marks, v115},
    {"megatron-deepspeed", "Megatron-DeepSpeed", deepspeed_marks, deepspeed},
    {NULL, NULL, NULL, NULL},
};
