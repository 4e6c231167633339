/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_OPTIONS_H
#define PREP_OPTIONS_H

/* The one table of prep's options. Names and meanings are Megatron-LM's where it has them. */

#include "base/cli/opt.h"
#include "dataset/sample/options.h"
#include "tok/tokenizer/options.h"

/*
 * The verbs, in the order of help: a row for each, with its function, and whether signals that ask
 * to stop are caught before it begins (build does so later by itself); options_verbs.c has their
 * texts.
 */
#define PREP_VERB_LIST(X)                                                                          \
    X(BUILD, cmd_build, false)                                                                     \
    X(INDEX, cmd_order, false)                                                                     \
    X(BLEND, cmd_order, false)                                                                     \
    X(INSPECT, cmd_inspect, false)                                                                 \
    X(SFT, cmd_sft, true)                                                                          \
    X(UNPACK, cmd_unpack, true)                                                                    \
    X(MERGE, cmd_merge, true)                                                                      \
    X(VERIFY, cmd_verify, false)                                                                   \
    X(EXPORT, cmd_export, true)                                                                    \
    X(IMPORT, cmd_import, true)

#define PREP_VERB_MEMBER(verb, function, caught) PREP_##verb,
enum prep_verb { PREP_VERB_LIST(PREP_VERB_MEMBER) };

struct prep_options {
    struct opt_common common;
    struct tok_flags tokenizer;
    bool tokenizer_differs;
    struct data_flags data;
    /* build */
    struct opt_list input, json_keys;
    const char *pretokenized, *output_prefix, *text_separator;
    int input_format; /* enum source_format */
    int level;        /* document, sentence */
    bool keep_newlines, split_sentences;
    const char *lang, *punkt_model;
    int64_t min_bytes, max_bytes, min_tokens, max_tokens; /* 0: no limit */
    bool append_eod, prepend_bos, overwrite, allow_empty;
    int64_t log_interval;
    int on_bad_record; /* enum on_bad */
    int64_t workers;   /* 0: one per processor */
    double sync_interval;
    int64_t partitions;
    const char *shard, *shard_size;
    bool keep_sequential_samples;
    int dtype; /* 0 auto, 1 uint16, 2 int32 */
    /* index, blend */
    const char *prefix, *split;
    bool exhaustive;
    int64_t seq_length, seed, num_samples, num_valid_samples, num_test_samples;
    /* inspect */
    bool check, json;
    struct opt_list documents, samples;
    int part; /* enum part */
    bool eod_mask_loss, reset_position_ids, reset_attention_mask;
    /* sft */
    const char *sft_template;
    bool learn_think, add_prompt;
    int learn, packing, overlong, loss_mask; /* indices into their rows' choices */
    const char *text_key, *response_template, *instruction_template;
    int64_t sft_seq_length, show;
    /* merge */
    struct opt_list merge_input;
    /* verify */
    bool repair;
    /* export */
    const char *output, *json_key;
    bool ids, keep_eod;
    /* import */
    int import_format, import_dtype, boundary_at; /* enum foreign_format, foreign_place */
    const char *boundary;
    bool ignore_loss;
};

extern const struct opt prep_rows[]; /* options.c; verbs and table: options_verbs.c */
extern const struct opt_table prep_table;

#endif
