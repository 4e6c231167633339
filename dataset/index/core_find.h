/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_CORE_FIND_H
#define DATASET_INDEX_CORE_FIND_H

/*
 * Finds the files of a dataset in a folder of Megatron core's index caches. Their names follow from
 * a description that includes the tokenizer, which does not affect their content, so a description
 * that differs only there is as good. If the dataset's own name does not exist, the
 * descriptions in the folder are read: each once for all datasets, and at most CORE_LOOK_AT more
 * per dataset, which bounds the cost for a folder with very many of them.
 *
 * One thread at a time.
 */

#include "base/core/buf.h"
#include "base/core/hash.h"
#include "dataset/index/split.h"

enum { CORE_LOOK_AT = 256 };

struct core_folder;

/* Nothing is read before core_find; the folder need not exist. */
struct core_folder *core_folder_create(const char *path);
void core_folder_destroy(struct core_folder *f); /* accepts NULL */
const char *core_folder_path(const struct core_folder *f);

/*
 * The digest in the names of the files for `text`: its own, or that of a description that differs
 * only in the tokenizer. `class` is "GPTDataset" or "BlendedDataset".
 */
void core_find(struct core_folder *f, const char *class, enum part part, const struct buf *text,
               char ret[MD5_TEXT]);

#endif
