/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_OPTIONS_H
#define DATASET_SAMPLE_OPTIONS_H

/*
 * How the user names the data of a run: the options that `prep` and `train` share, under
 * Megatron-LM's names. A program puts a `struct data_flags` into its own options struct and the
 * rows into its table, as with tok/tokenizer/options.h. The strings belong to the program's
 * options.
 */

#include "base/cli/opt.h"
#include "dataset/sample/blend.h"
#include "dataset/sample/rules.h"

struct data_flags {
    struct opt_list path, part[PARTS];
    const char *args_path, *parts_path;
    const char *cache;
    int rules; /* enum data_rules */
};

#define DATA_FLAG_ROWS(S, m, v)                                                                    \
    OPT_ROW(.name = "data-path", .type = OPT_LIST, .offset = offsetof(S, m.path),                  \
            .meta = "PREFIX", .group = "data", .paths = true, .last_in = "Megatron-LM",            \
            .verbs = v, .basic = true, .needs = "inspect: samples", .resumed = RESUMED_WARNED,     \
            .local = true, .brief = "token data, PREFIX.bin and PREFIX.idx",                       \
            .help = "token data, PREFIX.bin and PREFIX.idx; several are blended, with a weight "   \
                    "before each PREFIX, or by size; beside --valid-data-path or "                 \
                    "--test-data-path all of it is for training"),                                 \
        OPT_ROW(.name = "data-args-path", .type = OPT_TEXT, .offset = offsetof(S, m.args_path),    \
                .meta = "FILE", .group = "data", .verbs = v, .needs = "inspect: samples",          \
                .resumed = RESUMED_WARNED, .local = true,                                          \
                .help = "file with the arguments of --data-path"),                                 \
        OPT_ROW(.name = "train-data-path", .type = OPT_LIST,                                       \
                .offset = offsetof(S, m.part[PART_TRAIN]), .meta = "PREFIX", .group = "data",      \
                .paths = true, .last_in = "Megatron-LM", .verbs = v, .needs = "inspect: samples",  \
                .resumed = RESUMED_WARNED, .local = true, .brief = "data for training alone",      \
                .help = "as --data-path, for training alone; --split does not apply"),             \
        OPT_ROW(.name = "valid-data-path", .type = OPT_LIST,                                       \
                .offset = offsetof(S, m.part[PART_VALID]), .meta = "PREFIX", .group = "data",      \
                .paths = true, .last_in = "Megatron-LM", .verbs = v, .needs = "inspect: samples",  \
                .resumed = RESUMED_WARNED, .local = true, .brief = "data for validation alone",    \
                .help = "as --data-path, for validation alone"),                                   \
        OPT_ROW(.name = "test-data-path", .type = OPT_LIST,                                        \
                .offset = offsetof(S, m.part[PART_TEST]), .meta = "PREFIX", .group = "data",       \
                .paths = true, .last_in = "Megatron-LM", .verbs = v, .needs = "inspect: samples",  \
                .resumed = RESUMED_WARNED, .local = true, .brief = "data for testing alone",       \
                .help = "as --data-path, for testing alone"),                                      \
        OPT_ROW(.name = "per-split-data-args-path", .type = OPT_TEXT,                              \
                .offset = offsetof(S, m.parts_path), .meta = "FILE", .group = "data", .verbs = v,  \
                .needs = "inspect: samples", .resumed = RESUMED_WARNED, .local = true,             \
                .brief = "JSON with the data of each part",                                        \
                .help =                                                                            \
                    "JSON object with the arguments of these three under train, valid and test"),  \
        OPT_ROW(.name = "data-cache-path", .type = OPT_TEXT, .offset = offsetof(S, m.cache),       \
                .meta = "DIR", .group = "data", .verbs = v, .needs = "inspect: samples",           \
                .resumed = RESUMED_FREE, .local = true, .brief = "folder of index maps",           \
                .help =                                                                            \
                    "folder of index maps under Megatron core's names, instead of next to the "    \
                    "data"),                                                                       \
        OPT_ROW(.name = "data-rules", .type = OPT_CHOICE, .offset = offsetof(S, m.rules),          \
                .def = "core", .meta = DATA_RULES_CHOICES, .group = "data", .verbs = v,            \
                .needs = "inspect: samples", .resumed = RESUMED_WARNED,                            \
                .brief = "whose index maps and blends",                                            \
                .help = "whose rules for splits, blends, sample order and index file names: "      \
                        "Megatron core, Megatron-LM v1 or v2 (to 23.04), or Megatron-DeepSpeed")

/* Rows of fill in the middle, for a struct S with the members fim_rate, fim_spm_rate, fim_prefix,
 * fim_middle and fim_suffix; `i`: the verbs on which they have no effect. */
#define FIM_FLAG_ROWS(S, v, i)                                                                     \
    OPT_ROW(.name = "fim-rate", .type = OPT_REAL, .offset = offsetof(S, fim_rate), .def = "0",     \
            .max = 1, .meta = "X", .group = "data", .verbs = v, .idle = i,                         \
            .resumed = RESUMED_WARNED, .brief = "share of documents for fill-in-the-middle",       \
            .help = "share of documents rearranged as prefix, suffix, middle (fill in the "        \
                    "middle)"),                                                                    \
        OPT_ROW(.name = "fim-spm-rate", .type = OPT_REAL, .offset = offsetof(S, fim_spm_rate),     \
                .def = "0.5", .max = 1, .meta = "X", .group = "data", .verbs = v, .idle = i,       \
                .needs = "fim-rate", .resumed = RESUMED_WARNED,                                    \
                .help = "share of these that begin with the suffix"),                              \
        OPT_ROW(.name = "fim-prefix-token", .type = OPT_TEXT, .offset = offsetof(S, fim_prefix),   \
                .def = "<fim_prefix>", .meta = "PIECE", .group = "data", .verbs = v, .idle = i,    \
                .needs = "fim-rate", .resumed = RESUMED_WARNED, .help = "token before a prefix"),  \
        OPT_ROW(.name = "fim-middle-token", .type = OPT_TEXT, .offset = offsetof(S, fim_middle),   \
                .def = "<fim_middle>", .meta = "PIECE", .group = "data", .verbs = v, .idle = i,    \
                .needs = "fim-rate", .resumed = RESUMED_WARNED, .help = "token before a middle"),  \
        OPT_ROW(.name = "fim-suffix-token", .type = OPT_TEXT, .offset = offsetof(S, fim_suffix),   \
                .def = "<fim_suffix>", .meta = "PIECE", .group = "data", .verbs = v, .idle = i,    \
                .needs = "fim-rate", .resumed = RESUMED_WARNED, .help = "token before a suffix")

/* The lists named by the flags: one for all parts, or one per part. */
struct data_lists {
    struct blend_list shared, own[PARTS];
    bool per_part;
};

/* ERR_USAGE if nothing is named, or twice; for each prefix as prefix_find (dataset/shard/prefix.h).
 * Finish `ret` in either case. */
int data_flags_lists(const struct data_flags *f, struct data_lists *ret, struct err *e);
void data_lists_finish(struct data_lists *l);

#endif
