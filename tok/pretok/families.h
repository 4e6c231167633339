/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_FAMILIES_H
#define TOK_PRETOK_FAMILIES_H

/* Pre-tokenizers of byte-level models by name: the patterns that a learnt vocabulary is given and
 * that a converted file is recognised by. */

#include <stdbool.h>

/* Numbers before anything else is cut: a digit a word, or up to three of them. */
enum pretok_digits { PRETOK_DIGITS_ANY, PRETOK_DIGITS_SINGLE, PRETOK_DIGITS_THREE };

#define PRETOK_DIGITS "pattern|single|three"

/* The pre-tokenizer of a byte-level model. */
struct pretok_family {
    const char *name;    /* "gpt2" */
    const char *pattern; /* the regex that cuts, as Oniguruma reads it */
    bool plain;          /* the pattern is the one that ByteLevel applies by itself */
    bool nfc;            /* text is brought to NFC first */
    enum pretok_digits digits;
};

/* NULL-named at the end; in the order of PRETOK_FAMILIES. */
extern const struct pretok_family pretok_families[];
#define PRETOK_FAMILIES "gpt2|cl100k|llama3|qwen2|o200k"

#endif
