/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_REPORT_REPORT_H
#define CONVERT_REPORT_REPORT_H

/*
 * What a checkpoint is, as text for people or as one JSON object, and whether it is all that its
 * model needs. Nothing is printed here: callers own the buffer.
 */

#include <stdbool.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"
#include "train/spec/spec.h"

/* Appends the report; `tensors` lists each of them. ERR_DATA when the model cannot be read. */
int report_text(const struct ckpt *c, bool tensors, struct buf *out, struct err *e);
int report_json(const struct ckpt *c, bool tensors, struct buf *out, struct err *e);

/* Parts of such reports: the model, 1,234,567, and "key":"value" (NULL: null). */
void report_model(struct buf *b, const struct spec *s, uint64_t parameters);
void report_count(struct buf *b, uint64_t v);
void report_json_text(struct buf *b, const char *key, const char *value);

/*
 * Every tensor of the model is there, in its shape, for the weights and for each kind of moments of
 * which there is any; and no other. ERR_INTEGRITY names the first that is not.
 */
int report_check_model(const struct ckpt *c, struct err *e);

/* Appends the names of files in the folder that the manifest does not know, each behind a blank. */
int report_strangers(const struct ckpt *c, struct buf *out, struct err *e);

#endif
