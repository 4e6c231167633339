/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/magic.h"
#include "base/io/path.h"
#include "tok/stream/documents_file.h"

enum { PART = 1 << 16 }; /* bytes read at a time of a value in its file */

struct docs *docs_create(const char *const *path, size_t npath, enum docs_format format,
                         const char *const *key, size_t nkeys)
{
    struct docs *d = mem_new(1, sizeof(*d));
    *d = (struct docs){.path = path, .npath = npath, .format = format, .key = key, .nkeys = nkeys};
    d->next_value = nkeys;
    d->value = mem_new(nkeys, sizeof(*d->value));
    d->parser = jsonl_create(key, nkeys);
    return d;
}

void docs_destroy(struct docs *d)
{
    if (!d)
        return;
    zin_close(d->in);
    zin_close(d->adopted);
    if (d->scanned)
        jscan_close(&d->scan);
    docs_rows_close(&d->rows);
    free(d->rows_beside);
    buf_finish(&d->part);
    jsonl_destroy(d->parser);
    names_free(d->names, d->npath);
    free(d->value);
    buf_finish(&d->buf);
    free(d);
}

void docs_adopt(struct docs *d, struct zin *in)
{
    d->adopted = in;
}

void docs_in_parts(struct docs *d, const char *beside, size_t longest)
{
    d->beside = beside;
    d->longest = longest;
}

void docs_place(const struct docs *d, const char **ret_name, uint64_t *ret_line)
{
    const char *path = d->next_path ? d->path[d->next_path - 1] : "input";
    *ret_name = strcmp(path, "-") == 0 ? "standard input" : path;
    *ret_line = d->line;
}

const char *docs_unit(const struct docs *d)
{
    return d->now == DOCS_PARQUET ? "row" : "line";
}

uint64_t docs_consumed(const struct docs *d)
{
    uint64_t n = d->before + (d->in ? docs_file_consumed(d) : 0);
    bool plain = d->in && !zin_compressed(d->in), waits = plain && d->scanned && d->next_value;
    uint64_t rest = waits ? d->scan.value[d->next_value - 1].spill.size : 0;
    rest -= rest ? d->at : 0; /* of a long record that was read, but not handed out yet */
    return n > rest ? n - rest : 0;
}

uint64_t docs_total(const struct docs *d)
{
    uint64_t total = 0, size;
    for (size_t i = 0; i < d->npath; i++) {
        if (strcmp(d->path[i], "-") == 0 || file_size(d->path[i], &size, NULL) || !size)
            return 0;
        total += size;
    }
    return total;
}

/* ---- several files ----------------------------------------------------------------------- */

static int check_file(struct docs *d, size_t i, struct err *e)
{
    const char *path = d->path[i];
    uint64_t size;
    bool parquet = false;
    int code = 0;
    if (strcmp(path, "-") == 0 || !file_is_plain(path))
        return 0;
    if (d->format != DOCS_TEXT && d->format != DOCS_PARQUET)
        code = magic_check_file(path, false, MAGIC_AS_TEXT, &parquet, e);
    else if (d->format == DOCS_TEXT)
        code = magic_check_utf8_file(path, e);
    if (!code && parquet && d->format != DOCS_AUTO) {
        err_set(e, ERR_DATA, "%s: is a Parquet file, not text in UTF-8", path);
        code = err_hint(e, "--input-format parquet reads it");
    }
    if (!code && !file_size(path, &size, e) && !size && !d->nempty++)
        d->first_empty = i;
    struct err cr;
    bool text = d->format != DOCS_JSONL && d->format != DOCS_PARQUET;
    if (!code && text && magic_warns_of_cr(path, &cr) && !d->ncr++)
        d->cr = cr;
    return code;
}

int docs_open(const struct docs_names *names, enum docs_format format, const char *const *key,
              size_t nkeys, struct docs **ret, struct err *e)
{
    char **path;
    size_t n;
    struct names_passed passed = {0};
    int code = names_expand(names->name, names->n, names->folders ? &passed : NULL, &path, &n, e);
    if (code)
        return code;
    names_passed_log(&passed);
    struct docs *d = docs_create((const char *const *)path, n, format, key, nkeys);
    d->names = path;
    for (size_t i = 0; i < n && !code; i++)
        code = check_file(d, i, e);
    d->checked = true;
    if (code)
        docs_destroy(d);
    else
        *ret = d;
    return code;
}

size_t docs_empty(const struct docs *d, const char **ret_first)
{
    *ret_first = d->nempty ? d->path[d->first_empty] : NULL;
    return d->nempty;
}

size_t docs_cr(const struct docs *d, const char **ret_warning)
{
    *ret_warning = d->ncr ? d->cr.msg : NULL;
    return d->ncr;
}

/* ---- documents --------------------------------------------------------------------------- */

static int bad_record(const struct docs *d, struct err *e)
{
    const char *name;
    uint64_t line;
    docs_place(d, &name, &line);
    err_wrap(e, "%s, %s %llu", name, docs_unit(d), (unsigned long long)line);
    if (e && e->kind == ERR_KIND_CR_LINES)
        err_hint(e, JSONL_CR_CURE);
    else if (d->format == DOCS_AUTO && !d->rows.file)
        err_hint(e, "if the file is plain text, use --input-format text");
    return ERR_DATA;
}

static int blank_before(struct docs *d, struct err *e)
{
    d->line = d->blank;
    err_set(e, ERR_DATA, "a blank line, but a JSON object was expected");
    return bad_record(d, e);
}

static int documents_judge(const struct docs *d, size_t k, enum jsonl_kind kind, struct err *e)
{
    if (kind == JSONL_STRING)
        return 0;
    if (kind == JSONL_MISSING)
        return err_set(e, ERR_DATA, "the object has no key \"%s\"", d->key[k]);
    return err_set(e, ERR_DATA, "the value under \"%s\" is not a string", d->key[k]);
}

/* The value of key k in a valid line. If the line lacks the key, lists those that it has. */
static int judge_in_line(const struct docs *d, size_t k, const char *p, size_t n, struct err *e)
{
    if (d->value[k].kind != JSONL_MISSING)
        return documents_judge(d, k, d->value[k].kind, e);
    struct buf keys = {0};
    jsonl_keys(p, n, &keys);
    err_set(e, ERR_DATA, "the object has no key \"%s\"; %s%s", d->key[k],
            keys.len ? "its keys are " : "it is empty", buf_str(&keys));
    buf_finish(&keys);
    return ERR_DATA;
}

static int parse_record(struct docs *d, const char *p, size_t n, struct err *e)
{
    if (jsonl_blank(p, p + n)) {
        d->blank = d->line;
        return 0;
    }
    if (d->blank)
        return blank_before(d, e);
    int code = jsonl_parse(d->parser, p, n, d->value, e);
    for (size_t k = 0; k < d->nkeys && !code; k++)
        code = judge_in_line(d, k, p, n, e);
    if (code)
        return bad_record(d, e);
    d->next_value = 0;
    return 0;
}

/* Scans a long line with `scan`. *ret_blank: it is only white space. */
static int scan_line(struct docs *d, bool *ret_blank, bool *ret_bad, struct err *e)
{
    bool last = false;
    int code = 0;
    *ret_blank = true;
    *ret_bad = false;
    while (!last) {
        const char *p;
        size_t n;
        code = docs_file_line_part(d, &p, &n, &last, e);
        if (code)
            return code;
        *ret_blank &= jsonl_blank(p, p + n);
        code = jscan_feed(&d->scan, p, n, e);
        if (code)
            break;
    }
    if (!code && !*ret_blank)
        code = jscan_end(&d->scan, e);
    for (size_t k = 0; k < d->nkeys && !code && !*ret_blank; k++)
        code = documents_judge(d, k, d->scan.value[k].kind, e);
    *ret_bad = code == ERR_DATA;
    return code;
}

static int scan_record(struct docs *d, struct err *e)
{
    bool blank, bad;
    int code = jscan_open(&d->scan, d->key, d->nkeys, d->beside, e);
    if (code)
        return code;
    code = scan_line(d, &blank, &bad, e);
    d->scanned = !code && !blank && !d->blank;
    if (!d->scanned)
        jscan_close(&d->scan);
    else
        d->next_value = 0;
    if (code && !bad)
        return code;
    if (!blank && d->blank)
        return blank_before(d, e);
    if (blank)
        d->blank = d->line;
    return bad ? bad_record(d, e) : 0;
}

/* The next text of a row. */
static int next_cell(struct docs *d, const char **ret_text, size_t *ret_n, struct err *e)
{
    bool last;
    size_t k = d->next_value++;
    uint64_t n = docs_rows_begin(&d->rows, k);
    *ret_text = NULL;
    *ret_n = 0;
    if (n == PARQUET_NULL) {
        documents_judge(d, k, JSONL_OTHER, e);
        return bad_record(d, e);
    }
    if (d->beside && n > d->longest)
        return 0;
    int code = docs_rows_take(&d->rows, n, ret_text, ret_n, &last, e);
    return code == ERR_DATA ? bad_record(d, e) : code;
}

static int next_row(struct docs *d, bool *ret_more, struct err *e)
{
    int code = docs_rows_next(&d->rows, ret_more, e);
    if (code || !*ret_more)
        return code;
    d->line++;
    d->next_value = 0;
    return 0;
}

/* The next value of the current record; *ret false: there is none left. */
static int next_value(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret,
                      struct err *e)
{
    *ret = d->next_value < d->nkeys;
    if (*ret && d->rows.file)
        return next_cell(d, ret_text, ret_n, e);
    if (*ret && d->scanned) {
        *ret_text = NULL;
        *ret_n = 0;
        d->at = 0;
        d->next_value++;
        return 0;
    }
    if (d->scanned)
        jscan_close(&d->scan);
    d->scanned = false;
    if (*ret) {
        *ret_text = d->value[d->next_value].text;
        *ret_n = d->value[d->next_value++].length;
    }
    return 0;
}

int docs_next(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_more, struct err *e)
{
    for (;;) {
        int code = next_value(d, ret_text, ret_n, ret_more, e);
        if (code || *ret_more)
            return code;
        if (!d->in && d->next_path == d->npath) {
            *ret_more = false;
            return 0;
        }
        bool more = true;
        code = d->in ? 0 : docs_file_open(d, e);
        if (!code)
            code =
                d->rows.file ? next_row(d, &more, e) : docs_file_line(d, ret_text, ret_n, &more, e);
        if (code)
            return code;
        d->had_any |= more;
        if (!more)
            docs_file_leave(d);
        else if (d->rows.file)
            continue;
        else if (d->now != DOCS_JSONL)
            return *ret_more = true, 0;
        else if ((code = *ret_text ? parse_record(d, *ret_text, *ret_n, e) : scan_record(d, e)))
            return code;
    }
}

int docs_part(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_last, struct err *e)
{
    if (d->rows.file) {
        int code = docs_rows_take(&d->rows, PART, ret_text, ret_n, ret_last, e);
        return code == ERR_DATA ? bad_record(d, e) : code;
    }
    if (!d->scanned)
        return docs_file_line_part(d, ret_text, ret_n, ret_last, e);
    const struct spill *s = &d->scan.value[d->next_value - 1].spill;
    char *p = buf_reserve(&d->part, PART);
    size_t n = s->size - d->at < PART ? (size_t)(s->size - d->at) : PART;
    int code = spill_read(s, d->at, p, n, e);
    d->at += n;
    *ret_text = p;
    *ret_n = n;
    *ret_last = d->at == s->size;
    return code;
}

int docs_block(struct docs *d, const char **ret_text, size_t *ret_n, bool *ret_lines,
               bool *ret_more, struct err *e)
{
    for (;;) {
        int code = 0;
        if (!d->in && d->next_value == d->nkeys && d->next_path < d->npath)
            code = docs_file_open(d, e);
        if (code)
            return code;
        *ret_lines = d->in && (d->now == DOCS_TEXT || d->now == DOCS_TSV);
        if (!*ret_lines)
            return docs_next(d, ret_text, ret_n, ret_more, e);
        code = docs_file_lines(d, ret_text, ret_n, ret_more, e);
        d->had_any |= *ret_more;
        if (code || *ret_more)
            return code;
        docs_file_leave(d);
    }
}

bool docs_had_keys(const struct docs *d)
{
    return d->had_keys;
}

bool docs_refused(const struct docs *d)
{
    return d->refused;
}

bool docs_had_any(const struct docs *d)
{
    return d->had_any;
}
