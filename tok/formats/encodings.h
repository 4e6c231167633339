/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_ENCODINGS_H
#define TOK_FORMATS_ENCODINGS_H

/*
 * What belongs to published files of ranks but is not in them: pattern, special tokens, normal
 * form. The names are those of --tiktoken-pattern; without one, the number of ranks identifies the
 * encoding.
 *
 * OpenAI's: tiktoken 0.14.0. Llama's: llama-models 0.3.0;
 * llama3-hf: the ids of the special tokens in Llama 3.1's tokenizer.json. Qwen's first:
 * dashscope 2.0.2.
 */

#include "tok/pipeline/pipeline.h"

struct encoding;

/* By its name or, if that is NULL, by the number of ranks; NULL: unknown. */
const struct encoding *encoding_find(const char *name, size_t ranks);

const char *encoding_name(const struct encoding *c);

/* The pattern of that name (Megatron-LM's v1 and v2 among them), or the name as a pattern. */
const char *encoding_pattern(const char *name);

/* Adds the normalizer and, if `ranks` is the encoding's own number, the special tokens. */
void encoding_apply(const struct encoding *c, size_t ranks, struct pipe_spec *s);

#define ENCODING_NAMES "r50k, p50k, cl100k, o200k, llama3, llama3-hf, llama4, qwen"

#endif
