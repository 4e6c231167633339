/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSONL_H
#define BASE_FORMAT_JSONL_H

/*
 * One line of JSONL: the values under a few named keys (base/format/keys.h: "a.b" is the field b of
 * the object a). Most lines are read in one pass (json_quick.h), the others through simdjson's
 * first stage (json_walk.h), with the same result. The whole line is validated: structure,
 * literals, strings as UTF-8 without lone surrogates, numbers by Python's reader (any length,
 * 1e999, NaN, Infinity and -Infinity pass, "01" and "1." do not); of duplicate keys the last one
 * counts. Keys are compared after unescaping. Nesting is at most 1024, a line just below 4 GiB.
 *
 * One parser per thread; it owns its buffers, which grow to the longest line and are kept: 4 bytes
 * per token, and the strings. Results live until the next call and as long as the line does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

enum jsonl_kind {
    JSONL_MISSING,
    JSONL_STRING,
    JSONL_STRINGS,
    JSONL_IDS,
    JSONL_ID_LISTS,
    JSONL_OTHER
};

/* After each string of JSONL_STRINGS: a byte that UTF-8 never has. */
enum { JSONL_STRING_END = 0xff };

/* After each array of JSONL_ID_LISTS, in which the number itself does not occur. */
#define JSONL_LIST_END INT64_MAX

struct jsonl_value {
    enum jsonl_kind kind;
    const char *text;   /* JSONL_STRING: unescaped UTF-8, not NUL-terminated; JSONL_STRINGS: a
                           non-empty array of strings only, each with its end */
    size_t length;      /* bytes of text, or number of ids */
    const int64_t *ids; /* JSONL_IDS: an array of integers (may be empty); JSONL_ID_LISTS: a
                           non-empty array of these, each with its end */
};

struct jsonl;

/* Bytes after a line that must be readable while it is parsed. */
enum { JSONL_PADDING = 64 };

struct jsonl *jsonl_create(const char *const *keys, size_t nkeys);
void jsonl_destroy(struct jsonl *j);

/* White space of JSON. */
static inline bool jsonl_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* White space only, or empty. */
bool jsonl_blank(const char *p, const char *end);

/* Why records on lines that end in CR alone, which look like one line, are refused (such an error
 * is of ERR_KIND_CR_LINES), and what helps. */
#define JSONL_CR "expected the end of the line, found '{' after CR"
#define JSONL_CR_CURE "its lines end in CR alone: convert it, tr '\\r' '\\n' <FILE >OTHER"

/*
 * Parses `line` (n bytes, no newline; JSONL_PADDING readable bytes after it). ret[k] is the value
 * under keys[k]. ERR_DATA with the reason and the byte within the line ("byte 17: ..."); the
 * caller adds file and line number by err_wrap. A line that is not an object is bad; a missing key
 * or another kind is not (the caller decides). ERR_RESOURCE if a long line's parts do not fit into
 * memory.
 */
int jsonl_parse(struct jsonl *j, const char *line, size_t n, struct jsonl_value *ret,
                struct err *e);

/*
 * The same for the line that begins at p and ends before the first newline or at `end`
 * (JSONL_PADDING readable bytes after it): its end is found on the way, and *ret_n is its length,
 * even if it is bad. Buffers are sized for all bytes up to `end`.
 */
int jsonl_next(struct jsonl *j, const char *p, const char *end, size_t *ret_n,
               struct jsonl_value *ret, struct err *e);

/*
 * Appends the keys of a valid line (with JSONL_PADDING readable bytes after it) in the form that
 * jsonl_create takes ("a.b" for the field b of the object a), separated by ", ", for messages; of
 * many only the first.
 */
void jsonl_keys(const char *line, size_t n, struct buf *ret);

#endif
