/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_COPY_FILES_H
#define CONVERT_COPY_COPY_FILES_H

/* Sources and sinks of the copy engine (copy.h) over safetensors files and checkpoints. */

#include "train/ckpt/ckpt.h"
#include "train/ckpt/safetensors.h"
#include "train/ckpt/shard.h"
#include "convert/copy/copy.h"

/*
 * An entry of an open safetensors file, as [product of all sizes but the last, the last]; of one
 * dimension [n, 1]. ERR_DATA for a type that weft does not calculate with. `s`, and `name` for
 * messages, must live on.
 */
int copy_from_safetensors(const struct st_file *s, const struct st_entry *t, const char *name,
                          struct copy_source *ret, struct err *e);

/* A tensor of an open checkpoint. After the run ckpt_check must pass, too. */
void copy_from_ckpt(struct ckpt *c, const struct ckpt_tensor *t, struct copy_source *ret);

/* Into a shard after ckpt_shard_begin: target i is its entry i. Free *ret_target after the run. */
void copy_to_shard(struct ckpt_shard *s, struct copy_sink *ret, struct copy_target **ret_target);

/* Into planned safetensors files after st_out_begin: target i is item i of `o`. */
void copy_to_safetensors(struct st_out *o, struct copy_sink *ret, struct copy_target **ret_target);

#endif
