/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_COMPARE_H
#define TOK_INSPECT_COMPARE_H

/*
 * Two tokenizers over the same documents: which stretches of a text they make other tokens of.
 *
 * Both lists of tokens are laid beside each other by the bytes that their pieces stand for. Where
 * the tokenizers spell a text alike, every byte counts; else (a normalizer, white space that is
 * dropped) all bytes but white space do. A stretch goes from one place where a token ends in both
 * lists to the next such place, with other tokens between.
 *
 * One thread. The tokenizers are the caller's and outlive the comparison.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "tok/tokenizer/tokenizer.h"

struct compare;

/* A stretch of the last text: its bytes, which are a guess where the pieces do not spell the text,
 * and the tokens of each tokenizer. */
struct compare_stretch {
    size_t at, end;
    bool sure; /* at and end are exact */
    const int32_t *id[2];
    size_t n[2];
};

struct compare_sums {
    uint64_t docs, bytes;
    uint64_t tokens[2], unknown[2];
    uint64_t other_ids, other_pieces; /* documents */
    uint64_t stretches;
};

/* Tokens are the same if their ids are (ids), or if they stand for the same bytes. */
struct compare *compare_create(const struct tokenizer *a, const struct tokenizer *b, bool ids);
void compare_destroy(struct compare *c);

/* Encodes a text with both. *ret_same: there is no stretch. An error names the tokenizer. */
int compare_text(struct compare *c, const char *text, size_t n, bool *ret_same, struct err *e);

/* The stretches of the last text, in order; valid until the next. */
const struct compare_stretch *compare_stretches(const struct compare *c, size_t *ret_n);
const struct compare_sums *compare_sums(const struct compare *c);

/* The bytes that an id stands for: text, or a part of a character. side: 0 or 1. */
const char *compare_surface(const struct compare *c, int side, int32_t id, size_t *ret_n);

/* The most frequent stretches, as ids; counting stops to take new ones at some million. */
struct compare_frequent {
    int32_t *id[2];
    size_t n[2];
    uint64_t count;
};
size_t compare_frequent(const struct compare *c, size_t most, struct compare_frequent **ret);
void compare_frequent_free(struct compare_frequent *f, size_t n);

#endif
