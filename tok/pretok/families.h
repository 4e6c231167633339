/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_FAMILIES_H
#define TOK_PRETOK_FAMILIES_H

/* Pre-tokenizers of byte-level models by name: the patterns that `tok train` gives a vocabulary,
 * and by which a converted file is recognised. */

#include <stdbool.h>

/* Splits numbers before anything else: into single digits, or up to three. */
enum pretok_digits { PRETOK_DIGITS_ANY, PRETOK_DIGITS_SINGLE, PRETOK_DIGITS_THREE };

#define PRETOK_DIGITS "pattern|single|three"

/* The pre-tokenizer of a byte-level model. */
struct pretok_family {
    const char *name;    /* "gpt2" */
    const char *pattern; /* the regex that splits, in Oniguruma's syntax */
    bool plain;          /* it is the pattern that ByteLevel applies by itself */
    bool nfc;            /* the text is normalized to NFC first */
    enum pretok_digits digits;
};

/* Ends with a NULL name; in the order of PRETOK_FAMILIES. */
extern const struct pretok_family pretok_families[];
#define PRETOK_FAMILIES "gpt2|cl100k|llama3|qwen2|o200k"

#endif
