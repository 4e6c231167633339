/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DEEPSPEED_RELAXED_H
#define TRAIN_DEEPSPEED_RELAXED_H

/* JSON as people write it, into JSON: internal to train/deepspeed. */

#include "base/core/buf.h"

/*
 * Overwrites comments ("#" and "//" to the end of the line, C's) and commas before a closing
 * bracket with blanks, so that offsets in messages are those of the file.
 */
void relaxed_to_json(struct buf *text);

#endif
