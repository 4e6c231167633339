/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_OPTIONS_H
#define DATASET_OPTIONS_H

/*
 * How a program's user names the data of a run: the options that `prep` and `train` share, under
 * Megatron-LM's names. A program puts a `struct data_flags` into its own struct of options and the
 * rows into its table, as with tok/options.h. The strings belong to the options of the program.
 */

#include "base/opt.h"
#include "dataset/blend.h"
#include "dataset/rules.h"

struct data_flags {
    struct opt_list path, part[PARTS];
    const char *args_path, *parts_path;
    const char *cache;
    int rules; /* enum data_rules */
};

#define DATA_FLAG_ROWS(S, m, v)                                                                    \
    OPT_ROW(.name = "data-path", .type = OPT_LIST, .paths = true, .offset = offsetof(S, m.path),   \
            .meta = "PREFIX", .group = "data", .verbs = v, .basic = true,                          \
            .needs = "inspect: samples",                                                           \
            .help = "token shards, PREFIX.bin and PREFIX.idx; several are blended, with a weight " \
                    "before each PREFIX or each by its size"),                                     \
        OPT_ROW(.name = "data-args-path", .type = OPT_TEXT, .offset = offsetof(S, m.args_path),    \
                .meta = "FILE", .group = "data", .verbs = v, .needs = "inspect: samples",          \
                .help = "file that holds what --data-path would"),                                 \
        OPT_ROW(.name = "train-data-path", .type = OPT_LIST, .paths = true,                        \
                .offset = offsetof(S, m.part[PART_TRAIN]), .meta = "PREFIX", .group = "data",      \
                .verbs = v, .needs = "inspect: samples",                                           \
                .help = "as --data-path, for training alone; --split is not used then"),           \
        OPT_ROW(.name = "valid-data-path", .type = OPT_LIST, .paths = true,                        \
                .offset = offsetof(S, m.part[PART_VALID]), .meta = "PREFIX", .group = "data",      \
                .verbs = v, .needs = "inspect: samples",                                           \
                .help = "as --data-path, for validation alone"),                                   \
        OPT_ROW(.name = "test-data-path", .type = OPT_LIST, .paths = true,                         \
                .offset = offsetof(S, m.part[PART_TEST]), .meta = "PREFIX", .group = "data",       \
                .verbs = v, .needs = "inspect: samples",                                           \
                .help = "as --data-path, for the test alone"),                                     \
        OPT_ROW(.name = "per-split-data-args-path", .type = OPT_TEXT,                              \
                .offset = offsetof(S, m.parts_path), .meta = "FILE", .group = "data", .verbs = v,  \
                .needs = "inspect: samples",                                                       \
                .help = "JSON with these three under train, valid and test"),                      \
        OPT_ROW(.name = "data-cache-path", .type = OPT_TEXT, .offset = offsetof(S, m.cache),       \
                .meta = "DIR", .group = "data", .verbs = v, .needs = "inspect: samples",           \
                .help = "folder of index maps under Megatron core's names, instead of beside the " \
                        "data"),                                                                   \
        OPT_ROW(.name = "data-rules", .type = OPT_CHOICE, .offset = offsetof(S, m.rules),          \
                .def = "core", .meta = DATA_RULES_CHOICES, .group = "data", .verbs = v,            \
                .needs = "inspect: samples",                                                       \
                .help = "whose splits, blends, orders and names of index files: Megatron core's, " \
                        "those "                                                                   \
                        "of Megatron-LM v1 or v2 to 23.04, or Megatron-DeepSpeed's")

/* The lists that the flags name: one of all parts, or one of each. */
struct data_lists {
    struct blend_list shared, own[PARTS];
    bool per_part;
};

/* ERR_USAGE when nothing is named, or two ways at once; as prefix_find (prefix.h) for each prefix.
 * `ret` is to be finished in either case. */
int data_flags_lists(const struct data_flags *f, struct data_lists *ret, struct err *e);
void data_lists_finish(struct data_lists *l);

#endif
