/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_TYPES_H
#define TOK_CORE_TYPES_H

/* What every part of this program agrees on about a tokenizer: its type, how it is opened, and what
 * is known of it once it is open. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/hash.h"

/*
 * The types, which --tokenizer-type asks for by Megatron-LM's names; TOK_AUTO recognises the file
 * by its content. tok/formats/table.h has what belongs to each.
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
        TOK_TYPE_END /* above all types */
};

/* What a special token's string inside a text becomes, which --specials says. */
#define TOK_SPECIALS(MODE)                                                                         \
    MODE(TOK_SPECIALS_TEXT, "text")   /* ordinary text; occurrences are counted */                 \
    MODE(TOK_SPECIALS_PARSE, "parse") /* the special token */                                      \
    MODE(TOK_SPECIALS_ERROR, "error") /* ERR_DATA */

enum tok_specials {
#define TOK_SPECIALS_VALUE(mode, name) mode,
    TOK_SPECIALS(TOK_SPECIALS_VALUE)
#undef TOK_SPECIALS_VALUE
};

/* Who encodes for a SentencePiece model. The ids are the same. */
enum tok_engine_choice {
    TOK_ENGINE_OWN,
    TOK_ENGINE_SENTENCEPIECE /* libsentencepiece, which takes some hundred bytes for each of a text
                              */
};

struct tok_options {
    enum tok_type type;
    const char *path;      /* file, or a folder: of tokenizer.json, tokenizer.model, vocab.json and
                            * vocab.txt and tekken.json the first that is there, or else its one
                            * *.tiktoken */
    int64_t vocab_size;    /* TOK_NULL; TOK_TIKTOKEN in JSON: 0 for 131072; 0 elsewhere */
    const char *eod_token; /* overrides the type's end of document; NULL: by type */
    const char *merges;    /* TOK_GPT2_BPE: NULL for the merges.txt beside the vocabulary */
    const char
        *pattern; /* TOK_TIKTOKEN: a name of tok/formats/encodings.h, or a pattern; NULL: by size */
    int64_t num_special;        /* TOK_TIKTOKEN in JSON: ids before the ranks; 0: 1000 */
    const char *const *special; /* of these the first; none: <unk> <s> </s> */
    size_t nspecial;
    double dropout;   /* of merges left out at random; 0: as the file says, below: none */
    bool sample;      /* segmentations at random, by their scores; of byte pairs, by dropout */
    double alpha;     /* their scores are multiplied by it; the dropout */
    int64_t nbest;    /* one of so many best; below 0: of all; 0, 1: the best */
    uint64_t seed;    /* of dropout and sample */
    bool strict;      /* bytes of a text that are no UTF-8 are ERR_DATA */
    bool no_template; /* leaves out what the file's template puts round each text */
    bool no_digest;   /* info.digest may be missing: on it goes a tenth of the time that it takes */
    enum tok_specials specials;
    enum tok_engine_choice engine;
};

/* Ids that fill a text up, as a tokenizer.json has them. */
struct tok_padding {
    bool known;       /* the file says so */
    int64_t to;       /* up to so many ids, 0: to the longest of its batch, which is itself */
    int64_t multiple; /* up to a multiple of it, 0: of any */
    int32_t id;       /* -1: none */
    bool left;        /* before the text */
};

struct tok_info {
    enum tok_type type;
    const char *type_name;      /* "SentencePieceTokenizer" */
    int64_t vocab_size;         /* as Megatron's wrapper counts it, unpadded; ids are below it */
    int64_t eod;                /* -1: none */
    const char *eod_piece;      /* its string, NULL if none */
    int64_t bos, eos, pad, unk; /* -1: none */
    int64_t longest;            /* ids of a text at most, as the file's truncation says; 0: any */
    bool longest_left;          /* and it is the first ones that go */
    int64_t longest_stride;     /* ids that a part repeats of the one before */
    bool longest_second;        /* but only of the second of two texts */
    struct tok_padding padding;
    bool draws;            /* ids of a text follow from the seed, too */
    const char *path;      /* NULL for TOK_NULL */
    char digest[SHA_TEXT]; /* SHA-256 of the file; of the description for TOK_NULL */
    bool beside; /* files beside a tokenizer.json change its tokens: that is in the digest, too */
};

const char *tok_type_name(enum tok_type type);         /* "SentencePieceTokenizer" */
const char *tok_specials_name(enum tok_specials mode); /* "text" */
enum tok_type tok_type_named(const char *name);        /* TOK_AUTO: no type is called so */

#endif
