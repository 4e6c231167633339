/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_MERGE_H
#define TRAIN_CKPT_MERGE_H

/* The fragments of all ranks become one manifest. For the files of this module alone. */

#include "train/ckpt/manifest.h"

/*
 * Adds files and tensors of n shards to `m`, whose arrays must be empty or come from mem_grow;
 * names stay theirs. Parts of one tensor are put together and its sums added up. ERR_DATA names a
 * tensor that has two shapes or types, or that its boxes do not cover exactly once, and a file that
 * two shards have; `name` stands before the sentence.
 */
int ckpt_merge(struct ckpt_manifest *m, const struct ckpt_manifest *shard, size_t n,
               const char *name, struct err *e);

/* Why boxes do not cover a tensor, for sentences: "overlap". */
const char *ckpt_flaw_text(enum box_flaw flaw);

#endif
