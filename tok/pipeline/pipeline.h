/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_PIPELINE_H
#define TOK_PIPELINE_PIPELINE_H

/*
 * A tokenizer as components, the way tokenizer.json describes one, and what the simpler files
 * (vocab.json with merges.txt, tiktoken ranks, vocab.txt) amount to:
 *
 *     raw added tokens -> normalizer -> added tokens of normalized text -> pre-tokenizer
 *     -> pre-tokens -> model -> ids -> template
 *
 * A reader fills a `struct pipe_spec`; pipe_open compiles it into a `struct tok_engine`. Components
 * mean what they mean in Hugging Face's tokenizers 0.23.3, id for id (tests/interop/tok_hf.py).
 *
 * A spec owns its data: strings are in its arena or in `text`. pipe_spec_finish accepts half-filled
 * ones. Symbols of a model are ids of its vocabulary.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "tok/core/engine.h"
#include "tok/bpe/ranks_to_merges.h"
#include "tok/pretok/regex.h"
#include "tok/pretok/split_open.h"
#include "tok/text/vocab.h"
#include "tok/pipeline/limits.h"

/* ---- steps --------------------------------------------------------------------------------- */

enum norm_kind {
    NORM_NFC,
    NORM_NFD,
    NORM_NFKC,
    NORM_NFKD,
    NORM_LOWERCASE,
    NORM_STRIP,         /* left, right */
    NORM_STRIP_ACCENTS, /* removes combining marks */
    NORM_NMT,
    NORM_BERT,       /* clean, chinese, accents, lower */
    NORM_PREPEND,    /* content */
    NORM_REPLACE,    /* pattern, content */
    NORM_BYTE_LEVEL, /* bytes as letters of GPT-2's alphabet */
    NORM_PRECOMPILED /* content: rules of precompiled.h */
};

struct norm_step {
    enum norm_kind kind;
    bool left, right;
    bool clean, chinese, accents, lower;
    struct regex *pattern;
    struct string_ref content;
};

enum pre_kind {
    PRE_BYTE_LEVEL,       /* prefix_space; pattern or NULL; then bytes as letters */
    PRE_SPLIT,            /* pattern, behavior, invert */
    PRE_METASPACE,        /* content: the mark; scheme, split */
    PRE_WHITESPACE,       /* runs of word characters, or of other characters except white space */
    PRE_WHITESPACE_SPLIT, /* drops white space */
    PRE_BERT,             /* drops white space, isolates punctuation */
    PRE_PUNCTUATION,      /* behavior */
    PRE_DIGITS,           /* single */
    PRE_DELIMITER,        /* content: one character, which is dropped */
    PRE_FIXED_LENGTH,     /* length */
    PRE_SCRIPTS           /* runs of one script */
};

enum pre_scheme { META_ALWAYS, META_FIRST, META_NEVER };

struct pre_step {
    enum pre_kind kind;
    bool prefix_space, invert, split, single;
    enum pre_behavior behavior;
    enum pre_scheme scheme;
    struct regex *pattern;
    struct string_ref content;
    size_t length;
};

enum dec_kind {
    DEC_BYTE_LEVEL,
    DEC_BYTE_FALLBACK,
    DEC_FUSE,
    DEC_STRIP,     /* content: one character; start, stop */
    DEC_REPLACE,   /* pattern, content */
    DEC_METASPACE, /* content: the mark; drop_first */
    DEC_WORDPIECE, /* content: the prefix; cleanup */
    DEC_BPE,       /* content: the suffix */
    DEC_CTC        /* content: pad; delimiter; cleanup */
};

struct dec_step {
    enum dec_kind kind;
    bool cleanup, drop_first;
    struct regex *pattern;
    struct string_ref content, delimiter;
    size_t start, stop;
};

/* ---- the specification --------------------------------------------------------------------- */

struct pipe_token {
    const char *text; /* NUL-terminated */
    size_t length;
    int32_t id;     /* set by pipe_open */
    int64_t listed; /* the id in tokenizer.json, used only for files beside it */
    bool special, normalized, single_word, lstrip, rstrip;
    bool skipped; /* by decoding without special tokens; set by pipe_open */
};

enum pipe_model { MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDPIECE, MODEL_WORDLEVEL };

/* The result of post-processors: lists of ids, in one of which ROUND_TEXT stands for the text. */
struct pipe_round {
    int32_t *id;
    size_t n;
    size_t *end; /* end of each list */
    size_t nlists;
};

enum { ROUND_TEXT = -1 };

struct pipe_spec {
    const char *path;          /* for messages */
    struct pipe_limits limits; /* the default; pipe_open sets those of the options */
    struct arena arena;
    struct buf text; /* of the vocabulary's strings */

    struct tok_vocab vocab;

    enum pipe_model model;
    struct bpe_merges merges;              /* MODEL_BPE */
    struct string_ref unk, prefix, suffix; /* p is NULL: none */
    bool fuse_unk, byte_fallback, ignore_merges;
    double dropout;   /* MODEL_BPE: probability of leaving out a merge */
    double *score;    /* MODEL_UNIGRAM, by id */
    int64_t unk_id;   /* MODEL_UNIGRAM; -1: none */
    size_t max_chars; /* MODEL_WORDPIECE */

    struct pipe_token *token;
    size_t ntokens;
    char beside[SHA_TEXT]; /* digest of what files beside this one add or change; or "" */

    struct norm_step *norm;
    struct pre_step *pre;
    struct dec_step *dec;
    size_t nnorm, npre, ndec;
    bool no_decoder; /* tokens are joined by spaces */

    int64_t longest;   /* the file's truncation: ids of a text; 0: none */
    bool longest_left; /* truncation removes the first ids */
    int64_t longest_stride;
    bool longest_second;
    struct tok_padding padding;
    struct string_ref pad_token;

    int32_t *before, *after; /* the template around a text */
    size_t nbefore, nafter;

    struct tok_trim *trim; /* post-processors that trim white space from offsets, in order */
    size_t ntrims;
    struct pipe_round round; /* while it is read */
    bool own_bytes;          /* tokens span their own bytes, not whole characters */
};

void pipe_spec_init(struct pipe_spec *s, const char *path);
void pipe_spec_finish(struct pipe_spec *s);

/* Appends an added token; the caller fills the other fields. */
struct pipe_token *pipe_add_token(struct pipe_spec *s, const char *text, size_t n);

struct norm_step *pipe_add_norm(struct pipe_spec *s, enum norm_kind kind);
struct pre_step *pipe_add_pre(struct pipe_spec *s, enum pre_kind kind);
struct dec_step *pipe_add_dec(struct pipe_spec *s, enum dec_kind kind);

/* A step for messages, as in: pre_tokenizer 1 of 2, Split of "x",. */
void pipe_say_norm(const struct pipe_spec *s, size_t i, struct buf *b);
void pipe_say_pre(const struct pipe_spec *s, size_t i, struct buf *b);

/*
 * Makes an engine of the spec and consumes it in any case: assigns ids to the added tokens, builds
 * the model's tables. ERR_DATA if components do not fit each other.
 */
int pipe_open(struct pipe_spec *s, const struct tok_options *o, struct tok_engine *ret,
              struct tok_info *info, struct err *e);

#endif
