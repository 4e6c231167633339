/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_WRITE_H
#define CONVERT_HF_HF_WRITE_H

/*
 * config.json and generation_config.json as text. Both spellings of what transformers 4 and 5 name
 * differently are written, because each of them takes a default without a word for what it does
 * not find.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/spec/hf.h"
#include "train/tensor/tensor.h"

/* Ids of the tokenizer; -1: none. */
struct hf_ids {
    int64_t bos, eos, pad;
};

/*
 * The configuration that a model was imported with, its text as it stands but for what must change:
 * the type of the weights, and the other spelling of what stands in one alone. ERR_DATA for a text
 * that is not an object.
 */
int hf_config_again(const char *name, const char *text, size_t n, const struct hf_model *m,
                    enum dtype d, struct buf *out, struct err *e);

/* The configuration of a model that never had one (hf_model_of_spec). */
void hf_config_new(const struct hf_model *m, enum dtype d, struct hf_ids ids, struct buf *out);

void hf_generation_new(struct hf_ids ids, struct buf *out);

/* Where the value of a key of the outermost object lies in a text that is known to be JSON. */
bool hf_text_find(const char *text, size_t n, const char *key, size_t *ret_at, size_t *ret_n);
/* The key, if it is there, gets the value, which is JSON itself. */
void hf_text_set(struct buf *b, const char *key, const struct buf *value);
/* The same, and it is added if it is not there. */
void hf_text_put(struct buf *b, const char *key, const struct buf *value);

#endif
