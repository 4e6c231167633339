/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_TABLE_H
#define TOK_FORMATS_TABLE_H

/*
 * The formats of tokenizer files, one row each. Everything that depends on the format follows from
 * its row: how a file is recognised, which file in a folder is used, which types --tokenizer-type
 * may name, who opens it, who reads its components for editing, which options have an effect on it
 * and how its tokens are spelled. A new format is a file with the row's functions (readers.h
 * declares them) and a row in table.c; a new type name is also a line of TOK_TYPES in
 * tok/core/types.h.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/core/engine.h"
#include "tok/pipeline/pipeline.h"

/*
 * Whether a file's content has the format. Rows are tried in order, and the first match counts; `o`
 * distinguishes formats with the same content. The last row with a file accepts everything else,
 * and its opener refuses what it cannot read.
 */
typedef bool format_looks(const struct tok_options *o, const char *p, size_t n);

/*
 * Reads a file as components. It may take the file's memory, leaving it empty. In `info` a reader
 * may set the type, if the content decides it, and what it adds to the digest. On failure `s` has
 * what was read so far, and the caller finishes it. Messages begin with s->path.
 */
typedef int format_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
                        struct tok_info *info, struct err *e);

/* Sets the ids of the special tokens that have a role in the format, end of document included. */
typedef void format_ids(const struct tok_options *o, const struct tok_engine *g,
                        struct tok_info *info);

/* Opens an engine of its own, instead of a spec: fills `ret` and `info`; does not keep `p`, which
 * is NULL for a format without a file. On failure nothing is left to free. */
typedef int format_open(const struct tok_options *o, const char *p, size_t n,
                        struct tok_engine *ret, struct tok_info *info, struct err *e);

/* How a vocabulary spells the bytes of a token. */
enum format_spelling {
    SPELLING_MARKS,   /* U+2581 for a space, <0x41> for a byte; also plain words */
    SPELLING_LETTERS, /* GPT-2's letters for bytes */
    SPELLING_HASHES,  /* ## before what continues a word */
    SPELLING_ANY      /* depends on the file */
};

/* Begins the line of what a file does that `open` took (meaning.h), beside its tokens. */
struct meaning;
typedef void format_means(struct meaning *m, const struct tok_options *o, const char *p, size_t n);

struct format_type {
    enum tok_type type;
    const char *option; /* the one option that names its file, "vocab-file"; NULL: any */
    const char *facts;  /* as those of the format, for this type alone; NULL: none */
};

/* A file name to look for in a folder, or "*" and an ending. Names are tried in the order of their
 * turns, from 1 on; formats that share a name give it the same turn. */
struct format_file {
    const char *name;
    int turn;
};

struct format {
    const char *name;           /* "tiktoken" */
    const char *title;          /* in messages, with its article: "a vocab.txt" */
    const char *holds;          /* what a file of another type turned out to be */
    const char *reads;          /* what its types read, for messages; NULL: no message */
    struct format_type type[5]; /* the first is that of a recognised file; ends with 0 */
    struct format_file file[8]; /* ends with a NULL name */
    bool renumbered;     /* a vocab.json and a model in one folder: neither alone has the ids */
    format_looks *looks; /* NULL: the format has no file */
    format_read *read;   /* either this, and the ids, */
    format_ids *ids;
    format_open *open;   /* or this, */
    format_means *means; /* and this; NULL: ids and tokens are all there is */
    /*
     * Words for what options require of a tokenizer, separated by spaces (see tok_flags_fact):
     * "sentencepiece", "gpt2", "tiktoken" (it is one), "template" (it may add tokens around a
     * text), "special" (special tokens are matched in text), "skips" (decoding can leave them out),
     * "matches-eod" (the end of document is matched as a string), "vocab-size" (must be given),
     * "limited" (what a text in one piece may take is limited, tok/pipeline/limits.h).
     */
    const char *facts;
    enum format_spelling spelling;
};

const struct format *formats_all(size_t *ret_n); /* the table, in the order of recognition */

/* The first row with the type, NULL for TOK_AUTO; *ret_type, which may be NULL, is its entry. */
const struct format *format_of_type(enum tok_type type, const struct format_type **ret_type);
const struct format *format_named(const char *name); /* NULL: unknown */

/* The row that recognises a file's content. */
const struct format *format_of_file(const struct tok_options *o, const char *p, size_t n);

/* Whether a path has the ending of one of the formats' file names, ".json" and so on. */
bool format_ends_name(const char *path);

bool format_has_type(const struct format *f, enum tok_type type);
bool format_type_has(enum tok_type type, const char *fact); /* a row has the type and the fact */
bool format_knows(const char *fact);                        /* some row has it */

#endif
