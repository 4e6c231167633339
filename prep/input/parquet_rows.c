/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/parquet_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

enum {
    ROWS_MOST = 32 << 10, /* rows of a block */
    PIECE = 64 << 10
};

int rows_open(struct rows *r, const char *path, const struct long_plan *plan, struct err *e)
{
    *r = (struct rows){.plan = plan};
    int code = parquet_open(path, plan->key, plan->nkeys, plan->ids, plan->output, &r->file, e);
    if (!code)
        r->n = mem_new(plan->nkeys, sizeof(*r->n));
    return code;
}

void rows_close(struct rows *r)
{
    parquet_close(r->file);
    free(r->n);
    *r = (struct rows){0};
}

uint64_t rows_at(const struct rows *r)
{
    return parquet_row(r->file) - r->held;
}

/* ---- a row too long for a block ------------------------------------------------------------- */

static int line_add(struct spill *line, const struct buf *b, struct err *e)
{
    return line->fd >= 0 ? spill_add(line, b->data, b->len, e) : 0;
}

static int line_adds(struct spill *line, const char *s, struct err *e)
{
    return line->fd >= 0 ? spill_add(line, s, strlen(s), e) : 0;
}

/* The escaped bytes of a piece of a string, without quotes. */
static int line_piece(struct spill *line, const char *p, size_t n, struct err *e)
{
    struct buf b = {0};
    if (line->fd < 0)
        return 0;
    jsonw_string(&b, p, n);
    int code = spill_add(line, b.data + 1, b.len - 2, e);
    buf_finish(&b);
    return code;
}

/* Moves the n bytes of a text into a spill; *ret_good: valid UTF-8 up to there. */
static int move_text(struct rows *r, size_t k, struct long_record *l, uint64_t *ret_good,
                     struct err *e)
{
    struct spill *to = &l->scan.value[k].spill;
    char *p = mem_new(PIECE + 4, 1);
    size_t held = 0; /* bytes of a character cut by the last piece */
    int code = 0;
    *ret_good = UINT64_MAX;
    for (uint64_t left = r->n[k]; left && !code;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        code = parquet_take(r->file, k, p + held, n, e);
        if (code)
            break;
        left -= n;
        n += held;
        size_t good = utf8_good(p, n);
        bool cut = left && n - good < 4; /* checked with the next piece */
        if (good < n && !cut && *ret_good == UINT64_MAX)
            *ret_good = to->size + good;
        size_t out = cut ? good : n;
        code = spill_add(to, p, out, e);
        if (!code)
            code = line_piece(&l->line, p, out, e);
        held = n - out;
        memmove(p, p + out, held);
    }
    free(p);
    return code ? code : spill_flush(to, e);
}

/* Appends ids as the inside of a JSON array. */
static void json_ids(struct buf *to, bool first, const char *p, size_t n)
{
    for (size_t at = 0; at < n; at += sizeof(int64_t)) {
        int64_t id;
        memcpy(&id, p + at, sizeof(id));
        buf_adds(to, first && !at ? "" : ", ");
        if (id == INT64_MIN)
            buf_adds(to, "null");
        else
            buf_addf(to, "%" PRId64, id);
    }
}

/* Moves the ids of a row into a spill. */
static int move_ids(struct rows *r, size_t k, struct long_record *l, struct err *e)
{
    struct spill *to = &l->scan.value[k].spill;
    char *p = mem_new(PIECE, 1);
    struct buf b = {0};
    int code = 0;
    for (uint64_t left = r->n[k], n; left && !code; left -= n) {
        n = left < PIECE ? left : PIECE;
        code = parquet_take(r->file, k, p, n, e);
        b.len = 0;
        if (!code && l->line.fd >= 0)
            json_ids(&b, left == r->n[k], p, n);
        if (!code)
            code = spill_add(to, p, n, e);
        if (!code)
            code = line_add(&l->line, &b, e);
    }
    buf_finish(&b);
    free(p);
    return code ? code : spill_flush(to, e);
}

static int move_list(struct rows *r, size_t k, struct long_record *l, struct err *e)
{
    l->scan.value[k].kind = JSONL_IDS;
    int code = line_adds(&l->line, "[", e);
    if (!code)
        code = move_ids(r, k, l, e);
    return code ? code : line_adds(&l->line, "]", e);
}

static int move_value(struct rows *r, size_t k, struct item *it, struct err *e)
{
    struct long_record *l = it->large;
    struct buf name = {0};
    uint64_t good = UINT64_MAX;
    buf_adds(&name, k ? ", " : "{");
    jsonw_string(&name, r->plan->key[k], strlen(r->plan->key[k]));
    buf_adds(&name, r->n[k] == PARQUET_NULL ? ": null" : r->plan->ids ? ": " : ": \"");
    int code = line_add(&l->line, &name, e);
    buf_finish(&name);
    l->scan.value[k].kind = r->n[k] == PARQUET_NULL ? JSONL_OTHER : JSONL_STRING;
    if (code || r->n[k] == PARQUET_NULL)
        return code;
    if (r->plan->ids)
        return move_list(r, k, l, e);
    code = move_text(r, k, l, &good, e);
    if (!code)
        code = line_adds(&l->line, "\"", e);
    if (!code && good != UINT64_MAX && !item_bads(it)) {
        err_set(e, ERR_DATA, "\"%s\": byte %" PRIu64 ": invalid UTF-8", r->plan->key[k], good);
        item_add_bad(it, 0, NULL, 0, e);
    }
    return code;
}

static int fill_long(struct rows *r, struct item *it, struct err *e)
{
    it->kind = ITEM_LONG;
    int code = longrec_create(r->plan, &it->large, e);
    for (size_t k = 0; k < r->plan->nkeys && !code; k++)
        code = move_value(r, k, it, e);
    if (!code)
        code = line_adds(&it->large->line, "}", e);
    if (!code && it->large->line.fd >= 0)
        code = spill_flush(&it->large->line, e);
    return code;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static uint64_t row_bytes(const struct rows *r)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < r->plan->nkeys; k++)
        sum += r->n[k] == PARQUET_NULL ? 0 : r->n[k]; /* each below 4 GiB */
    return sum;
}

static int add_parquet_row(struct rows *r, struct item *it, struct err *e)
{
    size_t n = r->plan->nkeys;
    buf_add(&it->run, r->n, n * sizeof(*r->n));
    for (size_t k = 0; k < n; k++) {
        size_t bytes = r->n[k] == PARQUET_NULL ? 0 : (size_t)r->n[k];
        int code = parquet_take(r->file, k, buf_reserve(&it->text, bytes), bytes, e);
        if (code)
            return code;
        it->text.len += bytes;
    }
    return 0;
}

int rows_fill(struct rows *r, struct item *it, bool *ret_any, struct err *e)
{
    size_t rows = 0, longest = lines_share(LINES_LONG, r->plan->growth);
    int code = 0;
    it->kind = ITEM_ROWS;
    while (!code && rows < ROWS_MOST && it->text.len < lines_share(LINES_BLOCK, r->plan->growth)) {
        bool more = true;
        if (!r->held)
            code = parquet_next(r->file, r->n, &more, e);
        if (code || !more)
            break;
        r->held = row_bytes(r) > longest && rows;
        if (r->held)
            break;
        rows++;
        if (row_bytes(r) > longest) {
            code = fill_long(r, it, e);
            break;
        }
        code = add_parquet_row(r, it, e);
    }
    *ret_any = rows > 0;
    return code;
}

void rows_json(struct buf *to, const char *const *key, size_t nkeys, bool ids, const char *text,
               const uint64_t *n)
{
    for (size_t k = 0; k < nkeys; k++) {
        buf_adds(to, k ? ", " : "{");
        jsonw_string(to, key[k], strlen(key[k]));
        buf_adds(to, ": ");
        if (n[k] == PARQUET_NULL) {
            buf_adds(to, "null");
            continue;
        }
        if (ids) {
            buf_addc(to, '[');
            json_ids(to, true, text, (size_t)n[k]);
            buf_addc(to, ']');
        } else {
            jsonw_string(to, text, (size_t)n[k]);
        }
        text += n[k];
    }
    buf_addc(to, '}');
}
