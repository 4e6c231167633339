/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_SOURCE_H
#define PREP_INPUT_SOURCE_H

/*
 * The inputs, in order, as items. JSONL, JSON arrays and text become blocks of lines, Parquet
 * blocks of texts, the framed stream of `tok encode --format docs` runs of documents; a block never
 * spans two inputs. In an uncompressed file only the ends of blocks are found here, and the worker
 * reads the lines. One thread at a time; source_follow may run beside the other functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/io/zin.h"
#include "prep/input/block.h"
#include "prep/input/lines.h"
#include "prep/input/plain_file.h"
#include "prep/input/parquet_rows.h"
#include "prep/input/text_in.h"
#include "tok/stream/framed_stream.h"

enum source_format { SOURCE_AUTO, SOURCE_JSONL, SOURCE_JSON, SOURCE_TEXT, SOURCE_PARQUET };

extern const char *const source_formats[]; /* their names */

struct source_form {
    bool pretokenized; /* the only input has ids */
    bool folders;      /* a folder stands for the files below it */
    bool no_tables;    /* Parquet is rejected */
    enum source_format format;
    struct text_form text; /* what a document is, for SOURCE_TEXT */
};

struct source_input {
    char *path;         /* "-" is standard input */
    uint64_t bytes;     /* of the file; 0 if unknown */
    char xxh[XXH_TEXT]; /* of the file, once all of it was read; else "" */
    bool empty;         /* a file of no bytes */
    bool absent;        /* not in the share */
    bool part;          /* only lines that begin in bytes [begin, stop) */
    uint64_t begin, stop;
};

struct source {
    struct source_input *input; /* owned */
    size_t ninputs;
    bool framed;           /* the only input is a framed stream */
    bool compressed;       /* an input that was read so far is */
    struct docstream docs; /* if so; docs.header is known after source_open */
    struct source_form form;
    struct long_plan plan; /* for lines that are too long for a block */
    /* private */
    size_t at;      /* the current input */
    struct zin *in; /* NULL: not opened yet */
    bool array;     /* it is a JSON array */
    bool table;     /* it is a Parquet file; `in` is used only for the digest */
    struct rows rows;
    struct plain plain; /* open: only split here, workers read the lines */
    struct lines lines;
    uint64_t long_ids;  /* ids of the long document that is next in the framed stream */
    uint64_t before;    /* bytes of the finished inputs */
    uint64_t from, to;  /* the share, if there is one */
    uint64_t documents; /* of the framed stream, up to the end of the last item */
    bool failed;        /* the item with the error was the last one */
};

/*
 * `pattern`: n names or shell patterns, as for names_expand. SOURCE_AUTO: an input whose first byte
 * after white space is '[' is a JSON array, one that begins with PAR1 a Parquet file, any other is
 * JSONL. Other known formats are ERR_DATA (base/io/magic.h), except with SOURCE_TEXT. With
 * `pretokenized` there is one input, JSON or a framed stream by its first bytes, and the header of
 * the stream is read. ERR_IO for missing files. What `form` and `plan` point to must outlive the
 * source. On failure nothing is open.
 */
int source_open(struct source *s, const char *const *pattern, size_t n,
                const struct source_form *form, const struct long_plan *plan, struct err *e);
void source_close(struct source *s);

const char *source_name(const struct source *s, size_t input); /* for messages */

/* The size of all files in bytes, 0 if unknown. */
uint64_t source_bytes(const struct source *s);

/*
 * After source_open: restricts the inputs to the i-th of n equal shares of their concatenated
 * bytes: the lines of uncompressed JSONL and text by lines that begin in it, and other files if
 * their first byte is in it. So the documents of all shares, concatenated, are those of the whole.
 * ERR_USAGE for standard input and framed streams.
 */
int source_share(struct source *s, unsigned i, unsigned n, struct err *e);

/*
 * Before the first item: continues after the item with this `input` and `end`. What precedes it is
 * read again for the digest, now, or by source_follow if something follows. ERR_DATA if the input
 * is shorter than that.
 */
int source_seek(struct source *s, size_t input, uint64_t end, struct err *e);

/*
 * The next item; false at the end. An error is in the code of the last item. *ret_bytes: roughly
 * the memory that it takes.
 */
bool source_fill(struct source *s, struct item *it, uint64_t *ret_bytes);

/*
 * For each item in order, with its text loaded: adds what it read to its input's digest. A failure
 * becomes the item's.
 */
void source_follow(struct source *s, struct item *it);

#endif
