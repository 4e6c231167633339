/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_FAST_H
#define TOK_PRETOK_SCAN_FAST_H

/* The families of scan_fast*.c, one set per vector width; same interface as scan_starts. */

#include "tok/pretok/scan_vec.h"

size_t SCAN(gpt2)(const char *text, size_t n, uint32_t *at);
size_t SCAN(cl100k)(const char *text, size_t n, uint32_t *at);
size_t SCAN(llama3)(const char *text, size_t n, uint32_t *at);
size_t SCAN(qwen2)(const char *text, size_t n, uint32_t *at);
size_t SCAN(qwen35)(const char *text, size_t n, uint32_t *at);
size_t SCAN(o200k)(const char *text, size_t n, uint32_t *at);
size_t SCAN(tekken)(const char *text, size_t n, uint32_t *at);
size_t SCAN(kimi)(const char *text, size_t n, uint32_t *at);
size_t SCAN(deepseek3)(const char *text, size_t n, uint32_t *at);

#endif
