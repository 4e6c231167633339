/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_EDIT_RECIPE_H
#define TOK_EDIT_RECIPE_H

/*
 * A tokenizer as a file describes it, to be changed and written, in the same format or another:
 * vocabulary, merges, added tokens and the components of the pipeline. `tok convert`, `extend`,
 * `merge` and `prune` read one, alter it and write it.
 *
 * Components are those of a tokenizer.json, as JSON. A recipe read from a SentencePiece model also
 * keeps the model's own fields, so that writing it back loses none.
 *
 * A recipe owns its data; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "tok/pipeline/pipeline.h"
#include "tok/sp/model.h"
#include "tok/tokenizer/tokenizer.h"

/* The formats that can be written, by their names in tok/formats/table.c, which --to takes. */
#define RECIPE_FORMATS(FORMAT)                                                                     \
    FORMAT(RECIPE_HF, "huggingface") /* tokenizer.json */                                          \
    FORMAT(RECIPE_GPT2, "gpt2")      /* vocab.json and merges.txt */                               \
    FORMAT(RECIPE_TIKTOKEN, "tiktoken")                                                            \
    FORMAT(RECIPE_BERT, "bert")        /* vocab.txt */                                             \
    FORMAT(RECIPE_SP, "sentencepiece") /* .model */

enum recipe_format {
    RECIPE_AUTO, /* by the file's name */
#define RECIPE_FORMAT_VALUE(format, name) format,
    RECIPE_FORMATS(RECIPE_FORMAT_VALUE)
#undef RECIPE_FORMAT_VALUE
};

#define RECIPE_CHOICE(format, name) "|" name
#define RECIPE_CHOICES "auto" RECIPE_FORMATS(RECIPE_CHOICE)

struct recipe_piece {
    const char *text; /* NUL-terminated; NULL: no piece has this id */
    size_t n;
    double score;            /* of unigram and SentencePiece */
    enum sp_piece_type type; /* SP_NORMAL if the format has no types */
};

struct recipe_merge {
    int32_t left, right, id;
};

struct recipe_token {
    const char *text;
    size_t n;
    int32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
};

enum recipe_component {
    COMPONENT_TRUNCATION,
    COMPONENT_PADDING,
    COMPONENT_NORMALIZER,
    COMPONENT_PRE_TOKENIZER,
    COMPONENT_POST_PROCESSOR,
    COMPONENT_DECODER,
    RECIPE_COMPONENTS
};

struct recipe {
    char *path; /* for messages */
    enum recipe_format from;
    enum tok_type type; /* the type it was opened as */
    struct arena arena;

    enum pipe_model model;
    struct recipe_piece *piece; /* by id */
    size_t npieces;
    struct string_map words;    /* pieces to ids; see recipe_index */
    struct recipe_merge *merge; /* MODEL_BPE; empty for a SentencePiece model until derived */
    size_t nmerges;
    struct recipe_token *token; /* by id, ascending */
    size_t ntokens;

    const char *unk, *prefix, *suffix; /* NULL: none */
    bool fuse_unk, byte_fallback, ignore_merges;
    double dropout; /* of merges */
    int64_t unk_id;
    size_t max_chars;

    const char *component[RECIPE_COMPONENTS]; /* JSON; NULL: null */
    const char *pattern; /* what splits the text of a byte-level vocabulary; NULL: none */
    bool listed;         /* RECIPE_TIKTOKEN: it was a list in JSON */

    struct sp_model sp;    /* RECIPE_SP: the model that was read; its pieces are not used */
    const char *fields[6]; /* RECIPE_SP: the messages with these field numbers, unchanged */
    size_t nfields[6];
    struct buf notes; /* what the target does not keep, a sentence per line */
    struct pipe_spec store;
};

/* False: the type has no recipe (whole words, ids in decimal). */
bool recipe_can_read(enum tok_type type);

/*
 * Reads the file of an open tokenizer, which was opened with `o`. ERR_DATA: the format has no
 * recipe (whole words, ids in decimal).
 */
int recipe_read(struct recipe *r, const struct tokenizer *t, const struct tok_options *o,
                struct err *e);
void recipe_finish(struct recipe *r);

/* Rebuilds r->words after pieces changed. */
void recipe_index(struct recipe *r);
int32_t recipe_find(const struct recipe *r, const char *text, size_t n); /* -1: none */

/* Appends a piece or an added token; the caller fills the other fields. */
struct recipe_piece *recipe_add_piece(struct recipe *r, const char *text, size_t n);
struct recipe_token *recipe_add_token(struct recipe *r, const char *text, size_t n, int32_t id);

struct recipe_token *recipe_token_of(const struct recipe *r, int32_t id); /* NULL: none */

/* Appends a text for a message, with control characters as \\n and so on. */
void recipe_put_shown(struct buf *b, const char *text);

/* Without a full stop; a repeated note is dropped. */
void recipe_note(struct recipe *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Of a unigram model that goes from SentencePiece to a tokenizer.json, or back: a note where two
 * segmentations of one text have sums of scores that rounding decides. */
void recipe_note_ties(struct recipe *r);

const char *recipe_format_name(enum recipe_format f); /* "a tokenizer.json" */

/* ---- one format as another ------------------------------------------------------------------ */

/*
 * Converts the recipe to what the format can hold, or ERR_USAGE with what it cannot express. What
 * only concerns templates and the role of special tokens is dropped with a note.
 */
int recipe_to(struct recipe *r, enum recipe_format format, struct err *e);

/*
 * What a tokenizer.json may have and the other formats do not, in words: dropout, truncation,
 * padding, template. Returns their number.
 */
enum { RECIPE_EXTRAS = 4, RECIPE_EXTRA = 64 /* bytes */ };
size_t recipe_extras(const struct recipe *r, char ret[RECIPE_EXTRAS][RECIPE_EXTRA]);

/*
 * recipe_sp.c: a SentencePiece model's pipeline as components of a tokenizer.json, and the reverse.
 */
int recipe_from_sp(struct recipe *r, struct err *e);
int recipe_to_sp(struct recipe *r, struct err *e);

/*
 * The merges of a vocabulary in which a higher score, or a lower rank (`by_id`), merges first: all
 * splits of each piece into two pieces, in the order of transformers' converters.
 */
void recipe_derive_merges(struct recipe *r, bool by_id);

/* ERR_USAGE: "FILE: FORMAT cannot express WHATNAME", or a component, by the types in it. */
int recipe_refuse(const struct recipe *r, enum recipe_format f, struct err *e, const char *what,
                  const char *name);
int recipe_refuse_component(const struct recipe *r, enum recipe_format f,
                            enum recipe_component component, struct err *e);

/* A normal piece with a character that is not a normal piece by itself; NULL: none. */
const char *recipe_lone_character(const struct recipe *r);

/*
 * Readers of a tokenizer.json give an added token that the vocabulary lacks the next id after its
 * pieces, whatever the file says. True if that is the id of each.
 */
bool recipe_tokens_follow(const struct recipe *r);

/* Moves the added tokens into the pieces, at their ids. */
void recipe_settle_tokens(struct recipe *r);

/* ---- writing -------------------------------------------------------------------------------- */

void write_hf(const struct recipe *r, struct buf *b);
void write_sp(const struct recipe *r, struct buf *b);

/* The files of a recipe in its format, under a path; see recipe_files. */
struct recipe_file {
    char *path;
    struct buf content;
};

/*
 * The format that a path implies, if `format` is RECIPE_AUTO; the files and their contents, first
 * the one that readers look for. ERR_USAGE: the path does not name a file of the format.
 */
enum recipe_format recipe_format_of(const char *path);
int recipe_paths(enum recipe_format format, const char *path, char *ret[2], size_t *ret_n,
                 struct err *e); /* the names only, for the caller to free; nothing on failure */
int recipe_files(const struct recipe *r, enum recipe_format format, const char *path,
                 struct recipe_file ret[2], size_t *ret_n, struct err *e);
void recipe_files_finish(struct recipe_file *f, size_t n);

/*
 * Writes the files, all or none. Before they appear, `prove` (may be NULL) is given their temporary
 * location, under their own names; if it fails, none appears, and its message uses the final names.
 */
typedef int recipe_prove(void *arg, const struct recipe_file *staged, size_t n, struct err *e);
int recipe_save(const struct recipe_file *f, size_t n, recipe_prove *prove, void *arg,
                struct err *e);

#endif
