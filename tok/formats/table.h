/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_TABLE_H
#define TOK_FORMATS_TABLE_H

/*
 * The formats of tokenizer files, one row each. What depends on the format follows from its row:
 * how a file is recognised, which file a folder stands for, which types --tokenizer-type may ask
 * for, who opens it, who reads its parts for editing, which options have an effect on it and how
 * its tokens are spelled. A new format is a file with the row's functions (readers.h declares them)
 * and a row in table.c; a type name of its own is a line of TOK_TYPES in tok/core/types.h besides.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/core/engine.h"
#include "tok/pipeline/pipeline.h"

/*
 * Whether a file's content is of the format. Rows are asked from the first on, and the first that
 * says yes counts; `o` tells apart formats with the same content. The last row with a file takes
 * what no other does, and its opener refuses what is not its own.
 */
typedef bool format_looks(const struct tok_options *o, const char *p, size_t n);

/*
 * Reads a file as parts. The file's memory may be taken, leaving it empty. Of `info` a reader may
 * set the type, where the content decides it, and what it makes of the digest. On failure `s` holds
 * what was read so far and is the caller's to finish. Messages begin with s->path.
 */
typedef int format_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
                        struct tok_info *info, struct err *e);

/* The ids of the special tokens that the format gives a role, end of document included. */
typedef void format_ids(const struct tok_options *o, const struct tok_engine *g,
                        struct tok_info *info);

/* An engine of its own, instead of parts: fills `ret` and `info`; `p` is not kept, and is NULL for
 * a format without a file. On failure nothing is left to free. */
typedef int format_open(const struct tok_options *o, const char *p, size_t n,
                        struct tok_engine *ret, struct tok_info *info, struct err *e);

/* How a vocabulary spells the bytes of a token. */
enum format_spelling {
    SPELLING_MARKS,   /* U+2581 for a space, <0x41> for a byte; also plain words */
    SPELLING_LETTERS, /* GPT-2's letters for bytes */
    SPELLING_HASHES,  /* ## before what continues a word */
    SPELLING_ANY      /* each file its own way */
};

struct format_type {
    enum tok_type type;
    const char *option; /* the one option that names its file, "vocab-file"; NULL: any */
    const char *facts;  /* as those of the format, of this type alone; NULL: none */
};

/* A file name that a folder is searched for, or "*" and how it ends. Names come in the order of
 * their turns, from 1 on; formats that share a name give it the same turn. */
struct format_file {
    const char *name;
    int turn;
};

struct format {
    const char *name;           /* "tiktoken" */
    const char *title;          /* in messages, with its article: "a vocab.txt" */
    const char *holds;          /* what a file of another type was seen to hold */
    const char *reads;          /* what its types read, for messages; NULL: nothing is to be said */
    struct format_type type[5]; /* the first is that of a file that was recognised; ended by 0 */
    struct format_file file[8]; /* ended by a NULL name */
    bool renumbered;     /* a vocab.json and a model in one folder: neither gives the ids alone */
    format_looks *looks; /* NULL: there is no file */
    format_read *read;   /* either this, and the ids, */
    format_ids *ids;
    format_open *open; /* or this */
    /*
     * Words for what options ask of a tokenizer, separated by spaces (see tok_flags_fact):
     * "sentencepiece", "gpt2", "tiktoken" (it is one), "template" (it may put tokens round a text),
     * "special" (special tokens are found in text), "skips" (decoding can leave them out),
     * "matches-eod" (the end of document is found as a string), "vocab-size" (it needs telling).
     */
    const char *facts;
    enum format_spelling spelling;
};

const struct format *formats_all(size_t *ret_n); /* the table, in the order of recognition */

/* The first row with the type, NULL for TOK_AUTO; *ret_type, which may be NULL, is its entry. */
const struct format *format_of_type(enum tok_type type, const struct format_type **ret_type);
const struct format *format_named(const char *name); /* NULL: there is none */

/* The row that a file's content calls for. */
const struct format *format_of_file(const struct tok_options *o, const char *p, size_t n);

/* Whether a path ends as one of the formats' file names does, ".json" and so on. */
bool format_ends_name(const char *path);

bool format_has_type(const struct format *f, enum tok_type type);
bool format_type_has(enum tok_type type, const char *fact); /* a row has the type and the fact */
bool format_knows(const char *fact);                        /* some row has it */

#endif
