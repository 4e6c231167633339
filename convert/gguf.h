/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_H
#define CONVERT_GGUF_H

/* A tokenizer as the keys of a GGUF file, as llama.cpp reads them. */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"
#include "train/ckpt/ckpt.h"
#include "train/gguf/gguf.h"

/*
 * Adds the tokenizer of a checkpoint (NULL: none) with `rows` entries, those of the embedding;
 * appends what there is to say of it to `report`. ERR_USAGE for one that GGUF cannot express:
 * neither SentencePiece nor byte-level BPE, or more entries than rows.
 */
int gguf_add_tokenizer(struct gguf_keys *k, const struct ckpt *c, const struct tokenizer *t,
                       int64_t rows, struct buf *report, struct err *e);

#endif
