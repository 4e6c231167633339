/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_OUT_H
#define TOK_LEARN_OUT_H

/*
 * What was learnt as files: tokenizer.json as Hugging Face's `Tokenizer.save` writes it (the same
 * bytes), vocab.json and merges.txt as its `model.save` does, vocab.txt for WordPiece.
 */

#include "base/buf.h"
#include "base/err.h"
#include "tok/learn_vocab.h"

/* The pre-tokenizers of byte-level models. */
struct learn_family {
    const char *name;    /* "gpt2" */
    const char *pattern; /* the regex that cuts; as scan_find knows it */
    bool plain;          /* the pattern is the one that ByteLevel applies by itself */
    bool nfc;            /* text is brought to NFC first */
};

/* NULL-named at the end; in the order of LEARN_FAMILIES. */
extern const struct learn_family learn_families[];
#define LEARN_FAMILIES "gpt2|cl100k|llama3|qwen2|o200k"

struct learn_out {
    const struct learn_vocab *vocab;
    const struct learn_family *family; /* of a byte-level model */
    const char *const *special;
    size_t nspecial;
    const char *prefix, *suffix; /* of the model, or NULL */
};

void learn_put_tokenizer(const struct learn_out *o, struct buf *b);
void learn_put_vocab(const struct learn_out *o, struct buf *b);
void learn_put_merges(const struct learn_out *o, struct buf *b);

/*
 * PREFIX-tokenizer.json, PREFIX-vocab.json and PREFIX-merges.txt; a prefix that ends in a slash
 * gives the bare names in that folder. All appear or none, tokenizer.json last.
 */
int learn_write(const struct learn_out *o, const char *prefix, struct err *e);

#endif
