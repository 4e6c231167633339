/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_MAGIC_H
#define BASE_IO_MAGIC_H

/*
 * Recognizes files by their first bytes, so that readers of text reject other known formats
 * by name, with what to do instead, rather than read their bytes as text.
 *
 * The signatures are those that the formats' own specifications give (APPNOTE.TXT 4.3 for zip, RFC
 * 1952 for gzip, POSIX ustar for tar, Arrow's IPC format, and so on). Thread-safe; texts are
 * static.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"

enum magic_id {
    MAGIC_ZSTD,
    MAGIC_GZIP,
    MAGIC_XZ,
    MAGIC_PARQUET,
    MAGIC_ARCHIVE,   /* compressed or packed in an unsupported way: bzip2, lz4, zip, tar, ... */
    MAGIC_DOCS,      /* the stream of tok encode --format docs */
    MAGIC_TOKENIZER, /* a SentencePiece model */
    MAGIC_UTF,       /* text in another encoding: UTF-16, UTF-32 */
    MAGIC_OTHER
};

struct magic {
    enum magic_id id;
    const char *name; /* with its article: "a tar archive" */
    const char *cure; /* a clause: what to do with it; "FILE" stands for its name */
};

enum { MAGIC_LOOK = 64 << 10 }; /* bytes of a file that magic_check_text looks at */

/* The format of a file that begins with these n bytes; NULL: unknown, so perhaps text. */
const struct magic *magic_find(const void *data, size_t n);

/*
 * ERR_DATA if the first n bytes of the file `name`, decompressed, are not text: they are of a known
 * format, or have a NUL among the first MAGIC_LOOK. Text may still contain invalid UTF-8.
 * `otherwise`, which may be NULL, ends the hint: MAGIC_AS_TEXT where that option exists. It is left
 * out for text in another encoding, whose bytes as they are would become U+FFFD.
 */
#define MAGIC_AS_TEXT "--input-format text takes the bytes as they are"
int magic_check_text(const char *name, const void *p, size_t n, const char *otherwise,
                     struct err *e);

/*
 * ERR_DATA if a regular file, which may be compressed, begins with text in another encoding than
 * UTF-8: of its first MAGIC_LOOK bytes that are not ASCII most, and at least 4, are of no valid
 * character. The hint is iconv's command with the encoding that uchardet takes it for, where that
 * library is there. magic_check_text and magic_check_file have this check, too.
 */
int magic_check_utf8_file(const char *path, struct err *e);

/* The same error for a file known to be `m`. */
int magic_refuse(const char *name, const struct magic *m, const char *otherwise, struct err *e);

/*
 * magic_check_text on the beginning of a file, which may be compressed. With `json`, bytes that
 * begin like JSON may have a NUL, in a bad record. Parquet is not rejected, but reported by
 * *ret_parquet. Anything but a regular file passes unopened, since its bytes could not be read
 * again.
 */
int magic_check_file(const char *path, bool json, const char *otherwise, bool *ret_parquet,
                     struct err *e);

/*
 * Whether a regular file of text, which may be compressed, begins with lines that end in CR alone:
 * there are several CR and no line feed in its first MAGIC_LOOK bytes. `ret` then is a warning for
 * readers that split at line feeds. False for what begins like JSON.
 */
bool magic_warns_of_cr(const char *path, struct err *ret);

#endif
