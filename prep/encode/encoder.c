/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/encode/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "prep/encode/encoder_internal.h"
#include "prep/input/lines.h"
#include "prep/input/parquet_rows.h"

enum { IDS_KEPT = 4 << 20 };

struct encoder *encoder_create(const struct encode_plan *p)
{
    struct encoder *c = mem_new(1, sizeof(*c));
    c->plan = p;
    c->json = jsonl_create(p->key, p->nkeys);
    c->value = mem_new(p->nkeys, sizeof(*c->value));
    if (!p->tok)
        return c;
    c->work = tok_work_create(p->tok);
    tok_work_utf8(c->work);
    return c;
}

void encoder_destroy(struct encoder *c)
{
    if (!c)
        return;
    jsonl_destroy(c->json);
    tok_work_destroy(c->work);
    tok_ids_finish(&c->ids);
    buf_finish(&c->piece);
    buf_finish(&c->packed);
    punkt_work_finish(&c->split);
    free(c->value);
    free(c);
}

/* ---- one record ----------------------------------------------------------------------------- */

/* If a wanted key is missing, adds the record's keys to the error. */
static void say_keys(const struct encoder *c, const char *p, size_t n, struct err *e)
{
    struct buf keys = {0};
    for (size_t k = 0; k < c->plan->nkeys; k++) {
        if (c->value[k].kind != JSONL_MISSING)
            continue;
        jsonl_keys(p, n, &keys);
        err_set(e, ERR_DATA, "has no key \"%s\"; %s%s", c->plan->key[k],
                keys.len ? "its keys are " : "it is empty", buf_str(&keys));
        break;
    }
    buf_finish(&keys);
}

/* The record at p; *ret_n is the length of its line. */
static int encode_record(struct encoder *c, struct item *it, const char *p, const char *end,
                         size_t *ret_n, struct err *e)
{
    int code = jsonl_next(c->json, p, end, ret_n, c->value, e);
    if (code)
        return code;
    code = encoder_put_values(c, it, e);
    if (code == ERR_DATA)
        say_keys(c, p, *ret_n, e);
    return code;
}

static int encode_text(struct encoder *c, struct item *it, const char *p, size_t n, struct err *e)
{
    c->value[0] = (struct jsonl_value){.kind = JSONL_STRING, .text = p, .length = n};
    int code = text_check(p, n, e);
    return code ? code : encoder_put_values(c, it, e);
}

/* ---- a block -------------------------------------------------------------------------------- */

/* Records the result of record p[0 .. n), the last one counted; false: the block ends here. */
static bool encoder_settle(struct encoder *c, struct item *it, int code, const char *p, size_t n)
{
    if (!code)
        it->docs++;
    else if (code == ERR_DATA)
        item_add_bad(it, it->lines - 1, p, n, &it->err);
    else if (code == FILTERED)
        item_add_filtered(it, it->lines - 1);
    else
        it->code = code;
    return !code || code == FILTERED || (code == ERR_DATA && c->plan->on_bad != BAD_FAIL);
}

static void run_lines(struct encoder *c, struct item *it)
{
    const char *p = it->text.data, *end = p + it->text.len;
    while (p < end) {
        if (it->last && *p <= ' ' && jsonl_blank(p, end))
            break; /* white space at the end of the input is not a record */
        it->lines++;
        size_t n;
        int code = encode_record(c, it, p, end, &n, &it->err);
        if (!encoder_settle(c, it, code, p, n))
            return;
        p += n + 1;
    }
}

static void run_text(struct encoder *c, struct item *it)
{
    const char *p = it->text.data, *end = p + it->text.len;
    for (size_t n;;) {
        const char *from = p;
        if (!text_next(&c->plan->text, &p, end, &n))
            return;
        it->lines++;
        if (!encoder_settle(c, it, encode_text(c, it, from, n, &it->err), from, n))
            return;
    }
}

/* One row, from c->value. */
static int encode_row(struct encoder *c, struct item *it, struct err *e)
{
    const struct encode_plan *plan = c->plan;
    int code = 0;
    for (size_t k = 0; k < plan->nkeys && !code; k++) {
        code = c->value[k].kind == JSONL_STRING
                   ? text_check(c->value[k].text, c->value[k].length, e)
                   : 0;
        if (code && plan->nkeys > 1)
            err_wrap(e, "\"%s\"", plan->key[k]);
    }
    return code ? code : encoder_put_values(c, it, e);
}

/* Appends what is kept of a bad row after the texts. */
static bool settle_row(struct encoder *c, struct item *it, int code, size_t from, const uint64_t *n)
{
    const struct encode_plan *plan = c->plan;
    size_t at = it->text.len;
    if (code == ERR_DATA && plan->on_bad == BAD_QUARANTINE) {
        struct buf line = {0};
        rows_json(&line, plan->key, plan->nkeys, plan->ids, it->text.data + from, n);
        buf_add(&it->text, line.data, line.len);
        buf_finish(&line);
    }
    return encoder_settle(c, it, code, it->text.data + at, it->text.len - at);
}

static struct jsonl_value row_value(const struct encoder *c, const char *p, size_t n, bool there)
{
    if (!there)
        return (struct jsonl_value){.kind = JSONL_OTHER};
    if (c->plan->ids)
        return (struct jsonl_value){.kind = JSONL_IDS,
                                    .ids = (const int64_t *)(const void *)p,
                                    .length = n / sizeof(int64_t)};
    return (struct jsonl_value){.kind = JSONL_STRING, .text = p, .length = n};
}

static void run_rows(struct encoder *c, struct item *it)
{
    size_t nkeys = c->plan->nkeys, from = 0;
    for (size_t at = 0; at < it->run.len; at += nkeys * sizeof(uint64_t)) {
        const uint64_t *n = (const uint64_t *)(const void *)(it->run.data + at);
        size_t end = from;
        for (size_t k = 0; k < nkeys; k++) {
            bool there = n[k] != PARQUET_NULL;
            c->value[k] = row_value(c, it->text.data + end, there ? n[k] : 0, there);
            end += there ? n[k] : 0;
        }
        it->lines++;
        if (!settle_row(c, it, encode_row(c, it, &it->err), from, n))
            return;
        from = end;
    }
}

static void run_ids(struct encoder *c, struct item *it)
{
    const int32_t *id = it->ids.id;
    struct column *col = &it->column[0];
    for (size_t at = 0; at < it->run.len && !it->code; at += sizeof(uint64_t)) {
        uint64_t n;
        memcpy(&n, it->run.data + at, sizeof(n));
        it->lines++;
        if (filter_tokens(&c->plan->filter, n)) {
            struct encoder_place from = {col->ids.n, 0};
            if (n)
                memcpy(tok_ids_reserve(&col->ids, n), id, n * sizeof(*id));
            col->ids.n += n;
            it->docs++;
            it->code = encoder_put_document(c, col, from, &it->err);
        } else {
            item_add_filtered(it, it->lines - 1);
        }
        id += n;
    }
}

void encoder_run(struct encoder *c, struct item *it)
{
    if (it->code)
        return;
    uint64_t specials = c->work ? tok_work_specials(c->work) : 0;
    c->eods = c->added = 0;
    if (it->kind == ITEM_LINES)
        run_lines(c, it);
    else if (it->kind == ITEM_TEXT)
        run_text(c, it);
    else if (it->kind == ITEM_ROWS)
        run_rows(c, it);
    else if (it->kind == ITEM_LONG)
        encoder_run_long(c, it);
    else
        run_ids(c, it);
    it->specials = c->work ? tok_work_specials(c->work) - specials : 0;
    it->eods = c->eods;
    it->added = c->added;
    if (c->ids.cap > IDS_KEPT)
        tok_ids_finish(&c->ids);
}
