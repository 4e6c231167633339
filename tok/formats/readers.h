/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_READERS_H
#define TOK_FORMATS_READERS_H

/* The functions of the table's rows, each from the file of its format. */

#include "tok/formats/table.h"

format_looks hf_looks, tekken_looks, gpt2_looks, words_looks, tiktoken_looks, bert_looks;
format_read hf_read, tekken_read, gpt2_read, tiktoken_read, bert_read;
format_ids hf_ids, tekken_ids, gpt2_ids, tiktoken_ids, bert_ids;
format_open words_open, null_open;

bool json_object_looks(const char *p, size_t n); /* a "{" after white space */

#endif
