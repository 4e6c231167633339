/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_OPTIONS_H
#define TRAIN_OPTIONS_OPTIONS_H

/*
 * The option table of `train`: Megatron-LM's names, meanings and defaults (core_v0.12.3) where it
 * has them. Verbs are VERB_...; values land in struct train_options.
 */

#include "base/cli/opt.h"
#include "dataset/sample/options.h"
#include "tok/tokenizer/options.h"
#include "train/options/course.h"
#include "train/options/report.h"
#include "train/spec/options.h"
#include "train/engine/precision.h"
#include "train/optim/choice.h"
#include "train/options/stages.h"

/* The verbs, in the order of help: a row for each, with its function in verb_NAME.c
 * (train/verbs.h); options.c has their texts. */
#define VERB_LIST(X)                                                                               \
    X(RUN, verb_run) X(EVAL, verb_eval) X(GENERATE, verb_generate) X(PLAN, verb_plan)

#define VERB_MEMBER(verb, function) VERB_##verb,
enum { VERB_LIST(VERB_MEMBER) };

struct rank_backends;

/* In the order of the option's choices. */
enum train_recipe { RECIPE_NONE, RECIPE_LLM_JP_SFT, RECIPE_TRL };

enum train_device { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };

struct train_options {
    struct opt_common common;
    struct spec_flags model;
    struct tok_flags tokenizer;
    bool tokenizer_differs;
    /* data */
    struct data_flags data;
    bool mock_data;
    const char *split;
    int64_t seq_length, global_batch, micro_batch;
    int64_t accumulation; /* micro-batches of a data-parallel process; 0: not given */
    bool no_index_cache;
    double fim_rate, fim_spm_rate;
    const char *fim_prefix, *fim_middle, *fim_suffix;
    bool eod_mask_loss, reset_position_ids, reset_attention_mask;
    /* length and learning rate */
    struct course_flags course;
    int recipe; /* enum train_recipe */
    bool pad_in_loss, freeze_pad;
    double neftune;
    double clip_grad, beta1, beta2, adam_eps;
    int optimizer; /* enum optimizer */
    double sgd_momentum;
    struct optim_tuning tuning;
    int64_t seed;
    /* checkpoints */
    const char *save, *load;
    const char *export_hf, *test_prompt;
    bool resize_vocab;
    int64_t save_interval, keep, keep_best, patience, ckpt_step, file_size;
    bool no_save, async_save, finetune, exit_on_missing;
    bool no_load_optim, no_save_optim, checkpoint_args, override_schedule, checkpoint_schedule;
    int64_t retain; /* 0: not given */
    /* evaluation and log */
    int64_t eval_interval, eval_iters, log_interval;
    bool full_validation;
    bool log_throughput;
    int log_format; /* enum log_format */
    const char *metrics;
    struct report_flags report;
    int part; /* eval: enum part */
    /* generation */
    const char *prompt, *chat;
    int64_t max_new, top_k, samples;
    double temperature, top_p;
    bool ignore_eod;
    /* machine */
    int64_t threads, tokens_per_pass;
    struct precision_flags precision;
    int compat; /* of train_dialects */
    int device; /* enum train_device */
    const char *kernels, *library_path, *tune_gemm;
    int graphs; /* enum graphs_use */
    bool graphs_on, any_order, deterministic;
    bool dry_run, deepspeed;
    const char *deepspeed_config;
    int64_t exit_interval;
    double exit_minutes;
    /* the layout of ranks */
    struct stage_flags stages;
    struct context_flags context;
    struct recompute_flags recompute;
    struct expert_flags experts;
    int64_t device_memory; /* of plan; 0: this machine's */
    bool json;
    int64_t tensor_parallel, pipeline_parallel, world_size;
    /* processes that this one starts (train/launch/spawn.h); 0: not given */
    int64_t per_node, nodes, node_rank, master_port;
    const char *master_addr, *log_dir, *job_token_file;
    bool no_job_token;
    double timeout_minutes;
    int64_t check_replicas;
    bool sequence_parallel, distributed_optimizer, per_token;
    int64_t zero_stage, instances, bucket_size; /* -1, 0, 0: not given */
    bool overlap_grad_reduce, overlap_param_gather;
    /* no option: set by main.c */
    int argc; /* the command line */
    char **argv;
    const struct rank_backends *backends;
    int nbackends;
    const struct job_world *world; /* the processes of the job */
};

extern const struct opt_table train_table;

#endif
