/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_FOLDER_H
#define TOK_FORMATS_FOLDER_H

/*
 * Finds the tokenizer file in a folder, as laid out by Hugging Face, SentencePiece, tiktoken and
 * Mistral: the first existing name of those that the type reads, else the only file with such an
 * ending, else the only file. The caller frees *ret. ERR_USAGE if several qualify, ERR_IO if none
 * does.
 */

#include "base/core/err.h"
#include "tok/core/types.h"

int folder_find(const char *folder, enum tok_type type, char **ret, struct err *e);

#endif
