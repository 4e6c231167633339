/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_DOCS_H
#define TOK_DOCS_H

/*
 * Documents of text out of files and streams, one after another: the lines of plain text, or the
 * strings under some keys of JSONL. Plain, zstd or gzip, by content.
 *
 * DOCS_AUTO takes a file as JSONL if its name says so (.jsonl, .ndjson, also before .zst and .gz),
 * or else if its first line is a JSON object other than {}. Plain text is cut at line
 * feeds and nowhere else, nothing is stripped (as spm_train and spm_encode read it). In JSONL a
 * byte order mark and blank lines at the end are passed over; any other bad line is ERR_DATA with
 * file and line.
 *
 * One thread at a time. A text is valid until the next call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/zin.h"

enum docs_format { DOCS_AUTO, DOCS_TEXT, DOCS_JSONL, DOCS_TSV }; /* DOCS_TSV reads as DOCS_TEXT */

#define DOCS_FORMATS "auto|text|jsonl"
#define DOCS_TRAIN_FORMATS DOCS_FORMATS "|tsv"

struct docs;

/* "-" is standard input. The arrays and strings must outlive the reader. */
struct docs *docs_create(const char *const *path, size_t npath, enum docs_format format,
                         const char *const *key, size_t nkeys);
void docs_destroy(struct docs *d);

/* The first path is open already, as `in`, which is the reader's from now on. Before the first
 * docs_next. */
void docs_adopt(struct docs *d, struct zin *in);

/*
 * From now on what stands in a line longer than DOCS_LONG comes in parts, so that memory stays
 * bounded; values of such a line of JSONL wait in unnamed files beside `beside`. Before the first
 * docs_next.
 */
enum { DOCS_LONG = 4 << 20 };
void docs_in_parts(struct docs *d, const char *beside);

/*
 * *ret_more false at the end of the last file. *ret_text NULL: docs_part gives the text, and all
 * its parts are to be taken.
 */
int docs_next(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_more, struct err *e);

/* The next part, perhaps of no bytes, cut anywhere; *ret_last: no more of this text. */
int docs_part(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_last, struct err *e);

/*
 * As docs_next, but plain text comes in blocks of whole lines with their line feeds (*ret_lines),
 * for who reads fast; docs_place then names no line. Not to be mixed with docs_next within a file.
 */
int docs_block(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_lines,
               bool *ret_more, struct err *e);

uint64_t docs_consumed(const struct docs *d); /* bytes of all files so far, as they lie on disk */
uint64_t docs_total(const struct docs *d);    /* of all files, 0 if not known */

bool docs_had_jsonl(const struct docs *d); /* a file so far was taken as JSONL */

/* Where the last document came from: a name that lives as long as the reader's paths, and the line.
 */
void docs_place(const struct docs *d, const char **ret_name, uint64_t *ret_line);

#endif
