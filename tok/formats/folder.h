/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_FOLDER_H
#define TOK_FORMATS_FOLDER_H

/*
 * The file that a folder stands for, as folders of Hugging Face, SentencePiece, tiktoken and
 * Mistral come: the first there is of the names that the type reads, else the one file that ends
 * as theirs do, else the only one. *ret is the caller's to free. ERR_USAGE where several would do,
 * ERR_IO where none is.
 */

#include "base/core/err.h"
#include "tok/core/types.h"

int folder_find(const char *folder, enum tok_type type, char **ret, struct err *e);

#endif
