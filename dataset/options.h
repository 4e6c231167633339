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

#define DATA_FLAG_ROW(S, member, v, nm, ty, field, metatext, isbasic, text)                        \
    OPT_ROW(S, nm, ty, member.field, NULL, metatext, "data", v, 0, 0, isbasic, text)

#define DATA_FLAG_ROWS(S, m, v)                                                                    \
    DATA_FLAG_ROW(S, m, v, "data-path", OPT_LIST, path, "PREFIX", true,                            \
                  "token shards, PREFIX.bin and PREFIX.idx; several are blended, with a weight "   \
                  "before each PREFIX or each by its size"),                                       \
        DATA_FLAG_ROW(S, m, v, "data-args-path", OPT_TEXT, args_path, "FILE", false,               \
                      "file that holds what --data-path would"),                                   \
        DATA_FLAG_ROW(S, m, v, "train-data-path", OPT_LIST, part[PART_TRAIN], "PREFIX", false,     \
                      "as --data-path, for training alone; --split is not used then"),             \
        DATA_FLAG_ROW(S, m, v, "valid-data-path", OPT_LIST, part[PART_VALID], "PREFIX", false,     \
                      "as --data-path, for validation alone"),                                     \
        DATA_FLAG_ROW(S, m, v, "test-data-path", OPT_LIST, part[PART_TEST], "PREFIX", false,       \
                      "as --data-path, for the test alone"),                                       \
        DATA_FLAG_ROW(S, m, v, "per-split-data-args-path", OPT_TEXT, parts_path, "FILE", false,    \
                      "JSON with these three under train, valid and test"),                        \
        DATA_FLAG_ROW(S, m, v, "data-cache-path", OPT_TEXT, cache, "DIR", false,                   \
                      "folder of index maps under Megatron core's names, instead of beside the "   \
                      "data"),                                                                     \
        OPT_ROW(S, "data-rules", OPT_CHOICE, m.rules, "core", DATA_RULES_CHOICES, "data", v, 0, 0, \
                false,                                                                             \
                "whose splits, blends, orders and names of index files: Megatron core's, those "   \
                "of Megatron-LM v1 or v2 to 23.04, or Megatron-DeepSpeed's")

/* The lists that the flags name: one of all parts, or one of each. */
struct data_lists {
    struct blend_list shared, own[PARTS];
    bool per_part;
};

/* ERR_USAGE when nothing is named, or two ways at once. `ret` is to be finished in either case. */
int data_flags_lists(const struct data_flags *f, struct data_lists *ret, struct err *e);
void data_lists_finish(struct data_lists *l);

#endif
