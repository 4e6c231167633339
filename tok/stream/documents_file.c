/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/documents_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/magic.h"
#include "base/io/path.h"

enum { CHUNK = 1 << 18 };

/* Of the current file. */
uint64_t docs_file_consumed(const struct docs *d)
{
    return d->rows.file ? docs_rows_consumed(&d->rows) : zin_consumed(d->in);
}

/* ---- bytes and lines --------------------------------------------------------------------- */

/* Reads more after what is in the buffer, and keeps JSONL_PADDING bytes after it. */
static int documents_fill(struct docs *d, struct err *e)
{
    if (d->start && (d->start == d->buf.len || d->start >= CHUNK)) {
        memmove(d->buf.data, d->buf.data + d->start, d->buf.len - d->start);
        d->buf.len -= d->start;
        d->start = 0;
    }
    size_t n;
    char *p = buf_reserve(&d->buf, CHUNK + JSONL_PADDING);
    int code = zin_read(d->in, p, CHUNK, &n, e);
    if (code)
        return code;
    d->buf.len += n;
    d->ended = n == 0;
    return 0;
}

/* The next line without its line feed; *ret_more false at the end of the file. */
int docs_file_line(struct docs *d, const char **ret, size_t *ret_n, bool *ret_more, struct err *e)
{
    for (size_t looked = 0;;) {
        const char *p = d->buf.data + d->start;
        size_t n = d->buf.len - d->start;
        const char *end = n > looked ? memchr(p + looked, '\n', n - looked) : NULL;
        looked = n;
        if (d->beside && (end ? (size_t)(end - p) : n) > d->longest) {
            *ret = NULL;
            *ret_n = 0;
            d->line++;
            *ret_more = true;
            return 0;
        }
        if (end || (d->ended && n)) {
            *ret = p;
            *ret_n = end ? (size_t)(end - p) : n;
            d->start += *ret_n + (end != NULL);
            d->line++;
            *ret_more = true;
            return 0;
        }
        if (d->ended) {
            *ret_more = false;
            return 0;
        }
        int code = documents_fill(d, e);
        if (code)
            return code;
    }
}

/* More of a long line, without its line feed. */
int docs_file_line_part(struct docs *d, const char **ret, size_t *ret_n, bool *ret_last,
                        struct err *e)
{
    if (d->start == d->buf.len && !d->ended) {
        int code = documents_fill(d, e);
        if (code)
            return code;
    }
    const char *p = d->buf.data + d->start;
    size_t n = d->buf.len - d->start;
    const char *end = n ? memchr(p, '\n', n) : NULL;
    *ret = p;
    *ret_n = end ? (size_t)(end - p) : n;
    *ret_last = end || d->ended;
    d->start += *ret_n + (end != NULL);
    return 0;
}

/* The whole lines in the buffer, at least one; the last of a file may lack its line feed. */
int docs_file_lines(struct docs *d, const char **ret, size_t *ret_n, bool *ret_more, struct err *e)
{
    for (;;) {
        const char *p = d->buf.data + d->start;
        size_t n = d->buf.len - d->start;
        const char *feed = n ? memrchr(p, '\n', n) : NULL;
        if (feed || d->ended) {
            *ret = p;
            *ret_n = feed ? (size_t)(feed + 1 - p) : n;
            d->start += *ret_n;
            *ret_more = *ret_n != 0;
            return 0;
        }
        int code = documents_fill(d, e);
        if (code)
            return code;
    }
}

/* ---- format detection -------------------------------------------------------------------- */

static bool documents_ends_in(const char *s, size_t n, const char *tail)
{
    size_t k = strlen(tail);
    return n >= k && memcmp(s + n - k, tail, k) == 0;
}

static bool name_says_jsonl(const char *path)
{
    size_t n = strlen(path);
    if (documents_ends_in(path, n, ".zst"))
        n -= 4;
    else if (documents_ends_in(path, n, ".gz"))
        n -= 3;
    return documents_ends_in(path, n, ".jsonl") || documents_ends_in(path, n, ".ndjson");
}

static void skip_mark(struct docs *d)
{
    if (d->buf.len - d->start >= 3 && memcmp(d->buf.data + d->start, "\xef\xbb\xbf", 3) == 0)
        d->start += 3;
}

static bool is_empty_object(const char *p, const char *end)
{
    const char *last = memchr(p, '}', (size_t)(end - p));
    return last && jsonl_blank(p + 1, last) && jsonl_blank(last + 1, end);
}

/* Tests the first line (as far as it was read) without consuming it. An object without any of the
 * keys counts as a record, to be refused: ids of its braces help nobody. But {} may be a line of
 * code. */
static bool content_is_jsonl(struct docs *d)
{
    size_t start = d->start;
    skip_mark(d);
    const char *p = d->buf.data + d->start;
    size_t n = d->buf.len - d->start;
    d->start = start;
    if (!n || *p != '{')
        return false;
    const char *end = memchr(p, '\n', n);
    if (!end && !d->ended)
        return true; /* a brace, and a line longer than the buffer */
    if (!end)
        end = p + n;
    return !is_empty_object(p, end) &&
           !jsonl_parse(d->parser, p, (size_t)(end - p), d->value, NULL);
}

/* A pipe may deliver its first bytes in pieces. */
static int fill_first(struct docs *d, bool check, struct err *e)
{
    int code;
    do
        code = documents_fill(d, e);
    while (!code && !d->ended && d->buf.len < CHUNK &&
           (!memchr(d->buf.data, '\n', d->buf.len) || (check && d->buf.len < MAGIC_LOOK)));
    return code;
}

static bool begins_parquet(const struct docs *d)
{
    const struct magic *m = magic_find(d->buf.data, d->buf.len);
    return m && m->id == MAGIC_PARQUET;
}

static int open_table(struct docs *d, const char *path, struct err *e)
{
    const char *dir = getenv("TMPDIR");
    if (strcmp(path, "-") == 0) {
        d->refused = true;
        err_set(e, ERR_USAGE, "standard input is a Parquet file, which must be read from its end");
        return err_hint(e, "name the file instead of piping it in");
    }
    d->now = DOCS_PARQUET;
    d->had_keys = true;
    d->next_value = d->nkeys;
    char *beside =
        d->beside ? mem_strdup(d->beside) : path_join(dir && *dir ? dir : "/var/tmp", "x");
    int code = docs_rows_open(&d->rows, path, d->key, d->nkeys, beside, e);
    free(d->rows_beside);
    d->rows_beside = beside; /* valid as long as the rows */
    return code;
}

/* Detects the file's format; its first bytes stay in the buffer. */
static int judge_file(struct docs *d, const char *path, struct err *e)
{
    const char *name;
    uint64_t line;
    bool check = !d->checked || !zin_size(d->in);
    int code = fill_first(d, check, e);
    if (code)
        return code;
    if (d->format == DOCS_AUTO && begins_parquet(d))
        return open_table(d, path, e);
    docs_place(d, &name, &line);
    if (check)
        code = magic_check_text(name, d->buf.data, d->buf.len, MAGIC_AS_TEXT, e);
    d->refused = code != 0;
    if (code)
        return code;
    if (d->now == DOCS_AUTO)
        d->now = name_says_jsonl(path) || content_is_jsonl(d) ? DOCS_JSONL : DOCS_TEXT;
    if (d->now == DOCS_JSONL)
        skip_mark(d);
    d->had_keys |= d->now == DOCS_JSONL;
    return 0;
}

int docs_file_open(struct docs *d, struct err *e)
{
    const char *path = d->path[d->next_path++];
    int code = d->adopted ? 0 : zin_open(path, &d->in, e);
    if (code)
        return code;
    if (d->adopted)
        d->in = d->adopted;
    d->adopted = NULL;
    buf_reset(&d->buf);
    buf_reserve(&d->buf, CHUNK + JSONL_PADDING);
    d->start = 0;
    d->line = d->blank = 0;
    d->ended = false;
    d->now = d->format;
    if (d->format == DOCS_TEXT) {
        zin_take_any(d->in);
        return 0;
    }
    return d->format == DOCS_PARQUET ? open_table(d, path, e) : judge_file(d, path, e);
}

/* Closes the current file. */
void docs_file_leave(struct docs *d)
{
    d->before += docs_file_consumed(d);
    docs_rows_close(&d->rows);
    zin_close(d->in);
    d->in = NULL;
}
