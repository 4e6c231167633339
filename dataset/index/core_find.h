/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_CORE_FIND_H
#define DATASET_INDEX_CORE_FIND_H

/*
 * Which files of a folder of Megatron core's index caches are those of a data set. They are named
 * by a description that tells the tokenizer too, which takes no part in what the files hold: one
 * that differs there alone is as good. So where a data set's own name is not there, descriptions
 * are read, each once for all that ask, and at most CORE_LOOK_AT more for each that asks: very many
 * sources in one folder cost each of them the same.
 *
 * One thread at a time.
 */

#include "base/core/buf.h"
#include "base/core/hash.h"
#include "dataset/index/split.h"

enum { CORE_LOOK_AT = 256 };

struct core_folder;

/* Nothing is read before core_find; the folder need not be there. */
struct core_folder *core_folder_create(const char *path);
void core_folder_destroy(struct core_folder *f); /* accepts NULL */
const char *core_folder_path(const struct core_folder *f);

/*
 * The digest that names the files of `text`: its own, or that of a description that differs in
 * nothing but the tokenizer. `class` is "GPTDataset" or "BlendedDataset".
 */
void core_find(struct core_folder *f, const char *class, enum part part, const struct buf *text,
               char ret[MD5_TEXT]);

#endif
