/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TOKENIZER_OPTIONS_H
#define TOK_TOKENIZER_OPTIONS_H

/*
 * How a program's user names a tokenizer: the options that `tok`, `prep` and `train` share, under
 * Megatron-LM's names, with `--tokenizer PATH` as the short form that recognises the file.
 *
 * A program puts a `struct tok_flags` into its own struct of options and the rows into its table:
 *
 *     static const struct opt table[] = {
 *         TOK_FLAG_ROWS(struct prep_options, tokenizer, VERB_BUILD),
 *         TOK_FLAG_VOCAB_SIZE_ROW(struct prep_options, tokenizer, VERB_BUILD),
 *         ...
 *
 * `--vocab-size` is a row of its own, because the name has a second meaning where a vocabulary is
 * learnt (`tok train`). The strings belong to the options of the program; nothing is owned here.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/cli/opt.h"
#include "tok/tokenizer/tokenizer.h"

struct tok_flags {
    const char *path;                 /* --tokenizer */
    int type;                         /* --tokenizer-type, an enum tok_type */
    const char *model;                /* --tokenizer-model */
    const char *vocab_file;           /* --vocab-file */
    const char *merges;               /* --merge-file */
    const char *pattern;              /* --tiktoken-pattern */
    int64_t num_special;              /* --tiktoken-num-special-tokens */
    struct opt_list tiktoken_special; /* --tiktoken-special-tokens */
    int64_t vocab_size;               /* --vocab-size */
    const char *eod_token;            /* --eod-token */
    int specials;                     /* --specials, an enum tok_specials */
    int engine;                       /* --engine, an enum tok_engine_choice */
    bool strict;                      /* --strict */
    bool add_template;                /* --add-special-tokens */
    const char *dropout;              /* --dropout, of tok encode alone */
    int64_t seed;                     /* --seed, likewise */
    bool sample;                      /* --output_format sample_id, sample_piece */
    const char *alpha;                /* --alpha */
    int64_t nbest;                    /* --nbest_size */
    int64_t long_text;                /* --long-text-memory, MiB; 0: not given */
    bool no_digest;                   /* not an option: set by callers that need no digest */
};

/* "auto|SentencePieceTokenizer|..." */
#define TOK_FLAG_TYPE(type, name) "|" name
#define TOK_FLAG_TYPES "auto" TOK_TYPES(TOK_FLAG_TYPE)

/* "text|parse|error" */
#define TOK_FLAG_MODE(mode, name) "|" name
#define TOK_FLAG_SPECIALS (&(TOK_SPECIALS(TOK_FLAG_MODE))[1])

#define TOK_FLAG_ROWS(S, m, v)                                                                     \
    OPT_ROW(.name = "tokenizer", .type = OPT_TEXT, .offset = offsetof(S, m.path), .meta = "PATH",  \
            .group = "tokenizer", .verbs = v, .basic = true, .resumed = RESUMED_EQUAL,             \
            .local = true, .brief = "tokenizer file or folder, any known format",                  \
            .help = "tokenizer.json, .model, .tiktoken, vocab.json (of GPT-2 with merges.txt "     \
                    "next to it, or of whole words), BERT's vocab.txt, tekken.json, or a folder "  \
                    "with one of these; recognised by its content"),                               \
        OPT_ROW(.name = "tokenizer-type", .type = OPT_CHOICE, .offset = offsetof(S, m.type),       \
                .def = "auto", .meta = TOK_FLAG_TYPES, .group = "tokenizer", .verbs = v,           \
                .resumed = RESUMED_EQUAL, .help = "kind of tokenizer, by Megatron-LM's names"),    \
        OPT_ROW(.name = "tokenizer-model", .type = OPT_TEXT, .offset = offsetof(S, m.model),       \
                .meta = "PATH", .group = "tokenizer", .verbs = v, .resumed = RESUMED_EQUAL,        \
                .local = true, .help = "SentencePiece model"),                                     \
        OPT_ROW(.name = "vocab-file", .type = OPT_TEXT, .offset = offsetof(S, m.vocab_file),       \
                .meta = "PATH", .group = "tokenizer", .verbs = v, .alias = "vocab",                \
                .resumed = RESUMED_EQUAL, .local = true,                                           \
                .brief = "vocab.json or BERT's vocab.txt",                                         \
                .help = "vocab.json, an object of words and their ids, or BERT's vocab.txt; "      \
                        "--vocab is how argparse lets Megatron-LM's scripts write it"),            \
        OPT_ROW(.name = "merge-file", .type = OPT_TEXT, .offset = offsetof(S, m.merges),           \
                .meta = "PATH", .group = "tokenizer", .verbs = v, .needs = "@gpt2",                \
                .resumed = RESUMED_EQUAL, .local = true,                                           \
                .brief = "merges.txt of a GPT2BPETokenizer",                                       \
                .help = "merges.txt of a GPT2BPETokenizer, if it is not next to the vocab.json"),  \
        OPT_ROW(.name = "tiktoken-pattern", .type = OPT_TEXT, .offset = offsetof(S, m.pattern),    \
                .meta = "NAME|REGEX", .group = "tokenizer", .verbs = v, .needs = "@tiktoken",      \
                .resumed = RESUMED_FREE, .brief = "pre-token pattern of a .tiktoken file",         \
                .help = "pre-token pattern of a .tiktoken file whose number of ranks does not "    \
                        "identify it: r50k, p50k, cl100k, o200k, llama3, llama4, qwen, v1 and v2 " \
                        "of Megatron-LM, or a regular expression; for ranks of Llama 3 also "      \
                        "which ids its special tokens have: llama3, as in Meta's llama-models, "   \
                        "the default, or llama3-hf, as in the tokenizer.json of Llama 3.1"),       \
        OPT_ROW(.name = "tiktoken-num-special-tokens", .type = OPT_INT,                            \
                .offset = offsetof(S, m.num_special), .unset = "1000", .meta = "N",                \
                .group = "tokenizer", .verbs = v, .needs = "@tiktoken", .resumed = RESUMED_EQUAL,  \
                .brief = "special ids before the ranks of a TikTokenizer",                         \
                .help = "number of special tokens before the ranks of a TikTokenizer in JSON"),    \
        OPT_ROW(.name = "tiktoken-special-tokens", .type = OPT_LIST,                               \
                .offset = offsetof(S, m.tiktoken_special), .unset = "<unk>, <s>, </s>",            \
                .meta = "TOKENS", .group = "tokenizer", .verbs = v, .needs = "@tiktoken",          \
                .resumed = RESUMED_EQUAL, .brief = "names of the first of these special tokens",   \
                .help = "the first of these special tokens, <unk>, <s> and </s> included; the "    \
                        "others are <SPECIAL_3> and so on"),                                       \
        OPT_ROW(.name = "eod-token", .type = OPT_TEXT, .offset = offsetof(S, m.eod_token),         \
                .meta = "PIECE", .group = "tokenizer", .verbs = v, .needs = "@eod",                \
                .resumed = RESUMED_EQUAL, .brief = "token that ends a document",                   \
                .help = "token that ends a document, instead of the tokenizer's own"),             \
        OPT_ROW(.name = "specials", .type = OPT_CHOICE, .offset = offsetof(S, m.specials),         \
                .def = "text", .meta = TOK_FLAG_SPECIALS, .group = "tokenizer", .verbs = v,        \
                .needs = "@texts; @special", .resumed = RESUMED_FREE,                              \
                .brief = "special tokens spelled in the text",                                     \
                .help = "what a special token spelled inside a text becomes: ordinary text, the "  \
                        "token, or an error"),                                                     \
        OPT_ROW(.name = "engine", .type = OPT_CHOICE, .offset = offsetof(S, m.engine),             \
                .def = "own", .meta = "own|sentencepiece", .group = "tokenizer", .verbs = v,       \
                .needs = "@texts; @sentencepiece", .resumed = RESUMED_FREE,                        \
                .brief = "encoder for SentencePiece models",                                       \
                .help = "what encodes for a SentencePiece model: weft's own encoder, with the "    \
                        "ids of SentencePiece 0.2.2, or the libsentencepiece that weft was "       \
                        "built with, which may be older and then differs in rare texts"),          \
        OPT_ROW(.name = "strict", .type = OPT_SWITCH, .offset = offsetof(S, m.strict),             \
                .def = "false", .group = "tokenizer", .verbs = v, .needs = "@texts; @lenient",     \
                .resumed = RESUMED_FREE, .help = "stop at invalid UTF-8 instead of replacing it"), \
        OPT_ROW(.name = "long-text-memory", .type = OPT_INT, .offset = offsetof(S, m.long_text),   \
                .unset = "256", .min = 256, .max = 1048576, .meta = "MIB", .group = "tokenizer",   \
                .verbs = v, .needs = "@texts; @limited", .resumed = RESUMED_FREE,                  \
                .brief = "memory that a text in one piece may take",                               \
                .help = "MiB that a text may take which the tokenizer needs in one piece, or "     \
                        "which its normalizers make large; what is beyond is refused by name"),    \
        OPT_ROW(.name = "add-special-tokens", .type = OPT_SWITCH,                                  \
                .offset = offsetof(S, m.add_template), .def = "true", .group = "tokenizer",        \
                .verbs = v, .needs = "@texts; @frames; @template", .resumed = RESUMED_FREE,        \
                .brief = "apply the template of the tokenizer.json",                               \
                .help = "add the special tokens that the template of a tokenizer.json puts "       \
                        "around each text")

#define TOK_FLAG_VOCAB_SIZE_ROW(S, m, v)                                                           \
    OPT_ROW(.name = "vocab-size", .type = OPT_INT, .offset = offsetof(S, m.vocab_size),            \
            .meta = "N", .group = "tokenizer", .verbs = v, .resumed = RESUMED_EQUAL,               \
            .brief = "ids of a NullTokenizer or TikTokenizer",                                     \
            .help = "number of ids of a NullTokenizer, end of document not counted; of a "         \
                    "TikTokenizer in JSON, all of them (131072 if not given)")

/*
 * What the rows' `needs` ask of the tokenizers of a command (opts_warn_unused): "sentencepiece",
 * "gpt2", "tiktoken": that one is of this kind; "template", "special", "skips": that it may have a
 * template, special tokens in text, special tokens that decoding leaves out; "matches-eod": that it
 * finds its end of document as a string in text; "limited": that it limits what a text in one
 * piece may take. NULL: yes; else why not, in `why`. The rows also
 * ask the program itself: "texts" (the verb encodes texts), "lenient" (it replaces invalid UTF-8
 * unless told otherwise), "frames" (it uses templates), "eod" (it uses the end of document).
 */
const char *tok_flags_fact(struct tokenizer *const *t, size_t n, const char *fact, struct buf *why);

/* True if the user named any tokenizer at all. */
bool tok_flags_given(const struct tok_flags *f);

/*
 * Opens what the flags name. ERR_USAGE if they name nothing, two files, or a file by the wrong
 * option; otherwise as tok_open.
 */
int tok_open_flags(const struct tok_flags *f, struct tokenizer **ret, struct err *e);

struct tok_choice {
    const char *name, *value; /* of an option, without "--" */
};

enum { TOK_CHOICES = 4 };

/*
 * What the ids of a text depend on besides --specials and tok_info's type, digest, vocabulary size
 * and end of document: the options given. Returns their number. Values live as long as the flags
 * and what is appended to `list`.
 */
size_t tok_flags_choices(const struct tok_flags *f, struct tok_choice ret[TOK_CHOICES],
                         struct buf *list);

#endif
