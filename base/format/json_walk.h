/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSON_WALK_H
#define BASE_FORMAT_JSON_WALK_H

/*
 * Shared by json.c, jsonl.c and json_quick.c; no other file includes it. simdjson's first stage
 * (json_cxx.cc) checks UTF-8 and finds where every token begins, at some GB/s; the walk over these
 * places, and the grammar of numbers, literals and escapes, is ours, because simdjson's own second
 * stage rejects numbers that Python's reader accepts (30 digits, 1e999, NaN).
 *
 * Grammar: RFC 8259, and NaN, Infinity and -Infinity.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

/* The longest text that can be walked: places are 32 bits wide. */
#define JSON_MAX_BYTES 0xffffff00u

/* First stage: owns the places. */
struct json_scan;
struct json_scan *json_scan_create(void);
void json_scan_destroy(struct json_scan *s);

/*
 * The places of the tokens of p[0..n), ascending, followed by n: each of {}[]:, and the first byte
 * of each string, number or literal. Between two tokens there is only whitespace and the rest of
 * the first. They live until the next call. ERR_DATA: "byte N: reason"; ERR_RESOURCE if there is
 * not enough memory for the places.
 */
int json_scan_run(struct json_scan *s, const char *p, size_t n, const uint32_t **ret_at,
                  size_t *ret_n, struct err *e);

/* Readable bytes after the text, and space after the output of json_unescape. */
enum { JSON_SLACK = 8 };

struct json_walk {
    const char *p;      /* JSON_SLACK bytes after it are readable */
    const uint32_t *at; /* from json_scan_run */
    size_t n, i;        /* number of tokens, and the next one */
    unsigned depth, max_depth;
    struct err *e;
};

/* The first byte of the next token; NUL after the last. */
static inline char json_peek(const struct json_walk *w)
{
    return w->i < w->n ? w->p[w->at[w->i]] : '\0';
}

/* ERR_DATA: "byte N: expected WHAT, found ...", where N is the next token's place. */
int json_expected(const struct json_walk *w, const char *what);

/* Steps over the token `c`. */
int json_take(struct json_walk *w, char c, const char *what);

/*
 * Steps over a string: the bytes between its quotes, and whether they contain escapes, which are
 * not checked here.
 */
int json_take_string(struct json_walk *w, const char **ret, size_t *ret_n, bool *ret_escaped);

/* Steps over a number or literal: its bytes. Kind: 'i' integer, 'r' other number, 't', 'f',
 * 'n'. */
int json_take_scalar(struct json_walk *w, const char **ret, size_t *ret_n, char *ret_kind);

/* Where the number or literal at s (before `end`) ends; NULL if none begins there. */
const char *json_scalar_end(const char *s, const char *end);

/* Steps over an integer; false, with the position undefined, if there is none that fits. */
bool json_take_int(struct json_walk *w, int64_t *ret);

/* Steps over any value and validates it. */
int json_skip(struct json_walk *w);

/*
 * Resolves the escapes of a string's n bytes into dst, which has space for n + JSON_SLACK bytes and
 * does not overlap. ERR_DATA for bad escapes and lone surrogates.
 */
int json_unescape(const struct json_walk *w, char *dst, const char *s, size_t n, size_t *ret_n);

/* An integer of n bytes; false if it does not fit. */
bool json_int(const char *s, size_t n, int64_t *ret);

#endif
