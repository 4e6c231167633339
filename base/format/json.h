/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSON_H
#define BASE_FORMAT_JSON_H

/*
 * Small JSON files as a tree of plain C values, parsed through simdjson's first stage
 * (json_cxx.cc), and a writer.
 *
 * A document owns its tree; nodes and strings live until json_close. Strings are valid UTF-8 with
 * a NUL after them (and a length, as they may contain one). Objects keep the file's order; a
 * duplicate key is ERR_DATA. Integers that fit are JSON_INT; those from 2^63 up and all others
 * JSON_REAL, also NaN, Infinity and -Infinity, which Python writes; 1e999 is infinite. Depth is at
 * most 64. Errors name the file and the byte.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    bool boolean;
    int64_t integer; /* also set (truncated) for a JSON_REAL that fits, else 0 */
    double real;     /* also set for JSON_INT; -0.0 for "-0" */
    const char *string;
    size_t length;            /* bytes of string, or number of children */
    const char *key;          /* in an object: this node's key */
    size_t key_length;        /* its bytes: a key may contain a NUL, too */
    const struct json *child; /* array of `length` children */
};

struct json_doc;

/* `name` is for messages. At most `max` bytes are taken from a file. */
int json_open(const char *path, size_t max, struct json_doc **ret, struct err *e);
/* The same for a file that was found beside others (file_read_plain). */
int json_open_plain(const char *path, size_t max, struct json_doc **ret, struct err *e);
int json_parse(const char *name, const char *p, size_t n, struct json_doc **ret, struct err *e);
/* The same for many small documents: replaces the contents of *doc, or creates it (NULL), reusing
 * its memory. On failure the old contents are gone, too, and the root is null. The caller closes.
 */
int json_again(const char *name, const char *p, size_t n, struct json_doc **doc, struct err *e);
const struct json *json_root(const struct json_doc *d);
void json_close(struct json_doc *d);

/* Child of an object, NULL if `o` is not an object or has no such key. */
const struct json *json_get(const struct json *o, const char *key);

/*
 * Required members: ERR_DATA naming `name` and the key if missing or of another kind. For optional
 * ones, use json_get.
 */
int json_need_int(const struct json *o, const char *name, const char *key, int64_t *ret,
                  struct err *e);
int json_need_str(const struct json *o, const char *name, const char *key, const char **ret,
                  struct err *e);

/*
 * Writer: appends to `b`. Commas are the caller's. jsonw_string quotes and escapes; bytes that are
 * not UTF-8 become U+FFFD. jsonw_real prints the fewest digits that read back equal, with ".0" or
 * an exponent; NaN and infinities as null.
 */
void jsonw_string(struct buf *b, const char *s, size_t n);
void jsonw_key(struct buf *b, const char *key); /* "key": */
void jsonw_real(struct buf *b, double v);

#endif
