/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_DESCRIBE_H
#define TOK_INSPECT_DESCRIBE_H

/* The steps of a pipeline in words: "lower case; NFC". */

#include "base/core/buf.h"
#include "tok/pipeline/pipeline.h"

void describe_normalizer(const struct pipe_spec *s, struct buf *b);
void describe_pre_tokenizer(const struct pipe_spec *s, struct buf *b);

#endif
