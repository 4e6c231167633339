/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_SOURCE_H
#define PREP_INPUT_SOURCE_H

/*
 * Where items come from: the inputs one behind the other, as items. JSONL, JSON arrays and text
 * become blocks of lines, Parquet blocks of texts, the framed stream of `tok encode --format docs`
 * becomes runs of documents; a block never spans two inputs. Of lines in a file that is not
 * compressed only the ends are looked for, and the worker reads them. One thread at a time,
 * source_follow perhaps beside the others.
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
    bool pretokenized; /* the one input has ids */
    bool folders;      /* one among the inputs stands for the files below it */
    bool no_tables;    /* Parquet is refused */
    enum source_format format;
    struct text_form text; /* what of SOURCE_TEXT is a document */
};

struct source_input {
    char *path;         /* "-" is standard input */
    uint64_t bytes;     /* of the file; 0 if not known */
    char xxh[XXH_TEXT]; /* of the file, once all of it is read; else "" */
    bool empty;         /* a file of no bytes */
    bool absent;        /* nothing of it is in the share */
    bool part;          /* only lines that begin in bytes [begin, stop) */
    uint64_t begin, stop;
};

struct source {
    struct source_input *input; /* owned */
    size_t ninputs;
    bool framed;           /* the one input is a framed stream */
    struct docstream docs; /* if so; docs.header is known after source_open */
    struct source_form form;
    struct long_plan plan; /* for lines that are too long for a block */
    /* private */
    size_t at;      /* the input that is being read */
    struct zin *in; /* NULL: it is to be opened */
    bool array;     /* it is a JSON array */
    bool table;     /* it is a Parquet file: its bytes through `in` are for the digest alone */
    struct rows rows;
    struct plain plain; /* open: its lines are cut where they lie, and workers read them */
    struct lines lines;
    uint64_t long_ids;  /* a long document of the framed stream is next: its ids */
    uint64_t before;    /* bytes of the inputs that are done */
    uint64_t from, to;  /* the share, if there is one */
    uint64_t documents; /* of the framed stream, up to the end of the last item */
    bool failed;        /* the item with the error was the last one */
};

/*
 * `pattern`: n names or shell patterns, as names_expand takes them. SOURCE_AUTO: an input whose
 * first byte after white space is '[' is a JSON array, one that begins with PAR1 a Parquet file,
 * any other is JSONL. Files that their first bytes show to be something else are ERR_DATA
 * (base/io/magic.h), except in SOURCE_TEXT. With `pretokenized`
 * there is one, whose first bytes tell JSON from the framed stream, and its header is read. ERR_IO
 * for what is not there. What `form` and `plan` point to must live as long as the source. On
 * failure nothing is open.
 */
int source_open(struct source *s, const char *const *pattern, size_t n,
                const struct source_form *form, const struct long_plan *plan, struct err *e);
void source_close(struct source *s);

const char *source_name(const struct source *s, size_t input); /* for messages */

/* All files' bytes, 0 if not known. */
uint64_t source_bytes(const struct source *s);

/*
 * After source_open: of all the inputs' bytes, one behind the other, only the i-th of n equal
 * shares: the lines that begin in it of JSONL and of text by lines, if they are not compressed, and
 * other files if their first byte lies in it. So the documents of all shares, one behind the other,
 * are those of the whole. ERR_USAGE for standard input and framed streams.
 */
int source_share(struct source *s, unsigned i, unsigned n, struct err *e);

/*
 * Before the first item: goes on behind the item whose `input` and `end` these were. What lies
 * before is read again for the digest, now or by source_follow if anything follows. ERR_DATA if the
 * input is shorter than that.
 */
int source_seek(struct source *s, size_t input, uint64_t end, struct err *e);

/*
 * The next item; false: the end. An error is in the code of the last item. *ret_bytes: about what
 * it takes in memory.
 */
bool source_fill(struct source *s, struct item *it, uint64_t *ret_bytes);

/*
 * For each item in their order, with its text loaded: what it read enters the digest of its input.
 * A failure becomes the item's.
 */
void source_follow(struct source *s, struct item *it);

#endif
