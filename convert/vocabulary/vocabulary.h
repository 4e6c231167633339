/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_VOCABULARY_VOCABULARY_H
#define CONVERT_VOCABULARY_VOCABULARY_H

/* The tokenizer of a model that is converted. */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"
#include "train/ckpt/ckpt.h"
#include "convert/hf/hf_write.h"

/* Of a folder of Hugging Face; *ret NULL without an error where there is none that can be opened,
 * and the reason is logged. */
void vocabulary_of_folder(const char *folder, struct tokenizer **ret);

/* The copy in a checkpoint; *ret NULL: it has none. */
int vocabulary_of_ckpt(const struct ckpt *c, struct tokenizer **ret, struct err *e);

/* The ids that a configuration names, -1: none. A SentencePiece model's own pieces come before what
 * Megatron's wrapper appends to them, which no file of the tokenizer has. */
struct hf_ids vocabulary_ids(const struct tokenizer *t);

/*
 * Whether vocabulary_export will succeed, before anything is written: a tokenizer that is no
 * tokenizer.json is converted in memory and tested, and a warning says what a tokenizer.json does
 * not keep (ties of a unigram model). ERR_USAGE: it has no such form; ERR_INTEGRITY:
 * the form gives other ids.
 */
int vocabulary_export_check(const struct tokenizer *t, struct err *e);

/*
 * Completes the tokenizer of an exported folder: tokenizer.json made of a tokenizer that has none,
 * tokenizer_config.json and special_tokens_map.json where they are missing; JSON that an earlier
 * version put into checkpoints as tokenizer.model gets its own name. What the two tokenizers
 * make of texts with Japanese, special tokens, runs of newlines and of spaces is compared and
 * appended to `report`. ERR_INTEGRITY where ids differ. `positions`: of the model.
 */
int vocabulary_export(const struct tokenizer *t, const char *folder, int64_t positions,
                      struct buf *report, struct err *e);

#endif
