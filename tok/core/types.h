/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_TYPES_H
#define TOK_CORE_TYPES_H

/* A tokenizer's type, how it is opened, and what is known of an open one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/hash.h"

/*
 * The types, under the names that --tokenizer-type takes (Megatron-LM's); TOK_AUTO recognises a
 * file by its content. tok/formats/table.h has the properties of each.
 */
#define TOK_TYPES(TYPE)                                                                            \
    TYPE(TOK_SENTENCEPIECE, "SentencePieceTokenizer")        /* ends documents by <EOD> */         \
    TYPE(TOK_GPT_SENTENCEPIECE, "GPTSentencePieceTokenizer") /* by eos */                          \
    TYPE(TOK_HUGGINGFACE, "HuggingFaceTokenizer")            /* tokenizer.json; by eos */          \
    TYPE(TOK_GPT2_BPE, "GPT2BPETokenizer")         /* vocab.json, merges.txt; by <|endoftext|> */  \
    TYPE(TOK_TIKTOKEN, "TikTokenizer")             /* tiktoken's ranks; by <|endoftext|> */        \
    TYPE(TOK_BERT_LOWER, "BertWordPieceLowerCase") /* vocab.txt; by [EOS] */                       \
    TYPE(TOK_BERT_CASE, "BertWordPieceCase")                                                       \
    TYPE(TOK_LLAMA2, "Llama2Tokenizer") /* SentencePiece with bos before each text; by eos */      \
    TYPE(TOK_JAPANESE_SP, "JapaneseSentencePiece") /* CR LF is LF; by </s> */                      \
    TYPE(TOK_WHITESPACE, "WhitespaceTokenizer")    /* vocab.json of words */                       \
    TYPE(TOK_NULL, "NullTokenizer")                /* ids in decimal; by --vocab-size N */

enum tok_type {
    TOK_AUTO,
#define TOK_TYPE_VALUE(type, name) type,
    TOK_TYPES(TOK_TYPE_VALUE)
#undef TOK_TYPE_VALUE
        TOK_TYPE_END /* number of types */
};

/* What the string of a special token inside a text becomes (--specials). */
#define TOK_SPECIALS(MODE)                                                                         \
    MODE(TOK_SPECIALS_TEXT, "text")   /* ordinary text; occurrences are counted */                 \
    MODE(TOK_SPECIALS_PARSE, "parse") /* the special token */                                      \
    MODE(TOK_SPECIALS_ERROR, "error") /* ERR_DATA */

enum tok_specials {
#define TOK_SPECIALS_VALUE(mode, name) mode,
    TOK_SPECIALS(TOK_SPECIALS_VALUE)
#undef TOK_SPECIALS_VALUE
};

/* Which implementation encodes for a SentencePiece model. The ids are the same. */
enum tok_engine_choice {
    TOK_ENGINE_OWN,
    TOK_ENGINE_SENTENCEPIECE /* libsentencepiece: some hundred bytes of memory per byte of text */
};

struct tok_options {
    enum tok_type type;
    const char *path;      /* file, or a folder, in which tok/formats/folder.h finds the file */
    int64_t vocab_size;    /* TOK_NULL; TOK_TIKTOKEN in JSON: 0 for 131072; 0 elsewhere */
    const char *eod_token; /* overrides the type's end of document; NULL: by type */
    const char *merges;    /* TOK_GPT2_BPE: NULL for the merges.txt beside the vocabulary */
    const char *pattern;   /* TOK_TIKTOKEN: a name (encodings.h) or a pattern; NULL: by size */
    int64_t num_special;   /* TOK_TIKTOKEN in JSON: ids before the ranks; 0: 1000 */
    const char *const *special; /* the first of these; none: <unk> <s> </s> */
    size_t nspecial;
    double dropout;   /* probability of leaving out a merge; 0: as the file says; below 0: none */
    bool sample;      /* random segmentations, weighted by score; for BPE, dropout */
    double alpha;     /* factor of the scores; for BPE, the dropout */
    int64_t nbest;    /* sample from this many best; below 0: from all; 0, 1: take the best */
    uint64_t seed;    /* of dropout and sample */
    bool strict;      /* invalid UTF-8 in a text is ERR_DATA */
    bool no_template; /* omits the ids that the file's template adds to each text */
    bool no_digest; /* info.digest and info.meaning may stay empty: they take a fifth of the time */
    enum tok_specials specials;
    enum tok_engine_choice engine;
    int64_t long_text; /* MiB that a text may take that is not encoded piece by piece; 0: 256 */
};

/* Padding as a tokenizer.json specifies it. */
struct tok_padding {
    bool known;       /* the file has a padding section */
    int64_t to;       /* pad to this many ids, 0: to the longest of the batch */
    int64_t multiple; /* pad to a multiple of it, 0: any length */
    int32_t id;       /* -1: none */
    bool left;        /* before the text */
};

enum { TOK_MEANING = 400 };

struct tok_info {
    enum tok_type type;
    const char *type_name;      /* "SentencePieceTokenizer" */
    int64_t vocab_size;         /* as Megatron's wrapper counts it, unpadded; ids are below it */
    int64_t eod;                /* -1: none */
    const char *eod_piece;      /* its string, NULL if none */
    int64_t bos, eos, pad, unk; /* -1: none */
    int64_t longest;            /* the file's truncation: most ids of a text; 0: no limit */
    bool longest_left;          /* truncation removes the first ids */
    int64_t longest_stride;     /* ids of a window repeated in the next */
    bool longest_second;        /* but only of the second of two texts */
    struct tok_padding padding;
    bool draws;            /* ids depend on the seed */
    const char *path;      /* NULL for TOK_NULL */
    char digest[SHA_TEXT]; /* SHA-256 of the file; of the description for TOK_NULL */
    /* What it does, as fields (tok/FORMAT.md): equal for two of which all ids of all texts, the end
     * of a document and the number of ids are equal. "" with no_digest. */
    char meaning[TOK_MEANING];
    bool beside; /* files beside a tokenizer.json change its tokens and are part of the digest */
};

const char *tok_type_name(enum tok_type type);         /* "SentencePieceTokenizer" */
const char *tok_specials_name(enum tok_specials mode); /* "text" */
enum tok_type tok_type_named(const char *name);        /* TOK_AUTO: no type has this name */

#endif
