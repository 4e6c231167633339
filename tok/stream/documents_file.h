/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_STREAM_DOCUMENTS_FILE_H
#define TOK_STREAM_DOCUMENTS_FILE_H

/*
 * The open file of a reader of documents (documents.h): its format, its bytes and its lines. What
 * the lines mean is up to documents.c. Private to these two files.
 */

#include "base/core/buf.h"
#include "base/format/jscan.h"
#include "base/format/jsonl.h"
#include "tok/stream/documents.h"
#include "tok/stream/parquet_rows.h"

struct docs {
    const char *const *path;
    size_t npath, next_path;
    enum docs_format format, now; /* requested, and of the open file */
    const char *const *key;
    size_t nkeys;
    bool had_keys, had_any, refused;
    char **names; /* from docs_open, else NULL */
    bool checked; /* regular files were checked */
    size_t nempty, first_empty;
    size_t ncr;
    struct err cr; /* the warning about the first of them */

    struct zin *in;      /* NULL between files */
    struct zin *adopted; /* the first file, until it is its turn */
    struct buf buf;
    size_t start;    /* of what is not consumed yet */
    bool ended;      /* nothing left to read in this file */
    uint64_t line;   /* number of the last line taken */
    uint64_t blank;  /* number of a blank line of JSONL, 0 if there was none */
    uint64_t before; /* bytes of the finished files */

    struct jsonl *parser;
    struct jsonl_value *value;
    size_t next_value; /* nkeys: take the next line */

    const char *beside; /* NULL: every line is kept whole */
    size_t longest;     /* that is kept whole else */
    bool scanned;       /* the values are from `scan`, for a long line */
    struct jscan scan;
    uint64_t at; /* position in the file of the current value */
    struct buf part;

    struct docs_rows rows; /* rows.file NULL: the current file has lines */
    char *rows_beside;
};

/*
 * Opens the next path and detects its format (`now`): lines, or the rows of Parquet (rows.file).
 * ERR_DATA for what is not text, with `refused` set.
 */
int docs_file_open(struct docs *d, struct err *e);

/* Closes the current file. */
void docs_file_leave(struct docs *d);

/* Bytes of it that were read, before decompression. */
uint64_t docs_file_consumed(const struct docs *d);

/*
 * The next line without its line feed; *ret_more false at the end of the file. *ret is NULL for a
 * line longer than d->longest if lines come in parts: docs_file_line_part gives the text.
 */
int docs_file_line(struct docs *d, const char **ret, size_t *ret_n, bool *ret_more, struct err *e);
int docs_file_line_part(struct docs *d, const char **ret, size_t *ret_n, bool *ret_last,
                        struct err *e);

/* The whole lines in the buffer, at least one; the last of a file may lack its line feed. */
int docs_file_lines(struct docs *d, const char **ret, size_t *ret_n, bool *ret_more, struct err *e);

#endif
