/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_FAMILIES_H
#define TOK_PRETOK_FAMILIES_H

/* Pre-tokenizers of byte-level models by name: the patterns that a learnt vocabulary is given and
 * that a converted file is recognised by. */

#include <stdbool.h>

/* Numbers before anything else is cut: a digit a word, or up to three of them. */
enum learn_digits { LEARN_DIGITS_ANY, LEARN_DIGITS_SINGLE, LEARN_DIGITS_THREE };

#define LEARN_DIGITS "pattern|single|three"

/* The pre-tokenizer of a byte-level model. */
struct learn_cut {
    const char *name;    /* "gpt2" */
    const char *pattern; /* the regex that cuts, as Oniguruma reads it */
    bool plain;          /* the pattern is the one that ByteLevel applies by itself */
    bool nfc;            /* text is brought to NFC first */
    enum learn_digits digits;
};

/* NULL-named at the end; in the order of LEARN_FAMILIES. */
extern const struct learn_cut learn_families[];
#define LEARN_FAMILIES "gpt2|cl100k|llama3|qwen2|o200k"

#endif
