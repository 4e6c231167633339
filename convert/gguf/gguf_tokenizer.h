/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_GGUF_TOKENIZER_H
#define CONVERT_GGUF_GGUF_TOKENIZER_H

/* A tokenizer as the keys of a GGUF file, as llama.cpp reads them. */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"
#include "convert/gguf/gguf.h"
#include "convert/hf/hf_export.h"

/*
 * Adds the tokenizer of an export's checkpoint (NULL: none), with an entry for each row of the
 * embedding; appends what there is to say of it to `report`. ERR_USAGE for one that GGUF cannot
 * express: neither SentencePiece nor byte-level BPE, or more entries than rows.
 */
int gguf_add_tokenizer(struct gguf_keys *k, const struct hf_export *x, const struct tokenizer *t,
                       struct buf *report, struct err *e);

#endif
