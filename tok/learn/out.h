/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_OUT_H
#define TOK_LEARN_OUT_H

/*
 * The learnt vocabulary as files: tokenizer.json as Hugging Face's `Tokenizer.save` writes it (the
 * same bytes), vocab.json and merges.txt as its `model.save` does, vocab.txt for WordPiece,
 * tiktoken's ranks for byte-level models.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/pretok/families.h"
#include "tok/learn/vocab.h"
#include "tok/learn/wordpiece.h"

struct learn_out {
    const struct learn_vocab *vocab;
    const struct pretok_family *family; /* of a byte-level model */
    const struct learn_bert *bert;      /* or of a WordPiece one */
    const char *const *special;         /* the first tokens */
    size_t nspecial, nuser;             /* the last nuser of them are not special tokens */
    const char *prefix, *suffix;        /* of the model, or NULL */
};

enum learn_files {
    LEARN_ALL,
    LEARN_TOKENIZER_JSON,
    LEARN_VOCAB_MERGES,
    LEARN_VOCAB_TXT,
    LEARN_TIKTOKEN
};

#define LEARN_FILES "all|tokenizer.json|vocab+merges|vocab.txt|tiktoken"

/* ERR_USAGE: the format cannot express the model. Call it before hours are spent on training. */
int learn_out_check(const struct learn_out *o, enum learn_files files, bool all_bytes,
                    struct err *e);

/*
 * PREFIX-tokenizer.json, PREFIX-vocab.json and PREFIX-merges.txt, or PREFIX-vocab.txt, or
 * PREFIX.tiktoken; with a prefix that ends in a slash, the bare names in that folder (there,
 * tiktoken's is "ranks.tiktoken"). All appear or none. `said` gets the first name; the caller frees
 * it.
 */
int learn_write(const struct learn_out *o, enum learn_files files, const char *prefix, char **said,
                struct err *e);

/* The names of these files, at most LEARN_NAMES, which the caller frees. Returns their number. */
enum { LEARN_NAMES = 5 };
size_t learn_names(bool bert, enum learn_files files, const char *prefix, char *ret[LEARN_NAMES]);

/* json.c: the text of tokenizer.json. */
void learn_put_tokenizer(const struct learn_out *o, struct buf *b);

#endif
