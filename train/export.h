/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H

/* train run --export-hf OUT: the model at the end of a run as a folder of Hugging Face. */

#include "train/job.h"

/* Before the first step: ERR_USAGE for a model that no family of transformers has, where something
 * stands under OUT, and without --save.. */
int export_check(const struct job *j, struct err *e);

/* Of the checkpoint of that step in --save, with its tokenizer. */
int export_model(const struct job *j, int64_t step, struct err *e);

#endif
