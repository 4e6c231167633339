/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_STREAM_DOCUMENTS_H
#define TOK_STREAM_DOCUMENTS_H

/*
 * Documents of text from files and streams, one after another: the lines of plain text, the strings
 * under some keys of JSONL, or the texts in some columns of Parquet. Lines may be compressed with
 * zstd, gzip or xz, detected by content.
 *
 * DOCS_AUTO takes a file as Parquet if it begins with PAR1, as JSONL if its name says so (.jsonl,
 * .ndjson, also before .zst and .gz), or if its first line is a JSON object other than {}.
 * Other known formats, UTF-16 and 32, and files with a NUL in the first 64 KiB are ERR_DATA
 * (base/io/magic.h); only DOCS_TEXT takes the bytes as they are, unless most of the first ones
 * beyond ASCII are invalid UTF-8. Plain text is split at line feeds only, and nothing is stripped
 * (as spm_train and spm_encode do). In JSONL a byte order mark and blank lines at the end are
 * skipped; any other bad line is ERR_DATA with file and line. So are a null in a column of Parquet
 * and invalid UTF-8 there.
 *
 * One thread at a time. A text is valid until the next call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/io/zin.h"

/* DOCS_TSV reads like DOCS_TEXT, but refuses what is not text. */
enum docs_format { DOCS_AUTO, DOCS_TEXT, DOCS_JSONL, DOCS_PARQUET, DOCS_TSV };

#define DOCS_FORMATS "auto|text|jsonl|parquet"
#define DOCS_TRAIN_FORMATS DOCS_FORMATS "|tsv"

struct docs;

/* "-" is standard input. The arrays and strings must outlive the reader. */
struct docs *docs_create(const char *const *path, size_t npath, enum docs_format format,
                         const char *const *key, size_t nkeys);
void docs_destroy(struct docs *d);

/*
 * The same for names and patterns as names_expand takes them, with `folders` too. Checks the
 * beginning of every file, so that a wrong one is refused before any document is used. The keys
 * must outlive the reader.
 */
struct docs_names {
    const char *const *name;
    size_t n;
    bool folders;
};
int docs_open(const struct docs_names *names, enum docs_format format, const char *const *key,
              size_t nkeys, struct docs **ret, struct err *e);

/* How many of the files that docs_open found are empty, and the first of them. */
size_t docs_empty(const struct docs *d, const char **ret_first);

/* How many of them seem to have lines that end in CR alone (base/io/magic.h), and a warning about
 * the first. */
size_t docs_cr(const struct docs *d, const char **ret_warning);

/* The first path is already open as `in`, whose ownership moves to the reader. Call before the
 * first docs_next. */
void docs_adopt(struct docs *d, struct zin *in);

/*
 * From now on lines longer than `longest`, DOCS_LONG or less, come in parts, so that memory stays
 * bounded; values of such a line of JSONL are kept in unnamed files next to `beside`. Call before
 * the first docs_next.
 */
enum { DOCS_LONG = 4 << 20 };
void docs_in_parts(struct docs *d, const char *beside, size_t longest);

/*
 * *ret_more false at the end of the last file. *ret_text NULL: docs_part returns the text, and all
 * its parts must be taken.
 */
int docs_next(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_more, struct err *e);

/* The next part, possibly empty, split anywhere; *ret_last: it is the last of this text. */
int docs_part(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_last, struct err *e);

/*
 * As docs_next, but plain text comes in blocks of whole lines with their line feeds (*ret_lines),
 * for speed; docs_place then has no line number. Do not mix with docs_next within a file.
 */
int docs_block(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_lines,
               bool *ret_more, struct err *e);

/* Compressed bytes of all files so far, without those of a long text that are to be handed out. */
uint64_t docs_consumed(const struct docs *d);
uint64_t docs_total(const struct docs *d); /* of all files, 0 if not known */

bool docs_had_keys(const struct docs *d); /* some file so far is JSONL or Parquet */
bool docs_had_any(const struct docs *d);  /* there was a document */
bool docs_refused(const struct docs *d);  /* the last failure: a file that is not text */

/* Where the last document came from: a name that lives as long as the reader's paths, and the
 * number of the line, or of the row of a Parquet file (docs_unit). */
const char *docs_unit(const struct docs *d);
void docs_place(const struct docs *d, const char **ret_name, uint64_t *ret_line);

#endif
