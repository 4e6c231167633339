/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_OUT_H
#define TOK_LEARN_OUT_H

/*
 * What was learnt as files: tokenizer.json as Hugging Face's `Tokenizer.save` writes it (the same
 * bytes), vocab.json and merges.txt as its `model.save` does, vocab.txt for WordPiece, tiktoken's
 * ranks for byte-level models.
 */

#include "base/buf.h"
#include "base/err.h"
#include "tok/learn_vocab.h"
#include "tok/learn_wordpiece.h"

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

struct learn_out {
    const struct learn_vocab *vocab;
    const struct learn_cut *cut;   /* of a byte-level model */
    const struct learn_bert *bert; /* or of a WordPiece one */
    const char *const *special;    /* the first tokens */
    size_t nspecial, nuser;        /* the last nuser of them are no special tokens */
    const char *prefix, *suffix;   /* of the model, or NULL */
};

enum learn_files {
    LEARN_ALL,
    LEARN_TOKENIZER_JSON,
    LEARN_VOCAB_MERGES,
    LEARN_VOCAB_TXT,
    LEARN_TIKTOKEN
};

#define LEARN_FILES "all|tokenizer.json|vocab+merges|vocab.txt|tiktoken"

/* ERR_USAGE: the model cannot be written so. Said before hours are spent. */
int learn_out_check(const struct learn_out *o, enum learn_files files, bool all_bytes,
                    struct err *e);

/*
 * PREFIX-tokenizer.json, PREFIX-vocab.json and PREFIX-merges.txt, or PREFIX-vocab.txt, or
 * PREFIX.tiktoken; a prefix that ends in a slash gives the bare names in that folder (tiktoken's
 * is "ranks.tiktoken" there). All appear or none. `said` gets the first name, to be freed.
 */
int learn_write(const struct learn_out *o, enum learn_files files, const char *prefix, char **said,
                struct err *e);

/* learn_json.c: the text of tokenizer.json. */
void learn_put_tokenizer(const struct learn_out *o, struct buf *b);

#endif
