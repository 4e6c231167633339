/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_COMPARE_H
#define TOK_INSPECT_COMPARE_H

/*
 * Compares two tokenizers over the same documents: which stretches of a text become different
 * tokens.
 *
 * Both lists of tokens are aligned by the bytes that their pieces stand for. If the tokenizers
 * spell a text the same, every byte counts; otherwise (a normalizer, dropped white space) all bytes
 * but white space. A stretch extends from one position where a token ends in both lists to the next
 * such position, with different tokens between.
 *
 * For one thread. The tokenizers are the caller's and outlive the comparison.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "tok/tokenizer/tokenizer.h"

struct compare;

/* A stretch of the last text: its bytes, which are a guess if the pieces do not spell the text, and
 * the tokens of each tokenizer. */
struct compare_stretch {
    size_t at, end;
    bool sure; /* `at` and `end` are exact */
    const int32_t *id[2];
    size_t n[2];
};

struct compare_sums {
    uint64_t docs, bytes;
    uint64_t tokens[2], unknown[2];
    uint64_t other_ids, other_pieces; /* documents */
    uint64_t stretches;
};

/* Tokens are the same if their ids are (`ids`), or if they stand for the same bytes. */
struct compare *compare_create(const struct tokenizer *a, const struct tokenizer *b, bool ids);
void compare_destroy(struct compare *c);

/* Encodes a text with both. *ret_same: no stretch differs. An error names the tokenizer. */
int compare_text(struct compare *c, const char *text, size_t n, bool *ret_same, struct err *e);

/* The stretches of the last text, in order; valid until the next. */
const struct compare_stretch *compare_stretches(const struct compare *c, size_t *ret_n);
const struct compare_sums *compare_sums(const struct compare *c);

/* The bytes that an id stands for: text, or part of a character. side: 0 or 1. */
const char *compare_surface(const struct compare *c, int side, int32_t id, size_t *ret_n);

/* The most frequent stretches, as ids; beyond some million, new ones are not counted. */
struct compare_frequent {
    int32_t *id[2];
    size_t n[2];
    uint64_t count;
};
size_t compare_frequent(const struct compare *c, size_t most, struct compare_frequent **ret);
void compare_frequent_free(struct compare_frequent *f, size_t n);

#endif
