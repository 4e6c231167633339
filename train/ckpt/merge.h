/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_MERGE_H
#define TRAIN_CKPT_MERGE_H

/* Merges the fragments of all ranks into one manifest. Internal to this module. */

#include "train/ckpt/manifest.h"

/*
 * Adds files and tensors of n shards to `m`, whose arrays must be empty or come from mem_grow;
 * names stay theirs. Parts of a tensor are merged and their sums added up. ERR_DATA names a tensor
 * with two shapes or types, or whose boxes do not cover it exactly once, or a file of two shards;
 * the message begins with `name`.
 */
int ckpt_merge(struct ckpt_manifest *m, const struct ckpt_manifest *shard, size_t n,
               const char *name, struct err *e);

/* Why boxes do not cover a tensor, for sentences: "overlap". */
const char *ckpt_flaw_text(enum box_flaw flaw);

#endif
