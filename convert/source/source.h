/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_SOURCE_SOURCE_H
#define CONVERT_SOURCE_SOURCE_H

/*
 * What a path on the command line means, by one rule for all verbs: a checkpoint (a folder with a
 * manifest.json), or a folder of checkpoints. What is something else is named in the error, with
 * a hint: a Hugging Face model, a folder of runs, a file in a checkpoint, a prefix of a name.
 */

#include <stddef.h>

#include "base/core/err.h"
#include "train/ckpt/ckpt.h"

/*
 * The checkpoints that a path means, newest first: itself, or those in it; at least one name, which
 * need not open. ERR_DATA for what is known as something else. names_free frees them.
 */
int named_ckpts(const char *path, char ***ret, size_t *ret_n, struct err *e);

/*
 * The checkpoint, or the newest of them, opened for a copy: its files other than tensors are
 * verified; its tensors are when ckpt_check passes after they were read. Where the newest is
 * damaged, the hint names the newest that opens.
 */
int named_ckpt_open(const char *path, struct ckpt **ret, struct err *e);

#endif
